// A bar between two parts of the page, moved by pointer or arrow keys.

import { type KeyboardEvent, type PointerEvent, useState } from "react";

export function useSplit(name: string, initial: number, way: "horizontal" | "vertical") {
  const [share, setShare] = useState(() => Number(localStorage.getItem(`tcplab-split-${name}`)) || initial);
  const set = (next: number) => {
    const kept = Math.min(0.8, Math.max(0.12, next));
    setShare(kept);
    localStorage.setItem(`tcplab-split-${name}`, String(kept));
  };
  const handle = {
    role: "separator",
    tabIndex: 0,
    className: `split ${way}`,
    "aria-orientation": (way === "vertical" ? "horizontal" : "vertical") as "horizontal" | "vertical",
    "aria-valuenow": Math.round(share * 100),
    onPointerDown: (event: PointerEvent<HTMLDivElement>) => event.currentTarget.setPointerCapture(event.pointerId),
    onPointerMove: (event: PointerEvent<HTMLDivElement>) => {
      if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
      const box = event.currentTarget.parentElement!.getBoundingClientRect();
      set(way === "vertical" ? (box.bottom - event.clientY) / box.height : (box.right - event.clientX) / box.width);
    },
    onKeyDown: (event: KeyboardEvent) => {
      const more = event.key === "ArrowUp" || event.key === "ArrowLeft";
      if (more || event.key === "ArrowDown" || event.key === "ArrowRight") set(share + (more ? 0.03 : -0.03));
    },
  };
  return { share, handle };
}
