// Packets as dots over the drawing, and queues as bars beside the nodes they wait at.

import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useEffect, useRef } from "react";
import type { Packets } from "../core/playback";
import { NODE_HEIGHT, NODE_WIDTH } from "./nodes";
import { playback } from "./playing";
import { flowColours, useThemeChange } from "./theme";
import { use, useStore } from "./use";

export function PacketLayer() {
  const tab = use((state) => state.tab);
  return tab === "packets" ? <Layer /> : null;
}

function Layer() {
  const store = useStore();
  const canvas = useRef<HTMLCanvasElement>(null);
  const flow = useReactFlow();
  const api = useStoreApi();
  const theme = useThemeChange();

  useEffect(() => {
    const element = canvas.current!;
    const context = element.getContext("2d")!;
    const colours = flowColours();
    const style = getComputedStyle(document.documentElement);
    const paint = { text: style.getPropertyValue("--text"), bad: style.getPropertyValue("--bad"), mark: style.getPropertyValue("--mark") };

    const draw = (packets: Packets | undefined, time: number, falling: number) => {
      const scale = window.devicePixelRatio || 1;
      const [width, height] = [element.clientWidth, element.clientHeight];
      if (element.width !== width * scale || element.height !== height * scale) {
        element.width = width * scale;
        element.height = height * scale;
      }
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      if (!packets) return;
      const [left, top, zoom] = api.getState().transform;
      const centres = new Map<string, [number, number]>();
      for (const [id, node] of api.getState().nodeLookup) {
        const { x, y } = node.internals.positionAbsolute;
        centres.set(id, [
          (x + (node.measured.width ?? NODE_WIDTH) / 2) * zoom + left,
          (y + (node.measured.height ?? NODE_HEIGHT) / 2) * zoom + top,
        ]);
      }
      const links = new Map(store.state.drawing.links.map((link) => [link.name, link.ends]));
      const lines = packets.header.links.map((name) => {
        const ends = links.get(name);
        const [a, b] = ends ? [centres.get(ends[0]), centres.get(ends[1])] : [undefined, undefined];
        if (!a || !b) return undefined;
        const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
        return { a, b, ux: (b[0] - a[0]) / length, uy: (b[1] - a[1]) / length, length };
      });
      const size = Math.max(2, Math.min(5, 4 * zoom));
      // From the border of one node to that of the other, the two ways beside each other.
      const inset = (NODE_WIDTH / 2 + 2) * zoom;
      for (const dot of packets.at(time, falling)) {
        const line = lines[dot.link];
        if (!line) continue;
        const along = inset + dot.at * Math.max(0, line.length - 2 * inset);
        const aside = (dot.backward ? 1 : -1) * 4 * zoom;
        const x = line.a[0] + line.ux * along - line.uy * aside;
        const y = line.a[1] + line.uy * along + line.ux * aside;
        const fallen = dot.fallen ?? 0;
        context.globalAlpha = 1 - fallen * 0.9;
        context.fillStyle = dot.fallen !== undefined ? paint.bad : (colours[(dot.flow < 0 ? 9 : dot.flow) % colours.length] ?? paint.text);
        const radius = dot.data ? size : size * 0.55;
        context.beginPath();
        context.arc(x, y + fallen * 40 * zoom, radius, 0, 2 * Math.PI);
        context.fill();
        if (dot.marked) {
          context.strokeStyle = paint.mark;
          context.lineWidth = 2;
          context.stroke();
        }
      }
      context.globalAlpha = 1;
      context.font = `${Math.max(9, 11 * zoom)}px sans-serif`;
      for (const [way, count] of packets.waiting(time)) {
        const line = lines[Math.floor(way / 2)];
        if (!line || count <= 0) continue;
        const from = way % 2 ? line.b : line.a;
        const turn = way % 2 ? -1 : 1;
        const [x, y] = [from[0] + line.ux * turn * inset, from[1] + line.uy * turn * inset];
        const long = Math.min(60, 6 + 12 * Math.log2(1 + count)) * zoom;
        context.fillStyle = paint.mark;
        context.fillRect(x - 5 * zoom, y - 12 * zoom - long, 10 * zoom, long);
        context.fillStyle = paint.text;
        context.textAlign = "center";
        context.fillText(String(count), x, y - 15 * zoom - long);
      }
    };
    return playback.watch(draw);
  }, [api, flow, store, theme]);

  return <canvas ref={canvas} className="packets" aria-hidden="true" />;
}
