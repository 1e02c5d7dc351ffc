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
      <button ref={opener} type="button" aria-expanded={open} aria-label={label} title={title} onClick={() => setPlaced(open ? undefined : beside(opener.current!.getBoundingClientRect()))}>
        {button}
      </button>
      {open && <div className="menu" style={placed}>{children(close)}</div>}
    </div>
  );
}

/** Below the button or above it, wherever there is more room, and within the window. */
function beside({ top, bottom, left }: DOMRect): CSSProperties {
  const [above, below] = [top - EDGE, window.innerHeight - bottom - EDGE];
  const up = below < Math.min(above, 400);
  return {
    maxHeight: up ? above : below,
    ...(up ? { bottom: "100%" } : { top: "100%" }),
    ...(left + WIDEST > window.innerWidth ? { right: 0 } : { left: 0 }),
  };
}
