// Runs that are kept: starting and stopping them, their progress, and results laid over each other.

import type { Job } from "../backend/backend";
import type { Documents } from "./documents";
import type { Page } from "./page";
import type { Live, State } from "./state";

const MOST_OVERLAYS = 6;
const OVER = ["done", "interrupted", "failed"];

export class Runs {
  constructor(
    private readonly page: Page,
    private readonly documents: Documents,
  ) {}

  private get state(): State {
    return this.page.state;
  }

  async start(packets = false): Promise<void> {
    const { text, path, engine } = this.state;
    await this.page.act(
      async () => {
        this.hear(await this.page.backend.run(text, path, engine, packets));
        this.page.set({ tab: "curves" });
      },
      "",
      "Not run: ",
    );
  }

  async stop(job: string): Promise<void> {
    await this.page.act(() => this.page.backend.stop(job));
  }

  async startStudy(what: { path?: string; shipped?: string; resume?: string }): Promise<void> {
    await this.page.act(
      async () => {
        const job = await this.page.backend.startStudy({ ...what, quick: false });
        this.page.set({ view: "study", study: job.path });
      },
      "",
      "Not started: ",
    );
  }

  /** Lay a result's curves over what is shown, or take them away. */
  async overlay(path: string): Promise<void> {
    const { overlays, window, panels, files, played } = this.state;
    if (overlays.some((overlay) => overlay.path === path)) {
      const rest = overlays.filter((overlay) => overlay.path !== path);
      return this.page.set({ overlays: rest, played: played === path ? undefined : played });
    }
    const listed = files?.results.find((result) => result.path === path);
    await this.page.act(async () => {
      const wanted = { from: window?.[0], to: window?.[1], points: 1000, panels };
      const curves = await this.page.backend.curves(path, wanted);
      const added = { path, name: listed?.name ?? path, engine: listed?.engine ?? "", curves };
      this.page.set({ overlays: [...this.state.overlays, added].slice(-MOST_OVERLAYS), view: "edit", tab: "curves" });
    });
  }

  /** Show what a result says of itself, and its curves alone. */
  async inspect(path: string): Promise<void> {
    await this.page.act(async () => {
      const result = await this.page.backend.result(path);
      this.page.set({ result, view: "edit", tab: "result" });
    });
  }

  /** A run or a study has gone on. */
  hear(job: Job): void {
    const before = this.state.jobs[job.id];
    const live = { ...this.state.live };
    if (job.kind === "run" && job.state === "running") {
      const fresh = before?.repetition !== job.repetition;
      live[job.id] = grown(fresh ? undefined : live[job.id], job);
    }
    this.page.set({ jobs: { ...this.state.jobs, [job.id]: job }, live });
    if (!OVER.includes(job.state) || !before || before.state === job.state) return;
    void this.documents.list().then(async () => {
      if (job.kind !== "run" || job.state === "failed") return;
      if (!this.state.overlays.some((overlay) => overlay.path === job.path)) await this.overlay(job.path);
    });
    if (job.state === "failed") this.page.notice(`${job.name} failed: ${job.message}`, true);
  }
}

/** What is known of a run's goodput, and what has just been told. */
function grown(known: Live = { times: [], goodput: {} }, job: Job): Live {
  const last = known.times[known.times.length - 1] ?? -1;
  if (!Object.keys(job.goodput).length || job.time <= last) return known;
  const names = new Set([...Object.keys(known.goodput), ...Object.keys(job.goodput)]);
  const absent = new Array<undefined>(known.times.length).fill(undefined);
  return {
    times: [...known.times, job.time],
    goodput: Object.fromEntries([...names].map((name) => [name, [...(known.goodput[name] ?? absent), job.goodput[name]]])),
  };
}
