import { expect, test } from "vitest";
import { resultName } from "./results";

test("a result is called by its scenario, or by the directory that was named by hand", () => {
  expect(resultName({ path: "runs/small-20260101-120000", name: "small" })).toBe("small");
  expect(resultName({ path: "runs/small-20260101-120000-2", name: "small" })).toBe("small");
  expect(resultName({ path: "runs/with-bbr", name: "small" })).toBe("with-bbr");
});
