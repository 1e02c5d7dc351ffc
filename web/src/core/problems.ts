// The mistakes that `check` reports, by line for the editor and by object for the drawing.

import type { Drawing } from "./network";

/** A place in the text; line 0 where the text does not hold it. */
export interface Place {
  line: number;
  column: number;
  width: number;
}

export interface Mistake extends Place {
  path: string;
  value: string;
  message: string;
  suggestion: string;
}

/** Something that the engine cannot do with the scenario, or not well. */
export interface Problem extends Place {
  where: string;
  message: string;
  hint: string;
  fatal: boolean;
}

export interface Checked {
  ok: boolean;
  errors: Mistake[];
  problems: Problem[];
  warnings: string[];
  plan: unknown;
}

/** How many mistakes keep the scenario from running. */
export function mistakes(checked: Checked | undefined): number {
  return checked ? checked.errors.length + checked.problems.filter((problem) => problem.fatal).length : 0;
}

export type Object = { kind: "node" | "link" | "flow"; name: string };

/** The drawn object that a path such as `network.links.a-b.rate` or `flows.bulk.cc` speaks of. */
export function objectAt(path: string, drawing: Drawing): Object | undefined {
  const steps = path.split(".");
  const top = steps[0] === "network" ? steps.slice(1) : steps;
  const [list, name] = [top[0], top[1] ?? ""];
  if (list === "path") {
    if (name === "left" || name === "right") return { kind: "node", name };
    return drawing.links[0] && { kind: "link", name: drawing.links[0].name };
  }
  const kind = list === "nodes" ? "node" : list === "links" ? "link" : list === "flows" ? "flow" : undefined;
  if (!kind) return undefined;
  const drawn: { name: string; path: (string | number)[] }[] = drawing[`${kind}s`];
  const found = drawn.find((one) => one.name === name) ?? drawn.find((one) => String(one.path[one.path.length - 1]) === name);
  return found && { kind, name: found.name };
}

/** Mistakes and refusals by `kind name`. */
export function byObject(checked: Checked | undefined, drawing: Drawing): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const note = (path: string, message: string) => {
    const object = objectAt(path, drawing);
    if (!object) return;
    const key = `${object.kind} ${object.name}`;
    found.set(key, [...(found.get(key) ?? []), message]);
  };
  checked?.errors.forEach((error) => note(error.path, error.message));
  checked?.problems.filter((problem) => problem.fatal).forEach((problem) => note(problem.where, problem.message));
  return found;
}

/** A mistake in one sentence, with the nearest valid spelling. */
export function messageOf(mistake: Mistake): string {
  const where = mistake.path ? `${mistake.path}: ` : "";
  const absent = /(is missing|has no value|is empty)$/.test(mistake.message);
  const hint = mistake.suggestion ? (absent ? `; for example ${mistake.suggestion}` : `; did you mean ${mistake.suggestion}?`) : "";
  return where + mistake.message + hint;
}
