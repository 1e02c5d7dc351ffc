// The page's state: what is open, what is known of it, and what goes on.

import { type Backend, BackendError, type Event, type Files, type Job, type Lab, type Result, type Session } from "../backend/backend";
import type { Curves } from "../core/curves";
import { History } from "../core/history";
import { draw, type Drawing } from "../core/network";
import { places, type Places } from "../core/places";
import type { Checked, Object as Drawn } from "../core/problems";
import type { Schema } from "../core/schema";
import { EMPTY } from "../core/templates";
import { read } from "../core/text";
import { thisPage } from "../backend/server";

export type View = "edit" | "study";
export type Tab = "curves" | "packets" | "lab" | "result";

export interface Overlay {
  path: string;
  name: string;
  engine: string;
  curves?: Curves;
}

export interface Live {
  times: number[];
  goodput: Record<string, (number | undefined)[]>;
}

export interface State {
  session?: Session;
  /** Why the page has no access; undefined: it has. */
  locked?: string;
  connection: "connecting" | "open" | "lost";
  others: number;
  files?: Files;
  schema?: Schema;
  jobs: Record<string, Job>;
  live: Record<string, Live>;

  view: View;
  tab: Tab;
  path: string;
  /** The file's version as opened or saved; null: it is not a file yet. */
  version: string | null;
  savedText: string;
  savedPlaces: Places;
  text: string;
  drawing: Drawing;
  /** Nodes' positions, whether moved by hand or not. */
  placed: Places;
  broken: boolean;
  canUndo: boolean;
  canRedo: boolean;
  checked?: Checked;
  selection: Drawn[];
  conflict: boolean;

  engine: string;
  simulate: boolean;
  curves?: Curves;
  ghost?: Curves;
  busy: boolean;
  refused?: string;
  /** Milliseconds from the edit to its curves. */
  took?: number;
  window?: [number, number];
  hidden: Record<string, boolean>;
  panels: string[];
  overlays: Overlay[];
  result?: Result;
  study?: string;
  labs: Lab[];
  /** What was last changed of a link that is up. */
  labChange?: string;
  playing?: number;

  notice?: { text: string; bad: boolean };
  sidebar: "files" | "settings";
}

const NO_DRAWING: Drawing = { nodes: [], links: [], flows: [], short: false };
const DRAFTS = "tcplab-draft:";
const MOST_BYTES = 1 << 20;
const UNTITLED = "untitled.yaml";
const CHECK_AFTER = 120;
const PREVIEW_AFTER = 30;

export class Store {
  state: State = {
    connection: "connecting",
    others: 0,
    jobs: {},
    live: {},
    view: "edit",
    tab: "curves",
    path: UNTITLED,
    version: null,
    savedText: "",
    savedPlaces: {},
    text: "",
    drawing: NO_DRAWING,
    placed: {},
    broken: false,
    canUndo: false,
    canRedo: false,
    selection: [],
    conflict: false,
    engine: "sim",
    simulate: true,
    busy: false,
    hidden: {},
    panels: ["goodput", "cwnd", "rtt", "queue"],
    overlays: [],
    labs: [],
    sidebar: "files",
  };
  private history = new History({ text: "", places: {} });
  private listeners = new Set<() => void>();
  private checking?: AbortController;
  private checkTimer = 0;
  private previewTimer = 0;
  private previewing?: AbortController;
  private edited = 0;
  /** Where the automatic layout has put what no one has moved: neither saved nor undone. */
  private automatic: Places = {};
  private simulated = "";
  private noticeTimer = 0;

  constructor(readonly backend: Backend) {}

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  set(part: Partial<State>): void {
    this.state = { ...this.state, ...part };
    this.listeners.forEach((listener) => listener());
  }

  // Beginning.

