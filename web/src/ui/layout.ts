// Automatic layout, in a worker that is loaded when it is first asked for.

import type { ELK } from "elkjs/lib/elk-api";
import type { Drawing } from "../core/network";
import type { Places } from "../core/places";
import { NODE_HEIGHT, NODE_WIDTH } from "./nodes";

let elk: Promise<ELK> | undefined;

async function load(): Promise<ELK> {
  const [{ default: Elk }, { default: address }] = await Promise.all([
    import("elkjs/lib/elk-api.js"),
    import("elkjs/lib/elk-worker.min.js?url"),
  ]);
  return new Elk({ workerFactory: () => new Worker(address) });
}

export async function automatic(drawing: Drawing): Promise<Places> {
  elk ??= load();
  const found = await (await elk).layout({
    id: "root",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": "RIGHT",
      // Wide enough for what a link says of itself.
      "elk.layered.spacing.nodeNodeBetweenLayers": "180",
      "elk.spacing.nodeNode": "60",
      "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
    },
    children: drawing.nodes.map((node) => ({ id: node.name, width: NODE_WIDTH, height: NODE_HEIGHT })),
    edges: drawing.links.map((link) => ({ id: link.name, sources: [link.ends[0]], targets: [link.ends[1]] })),
  });
  const round = (value = 0) => Math.round(value / 10) * 10;
  return Object.fromEntries((found.children ?? []).map((node) => [node.id, { x: round(node.x), y: round(node.y) }]));
}
