import { describe, expect, it } from "vitest";
import { addFlow, change, changeKind } from "./changes";
import { complete } from "./complete";
import { KINDS, LANGUAGE } from "./kinds.fixture";
import { draw } from "./network";
import { fields, schemaOf } from "./schema";
import { read } from "./text";

const TEXT = `network:
  nodes: [a, b]
  links:
    - {ends: [a, b], rate: 10 Mbit/s, bleach: 1 %, queue: {kind: sieve}}
flows:
  - {name: film, kind: video, from: a, to: b, frames: 40 ms, sizes: [10 kB]}
`;

describe("a kind that only the schema knows", () => {
  it("is drawn", () => {
    const { links, flows } = draw(read(TEXT).data, KINDS);
    expect(links[0]).toMatchObject({ label: "10 Mbit/s · sieve", impairments: ["1 % bleach"] });
    expect(flows[0]).toMatchObject({ label: "film · video", control: "" });
  });

  it("has a first flow, and settings that every flow has", () => {
    const video = KINDS.flows.find(({ kind }) => kind === "video")!;
    const made = addFlow(TEXT, "b", "a", video).text;
    expect(read(made).data).toMatchObject({ flows: [{}, { name: "flow1", kind: "video", from: "b", to: "a", frames: "25 ms", sizes: ["10 kB"] }] });
    expect(fields(schemaOf(LANGUAGE, "flow", "video"), LANGUAGE).map(({ key }) => key)).toEqual(["name", "start", "kind", "frames", "sizes"]);
  });

  it("takes the place of another, with what it must have", () => {
    const has = (kind: string) => (key: string) => fields(schemaOf(LANGUAGE, "flow", kind), LANGUAGE).some((field) => field.key === key) || key === "from" || key === "to";
    const [tcp, video] = KINDS.flows;
    const bulk = changeKind(TEXT, ["flows", 0], tcp!, has("tcp"));
    expect(bulk).toContain("- {name: film, kind: tcp, from: a, to: b}");
    expect(changeKind(bulk, ["flows", 0], video!, has("video"))).toContain("{name: film, kind: video, from: a, to: b, frames: 25 ms, sizes: [10 kB]}");
  });

  it("is written out where its short form stands", () => {
    expect(change(TEXT, ["network", "links", 0, "bleach", "correlation"], "5 %", KINDS)).toContain("bleach: {rate: 1 %, correlation: 5 %}");
    expect(KINDS).toMatchObject({ shortForms: { loss: "rate", bleach: "rate", queue: "limit" }, bareKinds: { queue: ["sieve"] }, impairments: ["loss", "bleach"], ofRouters: ["relay"] });
  });

  it("is offered in the text, with what every flow has", () => {
    const at = TEXT.indexOf("sizes:");
    expect(complete(TEXT, at, LANGUAGE, [])!.options.map(({ label }) => label)).toEqual(expect.arrayContaining(["start", "frames", "sizes"]));
  });
});
