// Changes that are not saved, kept in the browser by the path of their document.

import type { Places } from "../core/places";

const PREFIX = "tcplab-draft:";

export interface Draft {
  text: string;
  /** The version of the file that was changed; null: it is not a file yet. */
  version: string | null;
  places: Places;
}

export function draftOf(path: string): Draft | undefined {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + path) ?? "") as Draft;
  } catch {
    return undefined;
  }
}

export function keepDraft(path: string, draft: Draft | undefined): void {
  if (!draft) return localStorage.removeItem(PREFIX + path);
  try {
    localStorage.setItem(PREFIX + path, JSON.stringify(draft));
  } catch {
    // The browser keeps no more: closing the page asks, all the same.
  }
}
