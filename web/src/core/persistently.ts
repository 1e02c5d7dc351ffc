// Asking a server that may be away for a while.

const PAUSE_MS = 1000;

/** The answer of `ask`, which is asked again until there is one. */
export async function persistently<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch {
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
  }
}