  async start(token: string | null, what: { scenario: string | null; result: string | null } = { scenario: null, result: null }): Promise<void> {
    try {
      if (token) await this.backend.login(token);
      const [session, files, schema] = await Promise.all([this.backend.session(), this.backend.files(), this.backend.schema()]);
      this.set({ session, files, schema, locked: undefined });
    } catch (problem) {
      const status = problem instanceof BackendError ? problem.status : 0;
      this.set({ locked: status === 401 ? (token ? message(problem) : "") : message(problem) });
      return;
    }
    this.backend.listen((event) => this.hear(event));
    const last = localStorage.getItem("tcplab-last");
    const wanted = last && this.state.files?.scenarios.includes(last) ? last : undefined;
    if (wanted) await this.open(wanted);
    else this.fresh(draftOf(UNTITLED)?.text ?? EMPTY);
    await this.go(what);
  }

  /** What a shared address names. */
  async go({ scenario, result }: { scenario: string | null; result: string | null }): Promise<void> {
    if (scenario) await this.open(scenario);
    if (result) await this.inspect(result);
  }

  // Documents.

  async open(path: string): Promise<void> {
    this.keepDraft();
    try {
      const opened = await this.backend.open(path);
      const draft = draftOf(path);
      const kept = draft && draft.version === opened.version ? draft : undefined;
      this.show(path, opened.version, opened.text, opened.layout.places ?? {}, kept);
      localStorage.setItem("tcplab-last", path);
      if (kept) this.notice("Unsaved changes of this scenario are back.");
    } catch (problem) {
      this.notice(message(problem), true);
    }
  }

  /** A new scenario, which becomes a file when it is saved. */
  fresh(text: string, name = UNTITLED): void {
    this.keepDraft();
    const taken = this.state.files?.scenarios ?? [];
    let path = name;
    for (let number = 2; taken.includes(path); number++) path = name.replace(/\.yaml$/, `-${number}.yaml`);
    this.show(path, null, "", {}, { text, places: {} });
  }

  /** A file of this machine: a scenario, or the topology of another tool. */
  async take(file: File): Promise<void> {
    if (file.size > MOST_BYTES) return this.notice(`${file.name} is larger than a scenario may be.`, true);
    try {
      const text = await file.text();
      if (!/\.(mn|clab\.ya?ml)$/.test(file.name)) return this.fresh(text, `${file.name.replace(/\.ya?ml$/, "")}.yaml`);
      const made = await this.backend.imported(text, file.name);
      this.fresh(made.text, `${made.name}.yaml`);
      if (made.left_out.length) this.notice(`Left out of ${file.name}: ${made.left_out.join(" ")}`, true);
    } catch (problem) {
      this.notice(`Not opened: ${message(problem)}`, true);
    }
  }

  private show(path: string, version: string | null, text: string, known: Places, draft?: { text: string; places: Places }): void {
    const now = draft ?? { text, places: known };
    this.history = new History({ text: now.text, places: now.places });
    this.simulated = "";
    this.automatic = {};
    this.set({
      view: "edit",
      tab: this.state.tab === "result" ? "curves" : this.state.tab,
      path,
      version,
      savedText: text,
      savedPlaces: known,
      selection: [],
      conflict: false,
      checked: undefined,
      curves: undefined,
      ghost: undefined,
      refused: undefined,
      took: undefined,
      window: undefined,
      overlays: [],
      result: undefined,
      hidden: {},
      playing: undefined,
      sidebar: "files",
    });
    this.took(now.text, now.places);
  }

  /** A change of the text or of positions; changes of one `kind` in a row are undone together. */
  edit(text: string, places: Places = this.history.now.places, kind = ""): void {
    if (this.state.session?.read_only && text !== this.state.text && kind !== "slide") {
      // A demonstration may be played with; it is only not saved.
    }
    this.history.push({ text, places }, kind, performance.now());
    this.took(text, places);
  }

  undo(): void {
    const { text, places } = this.history.undo();
    this.took(text, places);
  }

  redo(): void {
    const { text, places } = this.history.redo();
    this.took(text, places);
  }

  move(moved: Places, kind = ""): void {
    this.edit(this.state.text, { ...this.state.placed, ...moved }, kind);
  }

  /** A first layout of a network that no one has laid out. */
  arrange(found: Places): void {
    if (Object.keys(this.history.now.places).length) return;
    this.automatic = found;
    this.set({ placed: places(this.state.drawing, found) });
  }

