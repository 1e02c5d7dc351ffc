// A study's grid as a heat map, and its cells as a table.

import type { StudyCell, StudyResults } from "../backend/backend";
import { shown, unbroken } from "../core/quantity";
import { axisOf, inSentence, isFailed, mean, square, titleOf, unitOf } from "../core/study";
import { useStore } from "./use";

interface HeatProps {
  found: StudyResults;
  metric: string;
  across: string;
  down: string;
  open: (cell: StudyCell) => void;
}

/** Cells by two axes; where there are more, the mean over the others. */
export function Heat({ found, metric, across, down, open }: HeatProps) {
  const columns = found.axes[across] ?? [];
  const rows = down ? (found.axes[down] ?? []) : [""];
  const grid = rows.map((row) => columns.map((column) => square(found, metric, { [across]: column, ...(down && { [down]: row }) })));
  const all = grid.flat().flatMap(({ value }) => value ?? []);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const unit = unitOf(found, metric);
  return (
    // The keys scroll what is wider than the page.
    <div className="wide" role="region" aria-label="Grid of the study" tabIndex={0}>
      <table className="heat">
        <caption>
          {titleOf(found, metric)} by {inSentence(axisOf(found, across))}
          {down && ` and ${inSentence(axisOf(found, down))}`}
        </caption>
        <thead>
          <tr>
            <th scope="col">{down && axisOf(found, down)}</th>
            {columns.map((column) => (
              <th key={column} scope="col">
                {unbroken(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={row}>
              <th scope="row">{unbroken(row)}</th>
              {grid[index]!.map(({ cells, value, ended, failed, planned }, column) => {
                const share = value === undefined || most === least ? 0.5 : (value - least) / (most - least);
                // Up to a half: text keeps a contrast of 4.5 on it in both themes (WCAG 2.2, 1.4.3).
                const colour = `color-mix(in oklab, var(--accent) ${Math.round(6 + share * 46)}%, var(--surface))`;
                return (
                  <td
                    key={columns[column]}
                    style={value === undefined ? undefined : { backgroundColor: colour }}
                    data-ended={ended}
                  >
                    {value !== undefined && cells.length === 1 ? (
                      <button className="plain" title="Open the runs of this cell" onClick={() => open(cells[0]!)}>
                        {shown(value, unit)}
                      </button>
                    ) : (
                      value !== undefined && shown(value, unit)
                    )}
                    {ended < planned && (
                      <span className="ended">
                        {ended} of {planned} {planned === 1 ? "run" : "runs"}
                      </span>
                    )}
                    {failed > 0 && (
                      <span className="ended">
                        {failed} of {planned} failed
                      </span>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Cells({ found, metric, names }: { found: StudyResults; metric: string; names: string[] }) {
  const store = useStore();
  const unit = unitOf(found, metric);
  const grouped = found.cells.some(({ group }) => group);
  const sorted = [...found.cells].sort((a, b) => (mean(found, b, metric) ?? -Infinity) - (mean(found, a, metric) ?? -Infinity));
  return (
    <div className="wide" role="region" aria-label="Cells of the study" tabIndex={0}>
      <table className="cells">
        <caption>Cells, highest {inSentence(titleOf(found, metric))} first</caption>
        <thead>
          <tr>
            {grouped && <th scope="col">group</th>}
            {names.map((name) => (
              <th key={name} scope="col">
                {axisOf(found, name)}
              </th>
            ))}
            <th scope="col" className="number">
              {titleOf(found, metric)}
            </th>
            <th scope="col" className="number">
              Runs
            </th>
            <td />
          </tr>
        </thead>
        <tbody>
          {sorted.map((cell) => {
            const runs = found.runs.filter((run) => run.cell === cell.cell);
            const failed = runs.filter(isFailed);
            return (
              <tr key={cell.cell}>
                {grouped && <td>{cell.group}</td>}
                {names.map((name) => (
                  <td key={name}>{unbroken(cell.labels[name] ?? "")}</td>
                ))}
                <td className="number">{shown(mean(found, cell, metric), unit)}</td>
                <td className="number">
                  {runs.length}
                  {failed.length > 0 && <span className="bad"> ({failed.length} failed)</span>}
                  {cell.overloaded > 0 && <span className="bad"> overloaded</span>}
                </td>
                <td>
                  <button className="plain link" onClick={() => void store.runs.inspect(found.places[cell.cell]!)} disabled={!runs.length}>
                    Open runs
                  </button>
                  {[...new Set(failed.map(({ message }) => message))].map((message) => (
                    <p key={message} className="bad">
                      {unbroken(message)}
                    </p>
                  ))}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
