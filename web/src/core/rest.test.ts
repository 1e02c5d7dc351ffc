import { describe, expect, it } from "vitest";
import { align, type Line } from "./curves";
import { decode, type Frame } from "./frame";
import { draw } from "./network";
import { places } from "./places";
import { Packets, type PacketsHeader } from "./playback";
import { byObject, objectAt } from "./problems";
import { base, half, quantity, shown } from "./quantity";
import { fields, fits, type Schema, schemaOf } from "./schema";
import { EMPTY, TEMPLATES } from "./templates";
import { read } from "./text";

describe("quantities", () => {
  it("are a number and a unit", () => {
    expect(quantity("1.5 BDP")).toEqual({ number: 1.5, unit: "BDP" });
    expect(quantity("unlimited")).toBeUndefined();
    expect(half("25 ms")).toBe("12.5 ms");
    expect(base("20 Mbit/s")).toBe(20e6);
  });

  it("are shown in three digits", () => {
    expect([shown(9_480_000, "bit/s"), shown(0.0251, "s"), shown(17, "packets"), shown(null, "s")]).toEqual([
      "9.48 Mbit/s",
      "25.1 ms",
      "17 packets",
      "–",
    ]);
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

describe("a drawing", () => {
  it("of each template has every link and flow of its text", () => {
    for (const { text } of TEMPLATES) {
      const { data, broken } = read(text);
      const scenario = data as { network: { links?: unknown[] }; flows: unknown[] };
      expect(broken).toBe(false);
      expect(draw(data).links).toHaveLength(scenario.network.links?.length ?? 1);
      expect(draw(data).flows).toHaveLength(scenario.flows.length);
    }
    expect(draw(read(EMPTY).data).nodes).toEqual([]);
  });

  it("of anything at all draws what is there", () => {
    for (const data of [null, 3, [], { network: 1 }, { network: { nodes: [null, { name: 1 }], links: [{}] } }]) {
      expect(draw(data)).toMatchObject({ nodes: [], links: [], flows: [] });
    }
  });

  it("puts no two nodes on one spot", () => {
    for (const { text } of TEMPLATES) {
      const drawing = draw(read(text).data);
      const found = places(drawing, { [drawing.nodes[0]!.name]: { x: 5, y: 5 } });
      expect(new Set(Object.values(found).map(({ x, y }) => `${x} ${y}`)).size).toBe(drawing.nodes.length);
      expect(found[drawing.nodes[0]!.name]).toEqual({ x: 5, y: 5 });
    }
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
});

describe("packets", () => {
  const header: PacketsHeader = {
    links: ["a-b"], flows: ["f"], start: 0, until: 10, duration: 10, queues: [{ way: 0 }], recorded: true,
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

  it("wait in a queue between its events", () => {
    expect([packets.waiting(0.5).get(0), packets.waiting(1).get(0)]).toEqual([1, 0]);
  });
});