  private took(text: string, known: Places): void {
    const found = read(text);
    // A text that is broken for the moment leaves the drawing as it was.
    const drawing = found.broken ? this.state.drawing : draw(found.data);
    const changed = text !== this.state.text || this.simulated === "";
    this.set({
      text,
      broken: found.broken,
      drawing,
      placed: places(drawing, { ...this.automatic, ...known }),
      canUndo: this.history.canUndo,
      canRedo: this.history.canRedo,
      selection: this.state.selection.filter(({ kind, name }) =>
        (drawing[`${kind}s`] as { name: string }[]).some((one) => one.name === name),
      ),
    });
    if (changed) {
      this.edited = performance.now();
      this.schedule();
    }
    this.keepDraft();
  }

  get placedByHand(): boolean {
    return Object.keys(this.history.now.places).length > 0;
  }

  get dirty(): boolean {
    return this.state.text !== this.state.savedText || this.history.now.places !== this.state.savedPlaces;
  }

  async save(as?: string): Promise<boolean> {
    const path = as ?? this.state.path;
    const places = this.history.now.places;
    const version = as !== undefined && as !== this.state.path ? null : this.state.version;
    try {
      const text = this.state.text;
      const saved = await this.backend.save(path, text, version, Object.keys(places).length ? { places } : null);
      localStorage.removeItem(DRAFTS + this.state.path);
      localStorage.setItem("tcplab-last", path);
      this.set({ path, version: saved.version, savedText: text, savedPlaces: places, conflict: false });
      this.notice(`Saved ${path}.`);
      void this.refresh();
      return true;
    } catch (problem) {
      if (problem instanceof BackendError && problem.status === 409) this.set({ conflict: true });
      this.notice(`${path} is not saved: ${message(problem)}. Your changes are kept in this browser.`, true);
      return false;
    }
  }

  /** Resolve a conflict: take the file as it is now, or keep what stands here for the next save. */
  async resolve(theirs: boolean): Promise<void> {
    const { path } = this.state;
    try {
      const opened = await this.backend.open(path);
      if (theirs) {
        const places = opened.layout.places ?? {};
        this.set({ version: opened.version, savedText: opened.text, savedPlaces: places, conflict: false });
        this.edit(opened.text, places);
      } else {
        this.set({ version: opened.version, savedText: opened.text, conflict: false });
        await this.save();
      }
    } catch (problem) {
      this.notice(message(problem), true);
    }
  }

  async refresh(): Promise<void> {
    try {
      this.set({ files: await this.backend.files() });
    } catch {
      // The connection's own state says so.
    }
  }

  private keepDraft(): void {
    const { path, text, version } = this.state;
    if (!text || !this.dirty || (version === null && text === EMPTY)) {
      localStorage.removeItem(DRAFTS + path);
      return;
    }
    localStorage.setItem(DRAFTS + path, JSON.stringify({ text, version, places: this.history.now.places }));
  }

  // Checking and simulating.

  schedule(): void {
    clearTimeout(this.checkTimer);
    clearTimeout(this.previewTimer);
    this.checkTimer = window.setTimeout(() => void this.check(), CHECK_AFTER);
    if (this.state.simulate) this.previewTimer = window.setTimeout(() => void this.preview(), PREVIEW_AFTER);
  }

  async check(): Promise<void> {
    this.checking?.abort();
    const control = (this.checking = new AbortController());
    const { text, path, engine } = this.state;
    try {
      const checked = await this.backend.check(text, path, engine, control.signal);
      if (text === this.state.text) this.set({ checked });
    } catch (problem) {
      if (!control.signal.aborted && problem instanceof BackendError && problem.status) this.notice(message(problem), true);
    }
  }

