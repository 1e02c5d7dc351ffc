// One panel of curves: uPlot over lines that share an axis of time, or over distributions.

import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { align, axisLabels, type CurvesHeader, dashesOf, inWords, type Line, nearest, reach, shadeOf, windowAfter } from "../core/curves";
import { axisEnds, inUnit, scaleOf, shown } from "../core/quantity";
import { asMouse } from "./finger";
import { playback } from "./playing";
import { colour, flowColours, pageColours, useThemeChange } from "./theme";

export interface ChartProps {
  title: string;
  unit: string;
  lines: Line[];
  /** Colour number of each line. */
  colours: number[];
  start: number;
  end: number;
  /** The whole of which `start` to `end` is seen, where keys zoom. */
  whole?: [number, number];
  phases: CurvesHeader["phases"];
  marks: CurvesHeader["marks"];
  /** Whether to mark the time at which packets are played. */
  playhead?: boolean;
  /** Whether it names its lines, each with its last value, where nothing above all panels names them. */
  named?: boolean;
  /** The text where there is no line. */
  absent?: string;
  onZoom: (window: [number, number] | undefined) => void;
}

// Meanings of the ticks on the axis of time.
const MARKS = { drop: "dropped", loss: "lost", mark: "ECN-marked" };
const SYNC = "tcplab";
const STRIP = 5;
// Of the font of an axis, px.
const HALF_DIGIT = 3.4;
// A shorter drag is a click, px.
const MIN_DRAG = 4;

export function Chart(given: ChartProps) {
  // A distribution, or a figure by size, has an axis of its own, and is zoomed on its own.
  const across = given.lines[0]?.across;
  const [part, zoom] = useState<[number, number]>();
  const whole = useMemo(() => (across ? reach(given.lines) : undefined), [across, given.lines]);
  const [start, end] = whole ? (part ?? whole) : [given.start, given.end];
  const props = whole ? { ...given, start, end, whole, onZoom: zoom } : given;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const latest = useRef(props);
  latest.current = props;
  const theme = useThemeChange();
  // A logarithmic axis has small numbers beside large ones.
  const wide = across && !given.lines[0]!.log ? scaleOf(across, whole![1]) : { divide: 1, unit: across ?? "s" };
  const shape = JSON.stringify([props.lines.map((line) => [line.label, line.run]), props.colours, props.unit, across, wide.unit, theme]);
  const [least, most] = useMemo(() => extent(props.lines), [props.lines]);
  const scale = scaleOf(props.unit, most);

  useEffect(() => {
    const element = host.current!;
    const made = new uPlot(options(latest, element, scale, wide), [[]], element);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize(sizeOf(element)));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
    };
    // The scale's unit is part of the axis' label.
  }, [shape, scale.unit]);

  useEffect(() => {
    const made = plot.current!;
    const { x, ys } = align(props.lines);
    made.setData([x, ...ys] as uPlot.AlignedData, false);
    made.batch(() => {
      made.setScale("x", { min: props.start, max: props.end });
      const [min, max] = props.lines[0]?.log ? logEnds(props.lines) : axisEnds(least, most, scale);
      made.setScale("y", { min, max });
    });
  }, [props.lines, props.start, props.end, props.marks, props.phases, least, most, shape, scale.unit]);

  const head = useRef<HTMLDivElement>(null);
  const headed = props.playhead && !across;
  useEffect(() => {
    if (!headed) return;
    const follow = () => {
      const [made, line] = [plot.current, head.current];
      // The tab that is left stops the playback, whose listeners go after their charts.
      if (!made || !line) return;
      const at = made.valToPos(playback.time, "x");
      line.style.transform = `translateX(${made.over.offsetLeft + at}px)`;
      line.style.visibility = at >= 0 && at <= made.over.clientWidth ? "visible" : "hidden";
    };
    const frame = requestAnimationFrame(follow);
    const watch = new ResizeObserver(follow);
    watch.observe(host.current!);
    const forget = playback.listen(follow);
    return () => {
      cancelAnimationFrame(frame);
      watch.disconnect();
      forget();
    };
  }, [headed, props.lines, props.start, props.end, shape, scale.unit]);

  const pressed = (event: KeyboardEvent) => {
    if (!props.whole || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = windowAfter(event.key, [props.start, props.end], props.whole);
    if (to === null) return;
    event.preventDefault();
    props.onZoom(to);
  };

  return (
    <figure
      className="chart"
      tabIndex={props.whole ? 0 : undefined}
      onKeyDown={pressed}
      aria-keyshortcuts={props.whole ? "+ - ArrowLeft ArrowRight 0" : undefined}
      aria-label={`${props.title}: ${inWords(props.lines) || (props.absent ?? "no curve")}`}
      data-panel={props.title}
      data-lines={props.lines.length}
      data-samples={props.lines.reduce((most, { x }) => Math.max(most, x.length), 0)}
    >
      {/* Names of many links scroll. */}
      <figcaption tabIndex={props.named ? 0 : undefined}>
        {props.title} <span className="hush">{scale.unit || (across ? "share" : "")}</span>
        {namedHere(props).map(([line, tint]) => (
          <span key={line.label} className={`of-link flow-${tint % 10}`}>
            <span className="swatch" aria-hidden="true" /> {line.label}
            {props.named && <output data-last={last(line)}> {shown(last(line), props.unit)}</output>}
          </span>
        ))}
        {[...new Set(props.marks.map(({ kind }) => kind))].map((kind) => (
          <span key={kind} className={`key tick-${kind}`}>
            <span className="swatch" aria-hidden="true" /> {MARKS[kind]}
          </span>
        ))}
      </figcaption>
      {!props.lines.some(({ run }) => run >= 0) && props.absent && <p className="absent">{props.absent}</p>}
      <div className="plot">
        <div ref={host} className="fill" />
        {headed && <div ref={head} className="playhead" aria-hidden="true" />}
      </div>
    </figure>
  );
}

