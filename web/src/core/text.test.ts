import { describe, expect, it } from "vitest";
import { append, deleteIn, inline, placeOf, read, setIn } from "./text";

const SCENARIO = `# Why this test is here.
tcplab: 1
name: two   # a name
network:
  nodes:
    - {name: a}          # the sender
    - name: r1
      kind: router       # in the middle
    - b
  links:
    - ends: [a, r1]
      rate: 10 Mbit/s    # access
      delay: 5 ms
    - {ends: [r1, b], rate: 1 Mbit/s, queue: 50 ms}
flows:
  - {name: bulk, kind: tcp, from: a, to: b}   # the only one

# The end.
`;

/** The lines that an edit changed: what was there, and what is there now. */
function changed(before: string, after: string): [string[], string[]] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  return [old.filter((line) => !now.includes(line)), now.filter((line) => !old.includes(line))];
}

describe("an edit changes one line and no other character", () => {
  it("of a scalar in a block mapping", () => {
    expect(changed(SCENARIO, setIn(SCENARIO, ["network", "links", 0, "rate"], "20 Mbit/s"))).toEqual([
      ["      rate: 10 Mbit/s    # access"],
      ["      rate: 20 Mbit/s    # access"],
    ]);
  });

  it("of a key that is new in a flow mapping", () => {
    expect(changed(SCENARIO, setIn(SCENARIO, ["flows", 0, "cc"], "bbr1"))[1]).toEqual([
      "  - {name: bulk, kind: tcp, from: a, to: b, cc: bbr1}   # the only one",
    ]);
  });

  it("of a key that is new in a block mapping", () => {
    const edited = setIn(SCENARIO, ["network", "links", 0, "loss"], "1 %");
    expect(changed(SCENARIO, edited)).toEqual([[], ["      loss: 1 %"]]);
  });

  it("of a nested key whose mapping is new", () => {
    const edited = setIn(SCENARIO, ["network", "links", 1, "backward", "delay"], "9 ms");
    expect(changed(SCENARIO, edited)[1]).toEqual([
      "    - {ends: [r1, b], rate: 1 Mbit/s, queue: 50 ms, backward: {delay: 9 ms}}",
    ]);
  });

  it("when a key goes", () => {
    expect(changed(SCENARIO, deleteIn(SCENARIO, ["network", "links", 1, "queue"]))[1]).toEqual([
      "    - {ends: [r1, b], rate: 1 Mbit/s}",
    ]);
    expect(changed(SCENARIO, deleteIn(SCENARIO, ["network", "links", 0, "delay"]))).toEqual([
      ["      delay: 5 ms"],
      [],
    ]);
  });

  it("when an item joins or leaves a list", () => {
    const more = append(SCENARIO, ["network", "nodes"], { name: "c" });
    expect(changed(SCENARIO, more)).toEqual([[], ["    - {name: c}"]]);
    const fewer = deleteIn(SCENARIO, ["network", "nodes", 1]);
    expect(changed(SCENARIO, fewer)).toEqual([["    - name: r1", "      kind: router       # in the middle"], []]);
  });
});

describe("an edit", () => {
  it("makes a list of one line each out of an empty one", () => {
    const text = "network:\n  nodes: []\n  links: []\nflows: []\n";
    const one = append(text, ["network", "nodes"], { name: "h1" });
    const two = append(one, ["network", "nodes"], { name: "r1", kind: "router" });
    expect(two).toBe("network:\n  nodes:\n    - {name: h1}\n    - {name: r1, kind: router}\n  links: []\nflows: []\n");
  });

  it("takes back what it made: the last item leaves an empty list", () => {
    const text = "network:\n  nodes:\n    - {name: h1}\nflows: []\n";
    expect(read(deleteIn(text, ["network", "nodes", 0])).data).toEqual({ network: { nodes: [] }, flows: [] });
    expect(deleteIn("flows:  # one\n  - a\nseed: 1\n", ["flows", 0])).toContain("# one");
    expect(deleteIn("flows:\n  - a\nseed: 1\n", ["flows", 0])).toBe("flows: []\nseed: 1\n");
  });

  it("removes a mapping with its last key", () => {
    const text = "a: {b: {c: 1}}\nd: 2\n";
    expect(deleteIn(text, ["a", "b", "c"])).toBe("d: 2\n");
  });

  it("leaves a broken text alone", () => {
    const text = "a: [1\nb: 2\n";
    expect(setIn(text, ["b"], 3)).toBe(text);
  });

  it("writes values as a person does", () => {
    expect(inline({ name: "a", ends: ["x", "y"], rate: "10 Mbit/s", up: false })).toBe(
      "{name: a, ends: [x, y], rate: 10 Mbit/s, up: false}",
    );
    expect(inline("a, b")).toBe('"a, b"');
  });

  it("knows where a path stands", () => {
    expect(placeOf(SCENARIO, ["network", "links", 0, "rate"])).toEqual({ line: 12, column: 13 });
    expect(placeOf(SCENARIO, ["flows", 0, "none"])?.line).toBe(16);
  });

  it.each([
    ["in a file without a line break at its end", "a: 1"],
    ["in an empty file", ""],
    ["in a file of comments", "# nothing\n"],
  ])("adds a key %s", (_, text) => {
    expect(read(setIn(text, ["b"], 2)).data).toMatchObject({ b: 2 });
  });
});
