// The view of a result.

import { useEffect, useRef } from "react";
import type { Result, Table } from "../backend/backend";
import { engineNamed } from "../core/engines";
import { unbroken } from "../core/quantity";
import { Icon } from "./icons";
import { copyLink } from "./Share";
import { use, useStore } from "./use";

export function ResultView({ result }: { result: Result }) {
  const store = useStore();
  const overlays = use((state) => state.overlays);
  // On a phone it opens below what is seen.
  const view = useRef<HTMLDivElement>(null);
  useEffect(() => void view.current!.scrollIntoView({ block: "nearest" }), [result.path]);
  const laid = overlays.some((overlay) => overlay.path === result.path);
  return (
    <div className="result-view" ref={view}>
      <div className="row">
        <span className={`state ${result.status}`} aria-hidden="true" />
        <strong>{result.name}</strong>
        <span>
          {engineNamed(result.engine)}, {result.repetitions.length} {result.repetitions.length === 1 ? "run" : "runs"}
          {result.status !== "done" && `, ${result.status}`}
          {result.message && `: ${unbroken(result.message)}`}
        </span>
        <span className="space" />
        <button aria-pressed={laid} onClick={() => void store.runs.overlay(result.path)}>
          <Icon name="overlay" /> {laid ? "Hide curves" : "Show curves"}
        </button>
        {result.text && (
          <button onClick={() => store.documents.fresh(result.text!, `${result.name}.yaml`)} title="Open its scenario as a new document">
            Open scenario
          </button>
        )}
        <a className="button" href={store.backend.reportAddress([result.path])} target="_blank" rel="noreferrer">
          <Icon name="report" /> Open report
        </a>
        <a className="button" href={store.backend.reportAddress([result.path], true)} download title="One file that opens in any browser">
          <Icon name="download" /> Download report
        </a>
        <a className="button" href={store.backend.archiveAddress(result.path)} download title="Tables, plan and manifest as a ZIP archive">
          <Icon name="download" /> Download result
        </a>
        <button onClick={() => void copyLink(store, "result", result.path)}>Copy link</button>
      </div>
      {result.overload.map((text) => (
        <p key={text} className="overload" role="alert">
          Overloaded: {unbroken(text)}
        </p>
      ))}
      {result.warnings.map((text) => (
        <p key={text} className="warning">
          {unbroken(text)}
        </p>
      ))}
      <section className="summary" aria-label="Summary" tabIndex={0}>
        {result.summary.tables.map((table) => (
          <Figures key={table.title} table={table} />
        ))}
        {result.summary.notes.map((note) => (
          <p key={note} className="hush">
            {unbroken(note)}
          </p>
        ))}
        {!result.summary.tables.length && !result.summary.notes.length && <p>Nothing to summarize.</p>}
      </section>
    </div>
  );
}

// A narrow column does not cut "Warm-up" in two.
const NO_BREAK_HYPHEN = "\u2011";

function Figures({ table: { title, headings, rows } }: { table: Table }) {
  const look = (column: number) => (headings[column]!.numeric ? "number" : undefined);
  return (
    <table>
      <caption>{title}</caption>
      <thead>
        <tr>
          {headings.map(({ label, unit, about }, column) => (
            <th key={label} scope="col" className={look(column)} title={about || undefined}>
              {label.replaceAll("-", NO_BREAK_HYPHEN)} {unit && <small>{unit}</small>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells, row) => (
          <tr key={row}>
            {cells.map((cell, column) => (
              <td key={column} className={look(column)}>
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
