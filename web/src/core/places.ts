// Where nodes stand on the canvas when no one has moved them.

import { NODE_HEIGHT, NODE_WIDTH } from "./geometry";
import type { Drawing } from "./network";

export type Places = Record<string, { x: number; y: number }>;

/** Whether both have the same nodes at the same places. */
export function samePlaces(one: Places, other: Places): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name]!.x === other[name]?.x && one[name]!.y === other[name]?.y);
}

// A node and what a link says of itself fit in a column.
export const COLUMN = 300;
export const ROW = 120;

/** Positions for all nodes: those that are known, and for the others columns by distance from the senders. */
export function places(drawing: Drawing, known: Places): Places {
  const missing = drawing.nodes.filter((node) => !known[node.name]);
  if (!missing.length) return known;
  const kept = Object.fromEntries(drawing.nodes.flatMap((node) => (known[node.name] ? [[node.name, known[node.name]!]] : [])));
  if (Object.keys(kept).length) return { ...beside(drawing, kept), ...kept };
  return columns(drawing);
}

// How much of the room the nodes themselves take: arcs and labels stand around them.
const SHARE = 0.8;
const MAX_STRETCH = 5;

/** The zoom at which all nodes are seen in this room. */
export function seenAt(found: Places, room: { width: number; height: number }): number {
  const { width, height } = spanOf(found);
  return Math.min(1, room.width / (width + NODE_WIDTH), room.height / (height + NODE_HEIGHT));
}

function spanOf(found: Places): { width: number; height: number } {
  const all = Object.values(found);
  const span = (axis: "x" | "y") => Math.max(...all.map((at) => at[axis])) - Math.min(...all.map((at) => at[axis]));
  return { width: span("x"), height: span("y") };
}

/** Further apart along one axis, as far as that makes nothing smaller when all of it is seen in this room. */
export function stretched(found: Places, axis: "x" | "y", room: { width: number; height: number }): Places {
  const { width, height } = spanOf(found);
  const aspect = room.width / room.height;
  const [now, wanted] = axis === "x" ? [width, (height + NODE_HEIGHT) * aspect * SHARE - NODE_WIDTH] : [height, ((width + NODE_WIDTH) / aspect) * SHARE - NODE_HEIGHT];
  const factor = now > 0 ? Math.min(MAX_STRETCH, wanted / now) : 1;
  if (!(factor > 1)) return found;
  return Object.fromEntries(Object.entries(found).map(([name, at]) => [name, { ...at, [axis]: Math.round((at[axis] * factor) / 10) * 10 }]));
}

function columns(drawing: Drawing): Places {
  const neighbours = new Map<string, string[]>(drawing.nodes.map((node) => [node.name, []]));
  for (const { ends } of drawing.links) {
    neighbours.get(ends[0])?.push(ends[1]);
    neighbours.get(ends[1])?.push(ends[0]);
  }
  const senders = drawing.flows.map((flow) => flow.from).filter((name) => neighbours.has(name));
  const sinks = new Set(drawing.flows.map((flow) => flow.to));
  const first = senders.filter((name) => !sinks.has(name));
  const queue = [...new Set(first.length ? first : senders.length ? senders.slice(0, 1) : drawing.nodes.slice(0, 1).map((node) => node.name))];
  const depth = new Map(queue.map((name) => [name, 0]));
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    for (const next of neighbours.get(name) ?? []) {
      if (depth.has(next)) continue;
      depth.set(next, depth.get(name)! + 1);
      queue.push(next);
    }
  }
  const byColumn = new Map<number, string[]>();
  for (const { name } of drawing.nodes) {
    const column = depth.get(name) ?? 0;
    byColumn.set(column, [...(byColumn.get(column) ?? []), name]);
  }
  const tallest = Math.max(...[...byColumn.values()].map((names) => names.length));
  const found: Places = {};
  for (const [column, names] of byColumn) {
    names.forEach((name, row) => {
      found[name] = { x: column * COLUMN, y: (row + (tallest - names.length) / 2) * ROW };
    });
  }
  return found;
}

// A new node stands beside its first neighbour. Without one it stands below everything, two in a row and every other row
// further right: three nodes in a line would hide a link between the outer ones.
function beside(drawing: Drawing, known: Places): Places {
  const found: Places = { ...known };
  const free = (x: number, y: number) => {
    let at = { x, y };
    while (Object.values(found).some((other) => Math.abs(other.x - at.x) < 90 && Math.abs(other.y - at.y) < 60)) {
      at = { x: at.x, y: at.y + ROW };
    }
    return at;
  };
  const below = () => {
    const all = Object.values(found);
    const left = Math.min(...all.map(({ x }) => x));
    const bottom = Math.max(...all.map(({ y }) => y));
    const row = all.filter(({ y }) => y === bottom).map(({ x }) => x);
    if (row.length === 1) return free(row[0]! + COLUMN, bottom);
    return free(row.includes(left) ? left + COLUMN / 2 : left, bottom + ROW);
  };
  for (const { name } of drawing.nodes) {
    if (found[name]) continue;
    const link = drawing.links.find(({ ends }) => ends.includes(name) && ends.some((end) => found[end]));
    const near = link && found[link.ends.find((end) => found[end])!];
    found[name] = near ? free(near.x + COLUMN, near.y) : below();
  }
  return found;
}
