// The drawing: nodes, links and flows of the scenario, to look at and to edit.

import {
  applyNodeChanges,
  Background,
  BackgroundVariant,
  type Connection,
  ConnectionMode,
  type Edge,
  type EdgeChange,
  type FitViewOptions,
  MiniMap,
  type NodeChange,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode,
  useReactFlow,
} from "@xyflow/react";
import { type DragEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { addFlow, addLink, addNode, paste } from "../core/changes";
import { colourOf } from "../core/curves";
import type { NodeKind } from "../core/network";
import type { Places } from "../core/places";
import { byObject, type Object as Drawn } from "../core/problems";
import { TEMPLATES } from "../core/templates";
import { FlowEdge, LinkEdge } from "./edges";
import { Icon } from "./icons";
import { automatic } from "./layout";
import { DeviceNode, type Device } from "./nodes";
import { PacketLayer } from "./PacketLayer";
import { removeSelected } from "./App";
import { use, useStore } from "./use";

const NODE_TYPES = { device: DeviceNode };
const EDGE_TYPES = { link: LinkEdge, flow: FlowEdge };
// Room for the tools above and for arcs.
const WHOLE: FitViewOptions = { padding: { top: "96px", right: "28px", bottom: "36px", left: "28px" }, maxZoom: 1.2 };
// Nodes that were copied, to be put into this scenario or the next that is opened.
type Copied = { text: string; names: string[]; places: Places };
let clipboard: Copied | undefined;
const DRAGGED = "application/x-tcplab-node";

/** The link or flow that an edge stands for. */
function lineOf(id: string): Drawn {
  const [kind, ...rest] = id.split(" ");
  return { kind: kind as "link" | "flow", name: rest.join(" ") };
}

export function Canvas() {
  return (
    <ReactFlowProvider>
      <Inner />
    </ReactFlowProvider>
  );
}

function Inner() {
  const store = useStore();
  const drawing = use((state) => state.drawing);
  const placed = use((state) => state.placed);
  const selection = use((state) => state.selection);
  const checked = use((state) => state.checked);
  const path = use((state) => state.path);
  const flow = useReactFlow();
  const frame = useRef<HTMLDivElement>(null);
  const [tool, setTool] = useState<"link" | "flow">("link");
  const wrong = useMemo(() => byObject(checked, drawing), [checked, drawing]);

  const derived = useMemo<Device[]>(
    () =>
      drawing.nodes.map((node) => ({
        id: node.name,
        type: "device" as const,
        position: placed[node.name] ?? { x: 0, y: 0 },
        selected: selection.some((one) => one.kind === "node" && one.name === node.name),
        data: { kind: node.kind, name: node.name, wrong: wrong.get(`node ${node.name}`) },
        ariaLabel: `${node.kind} ${node.name}`,
      })),
    [drawing, placed, selection, wrong],
  );
  const [nodes, setNodes] = useState<Device[]>(derived);
  // What React Flow has measured stays; everything else is the store's.
  useEffect(() => {
    setNodes((before) => {
      const known = new Map(before.map((node) => [node.id, node]));
      return derived.map((node) => ({ ...known.get(node.id), ...node }));
    });
  }, [derived]);

  const edges = useMemo<Edge[]>(() => {
    const names = drawing.flows.map((one) => one.name);
    const there = new Set(drawing.nodes.map((node) => node.name));
    const chosen = (kind: string, name: string) => selection.some((one) => one.kind === kind && one.name === name);
    const links = drawing.links.map((link) => {
      const twins = drawing.links.filter((other) => other.ends.every((end) => link.ends.includes(end)));
      return {
        id: `link ${link.name}`,
        type: "link",
        source: link.ends[0],
        target: link.ends[1],
        selected: chosen("link", link.name),
        ariaLabel: `Link ${link.name}: ${[link.label, ...link.impairments].join(", ")}`,
        data: { link, twin: twins.indexOf(link), twins: twins.length, wrong: wrong.get(`link ${link.name}`) },
      };
    });
    const arcs = drawing.flows
      .filter((one) => there.has(one.from) && there.has(one.to) && one.from !== one.to)
      .map((one) => ({
        id: `flow ${one.name}`,
        type: "flow",
        source: one.from,
        target: one.to,
        selected: chosen("flow", one.name),
        ariaLabel: `Flow ${one.label} from ${one.from} to ${one.to}`,
        zIndex: 2,
        data: {
          flow: one,
          colour: colourOf(one.name, names),
          rank: drawing.flows.filter((other) => [other.from, other.to].sort().join() === [one.from, one.to].sort().join()).indexOf(one),
          wrong: wrong.get(`flow ${one.name}`),
        },
      }));
    return [...links, ...arcs];
  }, [drawing, selection, wrong]);

  const chosenBy = useCallback(
    (changes: { type: string; id?: string; selected?: boolean }[], of: (id: string) => Drawn) => {
      const same = (a: Drawn, b: Drawn) => a.kind === b.kind && a.name === b.name;
      let next = store.state.selection;
      for (const one of changes) {
        if (one.type !== "select") continue;
        const drawn = of(one.id!);
        const there = next.some((other) => same(other, drawn));
        // In the order in which they were chosen: a flow goes from the first to the second.
        if (one.selected && !there) next = [...next, drawn];
        if (!one.selected && there) next = next.filter((other) => !same(other, drawn));
      }
      if (next === store.state.selection) return;
      store.set({ selection: next, ...(next.length === 1 ? { sidebar: "settings" } : {}) });
    },
    [store],
  );
  const edgesChanged = useCallback((changes: EdgeChange[]) => chosenBy(changes, lineOf), [chosenBy]);

  const changed = useCallback(
    (changes: NodeChange<Device>[]) => {
      setNodes((before) => applyNodeChanges(changes, before));
      chosenBy(changes, (name) => ({ kind: "node", name }));
      // Arrow keys move without a drag: their end is a change that is not one.
      const moved = changes.flatMap((one) =>
        one.type === "position" && one.dragging === false && one.position ? [[one.id, one.position] as const] : [],
      );
      if (moved.length) store.move(Object.fromEntries(moved), "move");
    },
    [store, chosenBy],
  );

  const add = useCallback(
    (kind: NodeKind, at?: { x: number; y: number }) => {
      const made = addNode(store.state.text, kind);
      const places = { ...store.state.placed };
      if (at) places[made.name] = at;
      store.edit(made.text, places);
      store.set({ selection: [{ kind: "node", name: made.name }], sidebar: "settings" });
      if (!at) window.setTimeout(() => void flow.fitView({ ...WHOLE, duration: 150 }), 30);
    },
    [store, flow],
  );

  const join = useCallback(
    (a: string, b: string, what: "link" | "flow") => {
      if (a === b) return;
      const host = (name: string) => drawing.nodes.find((node) => node.name === name)?.kind === "host";
      if (what === "flow") {
        if (!host(a) || !host(b)) return store.notice("A flow goes from one host to another.", true);
        const made = addFlow(store.state.text, a, b);
        store.edit(made.text, store.state.placed);
        store.set({ selection: [{ kind: "flow", name: made.name }], sidebar: "settings" });
      } else {
        store.edit(addLink(store.state.text, a, b), store.state.placed);
      }
    },
    [drawing, store],
  );

  const chosen = selection.filter((one) => one.kind === "node").map((one) => one.name);
  const put = ({ text: from, names: copied, places: known }: Copied) => {
    const { text: made, names } = paste(store.state.text, copied, from);
    if (!names.size) return;
    const places = { ...store.state.placed };
    for (const [old, fresh] of names) places[fresh] = { x: (known[old]?.x ?? 0) + 40, y: (known[old]?.y ?? 0) + 90 };
    store.edit(made, places);
    store.set({ selection: [...names.values()].map((name) => ({ kind: "node", name })) });
  };
  const taken = (): Copied => ({ text: store.state.text, names: chosen, places: store.state.placed });
  const copy = () => put(taken());
  const align = () => {
    const at = chosen.map((name) => placed[name]!);
    const spread = (axis: "x" | "y") => Math.max(...at.map((one) => one[axis])) - Math.min(...at.map((one) => one[axis]));
    const axis = spread("x") >= spread("y") ? "y" : "x";
    const mean = at.reduce((sum, one) => sum + one[axis], 0) / at.length;
    store.move(Object.fromEntries(chosen.map((name) => [name, { ...placed[name]!, [axis]: Math.round(mean) }])));
  };
  const arrange = async () => {
    store.move(await automatic(drawing));
    window.setTimeout(() => void flow.fitView({ ...WHOLE, duration: 200 }), 30);
  };
  const fit = () => void flow.fitView({ ...WHOLE, duration: 200 });

  // Another document: laid out where no one has done so, and seen whole.
  const unplaced = drawing.nodes.length > 3 && !store.placedByHand;
  const size = drawing.nodes.length;
  useEffect(() => {
    // On an empty canvas the view would jump when the first node is put down.
    const timer = window.setTimeout(() => store.state.drawing.nodes.length && void flow.fitView(WHOLE), 60);
    return () => clearTimeout(timer);
  }, [path, flow, store]);
  useEffect(() => {
    if (!unplaced) return;
    let stale = false;
    void automatic(drawing).then((found) => {
      if (stale) return;
      store.arrange(found);
      window.setTimeout(() => void flow.fitView(WHOLE), 30);
    });
    return () => {
      stale = true;
    };
    // Of a document, or of as many nodes: not at every key press.
  }, [path, unplaced, size, drawing.links.length]);
  useEffect(() => {
    const watch = new ResizeObserver(() => store.state.drawing.nodes.length && void flow.fitView(WHOLE));
    watch.observe(frame.current!);
    return () => watch.disconnect();
  }, [flow, store]);

  const pressed = (event: React.KeyboardEvent) => {
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    if ((event.target as HTMLElement).closest("input, button.plain")) return;
    if (command && key === "d" && chosen.length) {
      event.preventDefault();
      copy();
    } else if (command && (key === "c" || key === "x") && chosen.length) {
      event.preventDefault();
      clipboard = taken();
      if (key === "x") removeSelected(store);
      store.notice(`${chosen.length === 1 ? "One node" : `${chosen.length} nodes`} copied with what is between them.`);
    } else if (command && key === "v" && clipboard) {
      event.preventDefault();
      put(clipboard);
    } else if (command && key === "a") {
      event.preventDefault();
      store.set({ selection: drawing.nodes.map((node) => ({ kind: "node", name: node.name })) });
    } else if (command || event.altKey) return;
    else if (key === "h") add("host");
    else if (key === "r") add("router");
    else if (key === "s") add("switch");
    else if ((key === "l" || key === "f") && chosen.length === 2) join(chosen[0]!, chosen[1]!, key === "l" ? "link" : "flow");
    else if (key === "l" || key === "f") setTool(key === "l" ? "link" : "flow");
  };

  const dropped = (event: DragEvent) => {
    const [file] = event.dataTransfer.files;
    if (file) {
      event.preventDefault();
      return void store.take(file);
    }
    const kind = event.dataTransfer.getData(DRAGGED) as NodeKind;
    if (!kind) return;
    event.preventDefault();
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    add(kind, { x: Math.round(at.x - 44), y: Math.round(at.y - 30) });
  };

  return (
    <section className="canvas" aria-label="Network" onKeyDown={pressed} ref={frame} onDrop={dropped} onDragOver={(event) => event.preventDefault()}>
      <div className="tools" role="toolbar" aria-label="Draw">
        {(["host", "router", "switch"] as const).map((kind) => (
          <button
            key={kind}
            draggable
            onDragStart={(event) => event.dataTransfer.setData(DRAGGED, kind)}
            onClick={() => add(kind)}
            title={`Add a ${kind} (${kind[0]!.toUpperCase()}), or drag it onto the canvas`}
          >
            <Icon name={kind} /> {kind[0]!.toUpperCase() + kind.slice(1)}
          </button>
        ))}
        <span className="rule" />
        <button
          aria-pressed={tool === "link"}
          onClick={() => (chosen.length === 2 ? join(chosen[0]!, chosen[1]!, "link") : setTool("link"))}
          title="Drag from one node's edge to another to link them (L)"
        >
          Link
        </button>
        <button
          aria-pressed={tool === "flow"}
          onClick={() => (chosen.length === 2 ? join(chosen[0]!, chosen[1]!, "flow") : setTool("flow"))}
          title="Drag from one host's edge to another to send a flow (F)"
        >
          <Icon name="flow" /> Flow
        </button>
        <span className="rule" />
        <button onClick={() => void arrange()} disabled={drawing.nodes.length < 2} title="Arrange automatically" aria-label="Arrange automatically">
          <Icon name="layout" />
        </button>
        <button onClick={align} disabled={chosen.length < 2} title="Align the selected nodes" aria-label="Align">
          <Icon name="align" />
        </button>
        <button onClick={copy} disabled={!chosen.length} title="Duplicate (Ctrl+D)" aria-label="Duplicate">
          <Icon name="copy" />
        </button>
        <button onClick={() => removeSelected(store)} disabled={!selection.length} title="Delete" aria-label="Delete">
          <Icon name="trash" />
        </button>
        <button onClick={fit} title="Show everything" aria-label="Show everything">
          <Icon name="fit" />
        </button>
      </div>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodesChange={changed}
        onEdgesChange={edgesChanged}
        onConnect={(made: Connection) => join(made.source, made.target, tool)}
        connectionMode={ConnectionMode.Loose}
        connectionRadius={36}
        multiSelectionKeyCode={["Control", "Meta", "Shift"]}
        selectionKeyCode="Shift"
        selectionMode={SelectionMode.Partial}
        deleteKeyCode={null}
        minZoom={0.15}
        maxZoom={3}
        snapToGrid
        snapGrid={[10, 10]}
        proOptions={{ hideAttribution: true }}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1} />
        {drawing.nodes.length > 12 && <MiniMap pannable zoomable ariaLabel="Overview" />}
        <PacketLayer />
      </ReactFlow>
      {!drawing.nodes.length && (
        <div className="begin">
          <h2>Draw a network</h2>
          <p>
            Add a host with the buttons above or the keys <kbd>H</kbd>, <kbd>R</kbd> and <kbd>S</kbd>. Drag from the edge of one node to
            another to link them, then choose Flow and drag from the sender to the receiver.
          </p>
          <p>Or begin with one of these:</p>
          <div className="starts">
            {TEMPLATES.map((template) => (
              <button key={template.name} onClick={() => {
                  store.edit(template.text, {});
                  window.setTimeout(fit, 60);
                }} title={template.about}>
                {template.name}
              </button>
            ))}
          </div>
        </div>
      )}
      {drawing.nodes.length > 0 && !drawing.flows.length && (
        <p className="next">
          {drawing.links.length
            ? "Next: choose Flow and drag from the sending host to the receiving one."
            : "Next: drag from the edge of one node to another to link them."}
        </p>
      )}
    </section>
  );
}
