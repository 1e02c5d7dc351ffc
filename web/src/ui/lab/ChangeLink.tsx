// Settings of a link that is up, to change while it carries traffic.

import { type FormEvent, useEffect, useId, useState } from "react";
import { unbroken } from "../../core/quantity";
import { changeable, fits } from "../../core/schema";
import { use, useStore } from "../use";

// Between looks at the settings, ms. They may change by the scenario's `at`, or by `tcplab topo set`.
const LOOK = 2000;

export function ChangeLink({ lab, link, shown }: { lab: string; link: string; shown: boolean }) {
  const store = useStore();
  const schema = use((state) => state.schema);
  const change = use((state) => state.labChange);
  const [given, setGiven] = useState<Record<string, string>>({});
  const [direction, setDirection] = useState<"both" | "forward" | "reverse">("both");
  const { forward = {}, reverse = {} } = use((state) => state.labs.find((one) => one.name === lab)?.links[link]?.settings) ?? {};
  const id = useId();
  useEffect(() => {
    if (!shown) return;
    void store.lookForLabs();
    const timer = window.setInterval(() => void store.lookForLabs(), LOOK);
    return () => clearInterval(timer);
  }, [store, shown]);
  const all = schema ? changeable(schema) : [];
  const settings = Object.fromEntries(Object.entries(given).filter(([, value]) => value.trim()));
  const wrong = all.filter((field) => settings[field.key] !== undefined && !fits(field, settings[field.key]!));

  const present = (key: string): string => {
    const [one, other] = [forward[key] ?? "none", reverse[key] ?? "none"];
    return direction === "reverse" ? other : direction === "forward" || one === other ? one : `${one}; reverse ${other}`;
  };
  const apply = async (event: FormEvent) => {
    event.preventDefault();
    if (await store.act(`${link} not changed`, () => store.backend.changeLink(lab, link, settings, direction))) setGiven({});
  };
  return (
    <form className="change" onSubmit={apply} aria-label={`Change ${link}`}>
      {all.map((field, index) => (
        <label key={field.key} className={`setting ${wrong.includes(field) ? "wrong" : ""}`} title={`${field.about}\nNow: ${present(field.key)}`}>
          {field.key}
          {field.kind === "switch" ? (
            <select aria-label={field.key} value={given[field.key] ?? ""} onChange={(event) => setGiven({ ...given, [field.key]: event.target.value })}>
              <option value="">{present(field.key)}</option>
              {field.choices.map((choice) => (
                <option key={choice}>{choice}</option>
              ))}
            </select>
          ) : (
            <input
              autoFocus={index === 0}
              aria-label={field.key}
              value={given[field.key] ?? ""}
              placeholder={present(field.key)}
              aria-invalid={wrong.includes(field)}
              aria-describedby={`${id}-${field.key}`}
              onChange={(event) => setGiven({ ...given, [field.key]: event.target.value })}
            />
          )}
          {wrong.includes(field) && (
            <span id={`${id}-${field.key}`} className="bad">
              {unbroken(`Not a ${field.key}: e.g. ${field.example}`)}
            </span>
          )}
        </label>
      ))}
      <label className="setting">
        direction
        <select aria-label="direction" value={direction} onChange={(event) => setDirection(event.target.value as typeof direction)}>
          <option value="both">both</option>
          <option value="forward">forward</option>
          <option value="reverse">reverse</option>
        </select>
      </label>
      <div className="row">
        <button className="primary" disabled={!Object.keys(settings).length || wrong.length > 0}>
          Change now
        </button>
        <span className="hush" role="status">
          {change && unbroken(change)}
        </span>
      </div>
    </form>
  );
}
