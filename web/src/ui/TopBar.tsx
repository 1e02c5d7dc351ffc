// The bar above: what is open, undo and redo, the engine, and the runs that go on.

import { useEffect, useRef, useState } from "react";
import type { Job } from "../backend/backend";
import { engineNamed } from "../core/engines";
import { inUnit } from "../core/quantity";
import { progressOf, shareOf } from "../core/study";
import { inTurn } from "../store/runs";
import { Icon } from "./icons";
import { Share } from "./Share";
import { isDark } from "./theme";
import { use, useStore } from "./use";

export function TopBar() {
  const store = useStore();
  const session = use((state) => state.session)!;
  const path = use((state) => state.path);
  const version = use((state) => state.version);
  const text = use((state) => state.text);
  const saved = use((state) => state.savedText);
  const canUndo = use((state) => state.canUndo);
  const canRedo = use((state) => state.canRedo);
  const engine = use((state) => state.engine);
  const simulate = use((state) => state.simulate);
  const checked = use((state) => state.checked);
  const others = use((state) => state.others);
  const broken = use((state) => state.broken);
  const drawn = use((state) => state.drawing.flows.length > 0);
  const naming = use((state) => state.naming);
  const setNaming = (naming: string | undefined) => store.set({ naming });
  const name = useRef<HTMLButtonElement>(null);
  const named = useRef(false);
  // Keys go on where they were before the name was asked for.
  useEffect(() => {
    if (named.current && naming === undefined) name.current?.focus();
    named.current = naming !== undefined;
  }, [naming]);
  // Text without an answer of the check is checked when it is run.
  const ready = checked?.ok !== false && !broken;
  const dirty = text !== saved || store.documents.dirty;

  return (
    <header className="topbar">
      <h1 className="logo" aria-label="tcplab">
        tcp<span>lab</span>
      </h1>
      {naming === undefined ? (
        <button ref={name} className="filename plain" title={version === null ? "Name it" : "Save a copy under another name"} onClick={() => setNaming(path)}>
          <span className="name">{path}</span>
          {dirty && <span className="dot" title="Not saved" aria-label="not saved" />}
        </button>
      ) : (
        <form
          className="naming"
          onSubmit={(event) => {
            event.preventDefault();
            setNaming(undefined);
            void store.documents.saveAs(/\.ya?ml$/.test(naming) ? naming : `${naming}.yaml`);
          }}
        >
          <input
            aria-label="File name"
            value={naming}
            autoFocus
            onFocus={(event) => event.target.setSelectionRange(naming.lastIndexOf("/") + 1, naming.replace(/\.ya?ml$/, "").length)}
            onChange={(event) => setNaming(event.target.value)}
            onKeyDown={(event) => event.key === "Escape" && setNaming(undefined)}
          />
          <button className="primary">Save as</button>
        </form>
      )}
      <div className="group">
        <button disabled={!canUndo} onClick={() => store.documents.undo()} title="Undo (Ctrl+Z)" aria-label="Undo">
          <Icon name="undo" />
        </button>
        <button disabled={!canRedo} onClick={() => store.documents.redo()} title="Redo (Ctrl+Y)" aria-label="Redo">
          <Icon name="redo" />
        </button>
        <button
          disabled={session.read_only || (!dirty && version !== null)}
          onClick={() => void store.documents.saveOrAsk()}
          title={session.read_only ? "This server is read-only" : "Save (Ctrl+S)"}
        >
          <Icon name="save" /> Save
        </button>
        <Share />
      </div>
      <span className="space" />
      {others > 0 && (
        <span className="others" title="Other open pages of this server. Saved changes appear in all of them.">
          {others} other {others === 1 ? "page" : "pages"}
        </span>
      )}
      <Jobs />
      <label className="check" title="Simulate after every change and redraw the curves">
        <input type="checkbox" checked={simulate} onChange={(event) => store.simulation.setSimulate(event.target.checked)} />
        <span>
          Simulate<span className="more"> while editing</span>
        </span>
      </label>
      <label className="engine">
        <span className="hush more">Engine</span>
        <select value={engine} onChange={(event) => store.simulation.setEngine(event.target.value)} aria-label="Engine">
          {session.engines.map((name) => (
            <option key={name} value={name}>
              {engineNamed(name)}
            </option>
          ))}
        </select>
      </label>
      <button
        className="primary run"
        disabled={!ready || session.read_only}
        onClick={() => void store.runs.start()}
        title={session.read_only ? "This server is read-only" : ready ? "Run and save the result (Ctrl+Enter)" : drawn ? "Fix the errors first" : "Draw a flow between two hosts first"}
      >
        <Icon name="play" /> Run
      </button>
      <Theme />
    </header>
  );
}

// There is room for so many runs.
const SHOWN = 2;

function Jobs() {
  const store = useStore();
  const jobs = use((state) => state.jobs);
  const going = inTurn(Object.values(jobs));
  if (!going.length) return null;
  return (
    <div className="jobs">
      {going.slice(0, SHOWN).map((job) => (
        <div className="job" key={job.id} data-state={job.state}>
          <span>{said(job)}</span>
          <progress max={1} value={share(job)} aria-label={`Progress of ${job.name}`} />
          {!job.reporting && (
            <button onClick={() => void store.runs.stop(job.id)} title="Stop. What was recorded is kept.">
              <Icon name="stop" /> Stop
            </button>
          )}
        </div>
      ))}
      {going.length > SHOWN && <span className="hush">{going.length - SHOWN} more</span>}
    </div>
  );
}

function share(job: Job): number | undefined {
  if (job.state === "waiting") return undefined;
  if (job.kind === "study") return shareOf(job);
  return Math.min(1, (job.repetition - 1 + job.time / (job.duration || 1)) / job.repeat);
}

function said(job: Job): string {
  if (job.state === "waiting") return `${job.name}: waiting`;
  if (job.kind === "study") return `${job.name}: ${progressOf(job)}`;
  const many = job.repeat > 1 ? `, run ${job.repetition} of ${job.repeat}` : "";
  return `${job.name}${many}: ${job.time.toFixed(1)} of ${inUnit(Number(job.duration.toFixed(1)), "s")}`;
}

function Theme() {
  const [, draw] = useState(0);
  const dark = isDark();
  return (
    <button
      className="plain"
      aria-label={dark ? "Light theme" : "Dark theme"}
      title={dark ? "Light theme" : "Dark theme"}
      onClick={() => {
        const next = dark ? "light" : "dark";
        document.documentElement.dataset.theme = next;
        localStorage.setItem("tcplab-theme", next);
        window.dispatchEvent(new Event("themechange"));
        draw((count) => count + 1);
      }}
    >
      <Icon name={dark ? "sun" : "moon"} />
    </button>
  );
}
