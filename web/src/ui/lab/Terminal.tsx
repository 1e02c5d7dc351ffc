// A terminal in a node.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Xterm } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef } from "react";
import { colour, useThemeChange } from "../theme";
import { useStore } from "../use";

// The page's policy takes style sheets that carry its nonce, and no style attributes of markup. xterm.js makes both, past its own
// `documentOverride`. A style that a script sets is allowed.
const nonce = document.querySelector<HTMLMetaElement>("meta[name=nonce]")?.content ?? "";
const create = document.createElement.bind(document);
document.createElement = (name: string, options?: ElementCreationOptions) => {
  const element = create(name, options);
  if (name === "style") element.nonce = nonce;
  if (name === "span") {
    const set = element.setAttribute.bind(element);
    element.setAttribute = (attribute, value) => (attribute === "style" ? void (element.style.cssText = value) : set(attribute, value));
  }
  return element;
};

interface Props {
  lab: string;
  node: string;
  what: "bash" | "vtysh";
  shown: boolean;
}

// The server takes messages of 64 KiB.
const PIECE = 16384;

export default function Terminal({ lab, node, what, shown }: Props) {
  const store = useStore();
  const host = useRef<HTMLDivElement>(null);
  const made = useRef<{ terminal: Xterm; fit: FitAddon }>();
  const theme = useThemeChange();

  useEffect(() => {
    const terminal = new Xterm({
      cursorBlink: true,
      fontSize: 12,
      fontFamily: colour("mono"),
      scrollback: 5000,
      screenReaderMode: true,
    });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(host.current!);
    // Tab is the shell's; this key is for who has no pointer to leave with.
    terminal.attachCustomKeyEventHandler((event) => {
      if (!event.ctrlKey || event.key !== "F6") return true;
      host.current?.closest(".panes")?.querySelector<HTMLElement>("[role=tab][aria-selected=true]")?.focus();
      return false;
    });
    made.current = { terminal, fit };
    let unsaid = 0;
    const stream = store.backend.enter(
      lab,
      "terminal",
      { node, what },
      (data) => {
        if (typeof data === "string") return;
        const bytes = new Uint8Array(data);
        // The server waits while much of what it sent is not shown.
        terminal.write(bytes, () => {
          unsaid += bytes.length;
          if (unsaid < PIECE) return;
          stream.send(JSON.stringify({ read: unsaid }));
          unsaid = 0;
        });
      },
      (why) => terminal.write(`\r\n[${why || "the program has ended"}]\r\n`),
    );
    const resized = ({ cols, rows }: { cols: number; rows: number }) => stream.send(JSON.stringify({ size: [cols, rows] }));
    terminal.onResize(resized);
    const encoder = new TextEncoder();
    terminal.onData((text) => {
      const bytes = encoder.encode(text);
      for (let at = 0; at < bytes.length; at += PIECE) stream.send(bytes.slice(at, at + PIECE));
    });
    // Its first size is sent when the stream is open, which the first prompt shows.
    const first = terminal.onWriteParsed(() => {
      first.dispose();
      resized(terminal);
    });
    const watch = new ResizeObserver(() => host.current!.clientWidth > 40 && fit.fit());
    watch.observe(host.current!);
    return () => {
      watch.disconnect();
      stream.close();
      terminal.dispose();
    };
  }, [store, lab, node, what]);

  useEffect(() => {
    if (!made.current) return;
    const text = colour("text");
    made.current.terminal.options.theme = {
      background: colour("surface"),
      foreground: text,
      cursor: text,
      selectionBackground: `${colour("accent")}55`,
    };
  }, [theme]);

  useEffect(() => {
    if (shown) made.current?.terminal.focus();
  }, [shown]);

  return <div className="terminal" ref={host} role="group" aria-label={`Terminal of ${node}`} aria-description="Ctrl+F6 leaves it." />;
}
