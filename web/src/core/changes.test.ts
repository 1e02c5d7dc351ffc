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

describe("a node that is renamed", () => {
  it("is named so by routes, sessions, accelerators, places, and interfaces of links that are called by it", () => {
    const text = `network:
  nodes:
    - {name: r1, kind: router, routing: {static: [{to: h2, via: r2}], bgp: {as: 1, neighbours: [r2, r3]}, ospf: {interfaces: [{link: r1-r2, cost: 5}, {link: own, cost: 5}]}}}
    - {name: r2, kind: router, accelerate: {hosts: [h2, r2]}}   # kept
  links:
    - {ends: [r1, r2]}
    - {name: own, ends: [r2, r3]}
  hosts_at: {r2: "ssh://two", r3: "ssh://three"}
flows: []
`;
    const made = renameNode(text, "r2", "core");
    expect(made).not.toMatch(/r2/);
    expect(made).toContain("{link: r1-core, cost: 5}, {link: own, cost: 5}");
    expect(made).toContain("# kept");
    expect(read(made).data).toMatchObject({ network: { hosts_at: { core: "ssh://two", r3: "ssh://three" } } });
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

  const general = (path: string, flow = "{name: a, kind: tcp}") =>
    read(toGeneral(`network:\n  path: {rtt: 20 ms, ${path}}\nflows:\n  - ${flow}\n`)).data as { network: Record<string, Record<string, unknown>[]>; flows: unknown[] };
  const link = (path: string) => general(path).network.links!.find(({ name }) => name === "path")!;

  it("goes down in both directions, and has its rate in both, also in time", () => {
    expect(link("rate: 10 Mbit/s, queue: 9 packets, up: off, at: {1 s: {up: on, rate: 5 Mbit/s, loss: 1 %}}")).toMatchObject({
      up: "off",
      forward: { queue: "9 packets", at: { "1 s": { up: "on", rate: "5 Mbit/s", loss: "1 %" } } },
      reverse: { at: { "1 s": { up: "on", rate: "5 Mbit/s" } } },
    });
  });

  it("polices forward only, and keeps what is said of the way back", () => {
    const made = link("rate: 10 Mbit/s, policer: {rate: 1 Mbit/s, burst: 9 kB}, at: {1 s: {rtt: 60 ms, rate: 2 Mbit/s}}, reverse: {rate: 3 Mbit/s, at: {1000 ms: {loss: 1 %}}}");
    expect(made.policer).toBeUndefined();
    expect(made.forward).toMatchObject({ policer: { rate: "1 Mbit/s" } });
    expect(made.reverse).toEqual({ queue: "10000 packets", rate: "3 Mbit/s", at: { "1 s": { delay: "30 ms", loss: "1 %" } } });
  });

  it("has a gateway where it accelerates or caches", () => {
    const { nodes, links } = general("rate: 10 Mbit/s, accelerate: {connections: 9}").network;
    expect(nodes).toEqual([{ name: "left" }, { name: "right" }, { name: "gateway", kind: "router", accelerate: { connections: 9 } }]);
    expect(links!.map(({ ends }) => ends)).toEqual([["left", "gateway"], ["gateway", "right"]]);
  });

  it.each([
    ["rate: 10 Mbps", "1 BDP"],
    ["rate: 1 Mbit/s", "15140 B"],
    ["rate: 10 Mbit/s, mtu: 9000 B", "90140 B"],
  ])("with %s has a queue of %s", (path, queue) => expect(link(path).forward).toEqual({ queue }));

  it.each([
    ["{name: a, kind: tcp, to: left}", "right", "left"],
    ["{name: a, kind: tcp, from: right}", "right", "left"],
  ])("carries %s from %s to %s", (flow, from, to) => {
    expect(general("rate: 10 Mbit/s", flow).flows[0]).toMatchObject({ from, to });
    expect(drawn(`network:\n  path: {rate: 10 Mbit/s, rtt: 9 ms}\nflows:\n  - ${flow}\n`).flows[0]).toMatchObject({ from, to });
  });

  it("of each flow's own has the ends that its flows name", () => {
    const made = drawn("network:\n  path: {rate: 10 Mbit/s, rtt: 9 ms, per_flow: on}\nflows:\n  - {name: a, kind: tcp, from: right, to: left}\n");
    expect(made.flows[0]).toMatchObject({ from: "right-a", to: "left-a" });
  });
});
