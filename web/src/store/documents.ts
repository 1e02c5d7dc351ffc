// The open scenario: opening, editing, undoing, saving, and changes by other hands.

import { BackendError } from "../backend/backend";
import { History } from "../core/history";
import { change } from "../core/changes";
import { draw, drawPlan, mapping } from "../core/network";
import { places, type Places, samePlaces } from "../core/places";
import { EMPTY } from "../core/templates";
import { read } from "../core/text";
import { type Draft, draftOf, draftPaths, draftsOf, keepDraft } from "./drafts";
import { message, type Page } from "./page";
import { INITIAL, type State, UNTITLED } from "./state";

const LAST = "tcplab-last";
const MAX_BYTES = 1 << 20;

export class Documents {
  private history = new History({ text: "", places: {} });
  /** Where the automatic layout has put what no one has moved: neither saved nor undone. */
  private automatic: Places = {};
  /** Number of the latest request to open something: the answers to older ones are too late. */
  private openings = 0;
  private listings = 0;
  /** The text that a new scenario began with: until it is another, nothing is lost with it. */
  private begun?: string;
  /** Whether the open file was removed by another hand. */
  private removed = false;

  /** `changed` is called with every text that is not the former one. */
  constructor(
    private readonly page: Page,
    private readonly changed: (another: boolean) => void,
  ) {}

  private get state(): State {
    return this.page.state;
  }

  /** The document that was open last, or an empty canvas. */
  async begin(): Promise<void> {
    draftsOf(this.state.session?.place ?? "");
    this.page.set({ drafts: draftPaths() });
    window.addEventListener("storage", () => this.page.set({ drafts: draftPaths() }));
    const last = localStorage.getItem(LAST);
    if (last && (this.state.files?.scenarios.includes(last) || draftOf(last))) await this.open(last);
    else this.fresh(EMPTY);
  }

  async open(path: string): Promise<void> {
    this.keep();
    const number = ++this.openings;
    const draft = draftOf(path);
    if (draft?.version === null && !this.state.files?.scenarios.includes(path)) return this.show(path, null, "", {}, draft);
    try {
      const opened = await this.page.backend.open(path);
      if (number !== this.openings) return;
      const kept = draft?.text === opened.text && draft.version !== opened.version ? undefined : draft;
      this.show(path, kept ? kept.version : opened.version, opened.text, opened.layout.places ?? {}, kept);
      localStorage.setItem(LAST, path);
      if (!kept) return;
      if (kept.version === opened.version) this.page.notice("Unsaved changes restored.");
      else this.page.set({ conflict: true });
    } catch (problem) {
      if (number !== this.openings) return;
      if (!draft || !isMissing(problem)) return this.page.notice(`Not opened: ${message(problem)}`, true);
      this.show(path, null, "", {}, draft);
      this.lost();
    }
  }

  /** A new scenario, which becomes a file when it is saved; `ours`: nothing is lost when it is left unchanged. */
  fresh(text: string, name = UNTITLED, places: Places = {}, ours = true): void {
    this.keep();
    this.openings += 1;
    const taken = [...(this.state.files?.scenarios ?? []), ...this.state.drafts];
    this.show(freePath(name, taken), null, "", {}, { text, version: null, places }, ours ? text : undefined);
  }

  /** Forget changes that are not saved, of a document that is not a file. */
  discard(path: string): void {
    if (path === this.state.path) {
      this.begun = this.state.text;
      this.fresh(EMPTY);
    }
    keepDraft(path, undefined);
    this.page.set({ drafts: draftPaths() });
  }

  /** A file of this machine: a scenario, or the topology of another tool. */
  async take(file: File): Promise<void> {
    if (file.size > MAX_BYTES) return this.page.notice(`${file.name} is too large for a scenario.`, true);
    const number = ++this.openings;
    try {
      const text = await file.text();
      if (number !== this.openings) return;
      if (!/\.(mn|clab\.ya?ml)$/.test(file.name)) return this.fresh(text.replace(/\r\n/g, "\n"), `${file.name.replace(/\.ya?ml$/, "")}.yaml`, {}, false);
      const made = await this.page.backend.imported(text, file.name);
      if (number !== this.openings) return;
      this.fresh(made.text, `${made.name}.yaml`, {}, false);
      if (made.notes.length) this.page.notice(`${file.name}: ${made.notes.join("; ")}`, true);
      if (made.left_out.length) this.page.notice(`Left out of ${file.name}: ${made.left_out.join(" ")}`, true);
    } catch (problem) {
      this.page.notice(`Not opened: ${message(problem)}`, true);
    }
  }

