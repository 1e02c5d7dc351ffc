// Events that come faster than a page can draw: they are drawn together, and the page stays free for clicks.

/** `work`, done within `wait` ms of the first `ask`; later when the page needs longer than that to draw what it did. */
export function throttle(work: () => void, wait: number): { ask(): void; now(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  // How long the page was busy the last time, ms: for half of its time it is free for clicks.
  let busy = 0;
  const now = () => {
    clearTimeout(timer);
    timer = undefined;
    const began = performance.now();
    work();
    setTimeout(() => (busy = performance.now() - began));
  };
  return { ask: () => void (timer ??= setTimeout(now, Math.max(wait, busy))), now };
}
