// Checking and simulating what stands in the editor, and the windows of curves that are looked at.

import { BackendError, type Wanted } from "../backend/backend";
import { mapping } from "../core/network";
import type { Checked } from "../core/problems";
import { read } from "../core/text";
import { message, type Page } from "./page";
import type { State } from "./state";

const CHECK_AFTER = 120;
const PREVIEW_AFTER = 30;

export class Simulation {
  private checking?: AbortController;
  private checkTimer = 0;
  private previewTimer = 0;
  private previewing?: AbortController;
  private edited = 0;
  /** Number of the latest request for a window: the answers to older ones are too late. */
  private zooms = 0;
  /** The last simulated text. */
  private simulated = "";

  /** `planned` is called with the plan of a text that is right. */
  constructor(
    private readonly page: Page,
    private readonly planned: (plan: unknown) => void,
  ) {}

  private get state(): State {
    return this.page.state;
  }

  /** The text is another one; `another`: so is the document. */
  changed(another: boolean): void {
    if (another) {
      this.simulated = "";
      this.previewing?.abort();
      this.zooms += 1;
      this.page.set({ busy: false });
    }
    this.edited = performance.now();
    this.schedule();
  }

  schedule(): void {
    clearTimeout(this.checkTimer);
    clearTimeout(this.previewTimer);
    this.checkTimer = window.setTimeout(() => void this.check(), CHECK_AFTER);
    if (this.state.simulate) this.previewTimer = window.setTimeout(() => void this.preview(), PREVIEW_AFTER);
  }

  /** Simulate what stands in the editor, and keep the former curves as a ghost. */
  async preview(packets = false): Promise<void> {
    const { text, path, broken, drawing, panels } = this.state;
    const key = `${packets} ${panels.join()} ${text}`;
    // The text being simulated is a former one.
    this.previewing?.abort();
    if (broken || !drawing.flows.length) return this.page.set({ refused: undefined, busy: false });
    if (key === this.simulated) return this.page.set({ refused: undefined, busy: false });
    const control = (this.previewing = new AbortController());
    const begun = this.edited;
    this.page.set({ busy: true, share: undefined });
    try {
      const points = Math.max(300, Math.min(1000, window.innerWidth / 2));
      const curves = await this.page.backend.preview(text, path, { points, panels, packets }, control.signal);
      if (control.signal.aborted || !curves) return;
      // Mistakes in the text are shown at their place by `check`.
      if (typeof curves === "string") return this.page.set({ busy: false, refused: curves });
      this.simulated = key;
      this.zooms += 1;
      const same = this.state.curves && !packets;
      this.page.set({
        curves,
        ghost: same ? this.state.curves : undefined,
        refused: undefined,
        busy: false,
        window: undefined,
        took: performance.now() - begun,
        tab: this.state.tab === "result" && !this.state.result ? "curves" : this.state.tab,
      });
      // Others were chosen meanwhile.
      if (panels !== this.state.panels) void this.zoom(undefined);
    } catch (problem) {
      // A server that is gone is announced by the page; whatever else it refuses is said here.
      const answered = problem instanceof BackendError && problem.status > 0;
      if (!control.signal.aborted) this.page.set({ busy: false, refused: answered ? message(problem) : undefined });
    }
  }

  /** The curves of a stretch of time, in full detail; undefined: of the whole run. */
  async zoom(to: [number, number] | undefined): Promise<void> {
    const { curves, overlays, panels } = this.state;
    const number = ++this.zooms;
    this.page.set({ window: to });
    const wanted: Wanted = { from: to?.[0], to: to?.[1], points: 1200, panels };
    try {
      const run = curves?.header.run;
      const [mine, ...theirs] = await Promise.all([
        run ? this.page.backend.curves(run, wanted) : undefined,
        ...overlays.map((overlay) => this.page.backend.curves(overlay.path, wanted)),
      ]);
      if (number !== this.zooms) return;
      if (mine && run) mine.header.run = run;
      this.page.set({
        curves: this.state.curves?.header.run === run ? (mine ?? this.state.curves) : this.state.curves,
        ghost: to ? undefined : this.state.ghost,
        overlays: this.state.overlays.map((overlay) => (overlays.includes(overlay) ? { ...overlay, curves: theirs[overlays.indexOf(overlay)]! } : overlay)),
      });
    } catch (problem) {
      if (number !== this.zooms || !(problem instanceof BackendError)) return;
      if (problem.status !== 410) return this.page.notice(`Curves not read: ${message(problem)}`, true);
      // The server keeps the newest simulations only, and those of a former server are gone.
      this.simulated = "";
      await this.preview();
      if (to && number < this.zooms && this.state.curves?.header.run !== curves?.header.run) await this.zoom(to);
    }
  }

  setPanels(panels: string[]): void {
    this.page.set({ panels });
    if (this.state.curves?.header.run || this.state.overlays.length) void this.zoom(this.state.window);
  }

  setEngine(engine: string): void {
    this.page.set({ engine });
    this.schedule();
  }

  setSimulate(simulate: boolean): void {
    this.page.set({ simulate, ghost: undefined });
    if (simulate) this.schedule();
  }

  private async check(): Promise<void> {
    this.checking?.abort();
    const control = (this.checking = new AbortController());
    const { text, path, engine } = this.state;
    try {
      const checked = await this.page.backend.check(text, path, engine, control.signal);
      if (control.signal.aborted || text !== this.state.text) return;
      this.page.set({ checked: unbegun(text) ? begun(checked) : checked });
      this.planned(checked.plan);
    } catch (problem) {
      if (!control.signal.aborted && problem instanceof BackendError && problem.status) {
        this.page.notice(message(problem), true);
      }
    }
  }
}

/** Whether the canvas is empty. */
function unbegun(text: string): boolean {
  const { data } = read(text);
  const { nodes, links } = mapping(mapping(data).network);
  return [nodes, links, mapping(data).flows].every((each) => Array.isArray(each) && !each.length);
}

/** On an empty canvas an empty drawing is not a mistake: the page says what to do first. */
function begun(checked: Checked): Checked {
  return { ...checked, errors: checked.errors.filter(({ path }) => !/^(network|flows)\b/.test(path)) };
}