  /** A change of the text or of positions; changes of one `kind` in a row are undone together. */
  edit(text: string, places: Places = this.history.now.places, kind = ""): void {
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
    if (this.placedByHand) return;
    this.automatic = found;
    this.page.set({ placed: places(this.state.drawing, found) });
  }

  /** The plan of the text is known: it has the nodes and links that `topology` makes. */
  planned(plan: unknown): void {
    if (!this.state.drawing.generated || !plan) return;
    const drawing = drawPlan(this.state.drawing, plan);
    this.page.set({ drawing, placed: places(drawing, { ...this.automatic, ...this.history.now.places }) });
  }

  /** The present text: another object after every edit. */
  get now(): object {
    return this.history.now;
  }

  get placedByHand(): boolean {
    return Object.keys(this.history.now.places).length > 0;
  }

  get dirty(): boolean {
    return this.state.text !== this.state.savedText || this.history.now.places !== this.state.savedPlaces;
  }

  /** Save; one that has no file and no name of a file is given one first. */
  async saveOrAsk(): Promise<void> {
    const { path, version, text, files } = this.state;
    if (version !== null || this.removed || !isUntitled(path)) return void (await this.save());
    const name = nameIn(text);
    this.page.set({ naming: name && !isUntitled(name) ? freePath(`${name}.yaml`, files?.scenarios ?? []) : path });
  }

  /** Save under this path, after which a scenario is called that has no name of its own. */
  async saveAs(path: string): Promise<void> {
    const [stem] = path.split("/").slice(-1)[0]!.split(/\.ya?ml$/);
    if (isUntitled(nameIn(this.state.text) ?? "") && NAME.test(stem!)) this.edit(change(this.state.text, ["name"], stem!));
    await this.save(path);
  }

  async save(as?: string): Promise<boolean> {
    const path = as ?? this.state.path;
    const places = this.history.now.places;
    const version = as !== undefined && as !== this.state.path ? null : this.state.version;
    const about = aboutSaving(path);
    const { document, path: former, text } = this.state;
    try {
      const saved = await this.page.backend.save(path, text, version, Object.keys(places).length ? { places } : null);
      // Another document is open by now: this one's draft is what was saved.
      const open = document === this.state.document;
      if (open || draftOf(former)?.text === text) keepDraft(former, undefined);
      this.page.set({ drafts: draftPaths() });
      if (open) {
        localStorage.setItem(LAST, path);
        this.removed = false;
        this.page.set({ path, version: saved.version, savedText: text, savedPlaces: places, conflict: false });
        // An edit made meanwhile is a draft of the new version.
        this.keep();
      }
      this.page.notice(`Saved ${path}.`, false, about);
      void this.list();
      return true;
    } catch (problem) {
      // Under another name, the open file is as it was.
      const own = document === this.state.document && path === this.state.path;
      if (problem instanceof BackendError && problem.status === 409 && own) this.page.set({ conflict: true });
      this.page.notice(`${path} is not saved: ${message(problem)}. Your changes are kept in this browser.`, true, about);
      return false;
    }
  }

  /** Resolve a conflict: take the file as it is now, or keep what stands here for the next save. */
  async resolve(theirs: boolean): Promise<void> {
    const { path, document } = this.state;
    try {
      const opened = await this.page.backend.open(path);
      if (document !== this.state.document) return;
      this.removed = false;
      if (theirs) {
        const places = opened.layout.places ?? {};
        this.page.set({ version: opened.version, savedText: opened.text, savedPlaces: places, conflict: false });
        this.edit(opened.text, places);
      } else {
        this.page.set({ version: opened.version, savedText: opened.text, conflict: false });
        await this.save();
      }
    } catch (problem) {
      if (document === this.state.document && isMissing(problem)) this.lost();
      else this.page.notice(`Not loaded: ${message(problem)}`, true);
    }
  }

