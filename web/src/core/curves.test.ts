import { expect, test } from "vitest";
import { inWords, type Line } from "./curves";

const line: Line = { panel: "cwnd", label: "bulk", unit: "segments", run: 0, x: [0, 1, 2], y: [1, 9, 2] };

test("a curve comes to the mean of its samples, not of the extremes that are drawn", () => {
  expect(inWords([{ ...line, mean: 1.5 }])).toBe("bulk mean 1.50 segments");
  expect(inWords([{ ...line, y: [1, NaN, 2] }])).toBe("bulk mean 1.50 segments");
});

test("a distribution comes to its median, in the unit of its abscissa", () => {
  const shares = { ...line, across: "s", unit: "", x: [0.01, 0.02, 0.05], y: [0.2, 0.6, 1] };
  expect(inWords([shares])).toBe("bulk median 20 ms");
});

test("the ghost of the former result has no words", () => {
  expect(inWords([{ ...line, run: -1 }])).toBe("");
});
