// The settings of what is selected, from the JSON Schema: each with its unit, its default and what it does.

import { Fragment, useEffect, useId, useState } from "react";
import { at, change, changeKind, renameNode } from "../core/changes";
import { mapping } from "../core/network";
import { quantity, rounded, sliderRange, written } from "../core/quantity";
import { type FlowKind, keyOfShort } from "../core/kinds";
import { type Field, fields, fits, schemaOf } from "../core/schema";
import { type Path, read } from "../core/text";
import { removeSelected } from "./selected";
import { use, useStore } from "./use";

/** The settings that people come to change, above the rest. */
const FIRST: Record<string, string[]> = {
  node: ["kind", "initial_window", "window", "ecn"],
  link: ["rate", "delay", "rtt", "queue", "loss", "jitter"],
  flow: ["cc", "rate", "streams", "start", "duration", "bytes"],
};

export function Inspector() {
  const store = useStore();
  const selection = use((state) => state.selection);
  const drawing = use((state) => state.drawing);
  const schema = use((state) => state.schema);
  const text = use((state) => state.text);
  const kinds = use((state) => state.kinds);
  if (!schema) return null;
  const one = selection[0];
  if (selection.length > 1) {
    return (
      <div className="inspector">
        <h2>{selection.length} selected</h2>
        <button onClick={() => removeSelected(store)}>Delete them</button>
      </div>
    );
  }
  if (!one) return <General />;
  const drawn = (drawing[`${one.kind}s`] as { name: string; path: Path }[]).find((other) => other.name === one.name);
  if (!drawn) return <General />;
  if (drawing.generated && one.kind !== "flow") {
    return (
      <div className="inspector">
        <h2>
          <small>{one.kind}</small>
          {one.name}
        </h2>
        <p className="hush">Made from `topology`: its settings are those of `network.topology` in the text.</p>
      </div>
    );
  }
  const short = drawing.short && one.kind !== "flow";
  const kind = one.kind === "flow" ? drawing.flows.find((flow) => flow.name === one.name)!.kind : "";
  const what = short ? (one.kind === "node" ? "side" : "path") : one.kind;
  const all = fields(schemaOf(schema, what, kind), schema, ["name", "ends", "at", "left", "right", "from", "to", ...(one.kind === "flow" ? ["kind"] : [])]);
  const node = one.kind === "node" ? drawing.nodes.find((other) => other.name === one.name) : undefined;
  const traits = kinds.nodes.find(({ name }) => name === node?.kind);
  if (node) all.splice(0, all.length, ...all.filter(({ key }) => key === "kind" || (!traits?.bridges && kinds.ofRouters.includes(key) === Boolean(traits?.forwards))));
  // Required settings are not below optional ones.
  const order = [...all.flatMap(({ key, required }) => (required && !FIRST[one.kind]!.includes(key) ? [key] : [])), ...FIRST[one.kind]!];
  const first = order.flatMap((key) => all.filter((field) => field.key === key));
  const rest = all.filter((field) => !order.includes(field.key));
  return (
    <div className="inspector" key={`${one.kind} ${one.name}`}>
      <h2>
        <small>{one.kind === "flow" ? "flow" : one.kind === "node" ? drawing.nodes.find((node) => node.name === one.name)!.kind : "link"}</small>
        {one.name}
      </h2>
      {!short && <Name kind={one.kind} name={one.name} path={drawn.path} />}
      {one.kind === "flow" && <FlowKinds path={drawn.path} kind={kind} />}
      {one.kind === "flow" && <Ends path={drawn.path} />}
      {first.map((field) => (
        <Setting key={field.key} field={field} path={[...drawn.path, field.key]} text={text} open />
      ))}
      {rest.length > 0 && (
        <details>
          <summary>More settings</summary>
          {rest.map((field) => (
            <Setting key={field.key} field={field} path={[...drawn.path, field.key]} text={text} />
          ))}
        </details>
      )}
      {!short && <button onClick={() => removeSelected(store)}>Delete {one.name}</button>}
    </div>
  );
}

/** Nothing is selected: the scenario's own settings. */
function General() {
  const schema = use((state) => state.schema)!;
  const text = use((state) => state.text);
  const all = fields(schema, schema, ["tcplab", "network", "flows"]);
  return (
    <div className="inspector">
      <h2>
        <small>scenario</small>
        {String(mapping(read(text).data).name ?? "")}
      </h2>
      <p className="hush">Select a node, a link or a flow to see its settings.</p>
      {all.map((field) => (
        <Setting key={field.key} field={field} path={[field.key]} text={text} />
      ))}
    </div>
  );
}

