// Changes of a scenario as someone who draws makes them, each one a new text.

import { type FlowKind, keyOfShort, NO_KINDS, type NodeKind } from "./kinds";
import { type Drawing, draw, endsOnPath, list, mapping } from "./network";
import { base, half } from "./quantity";
import { append, deleteIn, type Path, read, setIn, type Value } from "./text";

/** Set a setting; a short form on the way is written out. An empty value removes it. */
export function change(text: string, path: Path, value: Value | undefined, kinds = NO_KINDS): string {
  if (value === undefined || value === "") return deleteIn(text, path);
  let made = text;
  for (let depth = 1; depth < path.length; depth++) {
    const above = path.slice(0, depth);
    const there = at(read(made).data, above);
    if (there === null || there === undefined || typeof there === "object") continue;
    const step = path[depth - 1];
    const key = typeof step === "number" ? "name" : keyOfShort(kinds, String(step), there);
    if (key === undefined) return text;
    made = setIn(made, above, { [key]: there as Value });
  }
  return setIn(made, path, value);
}

/** A free name such as h3. */
export function freeName(taken: Iterable<string>, stem: string): string {
  const used = new Set(taken);
  for (let number = 1; ; number++) if (!used.has(`${stem}${number}`)) return `${stem}${number}`;
}

export function addNode(text: string, kind: NodeKind): { text: string; name: string } {
  const general = toGeneral(ensured(text));
  const drawing = draw(read(general).data);
  const name = freeName(drawing.nodes.map((node) => node.name), kind.name[0]!);
  const node: Value = kind.usual ? { name } : { name, kind: kind.name };
  return { text: append(general, ["network", "nodes"], node), name };
}

export function addLink(text: string, a: string, b: string): string {
  if (a === b) return text;
  const general = toGeneral(text);
  const taken = draw(read(general).data).links;
  const twin = taken.some((link) => link.ends.includes(a) && link.ends.includes(b));
  const name = twin ? { name: freeName(taken.map((link) => link.name), `${a}-${b}-`) } : {};
  return append(general, ["network", "links"], { ...name, ends: [a, b], rate: "100 Mbit/s", delay: "5 ms" });
}

export function addFlow(text: string, from: string, to: string, kind: FlowKind): { text: string; name: string } {
  const { data } = read(text);
  const drawing = draw(data);
  const name = freeName(drawing.flows.map((flow) => flow.name), "flow");
  const usual = drawing.short && from === "left" && to === "right";
  const ends = usual ? {} : { from, to };
  const control: Record<string, Value> = kind.controlled ? { cc: "cubic" } : {};
  return { text: append(text, ["flows"], { name, kind: kind.kind, ...ends, ...control, ...kind.first }), name };
}

/** Make a flow one of another kind: what that does not have goes, what it must have comes. */
export function changeKind(text: string, path: Path, { kind, first }: FlowKind, has: (key: string) => boolean): string {
  const before = mapping(at(read(text).data, path));
  let made = setIn(text, [...path, "kind"], kind);
  for (const key of Object.keys(before)) if (key !== "kind" && !has(key)) made = deleteIn(made, [...path, key]);
  for (const [key, value] of Object.entries(first)) if (before[key] === undefined || !has(key)) made = setIn(made, [...path, key], value);
  return made;
}

/** Remove a node with its links and the flows that begin or end there. */
export function removeNode(text: string, name: string): string {
  let made = toGeneral(text);
  const gone = (key: "flows" | "links") => {
    const items = key === "flows" ? list(mapping(read(made).data).flows) : networkList(made, "links");
    for (let index = items.length - 1; index >= 0; index--) {
      const item = mapping(items[index]);
      const touches = key === "flows" ? item.from === name || item.to === name : list(item.ends).includes(name);
      if (touches) made = deleteIn(made, key === "flows" ? ["flows", index] : ["network", "links", index]);
    }
  };
  gone("flows");
  gone("links");
  made = deleteIn(made, ["network", "hosts_at", name]);
  const index = networkList(made, "nodes").findIndex((node) => nameOf(node) === name);
  return index < 0 ? made : deleteIn(made, ["network", "nodes", index]);
}

