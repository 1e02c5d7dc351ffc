import { describe, expect, it } from "vitest";
import type { StudyCell } from "../backend/backend";
import { firstAxes, progressOf, resumed } from "./study";

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
  it("is what is missing and what failed, but nothing that the engine refuses", () => {
    expect(resumed({ missing: 1, failed: 0, refused: 2 })).toBe("make 1 missing run");
    expect(resumed({ missing: 0, failed: 2, refused: 0 })).toBe("repeat 2 failed runs");
    expect(resumed({ missing: 2, failed: 1, refused: 0 })).toBe("make 2 missing runs, repeat 1 failed run");
    expect(resumed({ missing: 0, failed: 0, refused: 2 })).toBe("");
  });
});

describe("a study that goes on", () => {
  const job = { repetition: 0, repeat: 0, reporting: false };

  it("says what it does", () => {
    expect(progressOf(job)).toBe("starting");
    expect(progressOf({ ...job, repeat: 1 })).toBe("0 of 1 run");
    expect(progressOf({ ...job, repetition: 3, repeat: 18 })).toBe("3 of 18 runs");
    expect(progressOf({ ...job, repetition: 18, repeat: 18, reporting: true })).toBe("writing the report");
  });
});
