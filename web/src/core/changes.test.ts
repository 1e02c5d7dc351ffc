import { describe, expect, it } from "vitest";
import { addFlow, addLink, addNode, change, paste, removeNode, renameNode, toGeneral } from "./changes";
import { KINDS } from "./kinds.fixture";
import { draw } from "./network";
import { read } from "./text";

const EMPTY = "tcplab: 1\nname: mine\nnetwork:\n  nodes: []\n  links: []\nflows: []\n";

function drawn(text: string) {
  return draw(read(text).data, KINDS);
}

/** Two hosts behind two routers, drawn step by step. */
function dumbbell(): string {
  let text = EMPTY;
  const [host, router] = KINDS.nodes;
  for (const kind of [host!, router!, router!, host!]) text = addNode(text, kind).text;
  text = addLink(text, "h1", "r1");
  text = addLink(text, "r1", "r2");
  text = addLink(text, "r2", "h2");
  return addFlow(text, "h1", "h2", KINDS.flows[0]!).text;
}

describe("drawing", () => {
  it("turns an empty canvas into a scenario", () => {
    expect(dumbbell()).toBe(`tcplab: 1
name: mine
network:
  nodes:
    - {name: h1}
    - {name: r1, kind: router}
    - {name: r2, kind: router}
    - {name: h2}
  links:
    - {ends: [h1, r1], rate: 100 Mbit/s, delay: 5 ms}
    - {ends: [r1, r2], rate: 100 Mbit/s, delay: 5 ms}
    - {ends: [r2, h2], rate: 100 Mbit/s, delay: 5 ms}
flows:
  - {name: flow1, kind: tcp, from: h1, to: h2, cc: cubic}
`);
  });

  it("takes a node's links and flows with it", () => {
    const drawing = drawn(removeNode(dumbbell(), "h2"));
    expect(drawing.nodes.map((node) => node.name)).toEqual(["h1", "r1", "r2"]);
    expect(drawing.links.map((link) => link.name)).toEqual(["h1-r1", "r1-r2"]);
    expect(drawing.flows).toEqual([]);
  });

  it("renames a node wherever it is named", () => {
    const text = renameNode(dumbbell(), "h1", "server");
    expect(text).not.toContain("h1");
    expect(drawn(text).flows[0]).toMatchObject({ from: "server", to: "h2" });
  });

  it("copies nodes with what is between them", () => {
    const { text } = paste(dumbbell(), ["h1", "r1", "r2", "h2"]);
    const drawing = drawn(text);
    expect(drawing.nodes).toHaveLength(8);
    expect(drawing.links).toHaveLength(6);
    expect(drawing.flows.map((flow) => [flow.name, flow.from, flow.to])).toEqual([
      ["flow1", "h1", "h2"],
      ["flow2", "h3", "h4"],
    ]);
  });

  it("names a second link between the same nodes", () => {
    const text = addLink(addLink(dumbbell(), "r1", "r2"), "r2", "r1");
    const names = drawn(text).links.map((link) => link.name);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("a setting", () => {
  const text = "network:\n  path: {rate: 1 Mbit/s, rtt: 10 ms, queue: 50 ms}   # short\nflows:\n  - {name: a, kind: tcp, cc: reno}\n";

  it("inside a short form writes that out", () => {
    expect(change(text, ["network", "path", "queue", "mark_above"], "5 ms", KINDS)).toContain(
      "queue: {limit: 50 ms, mark_above: 5 ms}}   # short",
    );
    expect(change(text.replace("50 ms", "sieve"), ["network", "path", "queue", "mesh"], "7 ms", KINDS)).toContain("queue: {kind: sieve, mesh: 7 ms}}");
    expect(change(text, ["flows", 0, "cc", "beta"], 0.8, KINDS)).toContain("cc: {name: reno, beta: 0.8}");
  });

  it("that is emptied goes", () => {
    expect(change(text, ["network", "path", "queue"], "")).toContain("path: {rate: 1 Mbit/s, rtt: 10 ms}");
  });
});

describe("nodes copied from another scenario", () => {
  it("keep their names where these are free, with the links and flows between them", () => {
    const from = dumbbell();
    const { text, names } = paste("tcplab: 1\nname: x\nnetwork:\n  nodes: [h1]\n", ["h1", "r1"], from);
    expect([...names]).toEqual([["h1", "h2"], ["r1", "r1"]]);
    expect(drawn(text).links.map((link) => link.ends)).toEqual([["h2", "r1"]]);
  });
});

describe("the short form of a network", () => {
  const text = `network:
  path:
    rate: 10 Mbit/s
    rtt: 30 ms
    loss: 1 %
    at: {5 s: {rtt: 60 ms}}
    left: {initial_window: 4 packets}
flows:
  - {name: a, kind: tcp}
`;

  it("is drawn as two hosts and a link", () => {
    const drawing = drawn(text);
    expect(drawing.nodes.map((node) => node.name)).toEqual(["left", "right"]);
    expect(drawing.links[0]).toMatchObject({ label: "10 Mbit/s · RTT 30 ms", impairments: ["1 % loss"] });
    expect(drawing.flows[0]).toMatchObject({ from: "left", to: "right" });
  });

  it("is written as nodes and links once something is drawn beside it", () => {
    const { network, flows } = read(toGeneral(text)).data as Record<string, never>;
    expect(network).toEqual({
      nodes: [{ name: "left", initial_window: "4 packets" }, { name: "right" }],
      links: [
        {
          name: "path",
          ends: ["left", "right"],
          rate: "10 Mbit/s",
          delay: "15 ms",
          forward: { loss: "1 %", queue: "1 BDP", at: { "5 s": { delay: "30 ms" } } },
          reverse: { queue: "10000 packets", at: { "5 s": { delay: "30 ms" } } },
        },
      ],
    });
    expect(flows![0]).toEqual({ name: "a", kind: "tcp", from: "left", to: "right" });
  });
});