  /** Simulate what stands in the editor, and keep the former curves as a ghost. */
  async preview(packets = false): Promise<void> {
    const { text, path, broken, drawing, panels } = this.state;
    const key = `${packets} ${panels.join()} ${text}`;
    if (broken || !drawing.nodes.length || !drawing.flows.length) return this.set({ refused: undefined, busy: false });
    if (key === this.simulated) return;
    this.previewing?.abort();
    const control = (this.previewing = new AbortController());
    const begun = this.edited;
    this.set({ busy: true });
    try {
      const points = Math.max(300, Math.min(1000, window.innerWidth / 2));
      const curves = await this.backend.preview(text, path, { points, panels, packets }, control.signal);
      if (control.signal.aborted || !curves) return;
      this.simulated = key;
      const same = this.state.curves && !packets;
      this.set({
        curves,
        ghost: same ? this.state.curves : undefined,
        refused: undefined,
        busy: false,
        window: undefined,
        took: performance.now() - begun,
        tab: this.state.tab === "result" && !this.state.result ? "curves" : this.state.tab,
      });
    } catch (problem) {
      if (control.signal.aborted) return;
      const status = problem instanceof BackendError ? problem.status : 0;
      // What is wrong with the text, `check` says at its place.
      this.set({ busy: false, refused: status === 422 ? message(problem) : undefined });
    }
  }

  /** The curves of a stretch of time, in full detail; undefined: of the whole run. */
  async zoom(to: [number, number] | undefined): Promise<void> {
    const { curves, overlays, panels } = this.state;
    this.set({ window: to });
    const wanted = { from: to?.[0], to: to?.[1], points: 1200, panels };
    try {
      const run = curves?.header.run;
      const [mine, ...theirs] = await Promise.all([
        run ? this.backend.curves(run, wanted) : undefined,
        ...overlays.map((overlay) => this.backend.curves(overlay.path, wanted)),
      ]);
      if (this.state.window !== to) return;
      if (mine && run) mine.header.run = run;
      this.set({
        curves: this.state.curves === curves ? (mine ?? curves) : this.state.curves,
        ghost: to ? undefined : this.state.ghost,
        overlays: overlays.map((overlay, index) => ({ ...overlay, curves: theirs[index] })),
      });
    } catch (problem) {
      if (problem instanceof BackendError && problem.status !== 410) this.notice(message(problem), true);
    }
  }

  setPanels(panels: string[]): void {
    this.set({ panels });
    if (this.state.curves?.header.run || this.state.overlays.length) void this.zoom(this.state.window);
  }

  setEngine(engine: string): void {
    this.set({ engine });
    this.schedule();
  }

  setSimulate(simulate: boolean): void {
    this.set({ simulate, ghost: undefined });
    if (simulate) this.schedule();
  }

  // Runs.

  async run(packets = false): Promise<void> {
    const { text, path, engine } = this.state;
    try {
      const job = await this.backend.run(text, path, engine, packets);
      this.hear(job);
      this.set({ tab: "curves" });
    } catch (problem) {
      this.notice(`Not run: ${message(problem)}`, true);
    }
  }

  async stop(job: string): Promise<void> {
    try {
      await this.backend.stop(job);
    } catch (problem) {
      this.notice(message(problem), true);
    }
  }

  /** Lay a result's curves over what is shown, or take them away. */
  async overlay(path: string): Promise<void> {
    if (this.state.overlays.some((overlay) => overlay.path === path)) {
      this.set({ overlays: this.state.overlays.filter((overlay) => overlay.path !== path) });
      return;
    }
    const listed = this.state.files?.results.find((result) => result.path === path);
    try {
      const window = this.state.window;
      const wanted = { from: window?.[0], to: window?.[1], points: 1000, panels: this.state.panels };
      const curves = await this.backend.curves(path, wanted);
      const added = { path, name: listed?.name ?? path, engine: listed?.engine ?? "", curves };
      this.set({ overlays: [...this.state.overlays, added].slice(-6), view: "edit", tab: "curves" });
    } catch (problem) {
      this.notice(message(problem), true);
    }
  }

  /** Show what a result says of itself, and its curves alone. */
  async inspect(path: string): Promise<void> {
    try {
      const result = await this.backend.result(path);
      this.set({ result, view: "edit", tab: "result" });
    } catch (problem) {
      this.notice(message(problem), true);
    }
  }

  // News.