// Flows are named above all panels; links and published figures only here.
function namedHere({ lines, colours, named }: ChartProps): [Line, number][] {
  return lines
    .flatMap((line, index): [Line, number][] => ((named || line.link || line.figure) && line.run === 0 ? [[line, colours[index]!]] : []))
    .slice(0, 6);
}

const last = ({ y }: Line): number | undefined => y[y.length - 1];

/** The least and largest value, zero among them. */
function extent(lines: Line[]): [number, number] {
  let [least, most] = [0, 0];
  for (const { y } of lines) {
    for (let i = 0; i < y.length; i++) {
      if (y[i]! > most) most = y[i]!;
      if (y[i]! < least) least = y[i]!;
    }
  }
  return [least, most];
}

/** The ends of a logarithmic axis, which enclose all values above zero: a power of ten, and a little beyond. */
function logEnds(lines: Line[]): [number, number] {
  const values = lines.flatMap(({ y }) => Array.from(y)).filter((value) => value > 0);
  return values.length ? [10 ** Math.floor(Math.log10(Math.min(...values))), Math.max(...values) * 1.3] : [0.1, 1];
}

function sizeOf(element: HTMLElement) {
  return { width: Math.max(120, element.clientWidth), height: Math.max(60, element.clientHeight) };
}

interface Scale {
  divide: number;
  unit: string;
}

