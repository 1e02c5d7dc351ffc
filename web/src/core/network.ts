// The drawing of a scenario's text: nodes, links and flows, as far as the text says so already.

import { type Kinds, NO_KINDS } from "./kinds";
import { shown } from "./quantity";
import type { Path } from "./text";

export interface DrawnNode {
  name: string;
  kind: string;
  /** Where its settings are in the scenario; undefined: they are nowhere yet. */
  path: Path;
}

export interface DrawnLink {
  name: string;
  ends: [string, string];
  path: Path;
  /** Rate, delay and so on in short, for the drawing. */
  label: string;
  /** Impairments, such as `1 % loss`. */
  impairments: string[];
  changes: number;
}

export interface DrawnFlow {
  name: string;
  kind: string;
  from: string;
  to: string;
  control: string;
  path: Path;
  label: string;
}

export interface Drawing {
  nodes: DrawnNode[];
  links: DrawnLink[];
  flows: DrawnFlow[];
  /** Whether the network is the short form `path`. */
  short: boolean;
  /** Whether nodes and links are made from `topology`: the text does not name them. */
  generated?: boolean;
}

type Mapping = Record<string, unknown>;

export function draw(data: unknown, kinds: Kinds = NO_KINDS): Drawing {
  const network = mapping(mapping(data).network);
  const drawing: Drawing = { nodes: [], links: [], flows: [], short: false };
  if (network.topology !== undefined) drawing.generated = true;
  if (network.path !== undefined) drawPath(network, drawing, list(mapping(data).flows), kinds);
  const usual = usualNode(kinds);
  list(network.nodes).forEach((node, index) => {
    const name = typeof node === "string" ? node : mapping(node).name;
    if (typeof name !== "string" || drawing.nodes.some((other) => other.name === name)) return;
    const kind = mapping(node).kind;
    drawing.nodes.push({
      name,
      kind: typeof kind === "string" ? kind : usual,
      path: ["network", "nodes", index],
    });
  });
  list(network.links).forEach((link, index) => {
    const { ends, name } = mapping(link);
    if (!Array.isArray(ends) || ends.length !== 2 || !ends.every((end) => typeof end === "string")) return;
    const [a, b] = ends as [string, string];
    if (![a, b].every((end) => drawing.nodes.some((node) => node.name === end))) return;
    const base = typeof name === "string" ? name : `${a}-${b}`;
    drawing.links.push({
      name: base,
      ends: [a, b],
      path: ["network", "links", index],
      ...described(mapping(link), kinds),
    });
  });
  list(mapping(data).flows).forEach((flow, index) => {
    const drawn = drawFlow(mapping(flow), index, kinds, drawing.short ? mapping(network.path) : undefined);
    if (drawn) drawing.flows.push(drawn);
  });
  return drawing;
}

/** The kind of a node that names none. */
const usualNode = ({ nodes }: Kinds) => nodes.find((one) => one.usual)?.name ?? "";

/** A drawing whose network is made from `topology`, with the nodes and links that its plan has. */
export function drawPlan(drawing: Drawing, plan: unknown): Drawing {
  const path: Path = ["network", "topology"];
  const nodes = list(mapping(plan).nodes).map((node) => {
    const { name, kind } = mapping(node);
    return { name: String(name), kind: String(kind), path };
  });
  const links = list(mapping(plan).links).map((link) => {
    const { name, ends, forward } = mapping(link);
    const { rate, delay } = mapping(forward);
    const said = [typeof rate === "number" ? shown(rate, "bit/s") : "", typeof delay === "number" && delay > 0 ? shown(delay / 1e9, "s") : ""];
    const label = said.filter(Boolean).join(" · ");
    return { name: String(name), ends: ends as [string, string], path, label, impairments: [], changes: 0 };
  });
  return { ...drawing, nodes, links };
}

