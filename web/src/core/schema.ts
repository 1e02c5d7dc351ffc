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
  /** The fields below it; asked for when it is opened, since groups hold groups. */
  fields: () => Field[];
  required: boolean;
  initial?: string;
}

/** The schema at the end of its references. */
export function resolved(schema: Schema | undefined, root: Schema): Schema {
  let found = schema ?? {};
  for (let depth = 0; found.$ref && depth < 10; depth++) {
    const inner = root.$defs?.[found.$ref.replace("#/$defs/", "")] ?? {};
    found = { ...inner, ...(found.description ? { description: found.description } : {}) };
  }
  return found;
}

/** The object among the alternatives of a schema: the long form. */
export function long(schema: Schema, root: Schema): Schema | undefined {
  const found = resolved(schema, root);
  if (found.properties) return found;
  return (found.anyOf ?? found.oneOf ?? []).map((option) => resolved(option, root)).find((option) => option.properties);
}

/** The fields of an object; `without` names keys that the drawing itself shows. */
export function fields(schema: Schema | undefined, root: Schema, without: string[] = []): Field[] {
  const object = schema && long(schema, root);
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
  const flows = resolved(resolved(root.properties?.flows, root).items, root);
  const options = (flows.oneOf ?? flows.anyOf ?? [flows]).map((option) => resolved(option, root));
  return options.find((option) => option.properties?.kind?.const === kind) ?? options[0];
}

/** What can be changed of a link while it carries traffic: the settings of its `at`. */
export function changeable(root: Schema): Field[] {
  const at = resolved(long(schemaOf(root, "link") ?? {}, root)?.properties?.at, root);
  const [listed] = Object.values(at.patternProperties ?? {});
  return fields(listed ?? (typeof at.additionalProperties === "object" ? at.additionalProperties : undefined), root);
}

function field(key: string, schema: Schema, root: Schema, required: boolean): Field {
  const found = resolved(schema, root);
  const options = (found.anyOf ?? found.oneOf ?? [found]).map((option) => resolved(option, root));
  const about = schema.description ?? found.description ?? "";
  const words = options.flatMap((option) => option.enum ?? (option.const === undefined ? [] : [option.const]));
  const object = options.find((option) => option.properties);
  const pattern = options.find((option) => option.pattern)?.pattern;
  const examples = options.flatMap((option) => option.examples ?? []);
  const made: Field = {
    key,
    about,
    kind: "text",
    choices: [],
    pattern: options.length === 1 || (options.length === 2 && object) ? pattern : undefined,
    example: examples.length ? String(examples[0]) : "",
    fields: () => fields(schema, root),
    required,
    initial: found.default === undefined || typeof found.default === "object" ? undefined : String(found.default),
  };
  if (words.includes("on") && words.includes("off") && words.length <= 4) {
    made.kind = "switch";
    made.choices = ["on", "off"];
  } else if (words.length && !pattern) {
    made.kind = "choice";
    made.choices = words.map(String);
  } else if (object) {
    made.kind = "group";
  } else if (options.some((option) => option.type === "array")) {
    made.kind = "list";
  } else if (options.every((option) => option.type === "integer" || option.type === "number")) {
    made.kind = "number";
  } else if (options.some((option) => option.type === "object")) {
    made.kind = "list";
  }
  return made;
}

/** Whether a text fits a field, as far as the schema can tell. */
export function fits(given: Field, value: string): boolean {
  if (value === "") return !given.required;
  if (given.kind === "number") return Number.isFinite(Number(value));
  if (!given.pattern) return true;
  try {
    return new RegExp(given.pattern, "u").test(value);
  } catch {
    return true;
  }
}
