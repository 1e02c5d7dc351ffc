import { describe, expect, it } from "vitest";
import type { StudyCell } from "../backend/backend";
import { cellName, firstAxes, kindsOf, progressOf, resumed } from "./study";

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

  it("are one where each is varied alone, though the best of each are combined", () => {
    const alone = [{}, { cc: "reno" }, { cc: "vegas" }, { rtt: "1 ms" }, { rtt: "2 ms" }, { rtt: "3 ms" }] as Record<string, string>[];
    expect(firstAxes(study(["cc", "rtt"], alone))).toEqual(["rtt", ""]);
    expect(firstAxes(study(["cc", "rtt"], [...alone, { cc: "reno", rtt: "2 ms" }]))).toEqual(["rtt", ""]);
  });

  it("are one, or none, where there are no more", () => {
    expect(firstAxes(study(["cc"], [{ cc: "reno" }]))).toEqual(["cc", ""]);
    expect(firstAxes(study([], []))).toEqual(["", ""]);
  });
});

describe("a cell", () => {
  const cells = [{ labels: {}, group: "baseline" }, { labels: { rtt: "1 ms" }, group: "RTT" }, { labels: { rtt: "2 ms" }, group: "RTT" }] as unknown as StudyCell[];

  it("is distinguished by its group, or by its value of the first axis", () => {
    expect(kindsOf({ axes: { rtt: ["1 ms", "2 ms"] }, cells }).values).toEqual(["baseline", "RTT"]);
    const { values, of } = kindsOf(study(["rtt"], [{ rtt: "1 ms" }, { cc: "reno" }]));
    expect([values, of({ labels: { cc: "reno" } } as unknown as StudyCell)]).toEqual([[], ""]);
  });

  it("is called by its values, or by its group", () => {
    expect(cells.map(cellName)).toEqual(["baseline", "1 ms", "2 ms"]);
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
