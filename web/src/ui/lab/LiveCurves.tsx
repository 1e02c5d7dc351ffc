// Ten looks a second at a network that is up, drawn as they come.

import { useEffect, useReducer, useRef, useState } from "react";
import { colourOf } from "../../core/curves";
import { type Look, Recent, type RecentPanel } from "../../core/recent";
import { Chart } from "../Chart";
import { useStore } from "../use";

const SECONDS = 30;
const PANELS: [RecentPanel, string, string][] = [
  ["links", "Links", "bit/s"],
  ["acked", "Acknowledged", "bit/s"],
  ["cwnd", "Congestion window", "segments"],
  ["rtt", "Round-trip time", "s"],
];
const NOTHING: never[] = [];

export function LiveCurves({ lab, shown }: { lab: string; shown: boolean }) {
  const store = useStore();
  const recent = useRef(new Recent(SECONDS));
  const visible = useRef(shown);
  visible.current = shown;
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const [ended, setEnded] = useState(false);
  useEffect(() => {
    const stream = store.backend.enter(
      lab,
      "watch",
      {},
      (data) => {
        recent.current.add(JSON.parse(data as string) as Look);
        if (visible.current) draw();
      },
      () => setEnded(true),
    );
    return () => stream.close();
  }, [lab, store]);

  const [start, end] = recent.current.window;
  const panels = PANELS.map(([panel, title, unit]) => ({ panel, title, unit, lines: recent.current.lines(panel) }));
  const names = { links: panels[0]!.lines.map((line) => line.label), sockets: panels[1]!.lines.map((line) => line.label) };
  return (
    <div className="lab-curves">
      {ended && <p className="empty">This network is no longer watched: it has ended, or the server has.</p>}
      <div className="charts">
        {panels.map(({ panel, title, unit, lines }) => (
          <Chart
            key={panel}
            title={title}
            unit={unit}
            lines={lines}
            colours={lines.map((line) => colourOf(line.label, panel === "links" ? names.links : names.sockets))}
            start={start}
            end={end}
            phases={NOTHING}
            marks={NOTHING}
            named
            onZoom={() => undefined}
          />
        ))}
      </div>
    </div>
  );
}