  private hear(event: Event): void {
    switch (event.type) {
      case "connected":
        this.set({ connection: "open" });
        void this.refresh();
        void this.lookForLabs();
        this.schedule();
        break;
      case "lost":
        this.set({ connection: "lost", busy: false });
        void this.backend.session().catch((problem: unknown) => {
          if (problem instanceof BackendError && problem.status === 401) {
            this.set({ locked: "The server has a new token: open the address that it has printed." });
          }
        });
        break;
      case "hello":
        this.set({ jobs: Object.fromEntries(event.jobs.map((job) => [job.id, job])) });
        break;
      case "pages":
        this.set({ others: event.count - 1 });
        break;
      case "files":
        void this.refresh();
        if (event.paths.some((path) => path === this.state.path || layoutName(this.state.path) === path)) void this.follow();
        break;
      case "saved":
        if (event.page !== thisPage && event.path === this.state.path) void this.follow();
        break;
      case "job":
        this.progress(event);
        break;
      case "study":
        break;
      case "labs":
        void this.lookForLabs();
        break;
      case "lab-changed":
        this.set({ labChange: `${event.link}: ${event.settings}` });
        break;
      case "lab-trouble":
        this.notice(event.message, true);
        break;
    }
  }

  // Networks that stay up.

  /** Do something with a network; what refuses it is shown. */
  async act(work: () => Promise<unknown>, said = ""): Promise<boolean> {
    try {
      await work();
      if (said) this.notice(said);
      return true;
    } catch (problem) {
      this.notice(message(problem), true);
      return false;
    }
  }

  private async lookForLabs(): Promise<void> {
    if (this.state.session?.may_run) await this.act(async () => this.set({ labs: await this.backend.labs() }));
  }

  // The open file was changed by another hand: shown at once where nothing here would be lost.
  private async follow(): Promise<void> {
    const { path, version } = this.state;
    if (version === null) return;
    try {
      const opened = await this.backend.open(path);
      if (path !== this.state.path || opened.version === this.state.version) return;
      if (opened.text === this.state.text) return this.set({ version: opened.version, savedText: opened.text });
      if (this.dirty) return this.set({ conflict: true });
      const places = opened.layout.places ?? {};
      this.set({ version: opened.version, savedText: opened.text, savedPlaces: places });
      this.edit(opened.text, places);
      this.notice(`${path} was changed elsewhere; this is the new text. Undo brings back the former.`);
    } catch {
      // Removed, or the server is gone: what is open stays.
    }
  }

  private progress(job: Job): void {
    const before = this.state.jobs[job.id];
    const jobs = { ...this.state.jobs, [job.id]: job };
    const live = { ...this.state.live };
    if (job.kind === "run" && job.state === "running") {
      const fresh = !live[job.id] || before?.repetition !== job.repetition;
      const known = fresh ? { times: [], goodput: {} } : live[job.id]!;
      if (Object.keys(job.goodput).length && job.time > (known.times[known.times.length - 1] ?? -1)) {
        const times = [...known.times, job.time];
        const names = new Set([...Object.keys(known.goodput), ...Object.keys(job.goodput)]);
        const goodput = Object.fromEntries(
          [...names].map((name) => [
            name,
            [...(known.goodput[name] ?? new Array(times.length - 1).fill(undefined)), job.goodput[name]],
          ]),
        );
        live[job.id] = { times, goodput };
      } else live[job.id] = known;
    }
    this.set({ jobs, live });
    const ended = ["done", "interrupted", "failed"].includes(job.state);
    if (ended && before && before.state !== job.state) {
      void this.refresh().then(async () => {
        if (job.kind !== "run") return;
        if (job.state !== "failed" && !this.state.overlays.some((overlay) => overlay.path === job.path)) {
          await this.overlay(job.path);
        }
      });
      if (job.state === "failed") this.notice(`${job.name} failed: ${job.message}`, true);
    }
  }

  notice(text: string, bad = false): void {
    clearTimeout(this.noticeTimer);
    this.set({ notice: { text, bad } });
    this.noticeTimer = window.setTimeout(() => this.set({ notice: undefined }), bad ? 12000 : 4000);
  }
}

const layoutName = (path: string) => path.replace(/\.ya?ml$/, ".layout.json");

function draftOf(path: string): { text: string; version: string | null; places: Places } | undefined {
  try {
    return JSON.parse(localStorage.getItem(DRAFTS + path) ?? "") as { text: string; version: string | null; places: Places };
  } catch {
    return undefined;
  }
}

export function message(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}
