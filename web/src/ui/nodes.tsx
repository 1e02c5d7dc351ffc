// A node of the drawing.

import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { type CSSProperties, memo } from "react";
import { Icon, nodeIcon } from "./icons";

export type Device = Node<{ kind: string; forwards: boolean; bridges: boolean; name: string; fit: number; wrong?: string[] }, "device">;

const SIDES = [Position.Left, Position.Right, Position.Top, Position.Bottom];

export const DeviceNode = memo(function DeviceNode({ data, selected }: NodeProps<Device>) {
  return (
    <div className={`device ${data.kind} ${data.forwards ? "forwards" : ""} ${data.bridges ? "bridges" : ""} ${selected ? "selected" : ""} ${data.wrong ? "wrong" : ""}`} title={data.wrong?.join("\n") ?? data.name} data-node={data.name}>
      {SIDES.map((side) => (
        // For the pointer alone: the keys L and F do the same.
        <Handle key={side} id={side} type="source" position={side} aria-hidden="true" />
      ))}
      <Icon name={nodeIcon(data.kind, data)} />
      <span className="called" style={{ "--fit": data.fit } as CSSProperties}>
        {data.name}
      </span>
      {data.wrong && <span className="badge">!</span>}
    </div>
  );
});
