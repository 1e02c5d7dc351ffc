import { expect, it } from "vitest";
import { History } from "./history";

const state = (text: string) => ({ text, places: {} });

it("takes back what was typed in one go as one step", () => {
  const history = new History(state(""));
  history.push(state("a"), "type", 0);
  history.push(state("ab"), "type", 100);
  history.push(state("abc"), "type", 5000);
  expect(history.undo().text).toBe("ab");
  expect(history.undo().text).toBe("");
  expect(history.canUndo).toBe(false);
  expect(history.redo().text).toBe("ab");
});

it("takes back drawing and typing in the order they were made", () => {
  const history = new History(state("0"));
  history.push(state("drawn"), "draw", 0);
  history.push(state("typed"), "type", 1);
  expect(history.undo().text).toBe("drawn");
  history.push(state("other"), "draw", 2);
  expect(history.canRedo).toBe(false);
});

it("takes back a move on the canvas", () => {
  const history = new History({ text: "t", places: { a: { x: 0, y: 0 } } });
  history.push({ text: "t", places: { a: { x: 9, y: 9 } } }, "", 0);
  expect(history.undo().places.a).toEqual({ x: 0, y: 0 });
});
