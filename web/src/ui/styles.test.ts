import { describe, expect, it } from "vitest";
import css from "./styles.css?raw";

/** The channels of a name's colour in the first block that begins with these words. */
function colour(block: string, name: string): number[] {
  const found = new RegExp(`--${name}: #([0-9a-f]{6})`).exec(css.slice(css.indexOf(block)))!;
  return [0, 2, 4].map((at) => parseInt(found[1]!.slice(at, at + 2), 16) / 255);
}

/** Relative luminance and contrast of WCAG 2.1. */
const luminance = (of: number[]) =>
  of.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)).reduce((sum, one, index) => sum + one * [0.2126, 0.7152, 0.0722][index]!, 0);

function contrast(one: number[], other: number[]): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light! + 0.05) / (dark! + 0.05);
}

describe("labels of flows", () => {
  const share = Number(/\.arc-label \{ color: color-mix\(in srgb, var\(--flow\) (\d+)%/.exec(css)![1]) / 100;

  it.each([":root {", ':root[data-theme="dark"] {', ":root:not([data-theme]) {"])("can be read in the theme %s", (theme) => {
    const [text, surface] = [colour(theme, "text"), colour(theme, "surface")];
    for (let flow = 0; flow < 10; flow++) {
      const mixed = colour(theme, `flow-${flow}`).map((one, index) => share * one + (1 - share) * text[index]!);
      expect(contrast(mixed, surface), `flow ${flow}`).toBeGreaterThanOrEqual(4.5);
    }
  });
});
