// Forms from the JSON Schema of a scenario: what can be set of a node, a link or a flow.

export interface Schema {
  $defs?: Record<string, Schema>;
  $ref?: string;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  patternProperties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  pattern?: string;
  examples?: unknown[];
  minimum?: number;
  default?: unknown;
  description?: string;
}

export interface Field {
  key: string;
  about: string;
  kind: "switch" | "choice" | "text" | "number" | "group" | "list";
  choices: string[];
  pattern?: string;
  example: string;
  /** The fields below it, of this kind where it has kinds; asked for when it is opened, since groups hold groups. */
  fields: (kind?: string) => Field[];
  required: boolean;
  initial?: string;
}

/** The schema at the end of its references. */
export function resolved(schema: Schema | undefined, root: Schema): Schema {
  let found = schema ?? {};
  for (let depth = 0; found.$ref && depth < 10; depth++) {
    const inner = root.$defs?.[found.$ref.replace("#/$defs/", "")] ?? {};
    const { description = inner.description, default: initial = inner.default } = found;
    found = { ...inner, description, default: initial };
  }
  return found;
}

/** The forms of a schema, its alternatives and theirs: each is of one form. */
function forms(schema: Schema, root: Schema): Schema[] {
  const found = resolved(schema, root);
  const options = found.anyOf ?? found.oneOf;
  return options ? options.flatMap((option) => forms(option, root)) : [found];
}

/** The words that a schema takes. */
export function words(schema: Schema, root: Schema): unknown[] {
  return forms(schema, root).flatMap((form) => form.enum ?? (form.const === undefined ? [] : [form.const]));
}

/** The descriptions of the words that a schema takes. */
export function described(schema: Schema, root: Schema): Record<string, string> {
  return Object.fromEntries(forms(schema, root).flatMap(({ const: word, description = "" }) => (typeof word === "string" ? [[word, description]] : [])));
}

/**
 * The object among the alternatives of a schema: the long form. Where there are several kinds of it, that of `kind`, the first
 * for a kind that is not known, and for undefined whatever one of them has.
 */
export function long(schema: Schema, root: Schema, kind?: string): Schema | undefined {
  const all = forms(schema, root).filter((form) => form.properties);
  const kinds = all.flatMap((form) => form.properties!.kind?.const ?? []);
  if (all.length < 2) return all[0];
  const chosen = kind === undefined ? undefined : (all.find((form) => form.properties!.kind?.const === kind) ?? all[0]!);
  const properties: Record<string, Schema> = Object.assign({}, ...(chosen ? [chosen] : all).map((form) => form.properties));
  return { ...chosen, properties: kinds.length ? { ...properties, kind: { description: properties.kind?.description, enum: kinds } } : properties };
}

/** The fields of an object, of this kind where it has kinds; `without` names keys that the drawing itself shows. */
export function fields(schema: Schema | undefined, root: Schema, without: string[] = [], kind?: string): Field[] {
  const object = schema && long(schema, root, kind);
  return Object.entries(object?.properties ?? {})
    .filter(([key]) => !without.includes(key))
    .map(([key, inner]) => field(key, inner, root, object?.required?.includes(key) ?? false));
}

/** The schema of a node, link or flow of this kind. */
export function schemaOf(root: Schema, what: "node" | "link" | "path" | "side" | "flow", kind = ""): Schema | undefined {
  const network = resolved(root.properties?.network, root);
  if (what === "node") return resolved(network.properties?.nodes, root).items;
  if (what === "link") return resolved(network.properties?.links, root).items;
  if (what === "path") return network.properties?.path;
  if (what === "side") return long(network.properties?.path ?? {}, root)?.properties?.left;
  const flow = resolved(resolved(root.properties?.flows, root).items, root);
  const variants = flow.oneOf ?? [];
  return joined(flow, variants.find((variant) => variant.properties?.kind?.const === kind) ?? variants[0] ?? {}, root);
}

