// Automatic layouts, made in a worker that is loaded when the first one is asked for.

import type { ELK, LayoutOptions } from "elkjs/lib/elk-api";
import { NODE_HEIGHT, NODE_WIDTH } from "../core/geometry";
import { LINE_HEIGHT, type Lines, linkSayings } from "../core/labels";
import type { Kinds } from "../core/kinds";
import type { Drawing } from "../core/network";
import { persistently } from "../core/persistently";
import { type Places, seenAt, stretched } from "../core/places";
import { enlarged, MAX_NAME, measured, measuredName } from "./Labels";

export type Layout = "right" | "down" | "tree" | "even";

export const LAYOUTS: [Layout, string, string][] = [
  ["right", "Left to right", "Columns, in the direction of the links"],
  ["down", "Top to bottom", "Rows, in the direction of the links"],
  ["tree", "Tree", "From one node downwards"],
  ["even", "Spread evenly", "Neighbours near each other, for meshes and rings"],
];

interface Room {
  width: number;
  height: number;
}

let elk: Promise<ELK> | undefined;

async function load(): Promise<ELK> {
  const [{ default: Elk }, { default: address }] = await Promise.all([
    import("elkjs/lib/elk-api.js"),
    import("elkjs/lib/elk-worker.min.js?url"),
  ]);
  return new Elk({ workerFactory: () => new Worker(address) });
}

// In the order in which the scenario names them, each in the middle of its neighbours.
const LAYERED: LayoutOptions = {
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
  "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
  "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
};
const [MIN_GAP, MAX_GAP] = [100, 240];
// Between networks that no link joins: the arcs of flows go over theirs.
const ROOM_FOR_ARCS = 70;

/** Options that leave room for what links say: `across` where they lie, `high` where they stand, `apart` between networks. */
function optionsOf(layout: Layout, across: number, high: number, apart: number): LayoutOptions {
  return { "elk.spacing.componentComponent": `${apart}`, ...ofKind(layout, across, high) };
}

function ofKind(layout: Layout, across: number, high: number): LayoutOptions {
  switch (layout) {
    case "right":
      return {
        "elk.algorithm": "layered",
        "elk.direction": "RIGHT",
        "elk.layered.spacing.nodeNodeBetweenLayers": `${across}`,
        "elk.spacing.nodeNode": "50",
        ...LAYERED,
      };
    case "down":
      return {
        "elk.algorithm": "layered",
        "elk.direction": "DOWN",
        "elk.layered.spacing.nodeNodeBetweenLayers": `${high}`,
        "elk.spacing.nodeNode": `${across / 3}`,
        ...LAYERED,
      };
    case "tree":
      return { "elk.algorithm": "mrtree", "elk.direction": "DOWN", "elk.spacing.nodeNode": `${Math.max(high, across / 2)}` };
    case "even":
      return { "elk.algorithm": "stress", "elk.stress.desiredEdgeLength": `${across + NODE_WIDTH}`, "elk.spacing.nodeNode": "80" };
  }
}

/** Places for all nodes; `room` is where they will be seen, px. */
export async function automatic(drawing: Drawing, kinds: Kinds, room: Room, layout: Layout = "right"): Promise<Places> {
  elk ??= persistently(load);
  const tool = await elk;
  const said = drawing.links.map(linkSayings);
  const sayings = said.map(([, stacked]) => stacked ?? []);
  const wide = (lines: Lines[]) => Math.max(0, ...lines.flat().map((words) => words.reduce((sum, { text }) => sum + measured(text) + 6, 12)));
  const widest = wide(sayings);
  const rows = Math.max(1, ...sayings.map((lines) => lines.length));
  // Of a network that was not drawn by hand, hosts stand at the end, whichever way their links are named.
  const hosts = new Set(drawing.generated ? drawing.nodes.flatMap(({ kind, name }) => (kinds.nodes.some((one) => one.ends_flows && one.name === kind) ? [name] : [])) : []);
  const attempt = async (across: number, scale: number) => {
    // A name as large as it will be written: its node is in the middle of it.
    const widths = new Map(drawing.nodes.map(({ name }) => [name, Math.max(NODE_WIDTH, measuredName(name) * scale)]));
    const found = await tool.layout({
      id: "root",
      layoutOptions: optionsOf(layout, across, rows * LINE_HEIGHT + 40, drawing.flows.length ? ROOM_FOR_ARCS : 40),
      children: drawing.nodes.map(({ name }) => ({ id: name, width: widths.get(name)!, height: NODE_HEIGHT })),
      edges: drawing.links.map((link) => {
        const [from, to] = hosts.has(link.ends[0]) ? [link.ends[1], link.ends[0]] : link.ends;
        return { id: link.name, sources: [from], targets: [to] };
      }),
    });
    const round = (value = 0) => Math.round(value / 10) * 10;
    return Object.fromEntries((found.children ?? []).map((node) => [node.id, { x: round((node.x ?? 0) + (widths.get(node.id)! - NODE_WIDTH) / 2), y: round(node.y) }]));
  };
  // Room for a label under its link, between two nodes.
  const least = Math.min(MAX_GAP, Math.max(MIN_GAP, widest + 12));
  let found = await attempt(least, 1);
  const scale = enlarged(seenAt(found, room));
  if (scale > 1) found = await attempt(least, Math.min(scale, MAX_NAME));
  if (layout === "even") return found;
  if (layout !== "right") return stretched(found, "y", room);
  const columns = new Set(Object.values(found).map(({ x }) => x)).size;
  // Each thing in a line of its own, unless there is room for more.
  const ample = gapFor(wide(said.map(([full]) => full ?? [])), columns, room.width);
  const gap = ample < MAX_GAP ? ample : gapFor(widest, columns, room.width);
  return stretched(gap > least ? await attempt(gap, Math.min(scale, MAX_NAME)) : found, "x", room);
}

/**
 * The gap between columns that a label of this width needs when all of them are seen in so much room. The more
 * columns, the smaller the nodes, while letters stay as large as can be read.
 */
export function gapFor(label: number, columns: number, room: number): number {
  const share = label / room;
  const left = 1 - share * (columns - 1);
  const gap = left > 0 ? (share * columns * NODE_WIDTH + 10) / left : Infinity;
  return Math.min(MAX_GAP, Math.max(MIN_GAP, gap));
}
