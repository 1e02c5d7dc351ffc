import { describe, expect, it } from "vitest";
import { NODE_HEIGHT, NODE_WIDTH } from "./geometry";
import { fitted, written } from "./names";

const node = (name: string, x: number, y = 0) => ({ name, x, y, width: NODE_WIDTH, height: NODE_HEIGHT });
const ten = (name: string) => 10 * name.length;

describe("the size of names", () => {
  it("lets a name reach beyond its node where no other is near", () => {
    const [far, long] = fitted([node("h1", 0), node("a-long-name", 400)], ten);
    expect(far! * 20).toBeCloseTo(394);
    expect(long! * 110).toBeCloseTo(394);
  });

  it("keeps the names of neighbours apart, and those of other rows out of it", () => {
    const nodes = [node("edge1-1", 0), node("edge1-2", 110), node("h1", 20, 2 * NODE_HEIGHT)];
    const [one, other, below] = fitted(nodes, ten);
    expect(one! * 70).toBeLessThanOrEqual(110);
    expect(one).toBe(other);
    expect(below! * 20).toBeGreaterThan(10 * NODE_WIDTH);
  });

  it("shrinks a name that does not fit its node", () => {
    expect(fitted([node("a-rather-long-name", 0), node("b", NODE_WIDTH)], ten)[0]! * 180).toBeLessThanOrEqual(NODE_WIDTH);
  });

  it("knows a name that is wider than its node, and cuts it where it would be too small to read", () => {
    expect(written(60, 1, 5)).toEqual({ size: 1, room: 150, beyond: false });
    expect(written(60, 2, 5).beyond).toBe(true);
    const cut = written(400, 1, 0.2);
    expect(cut.room).toBeCloseTo(80);
    expect(cut.size).toBe(0.75);
    expect(cut.beyond).toBe(false);
    expect(written(400, 1, 5).room).toBeLessThan(400 * 0.75);
  });
});
