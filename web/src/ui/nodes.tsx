// A node of the drawing.

import { Handle, type Node, type NodeProps, Position, useStore } from "@xyflow/react";
import { memo } from "react";
import { written } from "../core/names";
import { Icon, nodeIcon } from "./icons";
import { enlarged, MAX_NAME, measuredName } from "./Labels";

export type Device = Node<{ kind: string; forwards: boolean; bridges: boolean; name: string; fit: number; wrong?: string[] }, "device">;

const SIDES = [Position.Left, Position.Right, Position.Top, Position.Bottom];

export const DeviceNode = memo(function DeviceNode({ data, selected }: NodeProps<Device>) {
  const scale = useStore(({ transform: [, , zoom] }) => enlarged(zoom));
  const name = written(measuredName(data.name), Math.min(scale, MAX_NAME), data.fit);
  return (
    <div className={`device ${data.kind} ${data.forwards ? "forwards" : ""} ${data.bridges ? "bridges" : ""} ${selected ? "selected" : ""} ${data.wrong ? "wrong" : ""}`} title={data.wrong?.join("\n") ?? data.name} data-node={data.name}>
      {SIDES.map((side) => (
        // For the pointer alone: the keys L and F do the same.
        <Handle key={side} id={side} type="source" position={side} aria-hidden="true" />
      ))}
      <Icon name={nodeIcon(data.kind, data)} />
      <span className={name.beyond ? "called beyond" : "called"} style={{ fontSize: 12 * name.size, maxWidth: name.room }}>
        {data.name}
      </span>
      {data.wrong && <span className="badge">!</span>}
    </div>
  );
});
