// The page: files or settings on the left, the drawing and its text above, curves below.

import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { persistently } from "../core/persistently";
import { mistakes } from "../core/problems";
import { inUnit, unbroken } from "../core/quantity";
import { Canvas } from "./Canvas";
import { CurvesPanel } from "./CurvesPanel";
import { Files } from "./Files";
import { Inspector } from "./Inspector";
import { LabView } from "./lab/LabView";
import { Locked } from "./Locked";
import { PacketsBar } from "./PacketsBar";
import { ResultView } from "./ResultView";
import { removeSelected } from "./selected";
import { useSplit } from "./split";
import type { Tab } from "../store/state";
import type { Store } from "../store/store";
import { StudyView } from "./StudyView";
import { TopBar } from "./TopBar";
import { use, useStore } from "./use";

// The largest part of the page: the drawing does not wait for it.
const editor = persistently(() => import("./Editor"));
const Editor = lazy(() => editor);

export function App() {
  const store = useStore();
  const locked = use((state) => state.locked);
  const session = use((state) => state.session);
  const view = use((state) => state.view);
  const sidebar = use((state) => state.sidebar);
  const connection = use((state) => state.connection);
  const lower = useSplit("lower", 0.44, "vertical");
  const side = useSplit("side", 0.4, "horizontal");
  useKeys(store);

  if (locked !== undefined) return <Locked reason={locked} />;
  if (!session) {
    return (
      <>
        <header className="topbar">
          <h1 className="logo">
            tcp<span>lab</span>
          </h1>
        </header>
        <main className="starting" aria-busy="true" aria-label="tcplab is starting" />
      </>
    );
  }
  return (
    <div className="app">
      {view !== "study" && (
        <button className="skip" onClick={() => document.querySelector<HTMLElement>(".tools button")?.focus()}>
          Skip to the drawing
        </button>
      )}
      <TopBar />
      {connection === "lost" && (
        <div className="banner" role="alert">
          Connection to the server lost: no answer from {store.backend.address}. Check that tcplab ui still runs there. Your changes are kept in this
          browser. Reconnecting…
        </div>
      )}
      <Conflict />
      <div className="body">
        <aside className="sidebar" aria-label="Files and settings">
          <div className="tabs" role="tablist" aria-label="Sidebar">
            {(["files", "settings"] as const).map((name) => (
              <button key={name} role="tab" aria-selected={sidebar === name} onClick={() => store.set({ sidebar: name })}>
                {name === "files" ? "Files" : "Settings"}
              </button>
            ))}
          </div>
          {sidebar === "files" ? <Files /> : <Inspector />}
        </aside>
        {view === "study" ? (
          <StudyView />
        ) : (
          <main className="work" style={{ gridTemplateRows: `minmax(120px, 1fr) 5px ${lower.share * 100}%` }}>
            <div className="upper" style={{ gridTemplateColumns: `minmax(200px, 1fr) 5px ${side.share * 100}%` }}>
              <Canvas />
              <div {...side.handle} aria-label="Width of the text" />
              <Suspense fallback={<section className="editor" aria-busy="true" aria-label="Scenario as YAML" />}>
                <Editor />
              </Suspense>
            </div>
            <div {...lower.handle} aria-label="Height of the curves" />
            <Lower />
          </main>
        )}
      </div>
      <Notices />
    </div>
  );
}

const TABS: [Tab, string][] = [
  ["curves", "Curves"],
  ["packets", "Packets"],
  ["lab", "Network"],
  ["result", "Result"],
];

function Lower() {
  const store = useStore();
  const tab = use((state) => state.tab);
  const result = use((state) => state.result);
  const session = use((state) => state.session)!;
  const wanted = use((state) => state.curvesWanted);
  const section = useRef<HTMLElement>(null);
  // On a phone they are below what is seen.
  useEffect(() => void (wanted && section.current!.scrollIntoView({ block: "nearest" })), [wanted]);
  // Terminals stay while other tabs are looked at.
  const [entered, setEntered] = useState(false);
  useEffect(() => setEntered((before) => before || tab === "lab"), [tab]);
  return (
    <section className="lower" aria-label="Results" ref={section}>
      <div className="tabs">
        <div role="tablist" aria-label="Results">
          {TABS.filter(([name]) => (name !== "result" || result) && (name !== "lab" || session.may_run)).map(([name, label]) => (
            <button key={name} role="tab" aria-selected={tab === name} onClick={() => store.set({ tab: name })}>
              {name === "result" && result ? `${label}: ${result.path.split("/").pop()}` : label}
            </button>
          ))}
        </div>
        <Status />
      </div>
      {entered && <LabView shown={tab === "lab"} />}
      {tab === "lab" ? null : tab === "result" && result ? <ResultView result={result} /> : tab === "packets" ? <PacketsBar /> : <CurvesPanel />}
    </section>
  );
}

