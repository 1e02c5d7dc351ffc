// Completions at a place of a scenario's text: keys of the mapping around it, or values of its key.

import { isMap, isPair, isScalar, isSeq, type Node, parseDocument } from "yaml";
import { fields, joined, long, resolved, type Schema, words } from "./schema";

export interface Offer {
  label: string;
  apply: string;
  about: string;
  kind: "property" | "enum";
}

export interface Offers {
  typed: string;
  options: Offer[];
}

const MARK = "zzcursorzz";

export function complete(text: string, position: number, root: Schema, controls: string[]): Offers | undefined {
  const before = text.slice(text.lastIndexOf("\n", position - 1) + 1, position);
  if (/#/.test(before)) return undefined;
  const typed = /[\w.-]*$/.exec(before)![0];
  const asKey = /(^|[{,])\s*(-\s+)*[\w-]*$/.test(before);
  const asValue = /[\w-]+:\s+[\w.-]*$/.test(before);
  if (!asKey && !asValue) return undefined;
  // Whatever is typed so far is replaced by a key or value that is surely found again.
  const rest = text.slice(position).replace(/^[\w.-]*(:?)/, "$1");
  const marked = text.slice(0, position - typed.length) + MARK + (asKey && !rest.startsWith(":") ? ": " : "") + rest;
  const document = parseDocument(marked, { strict: false });
  const path = find(document.contents as Node | null, []);
  if (!path) return undefined;
  const names = asKey ? path.slice(0, -1) : path;
  const schema = names.reduce<Schema | undefined>((inner, step) => inner && stepInto(inner, step, root, document), root);
  if (asValue) {
    const values = path[path.length - 1] === "cc" ? controls : fieldValues(schema, root);
    return values.length ? { typed, options: values.map((label) => ({ label, apply: label, about: "", kind: "enum" as const })) } : undefined;
  }
  const options = fields(schema, root).map((field) => ({
    label: field.key,
    apply: `${field.key}: `,
    about: field.about,
    kind: "property" as const,
  }));
  return options.length ? { typed, options } : undefined;
}

type Step = string | { list: number; kind?: string };

function find(node: Node | null, path: Step[]): Step[] | undefined {
  if (isScalar(node)) return node.value === MARK ? path : undefined;
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      const kind = isMap(item) ? item.get("kind") : undefined;
      const found = find(item as Node, [...path, { list: index, kind: typeof kind === "string" ? kind : undefined }]);
      if (found) return found;
    }
  }
  if (isMap(node)) {
    for (const pair of node.items) {
      if (!isPair(pair)) continue;
      const key = isScalar(pair.key) ? String(pair.key.value) : "";
      if (key.startsWith(MARK)) return [...path, key];
      const found = find(pair.value as Node | null, [...path, key]);
      if (found) return found;
    }
  }
  return undefined;
}

function stepInto(schema: Schema, step: Step, root: Schema, _: unknown): Schema | undefined {
  const found = resolved(schema, root);
  if (typeof step === "string") {
    const object = long(found, root);
    return object?.properties?.[step] ?? (typeof object?.additionalProperties === "object" ? object.additionalProperties : undefined) ?? map(found, root);
  }
  const items = [found, ...(found.anyOf ?? [])].map((option) => resolved(option, root).items).find(Boolean);
  const item = items && resolved(items, root);
  if (!item) return undefined;
  const variants = item.oneOf ?? [];
  const chosen = variants.find((variant) => variant.properties?.kind?.const === step.kind) ?? variants[0];
  return chosen ? joined(item, chosen, root) : item;
}

const map = (schema: Schema, root: Schema) =>
  [schema, ...(schema.anyOf ?? [])]
    .map((option) => resolved(option, root).additionalProperties)
    .find((option): option is Schema => typeof option === "object");

function fieldValues(schema: Schema | undefined, root: Schema): string[] {
  const found = resolved(schema, root);
  const options = [found, ...(found.anyOf ?? []).map((option) => resolved(option, root))];
  const taken = words(found, root);
  const examples = options.flatMap((option) => option.examples ?? []);
  return [...new Set([...taken, ...(taken.length ? [] : examples)].filter((word) => typeof word !== "boolean").map(String))];
}
