// How large the name of a node may be written: it may reach beyond its node as far as no other node's name is met.

import { type Box, NODE_HEIGHT, NODE_WIDTH } from "./geometry";

// Between two names, and between a name and the border of its node.
const GAP = 6;
// No name needs more.
const WIDEST = 20 * NODE_WIDTH;

export type Named = Box & { name: string };

/**
 * The largest scale of each name, in the order of `nodes`; `width` measures a name at scale 1. Neighbours share the
 * room between them equally.
 */
export function fitted(nodes: Named[], width: (name: string) => number): number[] {
  return nodes.map((node) => {
    const beside = nodes.flatMap((other) =>
      other !== node && Math.abs(other.y - node.y) < NODE_HEIGHT ? [Math.abs(other.x - node.x)] : [],
    );
    const room = Math.max(NODE_WIDTH, Math.min(...beside, WIDEST)) - GAP;
    return room / width(node.name);
  });
}

// Of a label at this size, the width that a name may have, and the part of its size below which it is cut rather than written smaller.
const LONGEST = 150;
const SMALLEST = 0.75;
// In larger drawings names of neighbours become smaller still: they are for those who zoom in.
const MAX_SMALLEST = 1.6;

/** How a name of this width is written: its size, the room it has, and whether it is wider than its node. */
export function written(width: number, scale: number, fit: number): { size: number; room: number; beyond: boolean } {
  const room = Math.min(width * fit, LONGEST * scale);
  const size = Math.max(Math.min(scale, (room - 2 * GAP) / width), SMALLEST * Math.min(scale, MAX_SMALLEST));
  return { size, room, beyond: Math.min(width * size, room) > NODE_WIDTH - GAP };
}

/** The width of a node with its name as it is written: no less than the node's own. */
export function widthWithName(width: number, scale: number, fit: number): number {
  const { size, room } = written(width, scale, fit);
  return Math.max(NODE_WIDTH, Math.min(width * size + GAP, room));
}
