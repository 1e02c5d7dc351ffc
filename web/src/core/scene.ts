// A drawing with its nodes in their places: which lines run where.

import { type Bow, flowBow, linkBow, middleOf, NODE_HEIGHT, NODE_WIDTH, type Point } from "./geometry";
import { flowSayings, type Labelled, linkSayings } from "./labels";
import type { Named } from "./names";
import type { Drawing } from "./network";
import type { Places } from "./places";

export interface Scene {
  nodes: Named[];
  links: Map<string, Bow>;
  flows: Map<string, Bow>;
}

/** The middle of a node at this place. */
export const centre = ({ x, y }: Point): Point => ({ x: x + NODE_WIDTH / 2, y: y + NODE_HEIGHT / 2 });

/** Which of the links of its two nodes each link is, and of how many; negative where it goes the other way. */
export function twins(drawing: Drawing): Map<string, { twin: number; twins: number }> {
  const pair = (ends: [string, string]) => [...ends].sort().join("\n");
  const together = new Map<string, string[]>();
  for (const { name, ends } of drawing.links) together.set(pair(ends), [...(together.get(pair(ends)) ?? []), name]);
  return new Map(
    drawing.links.map(({ name, ends }) => {
      const all = together.get(pair(ends))!;
      const place = all.indexOf(name);
      return [name, { twin: ends[0] <= ends[1] ? place : all.length - 1 - place, twins: all.length }];
    }),
  );
}

/** Which of the flows of its two hosts each flow is, and of how many. */
export function ranks(drawing: Drawing): Map<string, { rank: number; ranks: number }> {
  const together = new Map<string, string[]>();
  for (const { name, from, to } of drawing.flows) {
    const pair = [from, to].sort().join("\n");
    const all = together.get(pair) ?? [];
    together.set(pair, all);
    all.push(name);
  }
  return new Map([...together.values()].flatMap((all) => all.map((name, rank) => [name, { rank, ranks: all.length }] as const)));
}

/** The middle of all nodes, which arcs of flows keep away from. */
export function middle(drawing: Drawing, places: Places): Point {
  const points = drawing.nodes.flatMap(({ name }) => (places[name] ? [centre(places[name]!)] : []));
  return points.length ? middleOf(points) : { x: 0, y: 0 };
}

export function scene(drawing: Drawing, places: Places, around = middle(drawing, places)): Scene {
  const at = (name: string) => (places[name] ? centre(places[name]!) : undefined);
  const [which, placed] = [twins(drawing), ranks(drawing)];
  const links = new Map<string, Bow>();
  for (const { name, ends } of drawing.links) {
    const [a, b] = [at(ends[0]), at(ends[1])];
    const { twin, twins } = which.get(name)!;
    if (a && b) links.set(name, linkBow(a, b, twin, twins));
  }
  const flows = new Map<string, Bow>();
  for (const { name, from, to } of drawing.flows) {
    const [a, b] = [at(from), at(to)];
    const { rank, ranks } = placed.get(name)!;
    if (a && b && from !== to) flows.set(name, flowBow(a, b, rank, ranks, around));
  }
  const nodes = drawing.nodes.flatMap(({ name }) => {
    const found = at(name);
    return found ? [{ name, ...found, width: NODE_WIDTH, height: NODE_HEIGHT }] : [];
  });
  return { nodes, links, flows };
}

/** The labels of a scene's lines; `first` are the ids of those that find their place before all others. */
export function labelled(drawing: Drawing, { links, flows }: Scene, first: (id: string) => boolean): Labelled[] {
  const found: Labelled[] = [];
  for (const flow of drawing.flows) {
    const [id, bow] = [`flow ${flow.name}`, flows.get(flow.name)];
    if (bow) found.push({ id, bow, sayings: flowSayings(flow), rank: first(id) ? 9 : 1 });
  }
  for (const link of drawing.links) {
    const [id, bow] = [`link ${link.name}`, links.get(link.name)];
    // The special settings of a link are read first: impairments, changes, a queue of its own.
    const rank = first(id) ? 9 : link.impairments.length || link.changes ? 4 : link.label.split(" · ").length > 2 ? 3 : 2;
    const alike = rank === 2 || rank === 3 ? link.label : undefined;
    if (bow) found.push({ id, bow, sayings: linkSayings(link), rank, alike });
  }
  return found;
}
