// The clock of packet playback, and the windows of packets it needs; outside React, for 60 frames a second.

import { Packets } from "../core/playback";
import type { Store } from "../store/store";

type Watcher = (packets: Packets | undefined, time: number, falling: number) => void;

// How long of the viewer's time a dropped packet is seen falling, s.
const FALLING = 0.6;
// How often the clock and the slider follow, ms: packets move with every frame.
const NOTIFY_EVERY = 100;
// A window holds this much of the viewer's time, s.
const AHEAD = 8;

class Playback {
  time = 0;
  speed = 0.01;
  playing = false;
  run?: string;
  duration = 0;
  frames = 0;
  private packets?: Packets;
  private next?: Packets;
  private asked = "";
  private watchers = new Set<Watcher>();
  private listeners = new Set<() => void>();
  private last = 0;
  private frame = 0;
  private notifiedAt = 0;
  private store?: Store;

  open(store: Store, run: string, duration: number): void {
    if (this.run === run) return;
    this.store = store;
    this.run = run;
    this.duration = duration;
    this.packets = this.next = undefined;
    this.time = Math.min(this.time, duration);
    this.asked = "";
    this.draw();
  }

  watch(watcher: Watcher): () => void {
    this.watchers.add(watcher);
    this.start();
    return () => this.watchers.delete(watcher);
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  set(part: Partial<Pick<Playback, "time" | "speed" | "playing">>): void {
    Object.assign(this, part);
    if (part.playing && this.time >= this.duration) this.time = 0;
    this.last = 0;
    this.start();
    this.notify();
  }

  private start(): void {
    if (!this.frame) this.frame = requestAnimationFrame(this.step);
  }

  private step = (now: number) => {
    this.frame = 0;
    if (this.playing && this.last) {
      const ready = this.packets?.covers(this.time) ?? false;
      // Time waits for the packets that it is to show.
      if (ready) this.time = Math.min(this.duration, this.time + ((now - this.last) / 1000) * this.speed);
      if (this.time >= this.duration) this.playing = false;
      if (!this.playing || now - this.notifiedAt >= NOTIFY_EVERY) {
        this.notifiedAt = now;
        this.notify();
      }
    }
    this.last = now;
    this.fill();
    this.draw();
    this.frames++;
    // Idle costs nothing, but the drawing may be moved under the packets.
    if (this.watchers.size) this.frame = requestAnimationFrame(this.step);
  };

  private fill(): void {
    if (this.packets && !this.packets.covers(this.time) && this.next?.covers(this.time)) {
      this.packets = this.next;
      this.next = undefined;
    }
    if (!this.packets?.covers(this.time)) void this.load(this.time, (packets) => (this.packets = packets));
    else if (!this.next && this.packets.header.until < this.duration && this.playing) {
      void this.load(this.packets.header.until, (packets) => (this.next = packets));
    }
  }

  private async load(from: number, done: (packets: Packets) => void): Promise<void> {
    const { run, store } = this;
    const to = Math.min(this.duration, from + AHEAD * this.speed);
    const key = `${run} ${from}`;
    if (!run || !store || key === this.asked || from >= this.duration) return;
    this.asked = key;
    try {
      const packets = new Packets(await store.backend.packets(run, from, to));
      // An answer that a later request has overtaken is of a time that is no longer looked at.
      if (key !== this.asked) return;
      done(packets);
      this.notify();
    } catch {
      // Asked again when the run or the time changes.
    }
  }

  get recorded(): boolean | undefined {
    return this.packets?.header.recorded;
  }

  get shown(): number {
    return this.packets?.at(this.time, FALLING * this.speed).length ?? 0;
  }

  /** Links that are no longer as they were when the run began. */
  get links(): string[] {
    const { packets, time } = this;
    return packets ? [...packets.states(time)].map(([link, { said }]) => `${packets.header.links[link]}: ${said}`) : [];
  }

  private draw(): void {
    this.watchers.forEach((watcher) => watcher(this.packets, this.time, FALLING * this.speed));
  }

  private notify(): void {
    this.listeners.forEach((listener) => listener());
  }
}

export const playback = new Playback();
