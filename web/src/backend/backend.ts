// All talk with what checks and runs scenarios. The server is one back end; a simulator in the browser can be
// another.

import type { Curves } from "../core/curves";
import type { Frame } from "../core/frame";
import type { NodeTraits } from "../core/kinds";
import type { Places } from "../core/places";
import type { PacketsHeader } from "../core/playback";
import type { Checked } from "../core/problems";
import type { Schema } from "../core/schema";

export interface Session {
  version: string;
  folder: string;
  /** Another one for each directory. */
  place: string;
  read_only: boolean;
  may_run: boolean;
  engines: string[];
  controls: string[];
  panels: Record<string, string>;
  node_kinds: NodeTraits[];
}

export interface ListedResult {
  path: string;
  name: string;
  engine: string;
  repetitions: number;
  status: string;
  started: string;
  warnings: number;
  /** Why it is damaged. */
  message: string;
}

export interface Files {
  folder: string;
  scenarios: string[];
  studies: string[];
  results: ListedResult[];
  study_results: string[];
  /** A sentence for each directory that cannot be read. */
  unreadable: string[];
  shipped_studies: { name: string; about: string }[];
}

export interface Opened {
  path: string;
  text: string;
  version: string;
  layout: { places?: Places };
}

export interface Job {
  type: "job";
  id: string;
  kind: "run" | "study";
  name: string;
  engine: string;
  path: string;
  state: "waiting" | "running" | "done" | "interrupted" | "failed";
  message: string;
  repetition: number;
  /** 0 while a study has not read its file. */
  repeat: number;
  /** Whether the runs of a study are over, and its report is being written. */
  reporting: boolean;
  time: number;
  duration: number;
  /** Of its flows lately: bit/s, segments and s. */
  goodput: Record<string, number>;
  cwnd: Record<string, number>;
  rtt: Record<string, number>;
  overload: string | null;
  notes: string[];
}

/** A table of text cells. */
export interface Table {
  title: string;
  headings: { label: string; unit: string; numeric: boolean; about: string }[];
  rows: string[][];
}

export interface Result {
  path: string;
  name: string;
  engine: string;
  status: string;
  message: string;
  warnings: string[];
  overload: string[];
  repetitions: number[];
  text: string | null;
  plan: { duration: number; sample?: { packets?: boolean } };
  summary: { tables: Table[]; notes: string[] };
}

export interface StudyCell {
  cell: string;
  labels: Record<string, string>;
  /** Its part of a study that has several. */
  group?: string | null;
  engine: string;
  failed: string[];
  overloaded: number;
  [metric: string]: unknown;
}

export interface StudyResults {
  name: string;
  axes: Record<string, string[]>;
  axis_titles: Record<string, string>;
  cells: StudyCell[];
  runs: { cell: string; repetition: number; status: string; message: string }[];
  places: Record<string, string>;
  /** The runs that a resumed study makes, those that it repeats, and those that their engine refuses. */
  left: { missing: number; failed: number; refused: number };
  repeat: number;
  metrics: Record<string, { title: string; unit: string; share: boolean; about: string }>;
  expectations: { statement: string; verdict: "holds" | "fails" | "undecided" }[];
}

/** The present settings of a direction in words, by their keys in a link's `at`. */
export type LinkSettings = Record<string, string>;

/** A network that stays up. */
export interface Lab {
  name: string;
  scenario: string;
  nodes: Record<string, { kind: string; addresses: string[] }>;
  /** Those that run FRR. */
  routers: string[];
  links: Record<string, { ends: [string, string][]; settings: Record<"forward" | "reverse", LinkSettings> }>;
  /** Whether this server has started flows in it. */
  traffic: boolean;
}

/** A two-way stream with something that goes on in a lab. */
export interface Stream {
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
}

export interface Captured {
  capture?: string;
  count?: number;
  rows?: { number: number; time: number; source: string; destination: string; protocol: string; length: number; info: string; flow: number | null; note: string }[];
}

export type Event =
  | { type: "hello"; jobs: Job[] }
  | { type: "pages"; count: number }
  | { type: "files"; paths: string[] }
  | { type: "saved"; path: string; version: string; page: string }
  /** A page's simulation while editing has come so far. */
  | { type: "preview"; page: string; share: number }
  | { type: "study"; job: string; path: string; cell?: string; status?: string }
  | Job
  | { type: "labs" }
  | { type: "lab-changed"; lab: string; link: string; settings: string }
  | { type: "lab-trouble"; lab: string; message: string }
  | { type: "connected" }
  | { type: "lost" };

export interface Wanted {
  from?: number;
  to?: number;
  points: number;
  panels?: string[];
  repetition?: number;
}

/** A request that was refused; `status` 401: the token is missing, 409: the file was changed elsewhere. */
export class BackendError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

export interface Backend {
  /** The name that distinguishes this page from others of the same server. */
  readonly page: string;
  /** Where it is. */
  readonly address: string;
  session(): Promise<Session>;
  login(token: string): Promise<void>;
  schema(): Promise<Schema>;
  files(): Promise<Files>;
  open(path: string): Promise<Opened>;
  save(path: string, text: string, version: string | null, layout: { places: Places } | null): Promise<{ version: string }>;
  check(text: string, path: string, engine: string, signal: AbortSignal): Promise<Checked>;
  /** The topology of MiniEdit or containerlab as a scenario; `name` is that of its file. */
  imported(text: string, name: string): Promise<{ text: string; name: string; left_out: string[]; notes: string[] }>;
  /** Simulate now; undefined when a newer call has taken its place, a text says why there are no curves. */
  preview(text: string, path: string, wanted: Wanted & { packets?: boolean }, signal: AbortSignal): Promise<Curves | string | undefined>;
  run(text: string, path: string, engine: string, packets: boolean): Promise<Job>;
  stop(job: string): Promise<void>;
  curves(run: string, wanted: Wanted): Promise<Curves>;
  packets(run: string, from: number, to: number): Promise<Frame<PacketsHeader>>;
  result(path: string): Promise<Result>;
  /** Undefined while the study begins, and of one that could not. */
  study(path: string): Promise<StudyResults | undefined>;
  startStudy(what: { path?: string; shipped?: string; resume?: string; quick: boolean }): Promise<Job>;
  reportAddress(paths: string[], download?: boolean): string;
  archiveAddress(path: string): string;
  labs(): Promise<Lab[]>;
  bringUp(text: string, path: string): Promise<Lab>;
  takeDown(lab: string): Promise<void>;
  changeLink(lab: string, link: string, settings: Record<string, string>, direction: string): Promise<void>;
  /** Start the flows of the text that the lab was built from; null stops them. */
  traffic(lab: string, text: string | null, path: string): Promise<void>;
  /** A node's addresses, routes and neighbours. */
  tables(lab: string, node: string): Promise<{ text: string }>;
  /** Open a terminal, a capture, or what is watched; `ended` is notified why it has ended. */
  enter(
    lab: string,
    what: "watch" | "terminal" | "capture",
    query: Record<string, string>,
    notify: (data: string | ArrayBuffer) => void,
    ended: (why: string) => void,
  ): Stream;
  captureAddress(capture: string): string;
  ladderAddress(capture: string, flow: number, theme: "light" | "dark"): string;
  /** Be notified of events, until the answer is called. */
  listen(notify: (event: Event) => void): () => void;
}
