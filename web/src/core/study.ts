// Figures of a study's cells, and how many of their runs there are.

import type { StudyCell, StudyResults } from "../backend/backend";

export function mean(cell: StudyCell, metric: string): number | undefined {
  const figure = cell[metric] as { mean?: number; value?: number } | undefined;
  const found = figure?.mean ?? figure?.value;
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}

const UNITS: Record<string, string> = { rate: "bit/s", time: "s", percent: "%", size: "B" };

export function unitOf(found: StudyResults, metric: string): string {
  const unit = found.metrics[metric] ?? "";
  return UNITS[unit] ?? unit;
}

/** The contents of one place of a grid. */
export interface Square {
  /** The cells there: several where the grid has more than two axes. */
  cells: StudyCell[];
  /** The mean over their figures. */
  value?: number;
  /** Runs that have ended, and those that there will be. */
  ended: number;
  planned: number;
}

export function square(found: StudyResults, metric: string, labels: Record<string, string>): Square {
  const cells = found.cells.filter((cell) => Object.entries(labels).every(([axis, label]) => cell.labels[axis] === label));
  const values = cells.flatMap((cell) => mean(cell, metric) ?? []);
  const ids = new Set(cells.map((cell) => cell.cell));
  return {
    cells,
    value: values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined,
    ended: found.runs.filter((run) => ids.has(run.cell)).length,
    planned: cells.length * found.repeat,
  };
}
