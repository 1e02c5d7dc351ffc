import { describe, expect, it } from "vitest";
import { stretched } from "./places";

describe("an automatic layout", () => {
  const tall = { a: { x: 0, y: 0 }, b: { x: 200, y: 0 }, c: { x: 0, y: 1000 }, d: { x: 200, y: 1000 } };

  it("uses the width of the canvas where it is tall", () => {
    const found = stretched(tall, "x", { width: 800, height: 400 });
    expect(found.b!.x).toBeGreaterThan(900);
    expect(found).toMatchObject({ a: { x: 0, y: 0 }, d: { x: found.b!.x, y: 1000 } });
  });

  it("stays as it is where more width would make it smaller", () => {
    expect(stretched(tall, "y", { width: 800, height: 400 })).toBe(tall);
    expect(stretched({ a: { x: 0, y: 0 }, b: { x: 0, y: 500 } }, "x", { width: 800, height: 400 }).b).toEqual({ x: 0, y: 500 });
  });
});
