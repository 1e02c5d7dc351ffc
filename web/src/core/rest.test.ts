import { describe, expect, it } from "vitest";
import { align, charts, inOrderOf, type Line, reach, tints, windowAfter } from "./curves";
import { decode, type Frame } from "./frame";
import { draw, drawPlan } from "./network";
import { COLUMN, places, ROW } from "./places";
import { Packets, type PacketsHeader } from "./playback";
import { byObject, objectAt } from "./problems";
import { axisEnds, base, clock, half, quantity, scaleOf, shown, ticksAround, unbroken } from "./quantity";
import { fields, fits, type Schema, schemaOf } from "./schema";
import { EMPTY, TEMPLATES } from "./templates";
import { read } from "./text";

describe("quantities", () => {
  it("have axes of round numbers that reach them", () => {
    expect(ticksAround(0, 19.1)).toEqual([0, 5, 10, 15, 20]);
    expect(ticksAround(40, 141)).toEqual([0, 50, 100, 150]);
    expect(ticksAround(1, 1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(ticksAround(16.8, 19.1)).toEqual([16.5, 17, 17.5, 18, 18.5, 19, 19.5]);
    expect(ticksAround(-3, 12)).toEqual([-5, 0, 5, 10, 15]);
    for (const most of [3e-7, 0.02, 0.7, 6, 8.4, 99, 1e9]) {
      for (const least of [-most, 0, most / 3, most * 0.9, most]) {
        const ticks = ticksAround(least, most);
        const [first, last] = [ticks[0]!, ticks[ticks.length - 1]!];
        expect([ticks.length > 3, ticks.length < 8, first <= least, last >= most, last - first > 0]).toEqual([true, true, true, true, true]);
      }
    }
    expect([ticksAround(0, 0), ticksAround(-2, -2)]).toEqual([[0, 0.2, 0.4, 0.6, 0.8, 1], [-2, -1.5, -1, -0.5, 0]]);
  });

  it("are a number and a unit", () => {
    expect(quantity("1.5 BDP")).toEqual({ number: 1.5, unit: "BDP" });
    expect(quantity("unlimited")).toBeUndefined();
    expect(half("25 ms")).toBe("12.5 ms");
    expect(base("20 Mbit/s")).toBe(20e6);
  });

  it("are in the unit that readers expect where all are zero", () => {
    expect(["s", "ns", "bit/s", "B", "packets"].map((unit) => scaleOf(unit, 0))).toEqual([
      { divide: 1e-3, unit: "ms" },
      { divide: 1e6, unit: "ms" },
      { divide: 1e6, unit: "Mbit/s" },
      { divide: 1e3, unit: "kB" },
      { divide: 1, unit: "packets" },
    ]);
  });

  it("have an axis from 0 to 1 of the unit shown where all are zero", () => {
    expect(["s", "bit/s", "packets"].map((unit) => axisEnds(0, 0, scaleOf(unit, 0)))).toEqual([[0, 1e-3], [0, 1e6], [0, 1]]);
    expect([axisEnds(0, 100, scaleOf("s", 100)), axisEnds(-100, 0, scaleOf("s", 0))]).toEqual([[0, 108], [-108, 0]]);
  });

  it("are shown in three digits", () => {
    expect([shown(75_100_000, "ns"), scaleOf("ns", 141e6), shown(20e6, "ns")]).toEqual(["75.1\u00a0ms", { divide: 1e6, unit: "ms" }, "20\u00a0ms"]);
    expect([shown(9_480_000, "bit/s"), shown(0.0251, "s"), shown(17, "packets"), shown(null, "s")]).toEqual([
      "9.48\u00a0Mbit/s",
      "25.1\u00a0ms",
      "17\u00a0packets",
      "–",
    ]);
    expect(clock(1.5)).toBe("1.500\u00a0s");
  });

  it("stay on one line with their units in sentences, as in reports", () => {
    expect(unbroken("98 % in 20 ms at 1.5 Mbit/s of 64 KiB; 2 segments. 5 streams, see 5 s/x")).toBe(
      "98\u00a0% in 20\u00a0ms at 1.5\u00a0Mbit/s of 64\u00a0KiB; 2\u00a0segments. 5 streams, see 5 s/x",
    );
  });
});

it("a frame is a header and aligned arrays", () => {
  const head = new TextEncoder().encode('{"a":1,"arrays":[2,1]}'.padEnd(28));
  const data = new ArrayBuffer(4 + head.length + 24);
  new DataView(data).setUint32(0, head.length, true);
  new Uint8Array(data, 4).set(head);
  new Float64Array(data, 32).set([1, 2, 3]);
  expect(decode<{ a: number }>(data).header.a).toBe(1);
  expect(decode(data).arrays.map((array) => [...array])).toEqual([[1, 2], [3]]);
});

it("lines with samples at different times share one axis, and a gap stays a gap", () => {
  const line = (x: number[], y: number[]): Line => ({ panel: "p", label: "l", unit: "", run: 0, x, y });
  expect(align([line([0, 2], [1, 2]), line([1, 2], [5, NaN])])).toEqual({
    x: [0, 1, 2],
    ys: [
      [1, undefined, 2],
      [undefined, 5, null],
    ],
  });
});

describe("what shares a chart", () => {
  const line = (about: Partial<Line>): Line => ({ panel: "p", label: "l", unit: "", run: 0, x: [], y: [], ...about });
  const names = { flows: ["a", "b"], links: ["l forward"] };

  it("has one unit and one publisher; without lines it is one empty chart", () => {
    const found = charts([line({ group: "codel", unit: "s" }), line({ group: "codel" }), line({ group: "red" }), line({ group: "codel" })], "");
    expect(found.map(({ group, unit, lines }) => [group, unit, lines.length])).toEqual([["codel", "s", 1], ["codel", "", 2], ["red", "", 1]]);
    expect(charts([], "bit/s")).toEqual([{ group: "", unit: "bit/s", lines: [] }]);
  });

  it("is coloured by flow or link, and by figure where it has several", () => {
    const link = { link: "l", direction: "forward" };
    expect(tints([line({ flow: "b" }), line({ flow: "a" }), line(link)], names)).toEqual([1, 0, 0]);
    expect(tints([line({ flow: "b", figure: "w" }), line({ flow: "a", figure: "w" })], names)).toEqual([1, 0]);
    expect(tints([line({ flow: "a", figure: "w" }), line({ flow: "a", figure: "k" }), line({ flow: "a", figure: "w", run: 1 })], names)).toEqual([0, 1, 0]);
    expect(tints([line({ ...link, figure: "p" }), line({ ...link, figure: "q" })], names)).toEqual([0, 1]);
  });

  it("has the flows of the drawing first, in its order", () => {
    expect(inOrderOf(["a", "b", "u"], ["a", "u", "b", "elsewhere"])).toEqual(["a", "b", "u", "elsewhere"]);
  });

  it("reaches from the least to the largest abscissa, and is never of no width", () => {
    expect(reach([line({ x: [2, 5] }), line({ x: [1, 3] }), line({})])).toEqual([1, 5]);
    expect(reach([line({ x: [4, 4] })])).toEqual([0, 8]);
    expect(reach([line({})])).toEqual([0, 1]);
  });
});

describe("a drawing", () => {
  it("of each template has every link and flow of its text", () => {
    for (const { text } of TEMPLATES) {
      const { data, broken } = read(text);
      const scenario = data as { network: { links?: unknown[]; path?: unknown }; flows: unknown[] };
      expect(broken).toBe(false);
      expect(draw(data).links).toHaveLength(scenario.network.links?.length ?? (scenario.network.path ? 1 : 0));
      expect(draw(data).flows).toHaveLength(scenario.flows.length);
    }
    expect(draw(read(EMPTY).data).nodes).toEqual([]);
  });

  it("of a generated network has the nodes and links of its plan, and the flows of its text", () => {
    const text = draw(read("network: {topology: {kind: star}}\nflows: [{name: f, kind: tcp, from: h1, to: h2}]").data);
    expect([text.generated, text.nodes, text.flows.length]).toEqual([true, [], 1]);
    const way = { rate: 20_000_000, delay: 1_500_000 };
    const found = drawPlan(text, {
      nodes: [{ name: "r1", kind: "router" }, { name: "h1", kind: "host" }],
      links: [{ name: "r1-h1", ends: ["r1", "h1"], forward: way }, { name: "x", ends: ["r1", "h1"], forward: { rate: null, delay: 0 } }],
    });
    expect(found.nodes.map(({ name, kind }) => [name, kind])).toEqual([["r1", "router"], ["h1", "host"]]);
    expect(found.links.map(({ label }) => label)).toEqual(["20\u00a0Mbit/s · 1.50\u00a0ms", ""]);
    expect(found.flows).toEqual(text.flows);
  });

  it("of anything at all draws what is there", () => {
    for (const data of [null, 3, [], { network: 1 }, { network: { nodes: [null, { name: 1 }], links: [{}] } }]) {
      expect(draw(data)).toMatchObject({ nodes: [], links: [], flows: [] });
    }
  });

  it("puts no two nodes on one spot", () => {
    for (const { text } of TEMPLATES) {
      const drawing = draw(read(text).data);
      // Nodes that `topology` makes are known from the plan alone.
      if (drawing.generated) continue;
      const found = places(drawing, { [drawing.nodes[0]!.name]: { x: 5, y: 5 } });
      expect(new Set(Object.values(found).map(({ x, y }) => `${x} ${y}`)).size).toBe(drawing.nodes.length);
      expect(found[drawing.nodes[0]!.name]).toEqual({ x: 5, y: 5 });
    }
  });

  it("puts nodes that are added one by one in no line", () => {
    const names = ["h1", "h2", "r1", "h3", "h4"];
    const found = names.reduce((before, _, last) => places(draw({ network: { nodes: names.slice(0, last + 1) } }), before), {});
    expect(found).toEqual({
      h1: { x: 0, y: 0 },
      h2: { x: COLUMN, y: 0 },
      r1: { x: COLUMN / 2, y: ROW },
      h3: { x: COLUMN * 1.5, y: ROW },
      h4: { x: 0, y: 2 * ROW },
    });
  });
});

describe("a mistake", () => {
  const drawing = draw(read(TEMPLATES[1]!.text).data);

  it("belongs to the object that its path names", () => {
    expect(objectAt("flows.first.cc", drawing)).toEqual({ kind: "flow", name: "first" });
    expect(objectAt("network.links.2.rate", drawing)).toEqual({ kind: "link", name: "r1-r2" });
    expect(objectAt("network.nodes.s1", drawing)).toEqual({ kind: "node", name: "s1" });
    expect(objectAt("duration", drawing)).toBeUndefined();
  });

  it("is found by its object", () => {
    const error = { line: 1, column: 1, width: 1, path: "flows.1.cc", value: "", message: "wrong", suggestion: "" };
    const found = byObject({ ok: false, errors: [error], problems: [], warnings: [], plan: null }, drawing);
    expect(found.get("flow second")).toEqual(["wrong"]);
  });
});

describe("a form", () => {
  const root: Schema = {
    $defs: {
      Link: {
        properties: {
          rate: { type: "string", pattern: "^\\d+ Mbit/s$", examples: ["10 Mbit/s"], description: "Speed." },
          up: { enum: ["on", "off", true, false] },
          queue: { anyOf: [{ type: "string" }, { $ref: "#/$defs/Queue" }] },
          ecn: { oneOf: [{ const: "off" }, { const: "on" }, { const: "passive" }] },
        },
      },
      Queue: {
        oneOf: [
          { type: "object", properties: { kind: { const: "droptail" }, limit: { type: "string" } } },
          { type: "object", properties: { kind: { const: "codel" }, target: { type: "string" } } },
        ],
      },
    },
    properties: { network: { properties: { links: { items: { $ref: "#/$defs/Link" } } } } },
  };

  it("has a field for each key of the schema", () => {
    const found = fields(schemaOf(root, "link"), root);
    expect(found.map(({ key, kind }) => [key, kind])).toEqual([["rate", "text"], ["up", "switch"], ["queue", "group"], ["ecn", "switch"]]);
    expect(found[3]!.choices).toEqual(["off", "on", "passive"]);
    expect([fits(found[0]!, "10 Mbit/s"), fits(found[0]!, "10"), fits(found[0]!, "")]).toEqual([true, false, true]);
  });
});

describe("a form of something that has kinds", () => {
  const kinds: Schema = {
    anyOf: [
      { type: "string", pattern: "^\\d+ packets$" },
      {
        oneOf: [
          { properties: { kind: { const: "droptail" }, limit: { type: "string" } } },
          { properties: { kind: { const: "codel" }, target: { type: "string" } } },
        ],
      },
    ],
  };
  const [queue] = fields({ properties: { queue: kinds } }, {});
  const keys = (kind?: string) => queue!.fields(kind).map(({ key }) => key);

  it("has the fields of the kind that is chosen, and a choice of them all", () => {
    expect([keys("codel"), keys("droptail"), keys("")]).toEqual([["kind", "target"], ["kind", "limit"], ["kind", "limit"]]);
    expect(queue!.fields("codel")[0]!.choices).toEqual(["droptail", "codel"]);
  });

  it("takes the short form by its pattern", () => {
    expect([fits(queue!, "20 packets"), fits(queue!, "20")]).toEqual([true, false]);
  });

  it("takes a quantity, a word or a mapping where each is a form", () => {
    const [change] = fields({ properties: { queue: { anyOf: [kinds, { enum: ["fq_codel", "a-b"] }] } } }, {});
    const given = ["20 packets", "fq_codel", "a-b", "{limit: 20 packets}", "20", "fast", "codel x"];
    expect(given.map((one) => fits(change!, one))).toEqual([true, true, true, true, false, false, false]);
  });
});

describe("packets", () => {
  const header: PacketsHeader = {
    links: ["a-b"], flows: ["f"], start: 0, until: 10, duration: 10, queues: [{ way: 0, largest: 3 }], recorded: true,
    changes: [
      { link: 0, time: 2, direction: "forward", detail: "down" },
      { link: 0, time: 3, direction: "forward", detail: "up" },
      { link: 0, time: 4, direction: "forward", detail: "rate 5 Mbit/s" },
      { link: 0, time: 4, direction: "backward", detail: "rate 5 Mbit/s" },
      { link: 0, time: 5, direction: "forward", detail: "rate 1 Mbit/s, loss" },
    ],
  };
  // A delivered packet forward, a lost one backward, one that the queue dropped.
  const arrays = [[0, 1, 1], [1, 2, 1], [0, 1, 0], [0, 0, 0], [1, 2, 4], [1514, 74, 1514], [0, 1], [1, 0]];
  const packets = new Packets({ header, arrays: arrays.map((array) => Float64Array.from(array)) } as Frame<PacketsHeader>);

  it("are as far along their link as time has come", () => {
    expect(packets.at(0.25, 0.5)).toEqual([
      { link: 0, at: 0.25, backward: false, flow: 0, marked: true, fallen: undefined, data: true },
    ]);
    expect(packets.at(1.5, 0.1).map((dot) => [dot.at, dot.backward, dot.data])).toEqual([[0.75, true, false]]);
  });

  it("fall where they are lost or dropped, and are gone afterwards", () => {
    expect(packets.at(2.25, 0.5)).toMatchObject([{ at: 0.5, fallen: 0.5 }]);
    expect(packets.at(1.2, 0.4).filter((dot) => dot.fallen !== undefined)).toMatchObject([{ at: 0 }]);
    expect(packets.at(9, 0.5)).toEqual([]);
  });

  it("go over links whose state is that of the moment", () => {
    const said = (time: number) => packets.states(time).get(0);
    expect([said(1), said(2.5), said(3.5)]).toEqual([undefined, { down: true, said: "down" }, undefined]);
    expect(said(4.5)).toEqual({ down: false, said: "rate 5 Mbit/s" });
    expect(said(5)).toEqual({ down: false, said: "rate 1 Mbit/s · rate 5 Mbit/s · loss changed" });
  });

  it("wait in a queue between its events", () => {
    expect([packets.waiting(0.5).get(0), packets.waiting(1).get(0)]).toEqual([[1, 3], [0, 3]]);
  });
});

describe("keys on a panel of curves", () => {
  it("zoom around the middle and move, within the whole", () => {
    expect(windowAfter("+", [0, 4], [0, 4])).toEqual([1, 3]);
    expect(windowAfter("-", [1, 2], [0, 4])).toEqual([0.5, 2.5]);
    expect(windowAfter("-", [0, 2], [0, 4])).toBeUndefined();
    expect(windowAfter("ArrowLeft", [1, 3], [0, 4])).toEqual([0.5, 2.5]);
    expect(windowAfter("ArrowRight", [1.9, 3.9], [0, 4])).toEqual([2, 4]);
    expect(windowAfter("0", [1, 3], [0, 4])).toBeUndefined();
  });

  it("other than these do nothing, nor do those that make a window too small for any sample", () => {
    expect(windowAfter("a", [0, 4], [0, 4])).toBeNull();
    expect(windowAfter("+", [1, 1 + 4e-6], [0, 4])).toBeNull();
  });
});
