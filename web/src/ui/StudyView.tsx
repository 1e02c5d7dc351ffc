// A study: its grid as a heat map, its cells as a table, its progress.

import { useEffect, useMemo, useState } from "react";
import type { StudyCell, StudyResults } from "../backend/backend";
import { shown } from "../core/quantity";
import { Icon } from "./icons";
import { TradeOff } from "./TradeOff";
import { message } from "./store";
import { use, useStore } from "./use";

export function StudyView() {
  const store = useStore();
  const path = use((state) => state.study) ?? "";
  const jobs = use((state) => state.jobs);
  const job = Object.values(jobs).reverse().find((one) => one.kind === "study" && one.path === path);
  const [found, setFound] = useState<StudyResults>();
  const [problem, setProblem] = useState("");
  const [metric, setMetric] = useState("goodput");
  const [axes, setAxes] = useState<[string, string]>();
  const going = job?.state === "running" || job?.state === "waiting";

  useEffect(() => {
    setFound(undefined);
    setProblem("");
  }, [path]);
  useEffect(() => {
    let stale = false;
    store.backend.study(path).then(
      (read) => !stale && (setFound(read), setProblem("")),
      (error: unknown) => !stale && setProblem(message(error)),
    );
    return () => {
      stale = true;
    };
  }, [store, path, job?.state]);

  const names = Object.keys(found?.axes ?? {});
  const metrics = useMemo(() => (found ? Object.keys(found.metrics).filter((name) => found.cells.some((cell) => mean(cell, name) !== undefined)) : []), [found]);
  const open = (cell: StudyCell) => void store.inspect(found!.places[cell.cell]!);
  const [across, down] = axes ?? [names[names.length - 1] ?? "", names.length > 1 ? names[0]! : ""];
  return (
    <main className="study" aria-label={`Study ${path}`}>
      <div className="row">
        <h1>{found?.name ?? path.split("/").pop()}</h1>
        {job && (
          <span role="status">
            {going ? `${job.repetition} of ${job.repeat} runs` : job.state}
            {job.message && `: ${job.message}`}
          </span>
        )}
        {going && job && <progress max={1} value={job.repeat ? job.repetition / job.repeat : undefined} aria-label="Progress of the study" />}
        {going && job && <button onClick={() => void store.stop(job.id)}>Stop</button>}
        <span className="space" />
        {found && !going && (
          <a className="button" href={store.backend.reportAddress([path])} target="_blank" rel="noreferrer">
            <Icon name="report" /> Report
          </a>
        )}
        <button onClick={() => store.set({ view: "edit" })}>Back to the drawing</button>
      </div>
      {!found && <p className="empty">{going ? "Cells appear here when the runs are made." : problem || "Reading…"}</p>}
      {found && !metrics.length && <p className="empty">No run has ended yet.</p>}
      {found && metrics.length > 0 && (
        <>
          <div className="row">
            <label>
              Metric
              <select value={metric} onChange={(event) => setMetric(event.target.value)}>
                {metrics.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
            {names.length > 1 &&
              (["Across", "Down"] as const).map((label, index) => (
                <label key={label}>
                  {label}
                  <select
                    value={index ? down : across}
                    onChange={(event) => setAxes(index ? [across === event.target.value ? down : across, event.target.value] : [event.target.value, down === event.target.value ? across : down])}
                  >
                    {names.map((name) => (
                      <option key={name}>{name}</option>
                    ))}
                  </select>
                </label>
              ))}
          </div>
          <Heat found={found} metric={metric} across={across} down={down} open={open} />
          {metrics.length > 1 && (
            <TradeOff
              found={found}
              metrics={metrics}
              across={metric}
              value={mean}
              unitOf={(name) => unitOf(found, name)}
              open={open}
            />
          )}
          <Cells found={found} metric={metric} names={names} />
        </>
      )}
    </main>
  );
}

function mean(cell: StudyCell, metric: string): number | undefined {
  const figure = cell[metric] as { mean?: number; value?: number } | undefined;
  const found = figure?.mean ?? figure?.value;
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}

const UNITS: Record<string, string> = { rate: "bit/s", time: "s", percent: "%", size: "B" };

function unitOf(found: StudyResults, metric: string): string {
  const unit = found.metrics[metric] ?? "";
  return UNITS[unit] ?? unit;
}

/** Cells by two axes; where there are more, the mean over the others. */
function Heat({ found, metric, across, down, open }: { found: StudyResults; metric: string; across: string; down: string; open: (cell: StudyCell) => void }) {
  const columns = found.axes[across] ?? [];
  const rows = down ? (found.axes[down] ?? []) : [""];
  const cellsAt = (row: string, column: string) =>
    found.cells.filter((cell) => cell.labels[across] === column && (!down || cell.labels[down] === row));
  const at = (row: string, column: string) => {
    const values = cellsAt(row, column).flatMap((cell) => mean(cell, metric) ?? []);
    return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined;
  };
  const all = rows.flatMap((row) => columns.flatMap((column) => at(row, column) ?? []));
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const unit = unitOf(found, metric);
  return (
    <table className="heat">
      <caption>
        {metric} by {across}
        {down && ` and ${down}`}
      </caption>
      <thead>
        <tr>
          <th scope="col">{down}</th>
          {columns.map((column) => (
            <th key={column} scope="col">
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row}>
            <th scope="row">{row}</th>
            {columns.map((column) => {
              const value = at(row, column);
              const share = value === undefined || most === least ? 0.5 : (value - least) / (most - least);
              return (
                <td key={column} className={share > 0.55 ? "strong" : ""} style={value === undefined ? undefined : { backgroundColor: `color-mix(in oklab, var(--accent) ${Math.round(12 + share * 78)}%, var(--surface))` }}>
                  {value !== undefined && cellsAt(row, column).length === 1 ? (
                    <button className="plain" title="Open its runs" onClick={() => open(cellsAt(row, column)[0]!)}>
                      {shown(value, unit)}
                    </button>
                  ) : (
                    shown(value, unit)
                  )}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cells({ found, metric, names }: { found: StudyResults; metric: string; names: string[] }) {
  const store = useStore();
  const unit = unitOf(found, metric);
  const sorted = [...found.cells].sort((a, b) => (mean(b, metric) ?? -Infinity) - (mean(a, metric) ?? -Infinity));
  return (
    <table className="cells">
      <caption>Cells, highest {metric} first</caption>
      <thead>
        <tr>
          {names.map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
          <th scope="col">{metric}</th>
          <th scope="col">runs</th>
          <th scope="col" />
        </tr>
      </thead>
      <tbody>
        {sorted.map((cell) => {
          const runs = found.runs.filter((run) => run.cell === cell.cell);
          const failed = runs.filter((run) => run.status !== "done");
          return (
            <tr key={cell.cell}>
              {names.map((name) => (
                <td key={name}>{cell.labels[name] ?? ""}</td>
              ))}
              <td className="number">{shown(mean(cell, metric), unit)}</td>
              <td title={failed.map((run) => run.message).join("\n")}>
                {runs.length}
                {failed.length > 0 && <span className="bad"> ({failed.length} failed)</span>}
                {cell.overloaded > 0 && <span className="bad"> overloaded</span>}
              </td>
              <td>
                <button className="plain" onClick={() => void store.inspect(found.places[cell.cell]!)} disabled={!runs.length}>
                  Open its runs
                </button>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
