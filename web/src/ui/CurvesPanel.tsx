// Curves of the simulation, of runs laid over it, and of a run that goes on.

import { memo, useMemo } from "react";
import { charts, type Curves, type CurvesHeader, dashesOf, inOrderOf, type Line, lines, shadeOf, tints, wayOf } from "../core/curves";
import { engineNamed } from "../core/engines";
import { mistakes } from "../core/problems";
import { unbroken } from "../core/quantity";
import type { LivePanel } from "../store/state";
import { Chart, phaseColour } from "./Chart";
import { Menu } from "./Menu";
import { flowColours, pageColours, useThemeChange } from "./theme";
import { use, useStore } from "./use";

const TITLES: Record<string, string> = {
  goodput: "Goodput",
  cwnd: "Congestion window",
  rtt: "Round-trip time",
  queue: "Queue",
  inflight: "In flight",
  pacing: "Pacing rate",
  delivery: "Delivery rate",
  retransmits: "Retransmitted",
  sojourn: "Queueing delay",
  ssthresh: "Slow-start threshold",
  jain: "Jain's index",
  control: "Congestion control state",
  discipline: "Queue discipline state",
  classes: "Delay by class",
  "rtt-cdf": "RTT, distribution",
  "sojourn-cdf": "Queueing delay, distribution",
  echo: "Round-trip time by message size",
};
// Why a panel can be without lines.
const ABSENT: Record<string, string> = {
  ssthresh: "No threshold is set before the first loss.",
  queue: "No packet waited in a queue.",
  sojourn: "No packet waited in a queue.",
  jain: "No flows share a bottleneck.",
  control: "These congestion controls export no state.",
  discipline: "The queue disciplines export no state, or no packet waited.",
  classes: "No queue discipline has classes, or no packet waited.",
};
// A panel of a kind of flow that few runs have: it is offered where a run has it.
const RARE = "echo";
const NOTHING: never[] = [];

/** With a `playhead`, each chart marks the time at which packets are played, and a click goes to its time. */
export const CurvesPanel = memo(function CurvesPanel({ playhead }: { playhead?: boolean }) {
  const store = useStore();
  const curves = use((state) => state.curves);
  const ghost = use((state) => state.ghost);
  const shown = use((state) => state.overlays);
  const panels = use((state) => state.panels);
  const hidden = use((state) => state.hidden);
  const window = use((state) => state.window);
  const drawing = use((state) => state.drawing);
  const session = use((state) => state.session)!;
  const units = session.panels;
  const jobs = use((state) => state.jobs);
  const live = use((state) => state.live);
  const refused = use((state) => state.refused);
  const wrong = use((state) => mistakes(state.checked));

  const going = Object.values(jobs).find((job) => job.kind === "run" && job.state === "running");
  const now = going && live[going.id];
  const offered = useMemo(() => {
    const found = [curves, ...shown.map((overlay) => overlay.curves)].some((one) => one?.header.series.some(({ panel }) => panel === RARE));
    const others = Object.keys(units).filter((panel) => panel !== RARE);
    return found ? [RARE, ...others] : others;
  }, [curves, shown, units]);
  const names = useMemo(() => {
    const found = namesOf([curves, ...shown.map((overlay) => overlay.curves)], Object.keys(now?.panels.goodput ?? {}));
    return { ...found, flows: inOrderOf(drawing.flows.map(({ name }) => name), found.flows), present: new Set(found.flows) };
  }, [curves, shown, now, drawing]);
  const drawn = useMemo(() => {
    const all = (panel: string): Line[] => [
      ...(ghost ? lines(ghost, panel, -1) : []),
      ...(curves ? lines(curves, panel, 0) : []),
      ...shown.flatMap((overlay, index) =>
        lines(overlay.curves, panel, index + 1).map((line) => ({ ...line, label: `${line.label} (${overlay.path.split("/").pop()})` })),
      ),
    ];
    return offered.filter((panel) => panels.includes(panel)).flatMap((panel) => {
      const visible = all(panel).filter((line) => !hidden[nameOf(line)] && !(line.run > 0 && hidden[`run ${shown[line.run - 1]?.path}`]));
      const values = now?.panels[panel as LivePanel];
      for (const [flow, y] of Object.entries(values ?? {})) {
        if (!hidden[flow]) visible.push({ panel, label: `${flow} (now)`, flow, unit: units[panel]!, run: shown.length + 1, x: now!.times, y: y.map((value) => value ?? NaN) });
      }
      return charts(visible, units[panel] ?? "").map((chart) => ({ ...chart, panel, colours: tints(chart.lines, names) }));
    });
  }, [curves, ghost, shown, panels, offered, hidden, names, now, units]);

  const durations = [curves, ...shown.map((overlay) => overlay.curves)].flatMap((one) => (one ? [one.header.duration] : []));
  if (going) durations.push(going.duration);
  if (!durations.length) {
    return (
      <p className="empty">
        {refused && !wrong
          ? refused
          : drawing.flows.length
            ? "Fix the errors in the scenario to see curves."
            : "Draw a flow between two hosts to see curves."}
      </p>
    );
  }
  const whole: [number, number] = [0, Math.max(...durations)];
  const [start, end] = window ?? whole;
  const base = curves ?? shown[0]?.curves;
  const phases = base?.header.phases.filter(({ flow }) => !hidden[flow]) ?? NOTHING;
  const marks = base?.header.marks ?? NOTHING;
  const verdicts = shown.flatMap(({ path, curves }) => (curves.header.overload ? [{ run: path.split("/").pop()!, said: curves.header.overload }] : []));
  if (going?.overload) verdicts.push({ run: `${going.name} (now)`, said: going.overload });

  return (
    <div className="curves">
      <Overload verdicts={verdicts} />
      <div className="legend" role="group" aria-label="Shown">
        <div className="flows">{names.flows.map((name, index) => names.present.has(name) && <Chip key={name} name={name} colour={index} />)}</div>
        {shown.map((overlay, index) => (
          <span className="chip run" key={overlay.path}>
            <Sample run={index + 1} />
            <button className="plain" aria-pressed={!hidden[`run ${overlay.path}`]} onClick={() => toggle(`run ${overlay.path}`)}>
              {overlay.path.split("/").pop()} <small>{engineNamed(overlay.curves.header.engine)}</small>
            </button>
            <button className="plain" aria-label={`Remove ${overlay.path}`} onClick={() => void store.runs.overlay(overlay.path)}>
              ✕
            </button>
          </span>
        ))}
        {now && (
          <span className="chip now">
            <Sample run={shown.length + 1} /> {going!.name} <small>{engineNamed(going!.engine)}, now</small>
          </span>
        )}
        {shown.length > 1 && (
          <a className="button" href={store.backend.reportAddress(shown.map((overlay) => overlay.path))} target="_blank" rel="noreferrer">
            Compare in a report
          </a>
        )}
        <span className="space" />
        {window && <button onClick={() => void store.simulation.zoom(undefined)}>Whole run</button>}
        {panels.includes("cwnd") && phases.some(({ names }) => names.length > 0) && <Phases phases={phases} />}
        <Menu button="Panels">
          {() =>
            offered.map((panel) => (
              <label key={panel} className="check">
                <input
                  type="checkbox"
                  checked={panels.includes(panel)}
                  onChange={() => store.simulation.setPanels(Object.keys(units).filter((one) => (one === panel ? !panels.includes(one) : panels.includes(one))))}
                />
                {TITLES[panel] ?? panel}
              </label>
            ))
          }
        </Menu>
      </div>
      <div className={`charts count-${drawn.length}`}>
        {drawn.map(({ panel, group, unit, lines: some, colours }) => (
          <Chart
            key={`${panel} ${group} ${unit}`}
            title={[TITLES[panel] ?? panel, group].filter(Boolean).join(", ")}
            unit={unit}
            lines={some}
            colours={colours}
            start={start}
            end={end}
            whole={whole}
            phases={panel === "cwnd" ? phases : NOTHING}
            marks={panel === "queue" || panel === "cwnd" ? marks : NOTHING}
            absent={absent(panel)}
            playhead={playhead}
            onZoom={(to) => void store.simulation.zoom(to)}
          />
        ))}
      </div>
    </div>
  );

  function absent(panel: string): string | undefined {
    const off = base?.header.unsampled[panel];
    return off ? `The scenario samples no ${off} (sample: {${off}: off}).` : ABSENT[panel];
  }

  function toggle(key: string): void {
    store.set({ hidden: { ...hidden, [key]: !hidden[key] } });
  }

  function Chip({ name, colour }: { name: string; colour: number }) {
    return (
      <button className={`chip flow-${colour % 10}`} aria-pressed={!hidden[name]} onClick={() => toggle(name)} title={`Show or hide ${name}`}>
        <span className="swatch" aria-hidden="true" /> {name}
      </button>
    );
  }
});

