// Settings of a link that is up, to change while it carries traffic.

import { type FormEvent, useState } from "react";
import { unbroken } from "../../core/quantity";
import { changeable, fits } from "../../core/schema";
import { use, useStore } from "../use";

export function ChangeLink({ lab, link }: { lab: string; link: string }) {
  const store = useStore();
  const schema = use((state) => state.schema);
  const change = use((state) => state.labChange);
  const [given, setGiven] = useState<Record<string, string>>({});
  const [direction, setDirection] = useState("both");
  const all = schema ? changeable(schema) : [];
  const settings = Object.fromEntries(Object.entries(given).filter(([, value]) => value.trim()));
  const wrong = all.filter((field) => settings[field.key] !== undefined && !fits(field, settings[field.key]!));

  const apply = (event: FormEvent) => {
    event.preventDefault();
    void store.act(`${link} not changed`, () => store.backend.changeLink(lab, link, settings, direction));
  };
  return (
    <form className="change" onSubmit={apply} aria-label={`Change ${link}`}>
      {all.map((field, index) => (
        <label key={field.key} className={`setting ${wrong.includes(field) ? "wrong" : ""}`} title={field.about}>
          {field.key}
          {field.kind === "switch" ? (
            <select aria-label={field.key} value={given[field.key] ?? ""} onChange={(event) => setGiven({ ...given, [field.key]: event.target.value })}>
              <option value="">unchanged</option>
              {field.choices.map((choice) => (
                <option key={choice}>{choice}</option>
              ))}
            </select>
          ) : (
            <input
              autoFocus={index === 0}
              aria-label={field.key}
              value={given[field.key] ?? ""}
              placeholder={field.example ? `e.g. ${field.example}` : "unchanged"}
              aria-invalid={wrong.includes(field)}
              onChange={(event) => setGiven({ ...given, [field.key]: event.target.value })}
            />
          )}
        </label>
      ))}
      <label className="setting">
        direction
        <select aria-label="direction" value={direction} onChange={(event) => setDirection(event.target.value)}>
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
