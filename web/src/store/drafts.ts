// Changes that are not saved, kept in the browser by the served directory and the path of their document.

import type { Places } from "../core/places";

const PREFIX = "tcplab-draft:";
/** The served directory: servers of others, one after the other on a port, have the same browser storage. */
let place = "";

export interface Draft {
  text: string;
  /** The version of the file that was changed; null: it is not a file yet. */
  version: string | null;
  places: Places;
}

export function draftsOf(directory: string): void {
  place = directory;
}

const keyOf = (path: string) => `${PREFIX}${place}:${path}`;

/** The paths that have drafts, sorted. */
export function draftPaths(): string[] {
  const keys = Array.from({ length: localStorage.length }, (_, index) => localStorage.key(index)!);
  const prefix = keyOf("");
  return keys.flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : [])).sort();
}

export function draftOf(path: string): Draft | undefined {
  try {
    return JSON.parse(localStorage.getItem(keyOf(path)) ?? "") as Draft;
  } catch {
    return undefined;
  }
}

export function keepDraft(path: string, draft: Draft | undefined): void {
  if (!draft) return localStorage.removeItem(keyOf(path));
  try {
    localStorage.setItem(keyOf(path), JSON.stringify(draft));
  } catch {
    // The browser keeps no more: closing the page asks, all the same.
  }
}
