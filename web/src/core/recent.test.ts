import { describe, expect, it } from "vitest";
import { type Look, Recent } from "./recent";

const look = (time: number, more: Partial<Look> = {}): Look => ({ time, links: {}, sockets: {}, ...more });
const socket = { cwnd: 10, inflight: 5, srtt: 20e6, retransmits: 0, phase: null, acked: 1e6 };

describe("what a network has lately done", () => {
  it("forgets what is older than its window", () => {
    const recent = new Recent(10);
    for (let time = 0; time <= 30; time++) recent.add(look(time, { links: { a: [time * 1e4, 0] } }));
    expect(recent.window).toEqual([20, 30]);
    expect(recent.lines("links").map((line) => line.x.length)).toEqual([11]);
  });

  it("begins with a whole window", () => {
    const recent = new Recent(10);
    recent.add(look(1));
    expect(recent.window).toEqual([0, 10]);
  });

  it("draws each direction that carries something, and senders with gaps where they were not there", () => {
    const recent = new Recent(10);
    recent.add(look(1, { links: { a: [1e6, 50] } }));
    recent.add(look(2, { links: { a: [1e6, 50] }, sockets: { "h1 1>2": socket } }));
    expect(recent.lines("links").map((line) => line.label)).toEqual(["a"]);
    const [line] = recent.lines("rtt");
    expect([line!.label, line!.y]).toEqual(["h1 1>2", [NaN, 0.02]]);
  });
});
