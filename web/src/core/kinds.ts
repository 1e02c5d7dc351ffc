// Kinds of nodes, traffic and impairments, as the language's JSON Schema and the server's session have them: the page names
// none of them, and no kind of queue.

import { described, flowKinds, long, resolved, type Schema, schemaOf } from "./schema";
import type { Value } from "./text";

export interface FlowKind {
  kind: string;
  about: string;
  /** Whether a congestion control carries it. */
  controlled: boolean;
  /** Required settings, with values to begin with. */
  first: Record<string, Value>;
}

/** Traits of all nodes of a kind. */
export interface NodeTraits {
  name: string;
  ends_flows: boolean;
  bridges: boolean;
  forwards: boolean;
}

export interface NodeKind extends NodeTraits {
  about: string;
  /** The kind of a node that names none. */
  usual: boolean;
}

export interface Kinds {
  nodes: NodeKind[];
  flows: FlowKind[];
  /** Settings of a link that do something to packets: their short form is a quantity, such as `loss: 1 %`. */
  impairments: string[];
  /** The key that a short form gives: `queue: 50 ms` is `queue: {limit: 50 ms}`. */
  shortForms: Record<string, string>;
  /** The kinds whose name alone may stand for them: `queue: codel` is `queue: {kind: codel}`. */
  bareKinds: Record<string, string[]>;
  /** Settings of nodes that forward, not of hosts. */
  ofRouters: string[];
}

export const NO_KINDS: Kinds = { nodes: [], flows: [], impairments: [], shortForms: {}, bareKinds: {}, ofRouters: [] };

export function kindsOf(root: Schema, traits: NodeTraits[]): Kinds {
  const shortForms: Record<string, string> = {};
  const bareKinds: Record<string, string[]> = {};
  for (const each of objects(root)) {
    for (const [key, inner] of Object.entries(each.properties ?? {})) {
      const short = shortForm(inner, root);
      if (!short) continue;
      shortForms[key] ??= short;
      const { between } = formsOf(inner, root);
      bareKinds[key] ??= between.flatMap((form) => form.enum ?? []).map(String);
    }
  }
  const link = Object.entries(long(schemaOf(root, "link") ?? {}, root)?.properties ?? {});
  const node = Object.keys(long(schemaOf(root, "node") ?? {}, root)?.properties ?? {});
  const host = resolved(schemaOf(root, "side"), root).properties ?? {};
  const about = described(long(schemaOf(root, "node") ?? {}, root)?.properties?.kind ?? {}, root);
  const usual = traits.find((one) => one.ends_flows)?.name;
  return {
    nodes: traits.map((one) => ({ ...one, about: about[one.name] ?? "", usual: one.name === usual })),
    flows: flowKinds(root).map((kind) => flowKind(root, kind)),
    impairments: link.flatMap(([key, inner]) => (shortForms[key] && isAmount(inner, root) ? [key] : [])),
    shortForms,
    bareKinds,
    ofRouters: node.filter((key) => !(key in host) && key !== "name" && key !== "kind"),
  };
}

function flowKind(root: Schema, kind: string): FlowKind {
  const schema = schemaOf(root, "flow", kind) ?? {};
  const properties = schema.properties ?? {};
  const first = (schema.required ?? []).filter((key) => key !== "name" && key !== "kind");
  return {
    kind,
    about: schema.description ?? "",
    controlled: "cc" in properties,
    first: Object.fromEntries(first.map((key) => [key, example(properties[key], root)])),
  };
}

function example(schema: Schema | undefined, root: Schema): Value {
  const found = resolved(schema, root);
  if (found.items) return [example(found.items, root)];
  return (found.examples?.[0] ?? found.default ?? found.minimum ?? "") as Value;
}

/** The key that a short form of a setting gives. */
export function keyOfShort(kinds: Kinds, setting: string, value: unknown): string | undefined {
  return kinds.bareKinds[setting]?.includes(String(value)) ? "kind" : kinds.shortForms[setting];
}

/** The short and the long form of a schema, and those between them: bare names of kinds. */
function formsOf(schema: Schema, root: Schema): { short?: Schema; full?: Schema; between: Schema[] } {
  const forms = resolved(schema, root).anyOf ?? [];
  return forms.length < 2 ? { between: [] } : { short: forms[0], full: forms.at(-1), between: forms.slice(1, -1) };
}

/** The key of the long form whose value may stand for it. */
function shortForm(schema: Schema, root: Schema): string | undefined {
  const { short, full } = formsOf(schema, root);
  if (!short || !full) return undefined;
  const written = JSON.stringify(short);
  const variants = [full, ...(full.oneOf ?? [])];
  return variants.flatMap((variant) => Object.entries(variant.properties ?? {})).find(([, inner]) => JSON.stringify(inner) === written)?.[0];
}

/** Whether a short form is a quantity, and the long one has no kinds. */
function isAmount(schema: Schema, root: Schema): boolean {
  const { short, full } = formsOf(schema, root);
  return Boolean(short?.pattern && full?.properties);
}

function* objects(value: unknown): Generator<Schema> {
  if (value === null || typeof value !== "object") return;
  if (!Array.isArray(value)) yield value as Schema;
  for (const inner of Object.values(value)) yield* objects(inner);
}