/** The state of the simulation, beside the tabs. */
function Status() {
  const busy = use((state) => state.busy);
  const share = use((state) => state.share);
  const took = use((state) => state.took);
  const refused = use((state) => state.refused);
  const simulate = use((state) => state.simulate);
  const curves = use((state) => state.curves);
  const drawing = use((state) => state.drawing);
  const checked = use((state) => state.checked);
  const tab = use((state) => state.tab);
  const wrong = mistakes(checked);
  let [text, bad] = ["", false];
  if (!drawing.nodes.length) text = "";
  else if (!simulate) text = "Simulate while editing is off.";
  else if (busy) text = "Simulating…";
  else if (wrong) [text, bad] = [`${wrong} ${wrong === 1 ? "error" : "errors"}${curves && tab === "curves" ? ". The curves show the last valid scenario." : ""}`, true];
  else if (refused) [text, bad] = [`${refused}${curves && tab === "curves" ? ". The curves show the former scenario." : ""}`, true];
  else if (curves && took !== undefined) {
    text = `Simulated ${inUnit(Number(curves.header.duration.toPrecision(3)), "s")} in ${inUnit((curves.header.wall ?? 0).toFixed(2), "s")}`;
  }
  return (
    <span className={`status ${bad ? "bad" : ""}`} role="status" data-took={took?.toFixed(0)} data-busy={busy}>
      {text}
      {busy && share !== undefined && <span aria-hidden="true"> {inUnit(Math.round(share * 100), "%")}</span>}
    </span>
  );
}

/** A success goes by itself; a failure stays until it is dismissed. */
function Notices() {
  const store = useStore();
  const notices = use((state) => state.notices);
  return (
    <div className="notices" role="status" aria-live="polite">
      {notices.map((notice) => (
        <div key={notice.id} className={`notice ${notice.bad ? "bad" : ""}`}>
          <span>{unbroken(notice.text)}</span>
          <button className="plain" aria-label="Dismiss" onClick={() => store.dismiss(notice.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}

function Conflict() {
  const store = useStore();
  const conflict = use((state) => state.conflict);
  const path = use((state) => state.path);
  if (!conflict) return null;
  return (
    <div className="banner" role="alert">
      {path} was changed elsewhere, and you have unsaved changes.
      <button onClick={() => void store.documents.resolve(true)}>Load the other version</button>
      <button onClick={() => void store.documents.resolve(false)}>Overwrite it with mine</button>
    </div>
  );
}

/** Keys that work wherever the focus is, but in a text field only those with Ctrl. */
function useKeys(store: Store): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const key = event.key.toLowerCase();
      const command = event.ctrlKey || event.metaKey;
      const target = event.target as HTMLElement;
      const writing = target.closest("input, textarea, select, [contenteditable=true]") !== null;
      if (command && key === "s") {
        event.preventDefault();
        void store.documents.saveOrAsk();
      } else if (command && key === "enter") {
        event.preventDefault();
        void store.runs.start();
      } else if (command && (key === "z" || key === "y") && !target.closest("input, textarea")) {
        event.preventDefault();
        if (key === "y" || event.shiftKey) store.documents.redo();
        else store.documents.undo();
      } else if (!writing && (key === "delete" || key === "backspace") && store.state.selection.length) {
        event.preventDefault();
        removeSelected(store);
      }
    };
    window.addEventListener("keydown", pressed, true);
    const leaving = (event: BeforeUnloadEvent) => {
      // Drafts are kept, but someone who closes the page may not know.
      if (store.documents.dirty && store.state.version !== null) event.preventDefault();
    };
    window.addEventListener("beforeunload", leaving);
    return () => {
      window.removeEventListener("keydown", pressed, true);
      window.removeEventListener("beforeunload", leaving);
    };
  }, [store]);
}
