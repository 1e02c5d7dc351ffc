// Where links and flows say what they are: beside their line, over no node and over no other label.

import { along, type Bow, type Box, contains, heading, inside, overlaps, type Point } from "./geometry";
import type { DrawnFlow, DrawnLink } from "./network";

export interface Word {
  text: string;
  tone?: "bad" | "change" | "alike";
}

export type Lines = Word[][];

export interface Labelled {
  id: string;
  bow: Bow;
  /** From the most that it may say to the least. */
  sayings: Lines[];
  /** Those of a higher rank find their place first. */
  rank: number;
  /** Links of which this is the same are alike: where they are many, one says it for all. */
  alike?: string;
}

export interface Label extends Box {
  lines: Lines;
  /** There is no room for it: it is shown when its line is pointed at or selected. */
  crowded: boolean;
  /** Another link says it for all that are alike: it is shown when its line is pointed at. */
  implied?: boolean;
}

export const LINE_HEIGHT = 15;
const PAD = 12;
const GAP = 3;
// Around the drawing, at scale 1.
const MARGIN = 14;
// Shares of the way at which a label may stand, the best first.
const PLACES = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74];
const SAMPLES = 16;
// Characters of a name in one line on a phone.
const MAX_NAME = 24;
// Above so many lines, labels are not kept off the lines of others: it would take longer than a frame.
const MAX_LINES = 80;
// So many links that are alike have a label each, however small they are drawn.
const FEW_ALIKE = 8;
// A label that many links share may stand this far from one of them, at scale 1.
const AWAY = [0, 15, 30, 45, 60, 90];

/** The label of a link: in two lines, each thing in a line of its own, or its rate alone; impairments always. */
export function linkSayings({ label, impairments, changes }: DrawnLink): Lines[] {
  const parts = label.split(" · ").filter(Boolean);
  const more: Word[] = impairments.map((text) => ({ text, tone: "bad" }));
  if (changes) more.push({ text: changes === 1 ? "changes once" : `changes ${changes} times`, tone: "change" });
  const rest = more.length ? [more] : [];
  const word = (text: string): Word[] => [{ text }];
  const full = [...(parts.length ? [word(parts.slice(0, 2).join(" · "))] : []), ...(parts.length > 2 ? [word(parts.slice(2).join(" · "))] : []), ...rest];
  const stacked = [...parts.map(word), ...more.map((one) => [one])];
  const least = [...(parts.length ? [word(parts[0]!)] : []), ...rest];
  return [full, stacked, least].filter((lines) => lines.length);
}

/** The label of a flow: in one line, its name in a line of its own, or the name alone, in lines of a phone's width. */
export function flowSayings({ label, name }: DrawnFlow): Lines[] {
  const stacked = (...lines: string[]): Lines => lines.map((text) => [{ text }]);
  const rest = label.slice(name.length).replace(/^ · /, "");
  return [...(rest ? [stacked(label), stacked(name, rest)] : []), stacked(name), ...(name.length > MAX_NAME ? [stacked(...folded(name))] : [])];
}

/** A name in lines, broken after its hyphens where it has any. */
function folded(name: string): string[] {
  if (name.length <= MAX_NAME) return [name];
  const first = name.slice(0, MAX_NAME);
  const end = Math.max(first.lastIndexOf("-"), first.lastIndexOf("_")) + 1 || MAX_NAME;
  return [name.slice(0, end), ...folded(name.slice(end))];
}

/**
 * A place for every label. `scale` is how much larger than the drawing labels are, so that they can be read when
 * much of it is seen; `width` measures a text at scale 1; `aspect` is the width over the height of where it is seen.
 */