function Name({ kind, name, path }: { kind: string; name: string; path: Path }) {
  const store = useStore();
  return (
    <Text
      label="name"
      value={name}
      valid={(value) => /^[A-Za-z][A-Za-z0-9_-]{0,47}$/.test(value)}
      onChange={(value) => {
        if (value === name) return;
        const { text, placed } = store.state;
        if (kind === "node") {
          const { [name]: at, ...others } = placed;
          store.documents.edit(renameNode(text, name, value), { ...others, [value]: at! });
        } else store.documents.edit(change(text, [...path, "name"], value));
        store.set({ selection: [{ kind: kind as "node", name: value }] });
      }}
    />
  );
}

function FlowKinds({ path, kind }: { path: Path; kind: string }) {
  const store = useStore();
  const { flows } = use((state) => state.kinds);
  const schema = use((state) => state.schema)!;
  const choose = (next: FlowKind) => {
    const has = ["from", "to", ...fields(schemaOf(schema, "flow", next.kind), schema).map(({ key }) => key)];
    store.documents.edit(changeKind(store.state.text, path, next, (key) => has.includes(key)));
  };
  const about = flows.find((one) => one.kind === kind)?.about;
  const id = useId();
  return (
    <div className="described">
      <label className="setting" title={about}>
        kind
        <select aria-describedby={id} value={kind} onChange={(event) => choose(flows.find((one) => one.kind === event.target.value)!)}>
          {flows.map((one) => (
            <option key={one.kind} title={one.about}>
              {one.kind}
            </option>
          ))}
        </select>
      </label>
      <About id={id} text={about} />
    </div>
  );
}

/** The description of a setting: read with its control, and shown while that has the focus. */
function About({ id, text }: { id: string; text?: string }) {
  return text ? (
    <span id={id} className="about" aria-hidden="true">
      {text}
    </span>
  ) : null;
}

