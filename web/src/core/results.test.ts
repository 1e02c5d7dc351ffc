import { expect, test } from "vitest";
import { resultName, studyResult, when } from "./results";

test("a result is called by its scenario, or by the directory that was named by hand", () => {
  expect(resultName({ path: "runs/small-20260101-120000", name: "small" })).toBe("small");
  expect(resultName({ path: "runs/small-20260101-120000-2", name: "small" })).toBe("small");
  expect(resultName({ path: "runs/with-bbr", name: "small" })).toBe("with-bbr");
});

test("a result of a study is called by the study, or by the directory that was named by hand", () => {
  expect(studyResult("runs/study-bgp-two-as-20260102-120304")).toEqual({ name: "bgp-two-as", started: "2026-01-02T12:03:04" });
  expect(studyResult("runs/aqm-again")).toEqual({ name: "aqm-again", started: "" });
});

test("results of today are distinguished by the second", () => {
  const now = new Date("2026-01-02T13:00:00");
  expect(when("2026-01-02T12:03:04", now)).toBe("12:03:04");
  expect(when("2026-01-01T12:03:04", now)).toBe("1 Jan, 12:03");
  expect(["", "soon"].map((one) => when(one, now))).toEqual(["", ""]);
});
