// The view of a result.

import type { Result } from "../backend/backend";
import { Icon } from "./icons";
import { copyLink } from "./Share";
import { use, useStore } from "./use";

export function ResultView({ result }: { result: Result }) {
  const store = useStore();
  const overlays = use((state) => state.overlays);
  const laid = overlays.some((overlay) => overlay.path === result.path);
  return (
    <div className="result-view">
      <div className="row">
        <span className={`state ${result.status}`} aria-hidden="true" />
        <strong>{result.name}</strong>
        <span>
          {result.engine}, {result.repetitions.length} {result.repetitions.length === 1 ? "run" : "runs"}, {result.status}
          {result.message && `: ${result.message}`}
        </span>
        <span className="space" />
        <button aria-pressed={laid} onClick={() => void store.runs.overlay(result.path)}>
          <Icon name="overlay" /> {laid ? "Remove from the curves" : "Show its curves"}
        </button>
        {result.text && (
          <button onClick={() => store.documents.fresh(result.text!, `${result.name}.yaml`)} title="Its scenario as a new document">
            Open its scenario
          </button>
        )}
        <a className="button" href={store.backend.reportAddress([result.path])} target="_blank" rel="noreferrer">
          <Icon name="report" /> Report
        </a>
        <a className="button" href={store.backend.reportAddress([result.path], true)} download aria-label="Download the report" title="One file that opens in any browser">
          <Icon name="download" /> Report
        </a>
        <a className="button" href={store.backend.archiveAddress(result.path)} download aria-label="Download the result" title="Tables, plan and manifest as a ZIP archive">
          <Icon name="download" /> Result
        </a>
        <button onClick={() => void copyLink(store, "result", result.path)}>Copy a link</button>
      </div>
      {result.overload.map((text) => (
        <p key={text} className="overload" role="alert">
          Overloaded: {text}
        </p>
      ))}
      {result.warnings.map((text) => (
        <p key={text} className="warning">
          {text}
        </p>
      ))}
      <pre tabIndex={0} aria-label="Summary">
        {result.summary.text || result.summary.problem || "Nothing to summarize."}
      </pre>
    </div>
  );
}
