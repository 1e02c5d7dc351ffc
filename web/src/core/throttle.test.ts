import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { throttle } from "./throttle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("does the work once for all that was asked for meanwhile", () => {
  const work = vi.fn();
  const drawing = throttle(work, 50);
  for (let count = 0; count < 100; count++) drawing.ask();
  expect(work).not.toHaveBeenCalled();
  vi.advanceTimersByTime(50);
  expect(work).toHaveBeenCalledTimes(1);
  drawing.ask();
  vi.advanceTimersByTime(50);
  expect(work).toHaveBeenCalledTimes(2);
});

it("does it at once when that is asked for, and not again", () => {
  const work = vi.fn();
  const drawing = throttle(work, 50);
  drawing.ask();
  drawing.now();
  vi.advanceTimersByTime(100);
  expect(work).toHaveBeenCalledTimes(1);
});

it("leaves a slow page as much time as drawing takes", () => {
  let clock = 0;
  vi.spyOn(performance, "now").mockImplementation(() => clock);
  const work = vi.fn(() => void (clock += 400));
  const drawing = throttle(work, 50);
  drawing.now();
  vi.advanceTimersByTime(1);
  drawing.ask();
  vi.advanceTimersByTime(399);
  expect(work).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1);
  expect(work).toHaveBeenCalledTimes(2);
  vi.restoreAllMocks();
});
