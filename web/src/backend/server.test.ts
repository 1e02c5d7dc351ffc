import { afterEach, describe, expect, it, vi } from "vitest";
import { server } from "./server";

describe("a server that is gone", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("is named by its address, with what to do", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
    const stopped = server(new URL("http://127.0.0.1:8020/lab/")).stop("run-1");
    await expect(stopped).rejects.toThrow("no answer from http://127.0.0.1:8020/lab: check that tcplab ui still runs there");
  });
});
