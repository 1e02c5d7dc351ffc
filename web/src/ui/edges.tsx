// Links as lines, flows as arcs around them. Their text is in Labels.

import { BaseEdge, type Edge, type EdgeProps, useInternalNode } from "@xyflow/react";
import { border, type Bow, flowBow, linkBow, type Point } from "../core/geometry";
import { centre } from "../core/scene";

type LinkData = { twin: number; twins: number; wrong?: string[] };
type FlowData = { colour: number; rank: number; ranks: number; middle: Point; wrong?: string[] };

function useCentre(id: string): Point | undefined {
  const node = useInternalNode(id);
  return node && centre(node.internals.positionAbsolute);
}

function pathOf({ a, control, b }: Bow): { path: string; end: Point } {
  const [start, end] = [border(a, control), border(b, control)];
  return { path: `M${start.x},${start.y} Q${control.x},${control.y} ${end.x},${end.y}`, end };
}

export function LinkEdge({ id, source, target, selected, data }: EdgeProps<Edge<LinkData>>) {
  const [a, b] = [useCentre(source), useCentre(target)];
  if (!a || !b || !data) return null;
  const { twin, twins, wrong } = data;
  const { path } = pathOf(linkBow(a, b, twin, twins));
  return <BaseEdge id={id} path={path} interactionWidth={18} className={`wire ${selected ? "selected" : ""} ${wrong ? "wrong" : ""}`} />;
}

export function FlowEdge({ id, source, target, selected, data }: EdgeProps<Edge<FlowData>>) {
  const [a, b] = [useCentre(source), useCentre(target)];
  if (!a || !b || !data) return null;
  const { colour, rank, ranks, middle, wrong } = data;
  const { path, end } = pathOf(flowBow(a, b, rank, ranks, middle));
  return (
    <>
      <BaseEdge
        id={id}
        path={path}
        interactionWidth={16}
        className={`arc ${selected ? "selected" : ""} ${wrong ? "wrong" : ""} flow-${colour % 10}`}
        markerEnd={undefined}
      />
      <circle cx={end.x} cy={end.y} r={4} className={`arc-end flow-${colour % 10}`} />
    </>
  );
}
