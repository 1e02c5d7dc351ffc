import { expect, test } from "vitest";
import { axisLabels, inWords, type Line, nearest, reach, shadeOf } from "./curves";

const line: Line = { panel: "cwnd", label: "bulk", unit: "segments", run: 0, x: [0, 1, 2], y: [1, 9, 2] };

test("a curve comes to the mean of its samples, not of the extremes that are drawn", () => {
  expect(inWords([{ ...line, mean: 1.5 }])).toBe("bulk mean 1.50\u00a0segments");
  expect(inWords([{ ...line, y: [1, NaN, 2] }])).toBe("bulk mean 1.50\u00a0segments");
});

test("a distribution comes to its median, in the unit of its abscissa", () => {
  const shares = { ...line, across: "s", unit: "", x: [0.01, 0.02, 0.05], y: [0.2, 0.6, 1] };
  expect(inWords([shares])).toBe("bulk median 20\u00a0ms");
});

test("round trips by size come to those of the smallest and largest message", () => {
  const sizes = { ...line, label: "echo", across: "B", unit: "s", log: true, x: [1, 64, 65536], y: [0.0002, 0.0003, 0.011] };
  expect(inWords([sizes])).toBe("echo 200\u00a0µs at 1\u00a0B to 11\u00a0ms at 65536\u00a0B");
  expect(reach([{ ...sizes, x: [64], y: [1] }])).toEqual([32, 128]);
});

test("of messages by size the one nearest on the logarithmic axis is read", () => {
  const sizes = { ...line, log: true, x: [1, 100, 10000], y: [1, 2, 3] };
  expect([0.5, 9, 11, 999, 1001, 1e6].map((at) => nearest([sizes], at))).toEqual([1, 1, 100, 100, 10000, 10000]);
  expect(nearest([sizes, { ...sizes, x: [1, 64] }], 70)).toBe(64);
  expect(nearest([], 3)).toBe(3);
});

test("the ghost of the former result has no words", () => {
  expect(inWords([{ ...line, run: -1 }])).toBe("");
});

test("runs over a simulation have its colour darker and lighter", () => {
  const page = { text: "#000000", surface: "#ffffff" };
  expect([0, 1, 2, 3].map((run) => shadeOf("#804020", run, page))).toEqual(["#804020", "#402010", "#c0a090", "#402010"]);
});

test("the last number on the axis of time has the unit", () => {
  expect(axisLabels([0, 5, 10], 1, "s", 7)).toEqual(["0", "5", "10\u00a0s"]);
  expect(axisLabels([0, 0.5], 0.001, "", 7)).toEqual(["0", "500"]);
  // A logarithmic axis has no room for some.
  expect(axisLabels([64, null, 4096, null], 1, "B", 7)).toEqual(["64", "", "4096\u00a0B", ""]);
});
