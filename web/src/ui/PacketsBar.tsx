// The clock of packet playback.

import { useEffect, useReducer } from "react";
import { clock } from "../core/quantity";
import { Icon } from "./icons";
import { playback } from "./playing";
import { use, useStore } from "./use";

const SPEEDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];

export function PacketsBar() {
  const store = useStore();
  const curves = use((state) => state.curves);
  const drawing = use((state) => state.drawing);
  const refused = use((state) => state.refused);
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const run = curves?.header.run;

  useEffect(() => playback.listen(draw), []);
  // Packet events are many: a simulation records them when they are to be seen.
  useEffect(() => void store.preview(true), [store]);
  useEffect(() => {
    if (run) playback.open(store, run, curves!.header.duration);
  }, [run, curves, store]);
  useEffect(() => {
    if (run && playback.recorded === false) void store.preview(true);
  });
  useEffect(() => () => playback.set({ playing: false }), []);

  if (!drawing.flows.length) return <p className="empty">Packets are seen here once a flow is drawn.</p>;
  if (refused) return <p className="empty">{refused}</p>;
  const { time, duration, playing, speed } = playback;
  return (
    <div className="playback">
      <div className="row">
        <button className="primary" onClick={() => playback.set({ playing: !playing })} disabled={!run} aria-label={playing ? "Pause" : "Play"}>
          <Icon name={playing ? "pause" : "play"} /> {playing ? "Pause" : "Play"}
        </button>
        <button onClick={() => playback.set({ time: Math.max(0, time - speed * 0.25), playing: false })} aria-label="A step back">
          −
        </button>
        <button onClick={() => playback.set({ time: Math.min(duration, time + speed * 0.25), playing: false })} aria-label="A step on">
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
      </div>
      <p className="hush">
        Each dot is a packet on its link, in its flow's colour; small dots are acknowledgments. A ring is an ECN mark. Red dots fall:
        they are dropped by the queue or lost on the way. Bars are packets waiting.
      </p>
    </div>
  );
}
