// The state of the page, who looks at it, and its messages to the user.

import type { Backend } from "../backend/backend";
import { INITIAL, type State } from "./state";

// How long a success is shown, ms. A failure stays until it is dismissed.
const SHOWN = 4000;
// More would hide the page.
const MAX_NOTICES = 4;

export class Page {
  state: State = INITIAL;
  private listeners = new Set<() => void>();
  private noticed = 0;

  constructor(readonly backend: Backend) {}

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  set(part: Partial<State>): void {
    this.state = { ...this.state, ...part };
    this.listeners.forEach((listener) => listener());
  }

  /** Tell the user; a notice takes the place of those before it that are about the same. */
  notice(text: string, bad = false, about = text): void {
    const id = ++this.noticed;
    // A success makes room for the next message; a failure waits to be read.
    const others = this.state.notices.filter((one) => one.about !== about && one.bad);
    this.set({ notices: [...others, { id, text, bad, about }].slice(-MAX_NOTICES) });
    if (!bad) window.setTimeout(() => this.dismiss(id), SHOWN);
  }

  /** Notices about this go: it is seen elsewhere now. */
  dismissAbout(about: string): void {
    this.state.notices.filter((one) => one.about === about).forEach(({ id }) => this.dismiss(id));
  }

  dismiss(id: number): void {
    if (this.state.notices.some((one) => one.id === id)) {
      this.set({ notices: this.state.notices.filter((one) => one.id !== id) });
    }
  }

  /** Do something that the server may refuse: `failed` and the reason are shown then, else `said`. */
  async act(failed: string, work: () => Promise<unknown>, said = ""): Promise<boolean> {
    try {
      await work();
      if (said) this.notice(said);
      return true;
    } catch (problem) {
      this.notice(`${failed}: ${message(problem)}`, true);
      return false;
    }
  }
}

export function message(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}