/** Rename a node, and everything that names it. */
export function renameNode(text: string, from: string, to: string): string {
  let made = toGeneral(text);
  networkList(made, "nodes").forEach((node, index) => {
    if (nameOf(node) !== from) return;
    made = setIn(made, typeof node === "string" ? ["network", "nodes", index] : ["network", "nodes", index, "name"], to);
  });
  // Links without a name are called by their ends.
  const links = new Map<string, string>();
  networkList(made, "links").forEach((link, index) => {
    const ends = list(mapping(link).ends);
    const now = ends.map((end) => (end === from ? to : end));
    if (mapping(link).name === undefined) links.set(ends.join("-"), now.join("-"));
    ends.forEach((end, side) => {
      if (end === from) made = setIn(made, ["network", "links", index, "ends", side], to);
    });
  });
  networkList(made, "nodes").forEach((node, index) => {
    for (const path of namedBy(node, from)) made = setIn(made, ["network", "nodes", index, ...path], to);
    for (const [path, link] of linksOf(node)) {
      const now = links.get(link);
      if (now !== undefined && now !== link) made = setIn(made, ["network", "nodes", index, ...path], now);
    }
  });
  const { hosts_at: places } = mapping(mapping(read(made).data).network);
  const place = mapping(places)[from];
  if (place !== undefined) made = deleteIn(setIn(made, ["network", "hosts_at", to], place as Value), ["network", "hosts_at", from]);
  list(mapping(read(made).data).flows).forEach((flow, index) => {
    for (const end of ["from", "to"]) if (mapping(flow)[end] === from) made = setIn(made, ["flows", index, end], to);
  });
  const captured = list(mapping(mapping(read(made).data).capture).nodes);
  captured.forEach((node, index) => {
    if (node === from) made = setIn(made, ["capture", "nodes", index], to);
  });
  return made;
}

/** The settings of a node that name another: whose connections it splits, its BGP neighbours, its static routes. */
function namedBy(node: unknown, name: string): Path[] {
  const { accelerate, routing } = mapping(node);
  const among = (names: unknown, path: Path) => list(names).flatMap((one, index) => (one === name ? [[...path, index]] : []));
  const routes = list(mapping(routing).static).flatMap((route, index) =>
    ["to", "via"].flatMap((key) => (mapping(route)[key] === name ? [["routing", "static", index, key]] : [])),
  );
  return [...among(mapping(accelerate).hosts, ["accelerate", "hosts"]), ...among(mapping(mapping(routing).bgp).neighbours, ["routing", "bgp", "neighbours"]), ...routes];
}

/** The settings of a node that name links. */
function linksOf(node: unknown): [Path, string][] {
  const { routing } = mapping(node);
  return ["ospf", "ospf6"].flatMap((protocol) =>
    list(mapping(mapping(routing)[protocol]).interfaces).flatMap((one, index): [Path, string][] => {
      const { link } = mapping(one);
      return typeof link === "string" ? [[["routing", protocol, "interfaces", index, "link"], link]] : [];
    }),
  );
}

export function removeAt(text: string, path: Path): string {
  return deleteIn(text, path);
}

/** Copies of nodes of a text, with the links and flows between them, in the same text or another. */
export function paste(text: string, names: string[], from = text): { text: string; names: Map<string, string> } {
  let made = toGeneral(ensured(text));
  const copies = new Map<string, string>();
  const source = toGeneral(from);
  const data = mapping(read(source).data);
  const nodes = networkList(source, "nodes");
  const taken = new Set(networkList(made, "nodes").map(nameOf));
  for (const node of nodes) {
    const name = nameOf(node);
    if (!name || !names.includes(name)) continue;
    const copy = taken.has(name) ? freeName(taken as Set<string>, name.replace(/\d+$/, "")) : name;
    taken.add(copy);
    copies.set(name, copy);
    made = append(made, ["network", "nodes"], { ...(mapping(node) as Record<string, Value>), name: copy });
  }
  for (const link of list(mapping(data.network).links)) {
    const { name: _, ...rest } = mapping(link) as Record<string, Value>;
    const ends = list(rest.ends).map((end) => copies.get(String(end)));
    if (ends.length === 2 && ends[0] && ends[1]) {
      made = append(made, ["network", "links"], { ...rest, ends: ends as string[] });
    }
  }
  const flows = new Set(list(mapping(read(made).data).flows).map((flow) => String(mapping(flow).name)));
  for (const flow of list(data.flows)) {
    const settings = mapping(flow) as Record<string, Value>;
    const [from, to] = [copies.get(String(settings.from)), copies.get(String(settings.to))];
    if (!from || !to) continue;
    const old = String(settings.name);
    const name = flows.has(old) ? freeName(flows, old.replace(/\d+$/, "")) : old;
    flows.add(name);
    made = append(made, ["flows"], { ...settings, name, from, to });
  }
  return { text: made, names: copies };
}

// Settings of a path that hold for both directions.
const BOTH_WAYS = ["rate", "overhead", "delay", "up"];
const ETHERNET_HEADER = 14;
// Of the link between a host and the gateway beside it.
const ACCESS_DELAY = "50 us";

/** The forward queue of a path that names none: 1 BDP, at least 10 full packets. */
function usualQueue(rate: unknown, rtt: unknown, mtu: unknown): string {
  const least = 10 * ((base(mtu) ?? 1500) + ETHERNET_HEADER);
  return (base(rate) ?? Infinity) * (base(rtt) ?? Infinity) < 8 * least ? `${least} B` : "1 BDP";
}

