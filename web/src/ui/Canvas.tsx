// The drawing: nodes, links and flows of the scenario, to look at and to edit.

import {
  applyNodeChanges,
  type Connection,
  ConnectionMode,
  type Edge,
  type EdgeChange,
  getViewportForBounds,
  MiniMap,
  type NodeChange,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode,
  useReactFlow,
  useStore as useCanvas,
} from "@xyflow/react";
import { type DragEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { addFlow, addLink, addNode, paste } from "../core/changes";
import { colourOf } from "../core/curves";
import { NODE_HEIGHT, NODE_WIDTH } from "../core/geometry";
import { LINE_HEIGHT, spanned } from "../core/labels";
import { fitted } from "../core/names";
import type { NodeKind } from "../core/kinds";
import type { Places } from "../core/places";
import { byObject, type Object as Drawn } from "../core/problems";
import { centre, middle, ranks, scene, twins } from "../core/scene";
import { Begin } from "./Begin";
import { FlowEdge, LinkEdge } from "./edges";
import { enlarged, Labels, measuredName, named } from "./Labels";
import { automatic, type Layout } from "./layout";
import { DeviceNode, type Device } from "./nodes";
import { PacketLayer } from "./PacketLayer";
import { removeSelected } from "./selected";
import { DRAGGED, Tools } from "./Tools";
import { use, useStore } from "./use";

const NODE_TYPES = { device: DeviceNode };
const EDGE_TYPES = { link: LinkEdge, flow: FlowEdge };
// At the minimum, a thousand nodes are seen whole, in a column of hundreds.
const [MIN_ZOOM, MAX_ZOOM, MAX_WHOLE] = [0.01, 3, 1.2];
// Nodes stand on a grid of so many units; its dots are never closer on the screen than this, px.
const [GRID, MIN_GRID] = [20, 12];
// A network of so many nodes needs no map.
const MANY = 12;
// Attempts at the zoom of a drawing that is seen whole: each comes closer.
const MAX_ATTEMPTS = 12;
// Around a drawing that is seen whole, and below it where a hint stands.
const MARGIN = "18px";
const MARGIN_WITH_HINT = { top: MARGIN, left: MARGIN, right: MARGIN, bottom: "64px" } as const;
// Nodes that were copied, to be put into this scenario or the next that is opened.
type Copied = { text: string; names: string[]; places: Places };
let clipboard: Copied | undefined;

/**
 * Dots that move with the drawing. Painted by CSS: at every layout of the page Chromium paints an SVG with a pattern anew,
 * and the drawing with it.
 */
function Grid() {
  const [x, y, zoom] = useCanvas(({ transform }) => transform);
  const gap = GRID * zoom * 2 ** Math.max(0, Math.ceil(Math.log2(MIN_GRID / (GRID * zoom))));
  return <div className="grid-dots" style={{ backgroundSize: `${gap}px ${gap}px`, backgroundPosition: `${x - gap / 2}px ${y - gap / 2}px` }} />;
}

/** A map of a network of which only a part is seen. */
function Overview() {
  const partly = useCanvas(({ nodeLookup, transform: [left, top, zoom], width, height }) => {
    if (nodeLookup.size <= MANY) return false;
    return [...nodeLookup.values()].some(({ internals: { positionAbsolute: at } }) => {
      const [x, y] = [at.x * zoom + left, at.y * zoom + top];
      return x < -NODE_WIDTH * zoom || y < -NODE_HEIGHT * zoom || x > width || y > height;
    });
  });
  return partly ? <MiniMap pannable zoomable ariaLabel="Overview" /> : null;
}

const roomOf = ({ clientWidth: width, clientHeight: height }: HTMLElement) => ({ width, height });

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
  const document = use((state) => state.document);
  const kinds = use((state) => state.kinds);
  const traits = useMemo(() => new Map(kinds.nodes.map((kind) => [kind.name, kind])), [kinds]);
  const flow = useReactFlow();
  const frame = useRef<HTMLDivElement>(null);
  const arrangements = useRef(0);
  const [tool, setTool] = useState<"link" | "flow">("link");
  const wrong = useMemo(() => byObject(checked, drawing), [checked, drawing]);

  const fits = useMemo(() => {
    const boxes = drawing.nodes.map(({ name }) => ({ name, ...centre(placed[name] ?? { x: 0, y: 0 }), width: NODE_WIDTH, height: NODE_HEIGHT }));
    return fitted(boxes, measuredName);
  }, [drawing, placed]);
  const derived = useMemo<Device[]>(
    () =>
      drawing.nodes.map((node, index) => ({
        id: node.name,
        type: "device" as const,
        position: placed[node.name] ?? { x: 0, y: 0 },
        selected: selection.some((one) => one.kind === "node" && one.name === node.name),
        data: { kind: node.kind, forwards: traits.get(node.kind)?.forwards ?? false, bridges: traits.get(node.kind)?.bridges ?? false, name: node.name, fit: fits[index]!, wrong: wrong.get(`node ${node.name}`) },
        ariaLabel: `${node.kind} ${node.name}`,
      })),
    [drawing, placed, fits, selection, wrong, traits],
  );
  const [nodes, setNodes] = useState<Device[]>(derived);
  // Sizes that React Flow has measured stay; everything else is the store's.
  useEffect(() => {
    setNodes((before) => {
      const known = new Map(before.map((node) => [node.id, node]));
      return derived.map((node) => ({ ...known.get(node.id), ...node }));
    });
  }, [derived]);

  const centreOfAll = useMemo(() => middle(drawing, placed), [drawing, placed]);
  // Where nodes stand while they are dragged.
  const standing = useMemo<Places>(() => Object.fromEntries(nodes.map((node) => [node.id, node.position])), [nodes]);
  const [pointed, setPointed] = useState<string>();
  const edges = useMemo<Edge[]>(() => {
    const names = drawing.flows.map((one) => one.name);
    const there = new Set(drawing.nodes.map((node) => node.name));
    const chosen = (kind: string, name: string) => selection.some((one) => one.kind === kind && one.name === name);
    const [which, rank] = [twins(drawing), ranks(drawing)];
    const links = drawing.links.map((link) => ({
      id: `link ${link.name}`,
      type: "link",
      source: link.ends[0],
      target: link.ends[1],
      selected: chosen("link", link.name),
      ariaLabel: `Link ${link.name}: ${[link.label, ...link.impairments].join(", ")}`,
      data: { ...which.get(link.name)!, wrong: wrong.get(`link ${link.name}`) },
    }));
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
          colour: colourOf(one.name, names),
          ...rank.get(one.name)!,
          middle: centreOfAll,
          wrong: wrong.get(`flow ${one.name}`),
        },
      }));
    return [...links, ...arcs];
  }, [drawing, selection, wrong, centreOfAll]);

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
      if (moved.length) store.documents.move(Object.fromEntries(moved), "move");
    },
    [store, chosenBy],
  );

  /** Show everything: nodes, and the arcs and labels around them. */
  const whole = useCallback(
    (duration = 0) => {
      const { drawing, placed } = store.state;
      const element = frame.current;
      if (!drawing.nodes.length || !element) return;
      const { nodes, links, flows } = scene(drawing, placed);
      const bows = [...links.values(), ...flows.values()];
      const fits = fitted(nodes, measuredName);
      const { clientWidth, clientHeight } = element;
      const margin = drawing.generated || !drawing.flows.length ? MARGIN_WITH_HINT : MARGIN;
      const at = (scale: number) => getViewportForBounds(spanned(named(nodes, scale, fits), bows, 1.5 * LINE_HEIGHT), clientWidth, clientHeight, MIN_ZOOM, MAX_WHOLE, margin);
      // Names grow as the zoom shrinks, which makes it smaller still.
      let [scale, seen] = [1, at(1)];
      for (let attempt = 0; attempt < MAX_ATTEMPTS && enlarged(seen.zoom) > scale; attempt++) {
        scale = enlarged(seen.zoom);
        seen = at(scale);
      }
      void flow.setViewport(seen, { duration });
    },
    [store, flow],
  );

  const add = useCallback(
    (kind: NodeKind, at?: { x: number; y: number }) => {
      const made = addNode(store.state.text, kind);
      const places = { ...store.state.placed };
      if (at) places[made.name] = at;
      store.documents.edit(made.text, places);
      store.set({ selection: [{ kind: "node", name: made.name }], sidebar: "settings" });
      if (!at) window.setTimeout(() => whole(150), 30);
    },
    [store, whole],
  );

  const join = useCallback(
    (a: string, b: string, what: "link" | "flow") => {
      if (a === b) return;
      const host = (name: string) => traits.get(drawing.nodes.find((node) => node.name === name)?.kind ?? "")?.ends_flows;
      if (what === "flow") {
        if (!host(a) || !host(b)) return store.notice("A flow goes from one host to another.", true);
        const made = addFlow(store.state.text, a, b, store.state.kinds.flows[0]!);
        store.documents.edit(made.text, store.state.placed);
        store.set({ selection: [{ kind: "flow", name: made.name }], sidebar: "settings" });
      } else {
        store.documents.edit(addLink(store.state.text, a, b), store.state.placed);
      }
    },
    [drawing, store, traits],
  );

  const chosen = selection.filter((one) => one.kind === "node").map((one) => one.name);
  const selectAlone = (name: string) => store.set({ selection: [{ kind: "node", name }], sidebar: "settings" });
  const put = ({ text: from, names: copied, places: known }: Copied) => {
    const { text: made, names } = paste(store.state.text, copied, from);
    if (!names.size) return;
    const places = { ...store.state.placed };
    for (const [old, fresh] of names) places[fresh] = { x: (known[old]?.x ?? 0) + 40, y: (known[old]?.y ?? 0) + 90 };
    store.documents.edit(made, places);
    store.set({ selection: [...names.values()].map((name) => ({ kind: "node", name })) });
  };
  const taken = (): Copied => ({ text: store.state.text, names: chosen, places: store.state.placed });
  const copy = () => put(taken());
  const align = () => {
    const at = chosen.map((name) => placed[name]!);
    const spread = (axis: "x" | "y") => Math.max(...at.map((one) => one[axis])) - Math.min(...at.map((one) => one[axis]));
    const axis = spread("x") >= spread("y") ? "y" : "x";
    const mean = at.reduce((sum, one) => sum + one[axis], 0) / at.length;
    store.documents.move(Object.fromEntries(chosen.map((name) => [name, { ...placed[name]!, [axis]: Math.round(mean) }])));
  };
  const arrange = async (layout: Layout) => {
    const { now } = store.documents;
    const number = ++arrangements.current;
    const found = await automatic(drawing, kinds, roomOf(frame.current!), layout);
    // Objects edited or chosen while the layout was worked out stay.
    if (now !== store.documents.now || number !== arrangements.current) return;
    store.documents.move(found);
    window.setTimeout(() => whole(200), 30);
  };

  // Another document: laid out where no one has done so, and seen whole.
  const unplaced = drawing.nodes.length > 3 && !store.documents.placedByHand;
  const size = drawing.nodes.length;
  const network = `${document} ${size} ${drawing.links.length}`;
  // Nodes that are laid out and seen: until then, they are still on their way.
  const [seen, setSeen] = useState(-1);
  const [laidOut, setLaidOut] = useState("");
  useEffect(() => {
    // On an empty canvas the view would jump when the first node is put down.
    const timer = window.setTimeout(() => (whole(), setSeen(document)), 60);
    return () => clearTimeout(timer);
  }, [document, whole]);
  useEffect(() => {
    if (!unplaced) return;
    let stale = false;
    void automatic(drawing, kinds, roomOf(frame.current!), drawing.generated ? "down" : "right").then((found) => {
      if (stale) return;
      store.documents.arrange(found);
      window.setTimeout(() => (whole(), setLaidOut(network)), 30);
    });
    return () => {
      stale = true;
    };
    // Of a document, or of as many nodes: not at every key press.
  }, [network, unplaced]);
  useEffect(() => {
    const watch = new ResizeObserver(() => whole());
    watch.observe(frame.current!);
    return () => watch.disconnect();
  }, [whole]);

  const pressed = (event: React.KeyboardEvent) => {
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    const target = event.target as HTMLElement;
    if (target.closest("input, button.plain")) return;
    const own = target.closest<HTMLElement>(".react-flow__node");
    // React Flow leaves the focus nowhere when it unselects a node.
    if (own) requestAnimationFrame(() => globalThis.document.activeElement === globalThis.document.body && own.focus());
    if (own && key === "enter" && !command && !event.shiftKey && selection.length > 1) {
      selectAlone(own.dataset.id!);
    } else if (command && key === "d" && chosen.length) {
      event.preventDefault();
      copy();
    } else if (command && (key === "c" || key === "x") && chosen.length) {
      event.preventDefault();
      const copied = taken();
      // The text names no node that is made from `topology`, or for each flow of a path.
      if (!paste("", copied.names, copied.text).names.size) return store.notice("These nodes are not in the text: they cannot be copied.", true);
      clipboard = copied;
      if (key === "x") removeSelected(store);
      store.notice(`${chosen.length === 1 ? "One node" : `${chosen.length} nodes`} ${key === "x" ? "cut" : "copied"}, with the links and flows between them.`);
    } else if (command && key === "v" && clipboard) {
      event.preventDefault();
      put(clipboard);
    } else if (command && key === "a") {
      event.preventDefault();
      store.set({ selection: drawing.nodes.map((node) => ({ kind: "node", name: node.name })) });
    } else if (command || event.altKey) return;
    else if ((key === "l" || key === "f") && chosen.length === 2) join(chosen[0]!, chosen[1]!, key === "l" ? "link" : "flow");
    else if (key === "l" || key === "f") setTool(key === "l" ? "link" : "flow");
    else if (key === "+" || key === "=") void flow.zoomIn({ duration: 120 });
    else if (key === "-") void flow.zoomOut({ duration: 120 });
    else if (key === "0") whole(200);
    else {
      const kind = kinds.nodes.find(({ name }) => name[0] === key);
      if (kind) add(kind);
    }
  };

  const dropped = (event: DragEvent) => {
    const kind = traits.get(event.dataTransfer.getData(DRAGGED));
    if (!kind) return;
    event.preventDefault();
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    add(kind, { x: Math.round(at.x - 44), y: Math.round(at.y - 30) });
  };

  return (
    <section className="canvas" aria-label="Network" aria-busy={seen !== document || (unplaced && laidOut !== network)} onKeyDown={pressed} onDrop={dropped} onDragOver={(event) => event.preventDefault()}>
      <Tools
        tool={tool}
        chosen={chosen.length}
        add={add}
        use={(what) => (chosen.length === 2 ? join(chosen[0]!, chosen[1]!, what) : setTool(what))}
        arrange={(layout) => void arrange(layout)}
        align={align}
        duplicate={copy}
        zoom={{ nearer: () => void flow.zoomIn({ duration: 120 }), farther: () => void flow.zoomOut({ duration: 120 }), whole: () => whole(200) }}
      />
      {/* A click on the empty drawing lets its keys work. */}
      <div className="drawing" ref={frame} tabIndex={-1}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodesChange={changed}
        onEdgesChange={edgesChanged}
        onNodeClick={({ shiftKey, ctrlKey, metaKey }, { id }) => {
          // React Flow keeps what else is selected, for a drag of all.
          if (!shiftKey && !ctrlKey && !metaKey && selection.length > 1) selectAlone(id);
        }}
        onEdgeMouseEnter={(_, edge) => setPointed(edge.id)}
        onEdgeMouseLeave={() => setPointed(undefined)}
        onConnect={(made: Connection) => join(made.source, made.target, tool)}
        connectionMode={ConnectionMode.Loose}
        connectionRadius={36}
        multiSelectionKeyCode={["Control", "Meta", "Shift"]}
        selectionKeyCode="Shift"
        selectionMode={SelectionMode.Partial}
        deleteKeyCode={null}
        minZoom={MIN_ZOOM}
        maxZoom={MAX_ZOOM}
        snapToGrid
        snapGrid={[10, 10]}
        proOptions={{ hideAttribution: true }}
      >
        <Grid />
        <Overview />
        <Labels places={standing} middle={centreOfAll} wrong={wrong} pointed={pointed} />
        <PacketLayer />
      </ReactFlow>
      {drawing.generated && <p className="next">Made from `topology`: change the network in the text.</p>}
      {!drawing.nodes.length && !drawing.generated && <Begin begun={() => window.setTimeout(() => whole(), 60)} />}
      {drawing.nodes.length > 0 && !drawing.flows.length && (
        <p className="next">
          {drawing.links.length
            ? "Next: choose Flow and drag from the sender to the receiver, or select both and press F."
            : drawing.nodes.length > 1
              ? "Next: drag from the edge of one node to another to link them, or select both and press L."
              : "Next: add another node."}
        </p>
      )}
      </div>
    </section>
  );
}
