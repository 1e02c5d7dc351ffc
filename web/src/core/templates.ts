// Networks to begin with.

import type { Places } from "./places";

const HEAD = (name: string) => `tcplab: 1\nname: ${name}\n`;

const host = (name: string) => `    - {name: ${name}}`;
const router = (name: string) => `    - {name: ${name}, kind: router}`;
const link = (a: string, b: string, rate = "1 Gbit/s", delay = "1 ms", more = "") =>
  `    - {ends: [${a}, ${b}], rate: ${rate}, delay: ${delay}${more}}`;
const flow = (name: string, from: string, to: string, more = "cc: cubic") =>
  `  - {name: ${name}, kind: tcp, from: ${from}, to: ${to}, ${more}}`;

function scenario(name: string, nodes: string[], links: string[], flows: string[], duration = "30 s"): string {
  const block = (key: string, lines: string[], pad: string) => (lines.length ? `${pad}${key}:\n${lines.join("\n")}` : `${pad}${key}: []`);
  return `${HEAD(name)}network:\n${block("nodes", nodes, "  ")}\n${block("links", links, "  ")}\n${block("flows", flows, "")}\nduration: ${duration}\n`;
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

export interface Template {
  name: string;
  about: string;
  text: string;
  /** Where its nodes stand, where an automatic layout would not show what it is. */
  places?: Places;
}

export const EMPTY = scenario("untitled", [], [], []);

export const TEMPLATES: Template[] = [
  {
    name: "path",
    about: "Two hosts and one bottleneck, in the shortest form",
    text: `${HEAD("path")}network:\n  path:\n    rate: 20 Mbit/s\n    rtt: 40 ms\n    queue: 1 BDP\nflows:\n  - {name: bulk, kind: tcp, cc: cubic}\nduration: 30 s\n`,
  },
  {
    name: "dumbbell",
    about: "Two senders and two receivers share a link between two routers",
    text: scenario(
      "dumbbell",
      [host("s1"), host("s2"), router("r1"), router("r2"), host("d1"), host("d2")],
      [link("s1", "r1"), link("s2", "r1"), link("r1", "r2", "20 Mbit/s", "15 ms", ", queue: 1 BDP"), link("r2", "d1"), link("r2", "d2")],
      [flow("first", "s1", "d1"), flow("second", "s2", "d2", "cc: bbr1, start: 5 s")],
    ),
  },
  {
    name: "parking-lot",
    about: "One long flow crosses three links, each with a flow of its own",
    text: scenario(
      "parking-lot",
      [host("a"), ...numbers(4).map((n) => router(`r${n}`)), host("b"), ...numbers(3).flatMap((n) => [host(`x${n}`), host(`y${n}`)])],
      [
        link("a", "r1"),
        ...numbers(3).map((n) => link(`r${n}`, `r${n + 1}`, "20 Mbit/s", "5 ms", ", queue: 50 ms")),
        link("r4", "b"),
        ...numbers(3).flatMap((n) => [link(`x${n}`, `r${n}`), link(`r${n + 1}`, `y${n}`)]),
      ],
      [flow("long", "a", "b"), ...numbers(3).map((n) => flow(`cross${n}`, `x${n}`, `y${n}`))],
    ),
    // The routers in a row, the ends of the long flow above, those of the others below.
    places: {
      a: { x: 0, y: 0 },
      b: { x: 840, y: 0 },
      ...Object.fromEntries(numbers(4).map((n) => [`r${n}`, { x: 280 * (n - 1), y: 150 }])),
      ...Object.fromEntries(
        numbers(3).flatMap((n) => [
          [`x${n}`, { x: 280 * (n - 1) + (n > 1 ? 60 : 0), y: 300 }],
          [`y${n}`, { x: 280 * n - (n < 3 ? 60 : 0), y: 300 }],
        ]),
      ),
    },
  },
  {
    name: "star",
    about: "Four clients fetch from one server through a switch",
    text: scenario(
      "star",
      [host("server"), "    - {name: s1, kind: switch}", ...numbers(4).map((n) => host(`c${n}`))],
      [link("server", "s1", "100 Mbit/s"), ...numbers(4).map((n) => link("s1", `c${n}`, "100 Mbit/s"))],
      numbers(4).map((n) => flow(`fetch${n}`, "server", `c${n}`)),
      "10 s",
    ),
  },
  {
    name: "tree",
    about: "Eight hosts below two levels of routers: many send to one",
    text: scenario(
      "tree",
      [router("top"), router("m1"), router("m2"), ...numbers(8).map((n) => host(`h${n}`))],
      [
        link("top", "m1", "100 Mbit/s", "2 ms"),
        link("top", "m2", "100 Mbit/s", "2 ms"),
        ...numbers(8).map((n) => link(n <= 4 ? "m1" : "m2", `h${n}`, "100 Mbit/s")),
      ],
      numbers(4).map((n) => flow(`in${n}`, `h${n + 4}`, "h1")),
      "10 s",
    ),
    places: {
      top: { x: 420, y: 0 },
      m1: { x: 180, y: 140 },
      m2: { x: 660, y: 140 },
      ...Object.fromEntries(numbers(8).map((n) => [`h${n}`, { x: 120 * (n - 1), y: 330 }])),
    },
  },
  {
    name: "fat-tree",
    about: "A data centre: four pods of four hosts below four core routers; four servers send to one",
    text: `${HEAD("fat-tree")}network:
  topology:
    kind: fat-tree
    k: 4
    core: {rate: 100 Mbit/s, delay: 50 us, queue: 100 packets}
    edge: {rate: 100 Mbit/s, delay: 10 us, queue: 100 packets}
flows:
${numbers(4)
  .map((n) => flow(`from-pod${n}`, `h${4 * n}`, "h1"))
  .join("\n")}
duration: 2 s
`,
  },
  {
    name: "two-as",
    about: "Two autonomous systems whose routers speak BGP",
    text: scenario(
      "two-as",
      [
        host("h1"),
        "    - {name: r1, kind: router, routing: {bgp: {as: 65001}}}",
        "    - {name: r2, kind: router, routing: {bgp: {as: 65002}}}",
        host("h2"),
      ],
      [link("h1", "r1"), link("r1", "r2", "20 Mbit/s", "15 ms", ", queue: 1 BDP"), link("r2", "h2")],
      [flow("across", "h1", "h2")],
    ),
  },
];
