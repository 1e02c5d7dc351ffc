// Packets on the drawing at a moment of the run.

import type { Frame } from "./frame";

export interface PacketsHeader {
  links: string[];
  flows: string[];
  start: number;
  until: number;
  duration: number;
  /** `largest`: most packets that wait in the whole run. */
  queues: { way: number; largest: number }[];
  /** Changes of links over the whole run, in order of time. */
  changes: { link: number; time: number; direction: string; detail: string }[];
  recorded: boolean;
}

export interface LinkState {
  down: boolean;
  /** Such as `down` or `rate 5 Mbit/s`. */
  said: string;
}

export interface Dot {
  link: number;
  /** From the link's first end (0) to its second (1), whichever way the packet goes. */
  at: number;
  backward: boolean;
  flow: number;
  marked: boolean;
  /** Undefined while it goes on; else how far it has fallen, 0 to 1. */
  fallen?: number;
  data: boolean;
}

const MARKED = 1;
const LOST = 2;
const DROPPED = 4;
// A frame of an acknowledgment without data, with all its options, is shorter.
const DATA = 120;

export class Packets {
  private readonly longest: number;

  constructor(private readonly frame: Frame<PacketsHeader>) {
    const [starts, ends] = frame.arrays as [Float64Array, Float64Array];
    let longest = 0;
    for (let i = 0; i < starts.length; i++) longest = Math.max(longest, ends[i]! - starts[i]!);
    this.longest = longest;
  }

  get header(): PacketsHeader {
    return this.frame.header;
  }

  get count(): number {
    return this.frame.arrays[0]!.length;
  }

  covers(time: number): boolean {
    return time >= this.header.start && time < this.header.until;
  }

  /** Every packet on a link at `time`; what falls is shown for `falling` seconds more. */
  at(time: number, falling: number): Dot[] {
    const [starts, ends, ways, flows, flags, sizes] = this.frame.arrays as Float64Array[];
    const dots: Dot[] = [];
    const flights = this.flights();
    const show = (i: number) => {
      const [start, end, flag] = [starts![i]!, ends![i]!, flags![i]!];
      const gone = (flag & (LOST | DROPPED)) !== 0;
      if (time < start || time >= end + (gone ? falling : 0)) return;
      const way = ways![i]!;
      const backward = way % 2 === 1;
      // A packet that is lost gets half way.
      const reach = flag & DROPPED ? 0 : flag & LOST ? 0.5 : 1;
      const share = end > start ? Math.min(1, (time - start) / (end - start)) * reach : reach;
      dots.push({
        link: Math.floor(way / 2),
        at: backward ? 1 - share : share,
        backward,
        flow: flows![i]!,
        marked: (flag & MARKED) !== 0,
        fallen: gone && time >= end ? (time - end) / falling : undefined,
        data: sizes![i]! > DATA,
      });
    };
    // Flights are in the order of their starts, drops behind them: each is searched from its first possible one.
    for (let i = first(starts!, 0, flights, time - this.longest - falling); i < flights && starts![i]! <= time; i++) show(i);
    for (let i = first(starts!, flights, starts!.length, time - falling); i < starts!.length && starts![i]! <= time; i++) show(i);
    return dots;
  }

  /** Packets waiting before each way of a link at `time`, and the most in the whole run, by way. */
  waiting(time: number): Map<number, [number, number]> {
    const found = new Map<number, [number, number]>();
    this.header.queues.forEach(({ way, largest }, index) => {
      const times = this.frame.arrays[6 + 2 * index]!;
      const counts = this.frame.arrays[7 + 2 * index]!;
      const next = first(times, 0, times.length, time + 1e-12);
      if (next > 0) found.set(way, [counts[next - 1]!, largest]);
    });
    return found;
  }

  /** Links that are no longer as they were when the run began. */
  states(time: number): Map<number, LinkState> {
    const now = new Map<number, Map<string, string>>();
    for (const { link, time: at, direction, detail } of this.header.changes) {
      if (at > time) break;
      const settings = now.get(link) ?? new Map<string, string>();
      now.set(link, settings);
      for (const one of detail.split(", ")) {
        if (one === "up") settings.delete(`${direction} down`);
        // An impairment without a figure, such as a loss process, has changed in more than one.
        else settings.set(`${direction} ${one.split(" ")[0]}`, one === "down" || /\d/.test(one) ? one : `${one} changed`);
      }
    }
    const found = new Map<number, LinkState>();
    for (const [link, settings] of now) {
      const said = [...new Set(settings.values())];
      if (said.length) found.set(link, { down: said.includes("down"), said: said.includes("down") ? "down" : said.join(" · ") });
    }
    return found;
  }

  private flights(): number {
    const flags = this.frame.arrays[4]!;
    let count = flags.length;
    while (count > 0 && flags[count - 1] === DROPPED) count--;
    return count;
  }
}

/** The first index from `low` to `high` whose time is not before `time`. */
export function first(times: ArrayLike<number>, low: number, high: number, time: number): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
