// Runs that are kept: starting and stopping them, their progress, and results laid over each other.

import type { Job } from "../backend/backend";
import { throttle } from "../core/throttle";
import type { Documents } from "./documents";
import type { Page } from "./page";
import { type Live, LIVE_PANELS, type LivePanel, type State } from "./state";

const MAX_OVERLAYS = 6;
const OVER = ["done", "interrupted", "failed"];
// A slow page draws several reports at once, and stays free for clicks, ms.
const REDRAW = 50;
// A run of hours has no more points than a panel has pixels: drawing all of them would keep the page busy.
const MAX_POINTS = 2000;

export class Runs {
  /** Jobs that were going on and are over, as far as this page has dealt with them: each server counts them anew. */
  private readonly dealtWith = new Set<string>();
  /** Number of the latest request for a result: the answers to older ones are too late. */
  private inspections = 0;
  /** Reports that the page does not show yet, in their order. */
  private reports: Job[] = [];
  private readonly redraw = throttle(() => this.take(), REDRAW);

  /** `outdated` is called when curves are of another stretch of time than the one that is shown. */
  constructor(
    private readonly page: Page,
    private readonly documents: Documents,
    private readonly outdated: () => void,
  ) {}

  private get state(): State {
    return this.page.state;
  }

  async start(packets = false): Promise<void> {
    const { text, path, engine } = this.state;
    this.page.set({ view: "edit", tab: "curves", curvesWanted: this.state.curvesWanted + 1 });
    await this.page.act("Not run", async () => {
      const job = await this.page.backend.run(text, path, engine, packets);
      // Its news may have come before this answer, that of its end too.
      const known = this.state.jobs[job.id];
      if (!known) this.hear(job);
      else if (OVER.includes(known.state)) this.ended(known);
    });
  }

  async stop(job: string): Promise<void> {
    await this.page.act("Not stopped", () => this.page.backend.stop(job));
  }

  async startStudy(what: { path?: string; shipped?: string; resume?: string }): Promise<void> {
    await this.page.act("Not started", async () => {
      const job = await this.page.backend.startStudy({ ...what, quick: false });
      this.page.set({ view: "study", study: job.path });
    });
  }

  /** Lay a result's curves over what is shown, or take them away. */
  async overlay(path: string): Promise<void> {
    const { overlays, played } = this.state;
    if (overlays.some((overlay) => overlay.path === path)) {
      const rest = overlays.filter((overlay) => overlay.path !== path);
      return this.page.set({ overlays: rest, played: played === path ? undefined : played });
    }
    this.page.set({ view: "edit", tab: "curves", curvesWanted: this.state.curvesWanted + 1 });
    await this.page.act("Not laid over the curves", () => this.lay(path));
  }

  /** Lay a result's curves over what is shown, whatever is looked at. */
  private async lay(path: string): Promise<void> {
    const { document, window, panels } = this.state;
    const wanted = { from: window?.[0], to: window?.[1], points: 1000, panels };
    const curves = await this.page.backend.curves(path, wanted);
    const { overlays } = this.state;
    if (document !== this.state.document || overlays.some((overlay) => overlay.path === path)) return;
    this.page.set({ overlays: [...overlays, { path, curves }].slice(-MAX_OVERLAYS) });
    if (overlays.length >= MAX_OVERLAYS) this.page.notice(`At most ${MAX_OVERLAYS} results are laid over each other: ${overlays[0]!.path} was taken off.`);
    // The stretch that is looked at has changed meanwhile.
    if (window !== this.state.window || panels !== this.state.panels) this.outdated();
  }

  /** Show what a result says of itself, and its curves alone. */
  async inspect(path: string): Promise<void> {
    await this.read(path, { view: "edit", tab: "result" });
  }

  private async read(path: string, shown: Partial<State>): Promise<void> {
    const number = ++this.inspections;
    await this.page.act("Not opened", async () => {
      const result = await this.page.backend.result(path);
      if (number !== this.inspections) return;
      this.page.set({ result, ...shown });
      if (shown.tab === "result") this.page.dismissAbout(aboutFailing(path));
      // It has ended while the answer was on its way.
      const job = Object.values(this.state.jobs).find((job) => job.path === path);
      if (result.status === "running" && job && OVER.includes(job.state)) await this.read(path, {});
    });
  }

