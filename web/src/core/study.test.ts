import { describe, expect, it } from "vitest";
import type { StudyCell } from "../backend/backend";
import { firstAxes, resumed } from "./study";

const study = (axes: string[], cells: Record<string, string>[]) => ({
  axes: Object.fromEntries(axes.map((name) => [name, []])),
  cells: cells.map((labels) => ({ labels }) as unknown as StudyCell),
});

describe("the axes that a study is shown by at first", () => {
  it("are the last and the first where all cells have them", () => {
    const all = { cc: "reno", rtt: "1 ms", loss: "0 %" };
    expect(firstAxes(study(["cc", "rtt", "loss"], [all, all]))).toEqual(["loss", "cc"]);
  });

  it("are those that most cells have, where parts of a study vary other things", () => {
    const cells: Record<string, string>[] = [{ queue: "red", test: "1" }, { queue: "pie", test: "1" }, { setting: "codel" }];
    expect(firstAxes(study(["queue", "test", "setting"], cells))).toEqual(["test", "queue"]);
  });

  it("are one, or none, where there are no more", () => {
    expect(firstAxes(study(["cc"], [{ cc: "reno" }]))).toEqual(["cc", ""]);
    expect(firstAxes(study([], []))).toEqual(["", ""]);
  });
});

describe("what a study that is resumed will run", () => {
  const runs = (...all: string[]) => all.map((status, repetition) => ({ cell: "", repetition, status, message: "" }));

  it("is what is missing and what failed", () => {
    expect(resumed({ missing: 1, runs: runs("done") })).toBe("1 run is missing");
    expect(resumed({ missing: 2, runs: runs("done", "failed", "failed") })).toBe("2 runs failed");
    expect(resumed({ missing: 3, runs: runs("done", "failed") })).toBe("2 runs are missing, 1 run failed");
  });
});
