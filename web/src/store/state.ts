// The state of the page: the open document, what was checked, simulated and run, and what goes on.

import type { Files, Job, Lab, Result, Session } from "../backend/backend";
import type { Curves } from "../core/curves";
import type { Drawing } from "../core/network";
import type { Places } from "../core/places";
import type { Checked, Object as Drawn } from "../core/problems";
import { type Kinds, NO_KINDS } from "../core/kinds";
import type { Schema } from "../core/schema";

export type View = "edit" | "study";
export type Tab = "curves" | "packets" | "lab" | "result";

export interface Overlay {
  path: string;
  curves: Curves;
}

/** Panels whose curves are drawn while a run goes on. */
export const LIVE_PANELS = ["goodput", "cwnd", "rtt"] as const;
export type LivePanel = (typeof LIVE_PANELS)[number];

/** The flows of a run that goes on: of each panel the values by flow, at `times`. */
export interface Live {
  times: number[];
  panels: Record<LivePanel, Record<string, (number | undefined)[]>>;
}

export interface Notice {
  id: number;
  text: string;
  bad: boolean;
  /** Notices about one thing replace each other. */
  about: string;
}

export interface State {
  session?: Session;
  /** Why the page has no access; undefined: it has. */
  locked?: string;
  connection: "connecting" | "open" | "lost";
  others: number;
  files?: Files;
  /** The paths of documents with changes that are not saved; some were never saved. */
  drafts: string[];
  schema?: Schema;
  kinds: Kinds;
  jobs: Record<string, Job>;
  live: Record<string, Live>;

  view: View;
  tab: Tab;
  /** Number of the open document: answers about a former one are too late. */
  document: number;
  path: string;
  /** The path that is being given; undefined: none is asked for. */
  naming?: string;
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
  /** How far the simulation while editing has come, from 0 to 1, when it takes longer than a moment. */
  share?: number;
  refused?: string;
  /** Milliseconds from the edit to its curves. */
  took?: number;
  window?: [number, number];
  hidden: Record<string, boolean>;
  panels: string[];
  overlays: Overlay[];
  /** The result whose packets are played; undefined: the simulation's. */
  played?: string;
  result?: Result;
  /** How often this page has asked for curves, by a run or by laying a result over them. */
  curvesWanted: number;
  study?: string;
  /** How often runs of a study have ended, by the study's path. */
  studyRuns: Record<string, number>;
  labs: Lab[];
  /** The last change of a link that is up. */
  labChange?: string;

  notices: Notice[];
  sidebar: "files" | "settings";
}

export const UNTITLED = "untitled.yaml";

export const INITIAL: State = {
  kinds: NO_KINDS,
  connection: "connecting",
  others: 0,
  drafts: [],
  jobs: {},
  live: {},
  view: "edit",
  tab: "curves",
  document: 0,
  path: UNTITLED,
  version: null,
  savedText: "",
  savedPlaces: {},
  text: "",
  drawing: { nodes: [], links: [], flows: [], short: false },
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
  panels: ["goodput", "cwnd", "rtt", "queue", "echo"],
  overlays: [],
  curvesWanted: 0,
  studyRuns: {},
  labs: [],
  notices: [],
  sidebar: "files",
};