export function place(lines: Labelled[], nodes: Box[], scale: number, width: (text: string) => number, aspect: number): Map<string, Label> {
  const found = new Map<string, Label>();
  const taken: Box[] = [];
  const { x, y, width: wide, height: high } = spanned(nodes, lines.map(({ bow }) => bow), 1.5 * LINE_HEIGHT);
  // The part that is seen when the whole drawing is shown.
  const [across, down] = [wide + 2 * MARGIN * scale, high + 2 * MARGIN * scale];
  const frame = { x: x + wide / 2, y: y + high / 2, width: Math.max(across, down * aspect), height: Math.max(down, across / aspect) };
  const paths = lines.length > MAX_LINES ? [] : lines.map(({ id, bow }) => ({ id, points: samples(bow) }));
  const groups = new Map<string, Labelled[]>();
  for (const line of lines) if (line.alike && scale > 1) groups.set(line.alike, [...(groups.get(line.alike) ?? []), line]);
  const put = ({ id, bow }: Labelled, sayings: Lines[], away = 0): boolean => {
    for (const saying of sayings) {
      const chosen = best(bow, sized(saying, scale, width), nodes, taken, frame, paths.filter((path) => path.id !== id), away);
      if (!chosen) continue;
      taken.push(chosen);
      found.set(id, chosen);
      return true;
    }
    return false;
  };
  const hide = ({ id, bow, sayings }: Labelled, implied?: boolean) => found.set(id, { ...sized(sayings[0]!, scale, width), ...along(bow, 0.5), crowded: true, implied });
  // The order of the lines decides among equals, so that labels stay where they are when another is added.
  for (const line of [...lines].sort((one, other) => other.rank - one.rank)) {
    if (!line.sayings.length || found.has(line.id)) continue;
    const group = groups.get(line.alike ?? "") ?? [];
    if (group.length > FEW_ALIKE) {
      const forAll = line.sayings.map((saying): Lines => [...saying, [{ text: `${group.length} links alike`, tone: "alike" }]]);
      const said = AWAY.some((away) => group.some((one) => put(one, forAll, away * scale)));
      group.forEach((one) => found.has(one.id) || hide(one, said || one !== line));
    } else if (!put(line, line.sayings)) hide(line);
  }
  return found;
}

type Size = Omit<Label, "x" | "y">;

function sized(lines: Lines, scale: number, width: (text: string) => number): Size {
  const widest = Math.max(...lines.map((words) => words.reduce((sum, { text }) => sum + width(text) + 6, -6)));
  return { lines, crowded: false, width: (widest + PAD) * scale, height: (lines.length * LINE_HEIGHT + 2) * scale };
}

// The first place with room for it that is on no other line; else the one that is on the fewest.
function best(bow: Bow, size: Size, nodes: Box[], taken: Box[], frame: Box, paths: { points: Point[] }[], away: number): Label | undefined {
  let found: Label | undefined;
  let least = Infinity;
  for (const share of PLACES) {
    for (const at of beside(bow, share, size, away)) {
      const box = { ...size, ...at };
      if (!contains(frame, box)) continue;
      if (nodes.some((node) => overlaps(box, node, GAP)) || taken.some((other) => overlaps(box, other, GAP))) continue;
      const crossed = paths.filter(({ points }) => points.some((point) => inside(point, box))).length;
      if (crossed >= least) continue;
      [found, least] = [box, crossed];
      if (!crossed) return found;
    }
  }
  return found;
}

// Beside the line, on either side, and upon it: packets go along the line, which is better seen.
function beside(bow: Bow, share: number, { width, height }: Size, away: number): Point[] {
  const at = along(bow, share);
  const { x, y } = heading(bow, share);
  // Far enough that the box is clear of the line.
  const off = (Math.abs(y) * width + Math.abs(x) * height) / 2 + 4 + away;
  const down = x >= 0 ? 1 : -1;
  const under = { x: at.x - y * off * down, y: at.y + x * off * down };
  const over = { x: at.x + y * off * down, y: at.y - x * off * down };
  const curved = Math.hypot(bow.control.x - (bow.a.x + bow.b.x) / 2, bow.control.y - (bow.a.y + bow.b.y) / 2) > 1;
  return curved ? [at, under, over] : [under, over, at];
}

const samples = (bow: Bow): Point[] => Array.from({ length: SAMPLES + 1 }, (_, index) => along(bow, index / SAMPLES));

/** The extent of a drawing with its arcs: a box by its upper left corner. */
export function spanned(nodes: Box[], bows: Bow[], margin: number): { x: number; y: number; width: number; height: number } {
  const corners = [
    ...nodes.flatMap(({ x, y, width, height }) => [
      { x: x - width / 2, y: y - height / 2 },
      { x: x + width / 2, y: y + height / 2 },
    ]),
    ...bows.flatMap((bow) => samples(bow).flatMap(({ x, y }) => [{ x, y: y - margin }, { x, y: y + margin }])),
  ];
  const [left, top] = [Math.min(...corners.map(({ x }) => x)), Math.min(...corners.map(({ y }) => y))];
  return { x: left, y: top, width: Math.max(...corners.map(({ x }) => x)) - left, height: Math.max(...corners.map(({ y }) => y)) - top };
}