function Ends({ path }: { path: Path }) {
  const store = useStore();
  const drawing = use((state) => state.drawing);
  const flow = drawing.flows.find((one) => one.path.join() === path.join());
  const { nodes } = use((state) => state.kinds);
  const hosts = drawing.nodes.filter(({ kind }) => nodes.some((one) => one.ends_flows && one.name === kind)).map((node) => node.name);
  return (
    <div className="ends">
      {(["from", "to"] as const).map((end) => (
        <label key={end}>
          {end}
          <select value={flow?.[end] ?? ""} onChange={(event) => store.documents.edit(change(store.state.text, [...path, end], event.target.value))}>
            {!hosts.includes(flow?.[end] ?? "") && <option value={flow?.[end] ?? ""}>{flow?.[end] || "choose"}</option>}
            {hosts.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      ))}
    </div>
  );
}

function Setting({ field, path, text, open }: { field: Field; path: Path; text: string; open?: boolean }) {
  const store = useStore();
  const controls = use((state) => state.session!.controls);
  const kinds = use((state) => state.kinds);
  const value = at(read(text).data, path);
  const id = useId();
  const set = (next: string, kind = "") => {
    const typed = field.kind === "number" && next !== "" ? Number(next) : next === "on" || next === "off" ? next : next;
    store.documents.edit(change(store.state.text, path, typed, kinds), undefined, kind);
  };
  if (field.key === "cc") return <Control path={path} value={value} field={field} controls={controls} />;
  if (field.kind === "group") {
    const isShort = value !== undefined && typeof value !== "object";
    const main = isShort || value === undefined;
    const shortKey = isShort ? keyOfShort(kinds, field.key, value) : undefined;
    const inner = field.fields(shortKey === "kind" ? String(value) : String(mapping(value).kind ?? ""));
    const empty = value === undefined && !kinds.shortForms[field.key] && !inner.some((one) => one.required);
    return (
      <details className="group" open={open && value !== undefined && !main ? true : undefined}>
        <summary title={field.about} aria-describedby={id}>
          {broken(field.key)}
          <span className="value">{main ? String(value ?? byDefault(field)) : summary(value)}</span>
          <About id={id} text={field.about} />
        </summary>
        {inner.map((one) => (
          <Setting key={one.key} field={one} path={one.key === shortKey ? path : [...path, one.key]} text={text} />
        ))}
        {empty && <button onClick={() => store.documents.edit(change(store.state.text, path, {}, kinds))}>Add {field.key}</button>}
        {value !== undefined && (
          <button className="plain" onClick={() => set("")}>
            Remove {field.key}
          </button>
        )}
      </details>
    );
  }
  if (field.kind === "switch" || field.kind === "choice") {
    const now = value === true ? "on" : value === false ? "off" : String(value ?? "");
    return (
      <div className="described">
        <label className="setting" title={field.about}>
          {broken(field.key)}
          <select aria-describedby={id} value={now} onChange={(event) => set(event.target.value)}>
            <option value="">{byDefault(field) || "default"}</option>
            {field.choices.map((choice) => (
              <option key={choice}>{choice}</option>
            ))}
          </select>
        </label>
        <About id={id} text={field.about} />
      </div>
    );
  }
  if (field.kind === "list") {
    const shown = value === undefined ? "" : JSON.stringify(value);
    return (
      <div className="described">
        <div className="setting" title={field.about} role="group" aria-label={`${field.key}: ${shown || "in the text"}`} aria-describedby={id} tabIndex={0}>
          {broken(field.key)}
          <span className="value">{shown || "in the text"}</span>
        </div>
        <About id={id} text={field.about} />
      </div>
    );
  }
  return (
    <Text
      label={field.key}
      about={field.about}
      value={value === undefined || value === null ? "" : String(value)}
      placeholder={field.initial ?? (field.example && `e.g. ${field.example}`)}
      valid={(given) => fits(field, given)}
      slider={field.kind === "text"}
      onChange={set}
    />
  );
}

/** The value of a setting that is not made. */
const byDefault = ({ initial }: Field) => (initial === undefined ? "" : `${initial} (default)`);

/** A key that may go on in the next line after an underscore. */
function broken(key: string) {
  return key.split("_").map((part, index) => (
    <Fragment key={index}>
      {index > 0 && (
        <>
          _<wbr />
        </>
      )}
      {part}
    </Fragment>
  ));
}

function summary(value: unknown): string {
  return Object.values(mapping(value))
    .filter((one) => typeof one !== "object")
    .join(" · ");
}

function Control({ path, value, field, controls }: { path: Path; value: unknown; field: Field; controls: string[] }) {
  const store = useStore();
  const now = typeof value === "string" ? value : String(mapping(value).name ?? "");
  const known = controls.includes(now) || now === "";
  const id = useId();
  return (
    <div className="described">
      <label className="setting" title={field.about}>
        cc
        <select
          aria-label="Congestion control"
          aria-describedby={id}
          value={now}
          onChange={(event) => store.documents.edit(change(store.state.text, typeof value === "object" ? [...path, "name"] : path, event.target.value))}
        >
          <option value="">{byDefault(field)}</option>
          {!known && <option>{now}</option>}
          {controls.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <About id={id} text={field.about} />
    </div>
  );
}

interface TextProps {
  label: string;
  value: string;
  about?: string;
  placeholder?: string;
  slider?: boolean;
  valid: (value: string) => boolean;
  onChange: (value: string, kind?: string) => void;
}

function Text({ label, value, about, placeholder, slider, valid, onChange }: TextProps) {
  const [given, setGiven] = useState(value);
  const [range, setRange] = useState<{ least: number; most: number }>();
  useEffect(() => setGiven(value), [value]);
  const amount = slider ? quantity(given) : undefined;
  const bounds = range ?? (amount && sliderRange(amount));
  const wrong = given !== "" && !valid(given);
  const steps = bounds && Math.log(bounds.most / bounds.least);
  const id = useId();
  return (
    <div className="described">
      <label className={`setting ${wrong ? "wrong" : ""}`} title={about}>
        {broken(label)}
        <input
          value={given}
          placeholder={placeholder}
          aria-invalid={wrong}
          aria-describedby={`${id} ${id}-wrong`}
          onChange={(event) => setGiven(event.target.value)}
          onBlur={() => given !== value && valid(given) && onChange(given)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && valid(given)) onChange(given);
            if (event.key === "Escape") setGiven(value);
          }}
        />
        {amount && bounds && steps && amount.number > 0 && (
          <input
            type="range"
            aria-label={`${label}, slider`}
            aria-describedby={id}
            aria-valuetext={given}
            min={0}
            max={1000}
            value={Math.round((1000 * Math.log(Math.max(amount.number, bounds.least) / bounds.least)) / steps)}
            onPointerDown={() => setRange(sliderRange(amount))}
            onPointerUp={() => setRange(undefined)}
            onChange={(event) => {
              const number = rounded(bounds.least * Math.exp((Number(event.target.value) / 1000) * steps));
              const whole = amount.unit.startsWith("packet") ? Math.max(1, Math.round(number)) : number;
              const next = written({ number: whole, unit: amount.unit });
              setGiven(next);
              onChange(next, `slide ${label}`);
            }}
          />
        )}
        {wrong && (
          <span id={`${id}-wrong`} className="bad">
            {placeholder ? `Not a ${label}: ${placeholder}` : `Not a ${label}`}
          </span>
        )}
      </label>
      <About id={id} text={about} />
    </div>
  );
}
