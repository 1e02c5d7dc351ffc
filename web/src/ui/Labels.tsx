// Labels of links and flows, over the drawing: as large as can be read, where nothing else stands.

import { EdgeLabelRenderer, useStore as useCanvas } from "@xyflow/react";
import { useEffect, useMemo } from "react";
import { colourOf } from "../core/curves";
import type { Box, Point } from "../core/geometry";
import { place } from "../core/labels";
import { fitted, type Named, widthWithName } from "../core/names";
import type { Places } from "../core/places";
import { labelled, scene } from "../core/scene";
import { use, useStore } from "./use";

const FONT = 11;
// Letters are never smaller than this on the screen, px.
const READABLE = 10.5;
// Names are no larger than their nodes can hold: beside their icon, and in place of it.
const MAX_BESIDE_ICON = 2.2;
export const MAX_NAME = 3.8;
const NAME_FONT = 12;
// Labels are placed again when the zoom has changed by this share.
const STEP = 0.06;

interface Props {
  places: Places;
  middle: Point;
  wrong: Map<string, string[]>;
  /** The line that the pointer is on. */
  pointed?: string;
}

export function Labels({ places, middle, wrong, pointed }: Props) {
  const store = useStore();
  const drawing = use((state) => state.drawing);
  const selection = use((state) => state.selection);
  const scale = useCanvas(({ transform: [, , zoom] }) => enlarged(zoom));
  const aspect = useCanvas(({ width, height }) => width / height || 1);
  const chosen = useMemo(() => new Set(selection.map(({ kind, name }) => `${kind} ${name}`)), [selection]);
  const labels = useMemo(() => {
    const found = scene(drawing, places, middle);
    const first = (id: string) => chosen.has(id) || wrong.has(id);
    return place(labelled(drawing, found, first), named(found.nodes, scale), scale, measured, aspect);
  }, [drawing, places, middle, scale, aspect, wrong, chosen]);
  const names = drawing.flows.map((flow) => flow.name);
  const root = useCanvas(({ domNode }) => domNode);
  // Names of nodes grow as labels do, as far as there is room, and then take the icon's place.
  useEffect(() => {
    root?.classList.toggle("names-alone", scale > MAX_BESIDE_ICON);
  }, [root, scale]);
  return (
    <EdgeLabelRenderer>
      {[...labels].map(([id, { x, y, lines, crowded, implied }]) => {
        if (implied && id !== pointed) return null;
        const [kind, name] = [id.slice(0, id.indexOf(" ")), id.slice(id.indexOf(" ") + 1)];
        const mistakes = wrong.get(id);
        const look = [
          kind === "flow" ? `arc-label flow-${colourOf(name, names) % 10}` : "wire-label",
          chosen.has(id) ? "selected" : "",
          mistakes ? "wrong" : "",
          crowded && !chosen.has(id) && !mistakes && id !== pointed ? "crowded" : "",
        ];
        return (
          <div
            key={id}
            className={look.join(" ")}
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px) scale(${scale})` }}
            title={mistakes?.join("\n") ?? name}
            data-line={id}
            onClick={() => store.set({ selection: [{ kind: kind as "link" | "flow", name }], sidebar: "settings" })}
          >
            {lines.map((words, row) => (
              <div key={row}>
                {words.map(({ text, tone }) => (tone ? <em key={text} className={tone}>{text}</em> : <span key={text}>{text}</span>))}
              </div>
            ))}
          </div>
        );
      })}
    </EdgeLabelRenderer>
  );
}

/** Nodes as wide as their names at this scale of labels, which may reach beyond them. */
export function named(nodes: Named[], scale: number, fits = fitted(nodes, measuredName)): Box[] {
  return nodes.map((node, index) => ({ ...node, width: widthWithName(measuredName(node.name), Math.min(scale, MAX_NAME), fits[index]!) }));
}

/** How much larger than the drawing labels are at this zoom, in steps. */
export function enlarged(zoom: number): number {
  const wanted = READABLE / (FONT * zoom);
  return wanted <= 1 ? 1 : (1 + STEP) ** Math.ceil(Math.log(wanted) / Math.log(1 + STEP) - 1e-9);
}

const widths = new Map<string, number>();
let context: CanvasRenderingContext2D | null | undefined;

/** The width of a text in the labels' font. */
export function measured(text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    context ??= document.createElement("canvas").getContext("2d");
    if (context) context.font = `600 ${FONT}px ${getComputedStyle(document.body).fontFamily}`;
    width = context?.measureText(text).width ?? text.length * 6.5;
    if (widths.size > 2000) widths.clear();
    widths.set(text, width);
  }
  return width;
}

/** The width of a node's name at scale 1. */
export const measuredName = (name: string) => (measured(name) * NAME_FONT) / FONT;
