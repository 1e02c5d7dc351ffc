// Links as lines, flows as arcs above them.

import { BaseEdge, type Edge, EdgeLabelRenderer, type EdgeProps, useInternalNode } from "@xyflow/react";
import type { DrawnFlow, DrawnLink } from "../core/network";
import { NODE_HEIGHT, NODE_WIDTH } from "./nodes";
import { useStore } from "./use";

type LinkData = { link: DrawnLink; twin: number; twins: number; wrong?: string[] };
type FlowData = { flow: DrawnFlow; colour: number; rank: number; wrong?: string[] };

interface Point {
  x: number;
  y: number;
}

function useCentre(id: string): Point | undefined {
  const node = useInternalNode(id);
  if (!node) return undefined;
  const { x, y } = node.internals.positionAbsolute;
  return { x: x + (node.measured.width ?? NODE_WIDTH) / 2, y: y + (node.measured.height ?? NODE_HEIGHT) / 2 };
}

export function LinkEdge({ id, source, target, selected, data }: EdgeProps<Edge<LinkData>>) {
  const [a, b] = [useCentre(source), useCentre(target)];
  if (!a || !b || !data) return null;
  const { link, twin, twins, wrong } = data;
  const bend = (twin - (twins - 1) / 2) * 46;
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const middle = { x: (a.x + b.x) / 2 - ((b.y - a.y) / length) * bend, y: (a.y + b.y) / 2 + ((b.x - a.x) / length) * bend };
  const control = { x: 2 * middle.x - (a.x + b.x) / 2, y: 2 * middle.y - (a.y + b.y) / 2 };
  const [start, end] = [edgeOf(a, bend ? control : b), edgeOf(b, bend ? control : a)];
  const path = `M${start.x},${start.y} ${bend ? `Q${control.x},${control.y}` : "L"} ${end.x},${end.y}`;
  return (
    <>
      <BaseEdge id={id} path={path} interactionWidth={18} className={`wire ${selected ? "selected" : ""} ${wrong ? "wrong" : ""}`} />
      <EdgeLabelRenderer>
        <div
          className={`wire-label ${selected ? "selected" : ""} ${wrong ? "wrong" : ""}`}
          style={{ transform: `translate(-50%, -50%) translate(${middle.x}px, ${middle.y + 12}px)` }}
          title={wrong?.join("\n") ?? link.name}
        >
          {link.label}
          {link.impairments.map((impairment) => (
            <em key={impairment}>{impairment}</em>
          ))}
          {link.changes > 0 && <em className="change">{link.changes === 1 ? "changes once" : `changes ${link.changes} times`}</em>}
        </div>
      </EdgeLabelRenderer>
    </>
  );
}

export function FlowEdge({ id, source, target, selected, data }: EdgeProps<Edge<FlowData>>) {
  const store = useStore();
  const [a, b] = [useCentre(source), useCentre(target)];
  if (!a || !b || !data) return null;
  const { flow, colour, rank, wrong } = data;
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  // Over the network, whichever way the flow goes; each further one of the same two hosts a little higher.
  const up = b.x >= a.x ? 1 : -1;
  const height = 56 + length * 0.1 + rank * 30;
  const normal = { x: ((b.y - a.y) / length) * up, y: (-(b.x - a.x) / length) * up };
  const top = { x: (a.x + b.x) / 2 + normal.x * height, y: (a.y + b.y) / 2 + normal.y * height };
  const control = { x: 2 * top.x - (a.x + b.x) / 2, y: 2 * top.y - (a.y + b.y) / 2 };
  // Names of flows that cross stand at different places of their arcs.
  const share = 0.5 + ((colour % 3) - 1) * 0.14;
  const said = {
    x: (1 - share) ** 2 * a.x + 2 * share * (1 - share) * control.x + share ** 2 * b.x,
    y: (1 - share) ** 2 * a.y + 2 * share * (1 - share) * control.y + share ** 2 * b.y,
  };
  const start = edgeOf(a, control);
  const end = edgeOf(b, control);
  return (
    <>
      <BaseEdge
        id={id}
        path={`M${start.x},${start.y} Q${control.x},${control.y} ${end.x},${end.y}`}
        interactionWidth={16}
        className={`arc ${selected ? "selected" : ""} ${wrong ? "wrong" : ""} flow-${colour % 10}`}
        markerEnd={undefined}
      />
      <circle cx={end.x} cy={end.y} r={4} className={`arc-end flow-${colour % 10}`} />
      <EdgeLabelRenderer>
        <div
          className={`arc-label flow-${colour % 10} ${selected ? "selected" : ""} ${wrong ? "wrong" : ""}`}
          style={{ transform: `translate(-50%, -50%) translate(${said.x}px, ${said.y}px)` }}
          title={wrong?.join("\n") ?? `${flow.from} to ${flow.to}`}
          data-flow={flow.name}
          onClick={() => store.set({ selection: [{ kind: "flow", name: flow.name }], sidebar: "settings" })}
        >
          {flow.label}
        </div>
      </EdgeLabelRenderer>
    </>
  );
}

// Where the line from a node's middle towards a point leaves the node.
function edgeOf(centre: Point, towards: Point): Point {
  const [dx, dy] = [towards.x - centre.x, towards.y - centre.y];
  const share = Math.min(NODE_WIDTH / 2 / (Math.abs(dx) || 1e-9), NODE_HEIGHT / 2 / (Math.abs(dy) || 1e-9), 1);
  return { x: centre.x + dx * share, y: centre.y + dy * share };
}
