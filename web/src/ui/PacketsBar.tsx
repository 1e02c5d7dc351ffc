// The clock of packet playback.

import { useEffect, useReducer } from "react";
import { engineNamed } from "../core/engines";
import { mistakes } from "../core/problems";
import { clock } from "../core/quantity";
import { CurvesPanel } from "./CurvesPanel";
import { Icon } from "./icons";
import { Menu } from "./Menu";
import { playback } from "./playing";
import { use, useStore } from "./use";

const SIGNS = [
  ["Dot", "a packet, in the colour of its flow"],
  ["Small dot", "an acknowledgment"],
  ["Ring", "an ECN mark"],
  ["Falling red dot", "a packet dropped by a queue or lost on a link"],
  ["Bar", "queue length"],
  ["Red dashed link", "a link that is down"],
  ["Tag", "a link setting that changed"],
];
const SPEEDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];

export function PacketsBar() {
  const store = useStore();
  const curves = use((state) => state.curves);
  const drawing = use((state) => state.drawing);
  const refused = use((state) => state.refused);
  const wrong = use((state) => mistakes(state.checked));
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const overlays = use((state) => state.overlays);
  const played = use((state) => state.played);
  const session = use((state) => state.session)!;
  const result = overlays.find((overlay) => overlay.path === played);
  const run = result ? result.path : curves?.header.run;
  const duration = (result?.curves ?? curves)?.header.duration ?? 0;

  useEffect(() => playback.listen(draw), []);
  // Packet events are many: a simulation records them when they are to be seen.
  useEffect(() => void store.simulation.preview(true), [store]);
  useEffect(() => {
    if (run) playback.open(store, run, duration);
  }, [run, duration, store]);
  useEffect(() => {
    if (run && !result && playback.recorded === false) void store.simulation.preview(true);
  });
  useEffect(() => () => playback.set({ playing: false }), []);

  if (!drawing.flows.length) return <p className="empty">Draw a flow to see its packets.</p>;
  const none = refused && !overlays.length;
  if (wrong && (none || !run)) return <p className="empty">Fix the errors in the scenario to see packets.</p>;
  if (none) return <p className="empty">{refused}</p>;
  const { time, playing, speed } = playback;
  return (
    <>
    <div className="playback">
      <div className="row">
        <button className="primary" onClick={() => playback.set({ playing: !playing })} disabled={!run} aria-label={playing ? "Pause" : "Play"}>
          <Icon name={playing ? "pause" : "play"} /> {playing ? "Pause" : "Play"}
        </button>
        <button onClick={() => playback.set({ time: Math.max(0, time - speed * 0.25), playing: false })} aria-label="Step back">
          −
        </button>
        <button onClick={() => playback.set({ time: Math.min(duration, time + speed * 0.25), playing: false })} aria-label="Step forward">
          +
        </button>
        <input
          type="range"
          className="time"
          aria-label="Time of the run"
          aria-valuetext={clock(time, 4)}
          min={0}
          max={duration || 1}
          step={(duration || 1) / 10000}
          value={time}
          onChange={(event) => playback.set({ time: Number(event.target.value) })}
        />
        <output className="clock" data-time={time} data-dots={playback.shown}>
          {clock(time, 4)}
        </output>
        <label>
          Speed
          <select value={speed} onChange={(event) => playback.set({ speed: Number(event.target.value) })}>
            {SPEEDS.map((one) => (
              <option key={one} value={one}>
                {one === 1 ? "real time" : `1/${Math.round(1 / one)}`}
              </option>
            ))}
          </select>
        </label>
        {overlays.length > 0 && (
          <label>
            Run
            <select value={result?.path ?? ""} onChange={(event) => store.set({ played: event.target.value || undefined })}>
              {!refused && <option value="">the simulation</option>}
              {refused && !result && <option value="">choose</option>}
              {overlays.map(({ path, curves }) => (
                <option key={path} value={path}>
                  {path.split("/").pop()} ({engineNamed(curves.header.engine)})
                </option>
              ))}
            </select>
          </label>
        )}
        <Menu className="keys" label="Legend" title="Legend" button="?">
          {() => (
            <ul className="signs">
              {SIGNS.map(([sign, meaning]) => (
                <li key={sign}>
                  <b>{sign}</b> {meaning}
                </li>
              ))}
            </ul>
          )}
        </Menu>
      </div>
      {result && playback.recorded === false && (
        <div className="row">
          <span>This run did not record packets.</span>
          <button disabled={session.read_only} onClick={() => void store.runs.start(true)}>
            Run again with packets
          </button>
        </div>
      )}
      {playback.links.length > 0 && (
        <output className="link-states" aria-label="Links that have changed">
          {playback.links.join(", ")}
        </output>
      )}
    </div>
    <CurvesPanel playhead />
    </>
  );
}
