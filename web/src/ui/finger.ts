// Drags of a finger over a plot: uPlot knows those of a mouse. Up and down, a finger scrolls the page.

// A shorter way is a tap, px.
const MIN_DRAG = 6;

export function asMouse(over: HTMLElement): void {
  over.style.touchAction = "pan-y";
  let from: PointerEvent | undefined;
  let dragging = false;
  // uPlot ignores a move by nothing.
  const send = (type: string, { clientX, clientY }: PointerEvent) =>
    over.dispatchEvent(new MouseEvent(type, { clientX, clientY, movementX: 1, bubbles: true, cancelable: true, view: window }));
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" && event.isPrimary) from = event;
  });
  over.addEventListener("pointermove", (event) => {
    if (!from || event.pointerId !== from.pointerId) return;
    if (!dragging && Math.abs(event.clientX - from.clientX) >= MIN_DRAG) {
      dragging = true;
      send("mousemove", from);
      send("mousedown", from);
    }
    if (dragging) send("mousemove", event);
  });
  const ended = (event: PointerEvent, at: PointerEvent) => {
    if (!from || event.pointerId !== from.pointerId) return;
    if (dragging) {
      send("mousemove", at);
      send("mouseup", at);
      send("mouseleave", at);
    }
    [from, dragging] = [undefined, false];
  };
  over.addEventListener("pointerup", (event) => ended(event, event));
  // The browser scrolls instead: nothing is selected.
  over.addEventListener("pointercancel", (event) => from && ended(event, from));
}
