// Recent values of a network that is up: rates of its links, and its TCP senders' windows and times.

import type { Line } from "./curves";

export interface Look {
  time: number;
  /** bit/s that arrive at the second end and at the first. */
  links: Record<string, [number, number]>;
  sockets: Record<string, { cwnd: number; inflight: number; srtt: number | null; retransmits: number; phase: string | null; acked: number }>;
}

export type RecentPanel = "links" | "acked" | "cwnd" | "rtt";

/** Below this, what a link carries is neighbours asking for one another, and no curve. */
const QUIET = 2000;

export class Recent {
  private looks: Look[] = [];

  constructor(private readonly seconds: number) {}

  add(look: Look): void {
    this.looks.push(look);
    const oldest = look.time - this.seconds;
    let gone = 0;
    while (this.looks[gone]!.time < oldest) gone++;
    if (gone) this.looks.splice(0, gone);
  }

  get window(): [number, number] {
    const now = this.looks[this.looks.length - 1]?.time ?? 0;
    return [Math.max(0, now - this.seconds), Math.max(now, this.seconds)];
  }

  /** The curves of a panel; NaN where there was nothing to read. */
  lines(panel: RecentPanel): Line[] {
    const x = this.looks.map((look) => look.time);
    const unit = panel === "rtt" ? "s" : panel === "cwnd" ? "packets" : "bit/s";
    const line = (label: string, y: number[]): Line => ({ panel, label, unit, run: 0, flow: label, x, y });
    if (panel === "links") {
      return Object.keys(this.looks[this.looks.length - 1]?.links ?? {}).flatMap((name) =>
        [0, 1].flatMap((way) => {
          const y = this.looks.map((look) => look.links[name]?.[way] ?? NaN);
          return y.some((value) => value > QUIET) ? [line(way ? `${name} reverse` : name, y)] : [];
        }),
      );
    }
    const names = [...new Set(this.looks.flatMap((look) => Object.keys(look.sockets)))].sort();
    return names.map((name) =>
      line(
        name,
        this.looks.map((look) => {
          const socket = look.sockets[name];
          if (!socket) return NaN;
          return panel === "acked" ? socket.acked : panel === "cwnd" ? socket.cwnd : socket.srtt === null ? NaN : socket.srtt / 1e9;
        }),
      ),
    );
  }
}
