// Curves of one or more runs, as charts draw them: one axis of time for all series of a panel.

import type { Frame } from "./frame";

export interface SeriesAbout {
  panel: string;
  label: string;
  unit: string;
  flow?: string;
  stream?: number;
  link?: string;
  direction?: string;
}

export interface CurvesHeader {
  duration: number;
  start: number;
  end: number;
  series: SeriesAbout[];
  phases: { flow: string; times: number[]; names: string[] }[];
  marks: { link: string; direction: string; kind: "drop" | "loss" | "mark"; times: number[]; counts: number[] }[];
  run?: string;
  wall?: number;
  packets?: number;
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

/** The colour number of a flow or link: by its place among all names, so that it is the same in each panel. */
export function colourOf(name: string, names: string[]): number {
  const index = names.indexOf(name);
  return index < 0 ? names.length : index;
}