function drawPath(network: Mapping, drawing: Drawing, flows: unknown[], kinds: Kinds): void {
  const path = mapping(network.path);
  drawing.short = true;
  const each = path.per_flow === true || path.per_flow === "on";
  const names = each
    ? flows.map((flow) => mapping(flow).name).filter((name): name is string => typeof name === "string")
    : [""];
  for (const name of names) {
    const tail = name && `-${name}`;
    for (const side of ["left", "right"] as const) {
      drawing.nodes.push({ name: side + tail, kind: usualNode(kinds), path: ["network", "path", side] });
    }
    drawing.links.push({
      name: `path${tail}`,
      ends: [`left${tail}`, `right${tail}`],
      path: ["network", "path"],
      ...described(path, kinds),
    });
  }
}

/** Sender and receiver of a flow on a path, where it names at most one. */
export function endsOnPath(from: unknown, to: unknown): [string, string] {
  return [String(from ?? (to === "left" ? "right" : "left")), String(to ?? (from === "right" ? "left" : "right"))];
}

function drawFlow(flow: Mapping, index: number, kinds: Kinds, path?: Mapping): DrawnFlow | undefined {
  const { name, kind } = flow;
  if (typeof name !== "string" || typeof kind !== "string") return undefined;
  const tail = path && (path.per_flow === true || path.per_flow === "on") ? `-${name}` : "";
  const ends = path ? endsOnPath(flow.from, flow.to).map((end) => (end === "left" || end === "right" ? end + tail : end)) : [flow.from, flow.to];
  const [from, to] = ends.map((end) => (typeof end === "string" ? end : "")) as [string, string];
  const cc = typeof flow.cc === "string" ? flow.cc : String(mapping(flow.cc).name ?? "cubic");
  const controlled = kinds.flows.find((one) => one.kind === kind)?.controlled ?? true;
  const control = controlled ? (cc.split("/").pop() ?? cc) : "";
  const streams = Number(flow.streams ?? flow.clients ?? flow.connections ?? 1);
  const label = [
    name,
    controlled ? control : kind,
    flow.rate ? String(flow.rate) : "",
    streams > 1 ? `× ${streams}` : "",
  ];
  return {
    name,
    kind,
    from,
    to,
    control,
    path: ["flows", index],
    label: label.filter(Boolean).join(" · "),
  };
}

function described(link: Mapping, kinds: Kinds): Pick<DrawnLink, "label" | "impairments" | "changes"> {
  const forward = mapping(link.forward);
  const rate = link.rate ?? forward.rate;
  const delay = link.delay ?? forward.delay;
  const parts = [
    link.trace !== undefined ? "trace" : short(rate),
    link.rtt !== undefined ? `RTT ${short(link.rtt)}` : short(delay),
  ];
  const queue = link.queue ?? forward.queue;
  if (queue !== undefined) {
    const kind = mapping(queue).kind;
    const limit = short(typeof queue === "object" ? mapping(queue).limit : queue);
    parts.push([typeof kind === "string" ? kind : "queue", limit].filter(Boolean).join(" "));
  }
  const impairments: string[] = [];
  for (const key of kinds.impairments) {
    for (const way of [link, forward, mapping(link.reverse ?? link.backward)]) {
      const value = way[key];
      if (value === undefined || value === null) continue;
      const amount = typeof value === "object" ? mapping(value)[kinds.shortForms[key]!] : value;
      const said = amount === undefined ? key : `${short(amount)} ${key}`;
      if (!impairments.includes(said)) impairments.push(said);
    }
  }
  if (link.up === false || link.up === "off") impairments.push("down");
  const changes = [link, forward, mapping(link.reverse ?? link.backward)]
    .map((way) => Object.keys(mapping(way.at)).length)
    .reduce((sum, count) => sum + count, 0);
  return { label: parts.filter(Boolean).join(" · "), impairments, changes };
}

const short = (value: unknown) => (value === undefined || value === null ? "" : String(value));

export function mapping(value: unknown): Mapping {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Mapping) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
