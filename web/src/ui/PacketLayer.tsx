// Packets as dots over the drawing, queues as bars beside the nodes they wait at, and links that are down or changed.

import { useStoreApi } from "@xyflow/react";
import { useEffect, useRef } from "react";
import { along, type Bow, heading, linkBow, NODE_WIDTH, type Point } from "../core/geometry";
import type { Dot, Packets } from "../core/playback";
import { centre, twins } from "../core/scene";
import { playback } from "./playing";
import { flowColours, useThemeChange } from "./theme";
import { use, useStore } from "./use";

export function PacketLayer() {
  const tab = use((state) => state.tab);
  return tab === "packets" ? <Layer /> : null;
}

/** A link on the screen. */
interface Line {
  bow: Bow;
  /** Shares of the way that its nodes take at either end. */
  hidden: number;
}

interface Paint {
  text: string;
  page: string;
  bad: string;
  mark: string;
  flows: string[];
}

function Layer() {
  const store = useStore();
  const canvas = useRef<HTMLCanvasElement>(null);
  const api = useStoreApi();
  const theme = useThemeChange();
  const drawing = use((state) => state.drawing);

  useEffect(() => {
    const element = canvas.current!;
    const context = element.getContext("2d")!;
    const style = getComputedStyle(document.documentElement);
    const tint = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const paint: Paint = { text: tint("text"), page: tint("page"), bad: tint("bad"), mark: tint("mark"), flows: flowColours() };
    const which = twins(drawing);
    const links = new Map(drawing.links.map((link) => [link.name, link.ends]));

    let drawn: unknown[] = [];
    const draw = (packets: Packets | undefined, time: number, falling: number) => {
      const { transform, nodes, nodeLookup } = api.getState();
      const now = [packets, time, falling, transform, nodes, element.clientWidth, element.clientHeight];
      // Nothing has moved.
      if (now.every((one, index) => one === drawn[index])) return;
      drawn = now;
      const scale = window.devicePixelRatio || 1;
      const [width, height] = [element.clientWidth, element.clientHeight];
      if (element.width !== width * scale || element.height !== height * scale) {
        element.width = width * scale;
        element.height = height * scale;
      }
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      if (!packets) return;
      const [left, top, zoom] = transform;
      const placed = (name: string): Point | undefined => {
        const node = nodeLookup.get(name);
        return node && centre(node.internals.positionAbsolute);
      };
      const seen = ({ x, y }: Point): Point => ({ x: x * zoom + left, y: y * zoom + top });
      const lines = packets.header.links.map((name): Line | undefined => {
        const ends = links.get(name);
        const [a, b] = ends ? [placed(ends[0]), placed(ends[1])] : [];
        if (!a || !b) return undefined;
        const { twin, twins } = which.get(name)!;
        const bow = linkBow(a, b, twin, twins);
        const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
        return { bow: { a: seen(bow.a), control: seen(bow.control), b: seen(bow.b) }, hidden: Math.min(0.45, (NODE_WIDTH / 2 + 2) / length) };
      });
      states(context, packets, time, lines, zoom, paint);
      for (const dot of packets.at(time, falling)) {
        const line = lines[dot.link];
        if (line) packet(context, dot, line, zoom, paint);
      }
      queues(context, packets, time, lines, zoom, paint);
    };
    return playback.watch(draw);
  }, [api, drawing, store, theme]);

  return <canvas ref={canvas} className="packets" aria-hidden="true" />;
}

function packet(context: CanvasRenderingContext2D, dot: Dot, { bow, hidden }: Line, zoom: number, paint: Paint): void {
  // From the border of one node to that of the other, the two ways beside each other.
  const share = hidden + dot.at * (1 - 2 * hidden);
  const [at, way] = [along(bow, share), heading(bow, share)];
  const aside = (dot.backward ? 1 : -1) * 4 * zoom;
  const fallen = dot.fallen ?? 0;
  context.globalAlpha = 1 - fallen * 0.9;
  const colour = paint.flows[(dot.flow < 0 ? 9 : dot.flow) % paint.flows.length] ?? paint.text;
  context.fillStyle = dot.fallen === undefined ? colour : paint.bad;
  const size = Math.max(2, Math.min(5, 4 * zoom));
  context.beginPath();
  context.arc(at.x - way.y * aside, at.y + way.x * aside + fallen * 40 * zoom, dot.data ? size : size * 0.55, 0, 2 * Math.PI);
  context.fill();
  if (dot.marked) {
    context.strokeStyle = paint.mark;
    context.lineWidth = 2;
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Bars of packets that wait, beside the node they wait at. */
function queues(context: CanvasRenderingContext2D, packets: Packets, time: number, lines: (Line | undefined)[], zoom: number, paint: Paint): void {
  context.font = `${Math.max(9, 11 * zoom)}px sans-serif`;
  context.textAlign = "center";
  for (const [way, [count, largest]] of packets.waiting(time)) {
    const line = lines[Math.floor(way / 2)];
    if (!line || count <= 0) continue;
    const { x, y } = along(line.bow, way % 2 ? 1 - line.hidden : line.hidden);
    const long = (4 + (56 * count) / largest) * zoom;
    context.fillStyle = paint.mark;
    context.fillRect(x - 5 * zoom, y - 12 * zoom - long, 10 * zoom, long);
    context.fillStyle = paint.text;
    context.fillText(String(count), x, y - 15 * zoom - long);
  }
}

/** Links that are down, and what has changed of the others. */
function states(context: CanvasRenderingContext2D, packets: Packets, time: number, lines: (Line | undefined)[], zoom: number, paint: Paint): void {
  context.font = `600 ${Math.max(10, 11 * zoom)}px sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [link, { down, said }] of packets.states(time)) {
    const line = lines[link];
    if (!line) continue;
    if (down) {
      const { a, control, b } = line.bow;
      context.strokeStyle = paint.bad;
      context.lineWidth = Math.max(3, 4 * zoom);
      context.setLineDash([3, 6]);
      context.beginPath();
      context.moveTo(a.x, a.y);
      context.quadraticCurveTo(control.x, control.y, b.x, b.y);
      context.stroke();
      context.setLineDash([]);
    }
    const { x, y } = along(line.bow, 0.5);
    const wide = context.measureText(said).width + 12;
    context.fillStyle = down ? paint.bad : paint.mark;
    context.beginPath();
    context.roundRect(x - wide / 2, y - 24 - 8, wide, 16, 8);
    context.fill();
    context.fillStyle = paint.page;
    context.fillText(said, x, y - 24);
  }
  context.textBaseline = "alphabetic";
}
