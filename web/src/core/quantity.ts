// Quantities as texts: taking them apart for sliders, halving, and showing numbers with a unit.

export interface Quantity {
  number: number;
  unit: string;
}

const FORM = /^\s*\+?(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([^\d\s].*?)?\s*$/;

/** The number and unit of `25 ms`; undefined for a word such as `unlimited`. */
export function quantity(text: unknown): Quantity | undefined {
  const found = typeof text === "string" ? FORM.exec(text) : null;
  if (!found || found[2] === undefined) return undefined;
  return { number: Number(found[1]), unit: found[2] };
}

export function written({ number, unit }: Quantity): string {
  return `${Number(number.toPrecision(6))} ${unit}`;
}

/** Half of a quantity; undefined where it is none. */
export function half(text: unknown): string | undefined {
  const found = quantity(text);
  return found && `${Number((found.number / 2).toPrecision(15))} ${found.unit}`;
}

const UNITS: Record<string, number> = {
  ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600,
  "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12, bps: 1, kbps: 1e3, Mbps: 1e6, Gbps: 1e9, Tbps: 1e12,
  B: 1, kB: 1e3, MB: 1e6, KiB: 1024, MiB: 1 << 20,
};

/** A quantity in its base unit (s, bit/s, B, packets, ...); undefined where it is none. */
export function base(text: unknown): number | undefined {
  const found = quantity(text);
  return found && found.number * (UNITS[found.unit] ?? 1);
}

/** Where a slider for this quantity begins and ends: a hundredth to a hundred times a round number. */
export function sliderRange({ number, unit }: Quantity): { least: number; most: number } {
  if (unit === "%") return { least: 0.001, most: 100 };
  const middle = 10 ** Math.round(Math.log10(number > 0 ? number : 1));
  const whole = unit === "packets" || unit === "packet";
  return { least: whole ? 1 : middle / 100, most: middle * 100 };
}

/** A number of three digits that is easy to read, for a slider's position. */
export function rounded(value: number): number {
  if (!(value > 0)) return 0;
  const size = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Number((Math.round(value / size) * size).toPrecision(3));
}

type Unit = [size: number, name: string];
const PREFIXES: Unit[] = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const SMALL: Unit[] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
// The units where all is zero.
const USUAL = new Set(["ms", "Mbit/s", "kB"]);

/** The scale of an axis whose largest value is `most`: what to divide by and the unit to name. */
export function scaleOf(unit: string, most: number): { divide: number; unit: string } {
  const size = Math.abs(most);
  if (unit === "ns") {
    const { divide, unit: named } = scaleOf("s", most / 1e9);
    return { divide: divide * 1e9, unit: named };
  }
  if (unit !== "s" && unit !== "bit/s" && unit !== "B") return { divide: 1, unit };
  const units = unit === "s" ? SMALL : PREFIXES.map(([factor, prefix]): Unit => [factor, prefix + unit]);
  const [divide, named] = units.find(([factor, name]) => (size ? size >= factor : USUAL.has(name))) ?? units[units.length - 1]!;
  return { divide, unit: named };
}

/** The ends of an axis of curves: a little beyond their values; 0 and 1 of the unit shown where all are zero. */
export function axisEnds(least: number, most: number, { divide }: { divide: number }): [number, number] {
  return [least * 1.08, most > 0 ? most * 1.08 : least < 0 ? 0 : divide];
}

/** Round numbers for an axis, four to seven that enclose all from `least` to `most`; from 0 where that is near. */
export function ticksAround(least: number, most: number): number[] {
  const near = least === most || (least > 0 && least < most / 2);
  const [low, high] = near ? [Math.min(0, least), Math.max(0, most) || (least < 0 ? 0 : 1)] : [least, most];
  const size = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * size).find((one) => (high - low) / one <= 5)!;
  const first = Math.floor(low / step + 1e-9);
  return Array.from({ length: Math.ceil(high / step - 1e-9) - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(6)));
}

// As in `tcplab.quantities`.
const FIGURE = /(?<=\d) (?=(?:[TGMk]?bit\/s|[GMk]?B|[KMG]iB|[mµn]?s|min|h|BDP|packets|segments|samples|%)(?![\w/]))/g;

/** A number and its unit, which stay on one line. */
export const inUnit = (number: number | string, unit: string) => `${number}\u00a0${unit}`;

/** A sentence whose numbers stay on one line with their units. */
export const unbroken = (text: string) => text.replace(FIGURE, inUnit("", ""));

/** A value with its unit in three digits. */
export function shown(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const { divide, unit: named } = scaleOf(unit, value);
  const scaled = value / divide;
  const digits = Math.abs(scaled) >= 100 ? 0 : Math.abs(scaled) >= 10 ? 1 : 2;
  const number = scaled.toFixed(Number.isInteger(scaled) ? 0 : digits);
  return named ? inUnit(number, named) : number;
}

/** A time of a run, for a clock. */
export function clock(seconds: number, digits = 3): string {
  return inUnit(seconds.toFixed(digits), "s");
}
