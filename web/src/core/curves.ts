// Curves of one or more runs, as charts draw them: one axis of time for all series of a panel.

import type { Frame } from "./frame";
import { inUnit, shown } from "./quantity";

export interface SeriesAbout {
  panel: string;
  label: string;
  unit: string;
  flow?: string;
  stream?: number;
  link?: string;
  direction?: string;
  /** The unit of an abscissa that is not time, as of a distribution. */
  across?: string;
  /** Whether both axes are logarithmic. */
  log?: boolean;
  /** The mean of the samples in the window; a distribution and live curves have none. */
  mean?: number | null;
  /** The publisher of this figure, and its name: figures of one group and unit share a chart. */
  group?: string;
  figure?: string;
}

export interface CurvesHeader {
  duration: number;
  start: number;
  end: number;
  series: SeriesAbout[];
  phases: { flow: string; times: number[]; names: string[] }[];
  marks: { link: string; direction: string; kind: "drop" | "loss" | "mark"; times: number[]; counts: number[] }[];
  /** Panels without a table, with the key of `sample` that is off. */
  unsampled: Record<string, string>;
  run?: string;
  wall?: number;
  packets?: number;
  /** Of a run that is kept. */
  engine?: string;
  /** Why the machine, not TCP, limited a run. */
  overload?: string | null;
}

export type Curves = Frame<CurvesHeader>;

export interface Line extends SeriesAbout {
  /** Number of the run among those laid over each other; -1: the ghost of the former result. */
  run: number;
  x: ArrayLike<number>;
  y: ArrayLike<number>;
}

export function lines(curves: Curves, panel: string, run: number): Line[] {
  return curves.header.series.flatMap((about, index) =>
    about.panel === panel ? [{ ...about, run, x: curves.arrays[2 * index]!, y: curves.arrays[2 * index + 1]! }] : [],
  );
}

export interface Shared {
  group: string;
  unit: string;
  lines: Line[];
}

/** A panel's lines by what can share axes; a panel without lines is one chart of `unit`. */
export function charts(given: Line[], unit: string): Shared[] {
  const found = new Map<string, Shared>();
  for (const line of given) {
    const group = line.group ?? "";
    const key = `${group} in ${line.unit}`;
    if (!found.has(key)) found.set(key, { group, unit: line.unit, lines: [] });
    found.get(key)!.lines.push(line);
  }
  return found.size ? [...found.values()] : [{ group: "", unit, lines: [] }];
}

/** The colour numbers of a chart's lines: of their flow or link, or of the figure where it has several. */
export function tints(given: Line[], names: { flows: string[]; links: string[] }): number[] {
  const keyOf = ({ flow, figure }: Line) => `${flow} ${figure}`;
  const keys = [...new Set(given.map(keyOf))];
  const several = new Set(given.map((line) => line.figure)).size > 1;
  return given.map((line) => {
    if (several || (line.figure && !line.flow)) return keys.indexOf(keyOf(line));
    return line.flow ? colourOf(line.flow, names.flows) : colourOf(wayOf(line), names.links);
  });
}

const DASHES = ["", "6 4", "2 3", "10 3 2 3", "4 2", "1 3"];

/** The dashes of a run's line, as SVG has them; none for the simulation's. */
export const dashesOf = (run: number) => (run > 0 ? DASHES[run % DASHES.length]! : "");

/**
 * The colour of a run's line. Where samples are dense, dashes run into each other: so runs are darker or lighter
 * than the simulation too.
 */
export function shadeOf(tint: string, run: number, { text, surface }: { text: string; surface: string }): string {
  if (run <= 0) return tint;
  const [own, other] = [tint, run % 2 ? text : surface].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return `#${own!.map((part, index) => Math.round((part + other![index]!) / 2).toString(16).padStart(2, "0")).join("")}`;
}

/** A link direction, as colours and hiding know it. */
export const wayOf = ({ link, direction }: SeriesAbout) => `${link} ${direction}`;

