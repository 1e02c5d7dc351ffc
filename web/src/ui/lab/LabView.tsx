// A network that is up: its links and TCP as they go, changes of links, and ways into its nodes.

import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { persistently } from "../../core/persistently";
import { use, useStore } from "../use";
import { CaptureList } from "./CaptureList";
import { ChangeLink } from "./ChangeLink";
import { LiveCurves } from "./LiveCurves";
import { Tables } from "./Tables";

// The terminal is loaded when the first one is opened.
const Terminal = lazy(() => persistently(() => import("./Terminal")));

type Pane = { id: number; title: string } & (
  | { kind: "terminal"; node: string; what: "bash" | "vtysh" }
  | { kind: "tables"; node: string }
  | { kind: "capture" | "change"; link: string }
);
// The name of a pane before it has a number.
type Wanted = Pane extends infer One ? (One extends Pane ? Omit<One, "id"> : never) : never;

let numbers = 0;

export function LabView({ shown }: { shown: boolean }) {
  const store = useStore();
  const labs = use((state) => state.labs);
  const path = use((state) => state.path);
  const selection = use((state) => state.selection);
  const drawing = use((state) => state.drawing);
  const [chosen, setChosen] = useState<string>();
  const [building, setBuilding] = useState(false);
  const [starting, setStarting] = useState(false);
  const [panes, setPanes] = useState<Pane[]>([]);
  const [front, setFront] = useState<number>();
  const [node, setNode] = useState("");
  const [link, setLink] = useState("");
  // Someone without a pointer goes on here when the button is gone that was pressed.
  const terminal = useRef<HTMLButtonElement>(null);
  const begin = useRef<HTMLButtonElement>(null);
  const pressed = useRef(false);
  // On a phone they are below what is seen.
  const opened = useRef<HTMLDivElement>(null);
  useEffect(() => {
    opened.current?.scrollIntoView({ block: "nearest" });
    opened.current?.querySelector("[role=tab][aria-selected=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [front]);
  const lab = labs.find((one) => one.name === chosen) ?? labs.find((one) => one.scenario === path);

  useEffect(() => {
    setPanes([]);
    setNode("");
    setLink("");
    if (pressed.current) (terminal.current ?? begin.current)?.focus();
    pressed.current = false;
  }, [lab?.name]);
  // The selection on the drawing is what is meant here.
  useEffect(() => {
    const one = selection[selection.length - 1];
    if (one?.kind === "node") setNode(one.name);
    if (one?.kind === "link") setLink(one.name);
  }, [selection]);

  if (!lab) {
    return (
      <div className="lab-begin" hidden={!shown}>
        <p>
          Build this network in the Linux kernel of this machine, with a network namespace for each node. Then open terminals, run
          programs, capture packets, and change links while they carry traffic.
        </p>
        {drawing.nodes.length < 2 && <p className="hush">Draw a network of two nodes or more first.</p>}
        <button
          ref={begin}
          className="primary"
          disabled={building || drawing.nodes.length < 2}
          onClick={async () => {
            setBuilding(true);
            pressed.current = true;
            if (!(await store.act("Not built", () => store.backend.bringUp(store.state.text, path)))) pressed.current = false;
            setBuilding(false);
          }}
        >
          {building ? "Building…" : "Bring the network up"}
        </button>
        {labs.length > 0 && (
          <div className="row">
            Other networks that are up:
            {labs.map((one) => (
              <button key={one.name} onClick={() => setChosen(one.name)}>
                {one.name}
              </button>
            ))}
          </div>
        )}
      </div>
    );
  }

  const nodes = Object.keys(lab.nodes);
  const links = Object.keys(lab.links);
  const [at, over] = [nodes.includes(node) ? node : nodes[0]!, links.includes(link) ? link : links[0]!];
  const open = (pane: Wanted) => {
    const there = pane.kind === "change" && panes.find((other) => other.title === pane.title);
    if (there) return setFront(there.id);
    let [title, number] = [pane.title, 1];
    while (panes.some((other) => other.title === title)) title = `${pane.title} (${++number})`;
    const made = { ...pane, title, id: ++numbers } as Pane;
    setPanes((before) => [...before, made]);
    setFront(made.id);
  };
  const close = (id: number) => {
    setPanes((before) => before.filter((pane) => pane.id !== id));
    setFront((before) => (before === id ? panes.filter((pane) => pane.id !== id).pop()?.id : before));
    // A terminal that comes to the front has taken the focus.
    window.setTimeout(() => {
      if (document.activeElement !== document.body) return;
      (opened.current?.querySelector<HTMLElement>("[role=tab][aria-selected=true]") ?? terminal.current)?.focus();
    });
  };
  return (
    <div className="lab" hidden={!shown} data-lab={lab.name}>
      <div className="lab-tools">
        <div className="row">
          <span className="state done" aria-hidden="true" />
          {labs.length > 1 ? (
            <select aria-label="Network" value={lab.name} onChange={(event) => setChosen(event.target.value)}>
              {labs.map((one) => (
                <option key={one.name}>{one.name}</option>
              ))}
            </select>
          ) : (
            <strong className="name">{lab.name}</strong>
          )}
          <span className="hush">is up</span>
          <button
            onClick={async () => {
              pressed.current = true;
              if (!(await store.act("Not taken down", () => store.backend.takeDown(lab.name), `${lab.name} is down.`))) pressed.current = false;
            }}
          >
            Take down
          </button>
          <button
            aria-pressed={lab.traffic}
            disabled={starting || (!lab.traffic && (lab.scenario !== path || !drawing.flows.length))}
            title={lab.scenario === path ? "Run the flows of the drawing until they are stopped" : `Open ${lab.scenario} to start its flows`}
            onClick={async () => {
              setStarting(!lab.traffic);
              await store.act(lab.traffic ? "Flows not stopped" : "Flows not started", () => store.backend.traffic(lab.name, lab.traffic ? null : store.state.text, path));
              setStarting(false);
            }}
          >
            {starting ? (lab.routers.length ? "Waiting for routes…" : "Starting…") : lab.traffic ? "Stop the flows" : "Start the flows"}
          </button>
        </div>
        <div className="row" role="group" aria-label="Tools of a node">
          <Choice label="Node" value={at} of={nodes} choose={setNode} />
          <button ref={terminal} onClick={() => open({ kind: "terminal", node: at, what: "bash", title: at })}>
            Terminal
          </button>
          {lab.routers.includes(at) && (
            <button onClick={() => open({ kind: "terminal", node: at, what: "vtysh", title: `${at} vtysh` })}>FRR console</button>
          )}
          <button onClick={() => open({ kind: "tables", node: at, title: `${at} routes` })}>Routes</button>
        </div>
        <div className="row" role="group" aria-label="Tools of a link">
          <Choice label="Link" value={over} of={links} choose={setLink} />
          <button onClick={() => open({ kind: "capture", link: over, title: `${over} packets` })}>Capture</button>
          <button onClick={() => open({ kind: "change", link: over, title: `${over} settings` })} title="Change its settings while it carries traffic">
            Change
          </button>
        </div>
      </div>
      <LiveCurves key={lab.name} lab={lab.name} shown={shown} />
      {panes.length > 0 && (
        <div className="panes" ref={opened}>
          <div className="tabs">
            <div role="tablist" aria-label="Nodes and links">
              {panes.map((pane) => (
                <button key={pane.id} role="tab" aria-selected={pane.id === front} title={pane.kind === "terminal" ? "Ctrl+F6 leaves the terminal" : undefined} onClick={() => setFront(pane.id)}>
                  {pane.title}
                </button>
              ))}
            </div>
            {panes
              .filter((pane) => pane.id === front)
              .map((pane) => (
                <button key={pane.id} className="plain" aria-label={`Close ${pane.title}`} onClick={() => close(pane.id)}>
                  ✕
                </button>
              ))}
          </div>
          {panes.map((pane) => (
            <div key={pane.id} className="pane" hidden={pane.id !== front}>
              {pane.kind === "terminal" && (
                <Suspense fallback={<p className="empty">Opening…</p>}>
                  <Terminal lab={lab.name} node={pane.node} what={pane.what} shown={shown && pane.id === front} />
                </Suspense>
              )}
              {pane.kind === "tables" && <Tables lab={lab.name} node={pane.node} />}
              {pane.kind === "capture" && <CaptureList lab={lab.name} link={pane.link} />}
              {pane.kind === "change" && <ChangeLink lab={lab.name} link={pane.link} shown={shown && pane.id === front} />}
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

/** The node or link that the tools beside it are for. */
function Choice({ label, value, of, choose }: { label: string; value: string; of: string[]; choose: (name: string) => void }) {
  return (
    <label>
      {label}
      <select aria-label={label} value={value} onChange={(event) => choose(event.target.value)}>
        {of.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
