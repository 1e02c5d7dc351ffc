// Ten looks a second at a network that is up, drawn as they come.

import { useEffect, useReducer, useRef, useState } from "react";
import { colourOf } from "../../core/curves";
import { type Look, Recent, type RecentPanel } from "../../core/recent";
import { throttle } from "../../core/throttle";
import { Chart } from "../Chart";
import { useStore } from "../use";

const SECONDS = 30;
// Until the server is asked again, ms.
const AGAIN = 1000;
// A slow page draws several looks at once, and stays free for clicks, ms.
const REDRAW = 50;
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
  const [ended, setEnded] = useState<string>();
  const [attempt, retry] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    let timer = 0;
    const redraw = throttle(draw, REDRAW);
    const stream = store.backend.enter(
      lab,
      "watch",
      {},
      (data) => {
        recent.current.add(JSON.parse(data as string) as Look);
        setEnded(undefined);
        if (visible.current) redraw.ask();
      },
      (why) => {
        setEnded(why || "no data from the server");
        // It may have been taken down elsewhere.
        void store.lookForLabs();
        timer = window.setTimeout(retry, AGAIN);
      },
    );
    return () => {
      clearTimeout(timer);
      stream.close();
    };
  }, [lab, store, attempt]);

  const [start, end] = recent.current.window;
  const panels = PANELS.map(([panel, title, unit]) => ({ panel, title, unit, lines: recent.current.lines(panel) }));
  const names = { links: panels[0]!.lines.map((line) => line.label), sockets: panels[1]!.lines.map((line) => line.label) };
  return (
    <div className="lab-curves">
      {ended && <p className="empty">Reconnecting: {ended}</p>}
      <div className="charts" tabIndex={0} role="region" aria-label="Curves of this network">
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
            absent={panel === "links" ? undefined : "No TCP connection: start the flows, or a program in a terminal."}
            onZoom={() => undefined}
          />
        ))}
      </div>
    </div>
  );
}
