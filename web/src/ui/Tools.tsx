// The tools above the drawing: what to add, how to join, where to put.

import type { NodeKind } from "../core/kinds";
import { Icon, nodeIcon } from "./icons";
import { type Layout, LAYOUTS } from "./layout";
import { Menu } from "./Menu";
import { removeSelected } from "./selected";
import { use, useStore } from "./use";

/** The type of what is dragged from here onto the drawing: a kind of node. */
export const DRAGGED = "application/x-tcplab-node";

interface Props {
  tool: "link" | "flow";
  /** How many nodes are selected. */
  chosen: number;
  add: (kind: NodeKind) => void;
  use: (tool: "link" | "flow") => void;
  arrange: (layout: Layout) => void;
  align: () => void;
  duplicate: () => void;
  zoom: { nearer: () => void; farther: () => void; whole: () => void };
}

export function Tools({ tool, chosen, add, use: choose, arrange, align, duplicate, zoom }: Props) {
  const store = useStore();
  const count = use((state) => state.drawing.nodes.length);
  const selected = use((state) => state.selection.length);
  const { nodes } = use((state) => state.kinds);
  return (
    <div className="tools" role="toolbar" aria-label="Draw">
      <div className="toolset">
        {nodes.map((kind) => (
          <button
            key={kind.name}
            draggable
            onDragStart={(event) => event.dataTransfer.setData(DRAGGED, kind.name)}
            onClick={() => add(kind)}
            title={`Add ${/^[aeiou]/.test(kind.name) ? "an" : "a"} ${kind.name} (${kind.name[0]!.toUpperCase()}), or drag it onto the canvas. ${kind.about}`}
          >
            <Icon name={nodeIcon(kind.name, kind)} /> {kind.name[0]!.toUpperCase() + kind.name.slice(1)}
          </button>
        ))}
      </div>
      <div className="toolset">
        <button aria-pressed={tool === "link"} onClick={() => choose("link")} title="Drag from one node's edge to another to link them, or select both and press L">
          Link
        </button>
        <button aria-pressed={tool === "flow"} onClick={() => choose("flow")} title="Drag from one host's edge to another to send a flow, or select both and press F">
          <Icon name="flow" /> Flow
        </button>
      </div>
      <div className="toolset">
        <Menu className="layouts" label="Arrange automatically" title="Arrange automatically" button={<Icon name="layout" />}>
          {(close) =>
            LAYOUTS.map(([layout, name, about]) => (
              <button key={layout} disabled={count < 2} onClick={() => (close(), arrange(layout))}>
                {name}
                <small>{about}</small>
              </button>
            ))
          }
        </Menu>
        <button onClick={align} disabled={chosen < 2} title="Align the selected nodes" aria-label="Align">
          <Icon name="align" />
        </button>
        <button onClick={duplicate} disabled={!chosen} title="Duplicate (Ctrl+D)" aria-label="Duplicate">
          <Icon name="copy" />
        </button>
        <button onClick={() => removeSelected(store)} disabled={!selected} title="Delete" aria-label="Delete">
          <Icon name="trash" />
        </button>
      </div>
      <div className="toolset">
        <button onClick={zoom.farther} disabled={!count} title="Zoom out (−)" aria-label="Zoom out">
          <Icon name="minus" />
        </button>
        <button onClick={zoom.nearer} disabled={!count} title="Zoom in (+)" aria-label="Zoom in">
          <Icon name="plus" />
        </button>
        <button onClick={zoom.whole} disabled={!count} title="Show everything (0)" aria-label="Show everything">
          <Icon name="fit" />
        </button>
      </div>
    </div>
  );
}
