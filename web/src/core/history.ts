// Undo and redo over everything that is edited: the text and the positions on the canvas.

export interface State {
  text: string;
  /** Positions of nodes by name. */
  places: Record<string, { x: number; y: number }>;
}

// Edits of one kind within this time are one step: typing a word, dragging a slider.
const TOGETHER = 600;
const MAX = 500;

export class History {
  private past: State[] = [];
  private future: State[] = [];
  private kind = "";
  private last = -Infinity;

  constructor(public now: State) {}

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  /** Edits of the same `kind` in quick succession are undone together; an empty kind stands alone. */
  push(next: State, kind: string, time: number): void {
    if (next.text === this.now.text && next.places === this.now.places) return;
    const continues = kind !== "" && kind === this.kind && time - this.last < TOGETHER && this.past.length > 0;
    if (!continues) {
      this.past.push(this.now);
      if (this.past.length > MAX) this.past.shift();
    }
    this.future = [];
    this.kind = kind;
    this.last = time;
    this.now = next;
  }

  undo(): State {
    return this.step(this.past, this.future);
  }

  redo(): State {
    return this.step(this.future, this.past);
  }

  private step(from: State[], to: State[]): State {
    const found = from.pop();
    if (found) {
      to.push(this.now);
      this.now = found;
      this.kind = "";
    }
    return this.now;
  }
}
