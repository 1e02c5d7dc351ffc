// Figures of a study's cells, and how many of their runs there are.

import type { Job, StudyCell, StudyResults } from "../backend/backend";

/** The mean of a metric over the runs of a cell, in its unit: shares in percent. */
export function mean(found: StudyResults, cell: StudyCell, metric: string): number | undefined {
  const figure = cell[metric] as { mean?: number; value?: number } | undefined;
  const value = figure?.mean ?? figure?.value;
  if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
  return found.metrics[metric]?.share ? value * 100 : value;
}

export function unitOf(found: StudyResults, metric: string): string {
  const about = found.metrics[metric];
  return about?.share ? "%" : (about?.unit ?? "");
}

/** A metric as people write it: "RTT mean". */
export const titleOf = (found: StudyResults, metric: string): string => found.metrics[metric]?.title ?? metric;

/** An axis by its label in the study's file. */
export const axisOf = (found: StudyResults, axis: string): string => found.axis_titles[axis] ?? axis;

/** A title within a sentence: acronyms keep their capitals. */
export const inSentence = (title: string): string => (/^.[A-Z]/.test(title) ? title : title.slice(0, 1).toLowerCase() + title.slice(1));

/** The contents of one place of a grid. */
export interface Square {
  /** The cells there: several where the grid has more than two axes. */
  cells: StudyCell[];
  /** The mean over their figures. */
  value?: number;
  /** Runs that have ended, those of them that failed, and those that there will be. */
  ended: number;
  failed: number;
  planned: number;
}

export function square(found: StudyResults, metric: string, labels: Record<string, string>): Square {
  const cells = found.cells.filter((cell) => Object.entries(labels).every(([axis, label]) => cell.labels[axis] === label));
  const values = cells.flatMap((cell) => mean(found, cell, metric) ?? []);
  const ids = new Set(cells.map((cell) => cell.cell));
  const runs = found.runs.filter((run) => ids.has(run.cell));
  return {
    cells,
    value: values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined,
    ended: runs.length,
    failed: runs.filter(isFailed).length,
    planned: cells.length * found.repeat,
  };
}

export const isFailed = ({ status }: { status: string }): boolean => status === "failed";

/** The present work of a study that goes on. */
export function progressOf({ repetition, repeat, reporting }: Pick<Job, "repetition" | "repeat" | "reporting">): string {
  if (reporting) return "writing the report";
  return repeat ? `${repetition} of ${runs(repeat)}` : "starting";
}

/** The share that is done; undefined where that is not known. */
export const shareOf = ({ repetition, repeat, reporting }: Pick<Job, "repetition" | "repeat" | "reporting">): number | undefined =>
  repeat && !reporting ? repetition / repeat : undefined;

const runs = (count: number, what = "") => `${count} ${what}${count === 1 ? "run" : "runs"}`;

/** The runs that a resumed study makes, in words: none that would fail again. */
export function resumed({ missing, failed }: StudyResults["left"]): string {
  return [missing && `make ${runs(missing, "missing ")}`, failed && `repeat ${runs(failed, "failed ")}`].filter(Boolean).join(", ");
}

/** The words that distinguish cells: the study's groups, where it has such, or the values of its first axis. */
export function kindsOf(found: Pick<StudyResults, "axes" | "cells">): { values: string[]; of: (cell: StudyCell) => string } {
  const groups = [...new Set(found.cells.flatMap(({ group }) => group || []))];
  if (groups.length) return { values: groups, of: ({ group }) => group ?? "" };
  const [[axis, values] = ["", []]] = Object.entries(found.axes);
  return { values, of: ({ labels }) => labels[axis] ?? "" };
}

/** A cell by its values, or by its group where it has none. */
export const cellName = ({ labels, group }: StudyCell): string => Object.values(labels).join(", ") || group || "the scenario";

/**
 * The axes, across and down, that a table has at first: those that most cells have, and of these the last and the first.
 * One alone where most cells vary only one.
 */
export function firstAxes(found: Pick<StudyResults, "axes" | "cells">): [string, string] {
  const names = Object.keys(found.axes);
  const filled = (across: string, down: string) =>
    found.cells.filter(({ labels }) => labels[across] !== undefined && labels[down] !== undefined).length;
  const pairs = names.flatMap((down) => [...names].reverse().flatMap((across): [string, string][] => (across === down ? [] : [[across, down]])));
  const counts = pairs.map((pair) => filled(...pair));
  const most = Math.max(0, ...counts);
  const alone = names.map((name) => filled(name, name));
  const longest = Math.max(0, ...alone);
  if (most < longest / 2) return [names[alone.indexOf(longest)]!, ""];
  return pairs[counts.indexOf(most)] ?? [names[0] ?? "", ""];
}
