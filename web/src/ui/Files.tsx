// The directory: scenarios, studies and results, and networks to begin with.

import { useState } from "react";
import { engineNamed } from "../core/engines";
import { resultName, studyResult, when } from "../core/results";
import { EMPTY, TEMPLATES } from "../core/templates";
import { Icon } from "./icons";
import { Menu } from "./Menu";
import { use, useStore } from "./use";

// More results would make the page slow.
const SHOWN = 100;

export function Files() {
  const store = useStore();
  const files = use((state) => state.files);
  const path = use((state) => state.path);
  const overlays = use((state) => state.overlays);
  const study = use((state) => state.study);
  const view = use((state) => state.view);
  const session = use((state) => state.session)!;
  const [sought, setSought] = useState("");
  const kept = use((state) => state.drafts);
  if (!files) return null;
  const drafts = kept.filter((name) => !files.scenarios.includes(name));
  const has = (text: string) => text.toLowerCase().includes(sought.toLowerCase());
  const results = files.results.filter((result) => has(result.path));

  return (
    <nav className="files" aria-label="Files">
      <div className="new">
        <Menu
          button={
            <>
              <Icon name="plus" /> New
            </>
          }
        >
          {(close) => (
            <ul>
              <li>
                <button onClick={() => (close(), store.documents.fresh(EMPTY))}>
                  <b>Empty canvas</b>
                  <small>Draw it yourself</small>
                </button>
              </li>
              <li>
                <label className="open-file">
                  <b>Open a file</b>
                  <small>A scenario, or a topology of MiniEdit (.mn) or containerlab (.clab.yml)</small>
                  <input
                    type="file"
                    accept=".yaml,.yml,.mn"
                    onChange={(event) => {
                      const file = event.currentTarget.files?.[0];
                      if (file) void store.documents.take(file);
                      close();
                    }}
                  />
                </label>
              </li>
              {TEMPLATES.map((template) => (
                <li key={template.name}>
                  <button onClick={() => (close(), store.documents.fresh(template.text, `${template.name}.yaml`, template.places))}>
                    <b>{template.name}</b>
                    <small>{template.about}</small>
                  </button>
                </li>
              ))}
            </ul>
          )}
        </Menu>
        <input type="search" placeholder="Find" aria-label="Find files" value={sought} onChange={(event) => setSought(event.target.value)} />
      </div>
      <div className="lists">
        {files.unreadable.map((text) => (
          <p key={text} className="unreadable warning">
            {text}
          </p>
        ))}
        <h2>Scenarios</h2>
        <ul>
          {files.scenarios.filter(has).map((name) => (
            <li key={name}>
              <button className="item" aria-current={view === "edit" && name === path} onClick={() => void store.documents.open(name)} title={name}>
                <Name path={name} />
              </button>
            </li>
          ))}
          {drafts.filter(has).map((name) => (
            <li key={`draft ${name}`} className="unsaved">
              <button className="item" aria-current={view === "edit" && name === path} onClick={() => void store.documents.open(name)} title={`${name}, kept in this browser`}>
                <Name path={name} /> <small>not saved</small>
              </button>
              <button className="plain" aria-label={`Discard ${name}`} title="Discard it" onClick={() => window.confirm(`Discard ${name}? It is not saved.`) && store.documents.discard(name)}>
                <Icon name="trash" />
              </button>
            </li>
          ))}
        </ul>
        {!files.scenarios.length && !drafts.length && <p className="empty">None yet. Press New, draw a network, then save it.</p>}
        <h2>Results</h2>
        <ul>
          {results.slice(0, SHOWN).map((result) => (
            <li key={result.path} className="result">
              <button className="item" onClick={() => void store.runs.inspect(result.path)} title={`${result.path}\n${result.message || `${engineNamed(result.engine)}, ${result.status}`}`}>
                <span className={`state ${result.status}`} aria-label={result.status} />
                <span className="name">{resultName(result)}</span>
                <small>
                  {[engineNamed(result.engine), when(result.started)].filter(Boolean).join(" · ") || result.status}
                </small>
              </button>
              <button
                className="plain"
                aria-pressed={overlays.some((overlay) => overlay.path === result.path)}
                aria-label={`Overlay ${result.path}`}
                title="Overlay its curves"
                onClick={() => void store.runs.overlay(result.path)}
              >
                <Icon name="overlay" />
              </button>
            </li>
          ))}
        </ul>
        {results.length > SHOWN && <p className="empty">The newest {SHOWN} of {results.length}: find others by name.</p>}
        {!files.results.length && <p className="empty">None yet. Press Run.</p>}
        <h2>Studies</h2>
        <ul>
          {files.study_results.filter(has).map((path) => {
            const { name, started } = studyResult(path);
            return (
              <li key={path}>
                <button className="item" aria-current={view === "study" && path === study} onClick={() => store.set({ view: "study", study: path })} title={path}>
                  <span className="name">{name}</span>
                  <small>{when(started)}</small>
                </button>
              </li>
            );
          })}
          {[...files.studies.filter(has).map((name) => ({ path: name })), ...files.shipped_studies.filter(({ name }) => has(name)).map(({ name, about }) => ({ shipped: name, about }))].map((one) => {
            const name = "path" in one ? one.path : one.shipped;
            return (
              <li key={name} className="result">
                <span className="item" title={"about" in one ? one.about : name}>
                  <Name path={name} />
                  {"shipped" in one && <small>shipped</small>}
                </span>
                <button
                  className="plain"
                  disabled={!session.may_run}
                  aria-label={`Run the study ${name}`}
                  title={session.may_run ? "Run this study" : "This server does not run studies"}
                  onClick={() => void store.runs.startStudy("path" in one ? { path: one.path } : { shipped: one.shipped })}
                >
                  <Icon name="play" />
                </button>
              </li>
            );
          })}
        </ul>
      </div>
    </nav>
  );
}

function Name({ path }: { path: string }) {
  const cut = path.lastIndexOf("/") + 1;
  return (
    <span className="name">
      <span className="hush">{path.slice(0, cut)}</span>
      {path.slice(cut).replace(/\.ya?ml$/, "")}
    </span>
  );
}

