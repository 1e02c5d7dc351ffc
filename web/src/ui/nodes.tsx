// A node of the drawing.

import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { type CSSProperties, memo } from "react";
import type { NodeKind } from "../core/network";
import { Icon } from "./icons";

export type Device = Node<{ kind: NodeKind; name: string; fit: number; wrong?: string[] }, "device">;

const SIDES = [Position.Left, Position.Right, Position.Top, Position.Bottom];

export const DeviceNode = memo(function DeviceNode({ data, selected }: NodeProps<Device>) {
  return (
    <div className={`device ${data.kind} ${selected ? "selected" : ""} ${data.wrong ? "wrong" : ""}`} title={data.wrong?.join("\n") ?? data.name} data-node={data.name}>
      {SIDES.map((side) => (
        // For the pointer alone: the keys L and F do the same.
        <Handle key={side} id={side} type="source" position={side} aria-hidden="true" />
      ))}
      <Icon name={data.kind} />
      <span className="called" style={{ "--fit": data.fit } as CSSProperties}>
        {data.name}
      </span>
      {data.wrong && <span className="badge">!</span>}
    </div>
  );
});
