// A button that opens a menu. Escape, a press elsewhere, or a choice closes it.

import { type CSSProperties, type ReactNode, useEffect, useRef, useState } from "react";

// Distance of a menu from the window's edge, and its maximum width, px.
const [EDGE, WIDEST] = [12, 330];

interface Props {
  /** The button's content. */
  button: ReactNode;
  /** The button's name where it has no text. */
  label?: string;
  title?: string;
  className?: string;
  /** The menu's content; `close` ends it. */
  children: (close: () => void) => ReactNode;
}

export function Menu({ button, label, title, className = "", children }: Props) {
  const [placed, setPlaced] = useState<CSSProperties>();
  const open = placed !== undefined;
  const root = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (!open) return;
    const pressed = (event: PointerEvent) => root.current?.contains(event.target as Node) || setPlaced(undefined);
    // Before the canvas takes it.
    document.addEventListener("pointerdown", pressed, true);
    return () => document.removeEventListener("pointerdown", pressed, true);
  }, [open]);

  const close = () => {
    setPlaced(undefined);
    opener.current?.focus();
  };
  return (
    <div
      ref={root}
      className={`choose ${className}`}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        event.stopPropagation();
        close();
      }}
      onBlur={(event) => event.relatedTarget && !root.current?.contains(event.relatedTarget) && setPlaced(undefined)}
    >
      <button ref={opener} type="button" aria-expanded={open} aria-label={label} title={title} onClick={() => setPlaced(open ? undefined : beside(opener.current!))}>
        {button}
      </button>
      {open && <div className="menu" style={placed}>{children(close)}</div>}
    </div>
  );
}

/** Below the button or above it, wherever there is more room, and within what is shown of its surroundings. */
function beside(button: Element): CSSProperties {
  const { top, bottom, left, right } = button.getBoundingClientRect();
  const [start, end] = shownAround(button);
  const leftwards = left + WIDEST > end && right - start > end - left;
  const [above, below] = [top - EDGE, window.innerHeight - bottom - EDGE];
  const up = below < Math.min(above, 400);
  return {
    maxHeight: up ? above : below,
    ...(up ? { bottom: "100%" } : { top: "100%" }),
    maxWidth: Math.min(WIDEST, leftwards ? right - start : end - left),
    ...(leftwards ? { right: 0 } : { left: 0 }),
  };
}

/** From where to where an element's surroundings are not clipped, px of the window. */
function shownAround(element: Element): [start: number, end: number] {
  let [start, end] = [0, window.innerWidth];
  for (let around = element.parentElement; around; around = around.parentElement) {
    if (getComputedStyle(around).overflowX === "visible") continue;
    const { left, right } = around.getBoundingClientRect();
    [start, end] = [Math.max(start, left), Math.min(end, right)];
  }
  return [start, end];
}