/** The mean of each line, the ends of one over sizes, or the median of a distribution, for those who hear the page. */
export function inWords(given: Line[]): string {
  return given
    .filter(({ run }) => run >= 0)
    .slice(0, 8)
    .map((line) => {
      if (line.across === undefined) return `${line.label} mean ${shown(line.mean ?? meanOf(line.y), line.unit)}`;
      if (line.log) {
        const end = (index: number) => `${shown(line.y[index], line.unit)} at ${inUnit(line.x[index]!, line.across!)}`;
        return `${line.label} ${end(0)} to ${end(line.x.length - 1)}`;
      }
      const middle = Array.from(line.y).findIndex((share) => share >= 0.5);
      return `${line.label} median ${shown(line.x[middle], line.across)}`;
    })
    .join(", ");
}

function meanOf(values: ArrayLike<number>): number {
  const known = Array.from(values).filter((value) => !Number.isNaN(value));
  return known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** The least and largest abscissa of lines that are not over time. */
export function reach(given: Line[]): [number, number] {
  let [least, most] = [Infinity, -Infinity];
  for (const { x } of given) {
    if (!x.length) continue;
    least = Math.min(least, x[0]!);
    most = Math.max(most, x[x.length - 1]!);
  }
  if (most === least && given.some(({ log }) => log)) return [least / 2, most * 2];
  return most > least ? [least, most] : [0, Number.isFinite(most) && most > 0 ? 2 * most : 1];
}

/** The abscissa of a sample that is nearest to this place on a logarithmic axis. */
export function nearest(given: Line[], at: number): number {
  const off = (x: number) => Math.abs(Math.log(x / at));
  const found = given.flatMap(({ x }) => Array.from(x));
  return found.length ? found.reduce((best, x) => (off(x) < off(best) ? x : best)) : at;
}

/** The numbers of an axis, the last one with a unit where it has one; none where a logarithmic axis has no room. */
export function axisLabels(values: (number | null)[], divide: number, unit: string, digits: number): string[] {
  const last = values.reduce<number>((latest, value, index) => (value === null ? latest : index), -1);
  return values.map((value, index) => {
    if (value === null) return "";
    const number = Number((value / divide).toPrecision(digits));
    return unit && index === last ? inUnit(number, unit) : `${number}`;
  });
}

// A smaller share of the whole has no sample.
const LEAST_SHARE = 1e-6;

/** The window that a key leads to from this one: undefined is the whole, null none. */
export function windowAfter(key: string, [start, end]: [number, number], [least, most]: [number, number]): [number, number] | undefined | null {
  const [length, middle] = [end - start, (start + end) / 2];
  const around = (width: number): [number, number] => [middle - width / 2, width];
  const steps: Record<string, [number, number]> = {
    "+": around(length / 2),
    "=": around(length / 2),
    "-": around(length * 2),
    ArrowLeft: [start - length / 4, length],
    ArrowRight: [start + length / 4, length],
  };
  if (key === "0") return undefined;
  const step = steps[key];
  if (!step || step[1] < (most - least) * LEAST_SHARE) return null;
  const [from, width] = step;
  if (width >= most - least) return undefined;
  const first = Math.min(most - width, Math.max(least, from));
  return [first, first + width];
}

/** One axis for all lines: undefined where a line has no sample, so that it is drawn on; null is a gap. */
export function align(given: Line[]): { x: number[]; ys: (number | null | undefined)[][] } {
  const times = new Set<number>();
  for (const line of given) for (let i = 0; i < line.x.length; i++) times.add(line.x[i]!);
  const x = [...times].sort((a, b) => a - b);
  const place = new Map(x.map((time, index) => [time, index]));
  const ys = given.map((line) => {
    const y: (number | null | undefined)[] = new Array(x.length).fill(undefined);
    for (let i = 0; i < line.x.length; i++) {
      const value = line.y[i]!;
      y[place.get(line.x[i]!)!] = Number.isNaN(value) ? null : value;
    }
    return y;
  });
  return { x, ys };
}

/** The flows of the drawing first, in its order, then those of other runs: so a flow has one colour in drawing and curves. */
export function inOrderOf(drawn: string[], found: string[]): string[] {
  return [...new Set([...drawn, ...found])];
}

/** The colour number of a flow or link: by its place among all names, so that it is the same in each panel. */
export function colourOf(name: string, names: string[]): number {
  const index = names.indexOf(name);
  return index < 0 ? names.length : index;
}