function options(latest: { current: ChartProps }, element: HTMLElement, scale: Scale, wide: Scale): uPlot.Options {
  const { lines, colours, unit } = latest.current;
  const { across, log } = lines[0] ?? {};
  const paint = flowColours();
  const [text, grid] = [colour("muted"), colour("grid")];
  const page = pageColours();
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
  const readout = document.createElement("div");
  readout.className = "readout";
  readout.setAttribute("aria-hidden", "true");
  // Charts whose cursors are in step select together: the one that is dragged over speaks for all.
  let dragged = false;
  return {
    ...sizeOf(element),
    // To the right, half of the label of the last tick, such as 100000 s.
    padding: [
      STRIP * Math.min(6, latest.current.phases.length) + 8,
      () => Math.max(22, HALF_DIGIT * inUnit(Math.round(latest.current.end / wide.divide), wide.unit).length),
      0,
      0,
    ],
    legend: { show: false },
    cursor: {
      sync: across ? undefined : { key: SYNC, setSeries: false },
      drag: { x: true, y: false, setScale: false },
      points: { size: 6 },
      bind: {
        dblclick: () => () => {
          latest.current.onZoom(undefined);
          return null;
        },
      },
    },
    scales: { x: { time: false, ...(log && { distr: 3, log: 2 }) }, y: { auto: false, ...(log && { distr: 3 }) } },
    axes: [
      { ...axis, size: 24, space: 60, values: (_, values) => axisLabels(values, wide.divide, wide.unit, 7) },
      // A low panel, too, has more than one number.
      { ...axis, size: 46, space: (...[, , , , high]) => Math.max(14, Math.min(28, high / 2.2)), values: (_, values) => axisLabels(values, scale.divide, "", 4) },
    ],
    series: [
      {},
      ...lines.map((line, index) => {
        const tint = paint[colours[index]! % paint.length]!;
        return {
          label: line.label,
          stroke: line.run < 0 ? withAlpha(tint, 0.32) : shadeOf(tint, line.run, page),
          width: line.run < 0 ? 1 : 1.5,
          dash: dashesOf(line.run).split(" ").filter(Boolean).map(Number),
          points: { show: () => log === true || isPoint(latest.current.lines[index] ?? line) },
          spanGaps: false,
        };
      }),
    ],
    hooks: {
      ready: [
        (made) => {
          made.over.appendChild(readout);
          asMouse(made.over);
          let from = 0;
          made.over.addEventListener("mousedown", ({ clientX }) => {
            dragged = true;
            from = clientX;
          });
          made.over.addEventListener("click", ({ clientX }) => {
            if (across || !latest.current.playhead || Math.abs(clientX - from) >= MIN_DRAG) return;
            playback.set({ time: Math.max(0, made.posToVal(clientX - made.over.getBoundingClientRect().left, "x")) });
          });
        },
      ],
      setSelect: [
        (made) => {
          const { left, width } = made.select;
          const speaks = dragged;
          dragged = false;
          if (width < MIN_DRAG) return;
          if (speaks) latest.current.onZoom([made.posToVal(left, "x"), made.posToVal(left + width, "x")]);
          made.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      drawClear: [(made) => bands(made, latest.current)],
      draw: [(made) => ticks(made, latest.current)],
      setCursor: [
        (made) => {
          const left = made.cursor.left ?? -1;
          if (left < 0) return void (readout.textContent = "");
          const at = made.posToVal(left, "x");
          // Between two message sizes there is nothing.
          const time = log ? nearest(latest.current.lines, at) : at;
          const phases = latest.current.phases.slice(0, 3).flatMap(({ flow, times, names }) => {
            const index = times.findIndex((next) => next > time);
            const name = names[(index < 0 ? times.length : index) - 1];
            return name ? [`${flow} ${name}`] : [];
          });
          const values = latest.current.lines
            .map((line, index) => [line, valueAt(line, time), index] as const)
            .filter(([line, value]) => line.run >= 0 && value !== undefined)
            .slice(0, 6)
            .map(([line, value, index]) => {
              const span = document.createElement("span");
              span.style.color = paint[colours[index]! % paint.length]!;
              span.textContent = `${line.label} ${shown(value, unit)}`;
              return span;
            });
          const head = document.createElement("b");
          head.textContent = log ? inUnit(time, across!) : across ? shown(time, across) : inUnit(Number(time.toPrecision(5)), "s");
          const tail = document.createElement("i");
          tail.textContent = phases.join(", ");
          readout.replaceChildren(head, ...values, tail);
        },
      ],
    },
  };
}

/** Whether a line is so short that only points show it. A line of a run that goes on grows. */
const isPoint = ({ x }: Line) => x.length < 3 || x[0] === x[x.length - 1];

function valueAt({ x, y }: Line, time: number): number | undefined {
  let [low, high] = [0, x.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  const value = y[low - 1];
  return value === undefined || Number.isNaN(value) ? undefined : value;
}

/** A control's phases: a strip for each flow, and over the whole height where there is only one. */
function bands(made: uPlot, { phases, end }: ChartProps): void {
  const { ctx: context, bbox } = made;
  const scale = window.devicePixelRatio || 1;
  context.save();
  phases.slice(0, 6).forEach(({ times, names }, row) => {
    times.forEach((time, index) => {
      const left = Math.max(bbox.left, made.valToPos(time, "x", true));
      const right = Math.min(bbox.left + bbox.width, made.valToPos(times[index + 1] ?? end, "x", true));
      if (right <= left) return;
      context.fillStyle = phaseColour(names[index]!);
      const top = bbox.top - (Math.min(6, phases.length) - row) * STRIP * scale;
      context.fillRect(left, top, Math.max(1, right - left), (STRIP - 1) * scale);
      if (phases.length === 1) {
        context.globalAlpha = 0.1;
        context.fillRect(left, bbox.top, right - left, bbox.height);
        context.globalAlpha = 1;
      }
    });
  });
  context.restore();
}

// By its name, so that a phase has one colour on the whole page.
const PHASE_HUES = new Map<string, number>();

export function phaseColour(name: string): string {
  if (!PHASE_HUES.has(name)) PHASE_HUES.set(name, (PHASE_HUES.size * 67 + 210) % 360);
  return `hsl(${PHASE_HUES.get(name)} 55% 55%)`;
}

/** Drops, losses and marks as ticks on the axis of time. */
function ticks(made: uPlot, { marks }: ChartProps): void {
  const { ctx: context, bbox } = made;
  const scale = window.devicePixelRatio || 1;
  const bottom = bbox.top + bbox.height;
  context.save();
  for (const { kind, times } of marks) {
    context.fillStyle = colour(kind === "mark" ? "mark" : "bad");
    const high = (kind === "mark" ? 5 : 8) * scale;
    for (const time of times) {
      const x = made.valToPos(time, "x", true);
      if (x >= bbox.left && x <= bbox.left + bbox.width) context.fillRect(x - scale / 2, bottom - high, scale, high);
    }
  }
  context.restore();
}

function withAlpha(hex: string, alpha: number): string {
  return `${hex}${Math.round(alpha * 255)
    .toString(16)
    .padStart(2, "0")}`;
}