/** Where a real host is, as text: its URL. */
export function placeField(root: Schema): Field {
  const { additionalProperties } = resolved(resolved(root.properties?.network, root).properties?.hosts_at, root);
  const [found] = fields({ properties: { hosts_at: additionalProperties as Schema } }, root);
  return { ...found!, kind: "text", example: "ssh://USER@HOST" };
}

/** The kinds of flow. */
export function flowKinds(root: Schema): string[] {
  const { oneOf } = resolved(resolved(root.properties?.flows, root).items, root);
  return (oneOf ?? []).map((variant) => String(variant.properties?.kind?.const));
}

/** Settings of every kind and those of this one, in one object. */
export function joined(common: Schema, variant: Schema, root: Schema): Schema {
  const own = resolved(variant, root);
  return {
    ...own,
    properties: { ...common.properties, ...variant.properties, ...own.properties },
    required: [...new Set([...(common.required ?? []), ...(variant.required ?? []), ...(own.required ?? [])])],
  };
}

/** The settings that people come to change, above the rest. */
export const FIRST: Record<string, string[]> = {
  node: ["kind", "initial_window", "window", "ecn"],
  link: ["rate", "delay", "rtt", "queue", "loss", "jitter"],
  flow: ["cc", "rate", "streams", "start", "duration", "bytes"],
};

/** Settings of a link that can change while it carries traffic: those of its `at`. */
export function changeable(root: Schema): Field[] {
  const at = resolved(long(schemaOf(root, "link") ?? {}, root)?.properties?.at, root);
  const [listed] = Object.values(at.patternProperties ?? {});
  const found = fields(listed ?? (typeof at.additionalProperties === "object" ? at.additionalProperties : undefined), root);
  const first = FIRST.link!.flatMap((key) => found.filter((one) => one.key === key));
  return [...first, ...found.filter((one) => !first.includes(one))];
}

function field(key: string, schema: Schema, root: Schema, required: boolean): Field {
  const found = resolved(schema, root);
  const options = forms(schema, root);
  const about = schema.description ?? found.description ?? "";
  // `on` and `off` may be written as YAML's booleans.
  const choices = words(schema, root).filter((word) => typeof word !== "boolean").map(String);
  const object = options.some((option) => option.properties);
  const texts = options.filter((option) => !option.properties);
  const pattern = options.find((option) => option.pattern)?.pattern;
  const examples = options.flatMap((option) => option.examples ?? []);
  const made: Field = {
    key,
    about,
    kind: "text",
    choices: [],
    pattern: texts.every(patternOf) ? texts.map(patternOf).join("|") || undefined : undefined,
    example: examples.length ? String(examples[0]) : "",
    fields: (kind = "") => fields(schema, root, [], kind),
    required,
    initial: found.default === undefined || typeof found.default === "object" ? undefined : String(found.default),
  };
  if (object) {
    made.kind = "group";
  } else if (choices.length && !pattern) {
    made.kind = choices.includes("on") && choices.includes("off") ? "switch" : "choice";
    made.choices = choices;
  } else if (options.some((option) => option.type === "array")) {
    made.kind = "list";
  } else if (options.every((option) => option.type === "integer" || option.type === "number")) {
    made.kind = "number";
  } else if (options.some((option) => option.type === "object")) {
    made.kind = "list";
  }
  return made;
}

/** The pattern of a form's texts, where the schema has one: that of a quantity, or of its words. */
function patternOf({ pattern, enum: listed, const: word }: Schema): string | undefined {
  const all = listed ?? (word === undefined ? undefined : [word]);
  return pattern ?? all?.map((one) => `^${String(one).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$`).join("|");
}

/** Whether a text fits a field, as far as the schema knows; a mapping in braces is for the check to judge. */
export function fits(given: Field, value: string): boolean {
  if (value === "") return !given.required;
  if (given.kind === "group" && value.trimStart().startsWith("{")) return true;
  if (given.kind === "number") return Number.isFinite(Number(value));
  if (!given.pattern) return true;
  try {
    return new RegExp(given.pattern, "u").test(value);
  } catch {
    return true;
  }
}