/** Changes in time of a path, for a direction that has these settings; half the RTT is its delay. */
function changed(changes: unknown, has: (key: string) => boolean = () => true): Record<string, Value> {
  const times = Object.entries(mapping(changes)).map(([time, inner]) => {
    const { rtt, ...more } = mapping(inner) as Record<string, Value>;
    const delay = half(rtt);
    const all = Object.entries({ ...more, ...(delay === undefined ? {} : { delay }) });
    return [time, Object.fromEntries(all.filter(([key]) => has(key)))] as const;
  });
  return Object.fromEntries(times.filter(([, inner]) => Object.keys(inner).length));
}

/** Changes in time, and others that go before them at the same time. */
function overlaid(changes: Record<string, Value>, first: Record<string, unknown>): Record<string, Value> {
  const made = { ...changes };
  for (const [time, inner] of Object.entries(first)) {
    const same = Object.keys(made).find((other) => base(other) === base(time)) ?? time;
    made[same] = { ...mapping(made[same]), ...mapping(inner) } as Value;
  }
  return made;
}

/** The network written as nodes and links where it is the short form `path`; both mean the same. */
export function toGeneral(text: string): string {
  const { data, broken } = read(text);
  const network = mapping(mapping(data).network);
  if (broken || network.path === undefined) return text;
  const { rtt, queue, left, right, reverse, per_flow, at: changes, mtu, accelerate, cache, ...rest } = mapping(network.path) as Record<string, Value>;
  if (per_flow === true || per_flow === "on") return text;
  const own = mapping(reverse) as Record<string, Value>;
  // Rate, overhead, delay and being up hold for the way back too; the rest of a path goes forward.
  const both: Record<string, Value> = {};
  const forward: Record<string, Value> = {};
  for (const [key, value] of Object.entries(rest)) (BOTH_WAYS.includes(key) ? both : forward)[key] = value;
  // Where the rate is unlimited, so is the queue.
  if (queue !== undefined || both.rate !== "unlimited") forward.queue = queue ?? usualQueue(both.rate, rtt, mtu);
  const back: Record<string, Value> = { queue: "10000 packets", ...own };
  const [forth, returning] = [changed(changes), changed(changes, (key) => BOTH_WAYS.includes(key) && own[key] === undefined)];
  if (Object.keys(forth).length) forward.at = forth;
  if (Object.keys(returning).length) back.at = overlaid(returning, mapping(own.at));
  const rate: Record<string, Value> = both.rate === undefined ? {} : { rate: both.rate };
  const sized: Record<string, Value> = mtu === undefined ? {} : { mtu };
  const gateway: Record<string, Value> = { ...(accelerate === undefined ? {} : { accelerate }), ...(cache === undefined ? {} : { cache }) };
  const gated = Object.keys(gateway).length > 0;
  const link: Record<string, Value> = {
    name: "path",
    ends: [gated ? "gateway" : "left", "right"],
    ...rate,
    delay: half(rtt) ?? "0 ms",
    ...both,
    ...sized,
    forward,
    reverse: back,
  };
  const node = (name: string, settings: Value | undefined) => ({ name, ...(mapping(settings) as Record<string, Value>) });
  // New keys first, so that the mapping is never empty, and its comments stay where they are.
  let made = append(text, ["network", "nodes"], node("left", left));
  made = append(made, ["network", "nodes"], node("right", right));
  if (gated) made = append(made, ["network", "nodes"], { name: "gateway", kind: "router", ...gateway });
  if (gated) made = append(made, ["network", "links"], { name: "access", ends: ["left", "gateway"], delay: ACCESS_DELAY, ...sized });
  made = append(made, ["network", "links"], link);
  made = deleteIn(made, ["network", "path"]);
  list(mapping(data).flows).forEach((flow, index) => {
    const { from, to } = mapping(flow);
    const [sender, receiver] = endsOnPath(from, to);
    if (from === undefined) made = setIn(made, ["flows", index, "from"], sender);
    if (to === undefined) made = setIn(made, ["flows", index, "to"], receiver);
  });
  return made;
}

/** The value at a path of plain data. */
export function at(data: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (inner, step) =>
      inner !== null && typeof inner === "object" ? (inner as Record<string | number, unknown>)[step] : undefined,
    data,
  );
}

// A text with the keys that every scenario has.
function ensured(text: string): string {
  const { data } = read(text);
  const there = mapping(data);
  let made = text;
  if (there.tcplab === undefined) made = setIn(made, ["tcplab"], 1);
  if (there.name === undefined) made = setIn(made, ["name"], "untitled");
  return made;
}

const networkList = (text: string, key: "nodes" | "links") =>
  list(mapping(mapping(read(text).data).network)[key]);

const nameOf = (node: unknown) => (typeof node === "string" ? node : (mapping(node).name as string | undefined));

export type { Drawing };
