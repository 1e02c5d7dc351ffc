// Icons, drawn in lines.

const SHAPES: Record<string, string> = {
  undo: "M4 8h8a4 4 0 0 1 0 8H8 M4 8l4-4 M4 8l4 4",
  redo: "M16 8H8a4 4 0 0 0 0 8h4 M16 8l-4-4 M16 8l-4 4",
  save: "M4 4h10l2 2v10H4z M7 4v4h6V4 M7 16v-4h6v4",
  play: "M6 4l10 6-10 6z",
  pause: "M7 4v12 M13 4v12",
  stop: "M5 5h10v10H5z",
  sun: "M10 6a4 4 0 1 0 .01 0 M10 1v2 M10 17v2 M1 10h2 M17 10h2 M4 4l1 1 M15 15l1 1 M4 16l1-1 M15 5l1-1",
  moon: "M15 12a6 6 0 0 1-8-8 6.5 6.5 0 1 0 8 8z",
  host: "M3 4h14v9H3z M7 17h6 M10 13v4",
  router: "M10 3a7 7 0 1 0 .01 0 M6 8h8 M12 6l2 2-2 2 M14 12H6 M8 10l-2 2 2 2",
  switch: "M3 6h14v8H3z M6 10h.01 M9 10h.01 M12 10h.01 M15 10h.01",
  flow: "M3 15C6 3 14 3 17 15 M14 13l3 2 1-4",
  layout: "M3 3h5v4H3z M12 3h5v4h-5z M8 13h5v4H8z M5 7v3h10V7 M10 10v3",
  fit: "M3 7V3h4 M13 3h4v4 M17 13v4h-4 M7 17H3v-4",
  plus: "M10 4v12 M4 10h12",
  minus: "M4 10h12",
  copy: "M7 7h9v9H7z M4 13V4h9",
  trash: "M4 6h12 M8 6V4h4v2 M6 6l1 11h6l1-11",
  align: "M4 3v14 M7 6h9v3H7z M7 11h6v3H7z",
  more: "M4 8l6 6 6-6",
  overlay: "M3 14c4-10 8 4 14-8 M3 10c4-8 8 6 14-4",
  report: "M5 2h7l3 3v13H5z M8 9h5 M8 12h5 M8 15h3",
  download: "M10 3v10 M6 9l4 4 4-4 M4 16h12",
};

/** The icon of a kind of node: its own, or one for what such nodes do. */
export function nodeIcon(name: string, { forwards, bridges }: { forwards: boolean; bridges: boolean }): string {
  return name in SHAPES ? name : forwards ? "router" : bridges ? "switch" : "host";
}

export function Icon({ name }: { name: string }) {
  return (
    <svg className="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={SHAPES[name]} />
    </svg>
  );
}