/** The colours of each control's phases: its strip stands above the congestion window, in this order. */
function Phases({ phases }: { phases: CurvesHeader["phases"] }) {
  return (
    <Menu button="Phases">
      {() =>
        phases.map(({ flow, names }) => (
          <ul key={flow} className="phases" aria-label={`Phases of ${flow}`}>
            <li>
              <b>{flow}</b>
            </li>
            {[...new Set(names)].map((name) => (
              <li key={name}>
                <span className="swatch" aria-hidden="true" style={{ background: phaseColour(name) }} /> {name}
              </li>
            ))}
          </ul>
        ))
      }
    </Menu>
  );
}

/** Runs whose figures are the machine's rather than TCP's. */
function Overload({ verdicts }: { verdicts: { run: string; said: string }[] }) {
  return (
    <>
      {verdicts.map(({ run, said }) => (
        <p key={run} className="overload" role="alert">
          {run} was overloaded: {unbroken(said)}.
        </p>
      ))}
    </>
  );
}

/** The sample of a run's lines for its chip, in the colour that they have of the first flow. */
function Sample({ run }: { run: number }) {
  useThemeChange();
  return (
    <svg className="sample" aria-hidden="true" viewBox="0 0 22 2">
      <line x2="22" y1="1" y2="1" stroke={shadeOf(flowColours()[0]!, run, pageColours())} strokeDasharray={dashesOf(run)} />
    </svg>
  );
}

const nameOf = (line: Line) => line.flow ?? wayOf(line);

/** Flows and links of curves, and the flows of a run that goes on. */
function namesOf(all: (Curves | undefined)[], going: string[]): { flows: string[]; links: string[] } {
  const [flows, links] = [new Set<string>(), new Set<string>()];
  for (const curves of all) {
    for (const about of curves?.header.series ?? []) {
      if (about.flow) flows.add(about.flow);
      else links.add(wayOf(about));
    }
  }
  for (const flow of going) flows.add(flow);
  return { flows: [...flows], links: [...links] };
}