  /** The open file was changed by another hand: shown at once where nothing here would be lost. */
  async follow(): Promise<void> {
    const { path, version, document } = this.state;
    if (version === null && !this.removed) return;
    try {
      const opened = await this.page.backend.open(path);
      if (document !== this.state.document) return;
      const places = opened.layout.places ?? {};
      if (opened.version === this.state.version) return this.moved(places);
      // Saved meanwhile: what was read may be older than that.
      if (path !== this.state.path || version !== this.state.version) return await this.follow();
      this.removed = false;
      if (opened.text === this.state.text) return this.page.set({ version: opened.version, savedText: opened.text });
      if (this.dirty) return this.page.set({ conflict: true });
      this.page.set({ version: opened.version, savedText: opened.text, savedPlaces: places });
      this.edit(opened.text, places);
      this.page.notice(`${path} was changed elsewhere; this is the new text. Undo brings back the former.`);
    } catch (problem) {
      // Without an answer the server is gone: what is open stays.
      if (document === this.state.document && version !== null && version === this.state.version && isMissing(problem)) this.lost();
    }
  }

  /** The open file is gone: what is open is a new scenario of its name. */
  private lost(): void {
    this.removed = true;
    this.begun = undefined;
    this.page.set({ version: null, savedText: "", savedPlaces: {}, conflict: false });
    this.keep();
    this.page.notice(`${this.state.path} was removed. Save writes it again.`, true, aboutSaving(this.state.path));
  }

  /** Another hand has moved the nodes of the open file; places of one's own stay. */
  private moved(found: Places): void {
    const now = this.history.now.places;
    if (now !== this.state.savedPlaces || samePlaces(found, now)) return;
    this.page.set({ savedPlaces: found });
    this.edit(this.state.text, found);
  }

  /** The contents of the directory now. */
  async list(): Promise<void> {
    const number = ++this.listings;
    try {
      const files = await this.page.backend.files();
      if (number === this.listings) this.page.set({ files });
    } catch {
      // The connection's own state says so.
    }
  }

  private show(path: string, version: string | null, text: string, known: Places, draft?: Draft, begun?: string): void {
    const now = draft ?? { text, places: known };
    this.begun = begun;
    this.removed = false;
    this.history = new History({ text: now.text, places: now.places });
    this.automatic = {};
    this.page.set({
      document: this.state.document + 1,
      view: "edit",
      tab: this.state.tab === "result" ? "curves" : this.state.tab,
      path,
      version,
      savedText: text,
      savedPlaces: known,
      drawing: INITIAL.drawing,
      selection: [],
      conflict: false,
      checked: undefined,
      curves: undefined,
      ghost: undefined,
      refused: undefined,
      took: undefined,
      window: undefined,
      overlays: [],
      played: undefined,
      result: undefined,
      hidden: {},
      sidebar: "files",
    });
    this.took(now.text, now.places, true);
  }

  private took(text: string, known: Places, another = false): void {
    const found = read(text);
    // A text that is broken for the moment leaves the drawing as it was.
    const before = this.state.drawing;
    const drawing = found.broken ? before : draw(found.data, this.state.kinds);
    // Nodes made from `topology` stay until the plan of this text is known.
    if (drawing.generated && before.generated) Object.assign(drawing, { nodes: before.nodes, links: before.links });
    const changed = another || text !== this.state.text;
    this.page.set({
      text,
      broken: found.broken,
      drawing,
      placed: places(drawing, { ...this.automatic, ...known }),
      canUndo: this.history.canUndo,
      canRedo: this.history.canRedo,
      selection: this.state.selection.filter(({ kind, name }) => drawing[`${kind}s`].some((one) => one.name === name)),
    });
    if (changed) this.changed(another);
    this.keep();
  }

  private keep(): void {
    const { document, path, text, version } = this.state;
    // Nothing was open yet.
    if (!document) return;
    const clean = !text || !this.dirty || (version === null && text === this.begun);
    if (!clean) localStorage.setItem(LAST, path);
    keepDraft(path, clean ? undefined : { text, version, places: this.history.now.places });
    if (this.state.drafts.includes(path) === clean) this.page.set({ drafts: draftPaths() });
  }
}

// A scenario's name, as its schema has it.
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,47}$/;
const isUntitled = (name: string) => /^untitled(-\d+)?(\.yaml)?$/.test(name);

/** The name that a text gives its scenario, where it can be that of a file. */
function nameIn(text: string): string | undefined {
  const { name } = mapping(read(text).data);
  return typeof name === "string" && NAME.test(name) ? name : undefined;
}

/** This path, or with a number the first that is not taken. */
function freePath(path: string, taken: string[]): string {
  let free = path;
  for (let number = 2; taken.includes(free); number++) free = path.replace(/\.yaml$/, `-${number}.yaml`);
  return free;
}

/** Whether a file is saved: the newest notice about it holds. */
const aboutSaving = (path: string) => `save ${path}`;

const isMissing = (problem: unknown) => problem instanceof BackendError && problem.status === 404;