  /** The jobs of a server that has just been reached: what this page saw going on may have ended meanwhile. */
  greet(jobs: Job[]): void {
    this.reports.splice(0);
    const going = Object.values(this.state.jobs).filter(({ state }) => !OVER.includes(state));
    this.page.set({ jobs: Object.fromEntries(jobs.map((job) => [job.id, job])) });
    for (const before of going) {
      const now = jobs.find(({ id, path }) => id === before.id && path === before.path);
      if (now && OVER.includes(now.state)) this.ended(now);
      if (!now) this.page.notice(`${before.name} ended with the server.`, true);
    }
  }

  /** A run or a study has gone on. A change of its state is shown at once, its progress soon. */
  hear(job: Job): void {
    this.reports.push(job);
    if (this.state.jobs[job.id]?.state === job.state) this.redraw.ask();
    else this.redraw.now();
  }

  private take(): void {
    const reports = this.reports.splice(0);
    const [jobs, live] = [{ ...this.state.jobs }, { ...this.state.live }];
    const [notes, over]: [string[], Job[]] = [[], []];
    for (const job of reports) {
      const before = jobs[job.id];
      if (job.kind === "run" && job.state === "running") {
        const fresh = before?.repetition !== job.repetition;
        live[job.id] = grown(fresh ? undefined : live[job.id], job);
      }
      // A page that has just been opened hears of old ones, too.
      if (before) notes.push(...job.notes.slice(before.notes.length));
      if (OVER.includes(job.state) && before && before.state !== job.state) over.push(job);
      jobs[job.id] = job;
    }
    this.page.set({ jobs, live });
    notes.forEach((note) => this.page.notice(note));
    over.forEach((job) => this.ended(job));
  }

  private ended(job: Job): void {
    if (this.dealtWith.has(`${job.id} ${job.path}`)) return;
    this.dealtWith.add(`${job.id} ${job.path}`);
    if (this.state.result?.path === job.path) void this.read(job.path, {});
    void this.documents.list().then(async () => {
      if (job.kind !== "run" || job.state === "failed") return;
      if (!this.state.overlays.some((overlay) => overlay.path === job.path)) await this.page.act("Not laid over the curves", () => this.lay(job.path));
    });
    if (job.state === "failed") this.page.notice(`${job.name} failed: ${job.message}`, true, aboutFailing(job.path));
  }
}

/** Why a run failed: its result says so too. */
const aboutFailing = (path: string) => `failed ${path}`;

/** Jobs that are not over: those that run, then those that wait, which take their turn. */
export function inTurn(jobs: Job[]): Job[] {
  return ["running", "waiting"].flatMap((state) => jobs.filter((job) => job.state === state));
}

/** A run's curves so far, and its latest report. */
export function grown(known: Live = { times: [], panels: { goodput: {}, cwnd: {}, rtt: {} } }, job: Job): Live {
  const last = known.times[known.times.length - 1] ?? -1;
  // Another attempt at the same run begins at zero.
  if (job.time < last) return grown(undefined, job);
  if (!LIVE_PANELS.some((panel) => Object.keys(job[panel]).length) || job.time === last) return known;
  const absent = new Array<undefined>(known.times.length).fill(undefined);
  const longer = (panel: LivePanel) => {
    const names = new Set([...Object.keys(known.panels[panel]), ...Object.keys(job[panel])]);
    return Object.fromEntries([...names].map((name) => [name, [...(known.panels[panel][name] ?? absent), job[panel][name]]]));
  };
  return thinned({ times: [...known.times, job.time], panels: { goodput: longer("goodput"), cwnd: longer("cwnd"), rtt: longer("rtt") } });
}

/** Every second point of curves that have become too long, the newest among them. */
function thinned(live: Live): Live {
  if (live.times.length <= MAX_POINTS) return live;
  const half = <T>(values: T[]) => values.filter((_, index) => (values.length - 1 - index) % 2 === 0);
  const each = (panel: LivePanel) => Object.fromEntries(Object.entries(live.panels[panel]).map(([name, values]) => [name, half(values)]));
  return { times: half(live.times), panels: { goodput: each("goodput"), cwnd: each("cwnd"), rtt: each("rtt") } };
}
