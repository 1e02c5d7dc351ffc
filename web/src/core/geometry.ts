// Where lines between nodes run: links straight or bent beside each other, flows as arcs around the network.

export interface Point {
  x: number;
  y: number;
}

/** A box by its middle. */
export interface Box extends Point {
  width: number;
  height: number;
}

/** From `a` to `b`, bent towards `control`: the curve is that of a quadratic Bézier. */
export interface Bow {
  a: Point;
  control: Point;
  b: Point;
}

export const NODE_WIDTH = 88;
export const NODE_HEIGHT = 60;
// Between two links of the same two nodes.
const APART = 46;
// How far arcs stand off: the least, for each unit of length, and for each further flow of the same two hosts.
const ARC = 56;
const ARC_SHARE = 0.1;
const ARC_RANK = 30;
// All arcs of two hosts stand within this: a thousand would be far out of sight, and the hosts with them.
const ARC_RANKS = 480;

/** The `twin`th of the `twins` links of two nodes. */
export function linkBow(a: Point, b: Point, twin = 0, twins = 1): Bow {
  return bowed(a, b, -(twin - (twins - 1) / 2) * APART);
}

/** A flow's arc, the `rank`th of the `ranks` of its two hosts, on the side of them that is away from the network's middle. */
export function flowBow(a: Point, b: Point, rank: number, ranks: number, middle: Point): Bow {
  const length = Math.hypot(b.x - a.x, b.y - a.y);
  const height = ARC + ARC_SHARE * length + Math.min(ARC_RANK, ARC_RANKS / ranks) * rank;
  const up = bowed(a, b, height);
  const aside = { x: (b.y - a.y) / (length || 1), y: -(b.x - a.x) / (length || 1) };
  const away = aside.x * ((a.x + b.x) / 2 - middle.x) + aside.y * ((a.y + b.y) / 2 - middle.y);
  // Through the middle: over the network.
  const over = Math.abs(away) < NODE_HEIGHT / 3 ? aside.y <= 0 : away > 0;
  return over ? up : bowed(a, b, -height);
}

// With its middle `height` beside the straight line: to the left of someone who goes from `a` to `b`.
function bowed(a: Point, b: Point, height: number): Bow {
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  return {
    a,
    b,
    control: {
      x: (a.x + b.x) / 2 + (2 * height * (b.y - a.y)) / length,
      y: (a.y + b.y) / 2 - (2 * height * (b.x - a.x)) / length,
    },
  };
}

/** The point at a share of the way, 0 to 1. */
export function along({ a, control, b }: Bow, share: number): Point {
  const [p, q, r] = [(1 - share) ** 2, 2 * share * (1 - share), share ** 2];
  return { x: p * a.x + q * control.x + r * b.x, y: p * a.y + q * control.y + r * b.y };
}

/** Which way it goes there, as a vector of length 1. */
export function heading({ a, control, b }: Bow, share: number): Point {
  const x = (1 - share) * (control.x - a.x) + share * (b.x - control.x);
  const y = (1 - share) * (control.y - a.y) + share * (b.y - control.y);
  const length = Math.hypot(x, y) || 1;
  return { x: x / length, y: y / length };
}

/** Where a line from a node's middle towards a point leaves the node. */
export function border(centre: Point, towards: Point): Point {
  const [dx, dy] = [towards.x - centre.x, towards.y - centre.y];
  const share = Math.min(NODE_WIDTH / 2 / (Math.abs(dx) || 1e-9), NODE_HEIGHT / 2 / (Math.abs(dy) || 1e-9), 1);
  return { x: centre.x + dx * share, y: centre.y + dy * share };
}

export function overlaps(one: Box, other: Box, gap = 0): boolean {
  return (
    Math.abs(one.x - other.x) < (one.width + other.width) / 2 + gap && Math.abs(one.y - other.y) < (one.height + other.height) / 2 + gap
  );
}

export function contains(outer: Box, inner: Box): boolean {
  return (
    Math.abs(inner.x - outer.x) <= (outer.width - inner.width) / 2 && Math.abs(inner.y - outer.y) <= (outer.height - inner.height) / 2
  );
}

export function inside({ x, y }: Point, box: Box): boolean {
  return Math.abs(x - box.x) < box.width / 2 && Math.abs(y - box.y) < box.height / 2;
}

/** The middle of what these points span. */
export function middleOf(points: Point[]): Point {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  return { x: (Math.min(...xs) + Math.max(...xs)) / 2, y: (Math.min(...ys) + Math.max(...ys)) / 2 };
}
