import { describe, expect, it } from "vitest";
import { along, flowBow, linkBow, NODE_HEIGHT, NODE_WIDTH, overlaps } from "./geometry";
import { linkSayings, place, spanned } from "./labels";
import { KINDS } from "./kinds.fixture";
import { draw } from "./network";
import { places } from "./places";
import { labelled, scene, twins } from "./scene";
import { TEMPLATES } from "./templates";
import { read } from "./text";

const width = (text: string) => 6 * text.length;
const drawingOf = (text: string) => draw(read(text).data, KINDS);

describe("labels", () => {
  // Nodes that `topology` makes are known from the plan alone.
  const drawn = TEMPLATES.filter(({ text }) => !drawingOf(text).generated);
  it.each(drawn.map(({ name, text }) => [name, text]))("of %s stand on no node and on no other label", (_, text) => {
    const drawing = drawingOf(text);
    const found = scene(drawing, places(drawing, {}));
    for (const scale of [1, 1.4, 3]) {
      const labels = [...place(labelled(drawing, found, () => false), found.nodes, scale, width, 1.5).values()];
      expect(labels).toHaveLength(drawing.links.length + drawing.flows.length);
      const seen = labels.filter((label) => !label.crowded);
      seen.forEach((label, index) => {
        expect(found.nodes.filter((node) => overlaps(label, node))).toEqual([]);
        expect(seen.slice(index + 1).filter((other) => overlaps(label, other))).toEqual([]);
      });
    }
  });

  it("say less where there is little room, and nothing where there is none", () => {
    const [link] = drawingOf(TEMPLATES[0]!.text).links;
    const box = (x: number, y: number, width = NODE_WIDTH) => ({ x, y, width, height: NODE_HEIGHT });
    const [a, b] = [box(0, 0), box(250, 0)];
    // Between what stands so far above and below the line.
    const said = (room: number) => {
      const walls = [-1, 1].map((side) => box(125, side * (room + NODE_HEIGHT / 2), 400));
      const { lines, crowded } = place([{ id: "l", bow: linkBow(a, b), sayings: linkSayings(link!), rank: 0 }], [a, b, ...walls], 1, width, 1).get("l")!;
      return crowded ? "" : lines.map((words) => words.map(({ text }) => text).join(" ")).join("\n");
    };
    expect([said(90), said(13), said(5)]).toEqual(["20 Mbit/s · RTT 40 ms\nqueue 1 BDP", "20 Mbit/s", ""]);
  });

  it("of flows with long names are in view where the drawing is small", () => {
    const said = (name: string, scale: number) => {
      const drawing = drawingOf(`network: {path: {rate: 10 Mbit/s}}\nflows: [{name: ${name}, kind: tcp, cc: reno, streams: 8}]`);
      const found = scene(drawing, places(drawing, {}));
      const { lines, crowded } = place(labelled(drawing, found, () => false), found.nodes, scale, width, 0.8).get(`flow ${name}`)!;
      return crowded ? "" : lines.map((words) => words.map(({ text }) => text).join(" ")).join("\n");
    };
    expect(said("from-the-branch-to-the-centre", 1)).toBe("from-the-branch-to-the-centre · reno · × 8");
    expect(said("from-the-branch-to-the-centre", 2)).toBe("from-the-branch-to-the-centre\nreno · × 8");
    expect(said("from-the-branch-to-the-centre-of-the-company", 2.5)).toBe("from-the-branch-to-the-\ncentre-of-the-company");
    expect(said("m".repeat(48), 2.5)).toBe(`${"m".repeat(24)}\n${"m".repeat(24)}`);
  });

  it("of many links that are alike are one while they are small, and one each where there is room", () => {
    const arms = Array.from({ length: 12 }, (_, n) => `{ends: [s, h${n}], rate: 10 Mbit/s${n ? "" : ", loss: 1 %"}}`);
    const names = arms.map((_, n) => `h${n}`).join(", ");
    const drawing = drawingOf(`network: {nodes: [s, ${names}], links: [${arms.join(", ")}]}`);
    const at = Object.fromEntries(drawing.nodes.map(({ name }, n) => [name, n ? { x: 900 * Math.cos(n / 2), y: 900 * Math.sin(n / 2) } : { x: 0, y: 0 }]));
    const found = scene(drawing, at);
    const said = (scale: number, first = "") =>
      [...place(labelled(drawing, found, (id) => id === first), found.nodes, scale, width, 1.5).values()].filter(({ implied }) => !implied).map(({ lines }) => lines.map(([word]) => word!.text).join(", "));
    expect(said(1.5)).toEqual(["10 Mbit/s, 1 % loss", "10 Mbit/s, 11 links alike"]);
    expect(said(1)).toHaveLength(12);
    // One that is selected has its own.
    expect(said(1.5, "link s-h3")).toContain("10 Mbit/s, 10 links alike");
  });

  it("of impairments are said however little room there is", () => {
    const lossy = drawingOf(TEMPLATES[0]!.text.replace("queue: 1 BDP", "queue: 1 BDP\n    loss: 1 %"));
    expect(linkSayings(lossy.links[0]!)).toHaveLength(3);
    for (const lines of linkSayings(lossy.links[0]!)) expect(lines[lines.length - 1]).toEqual([{ text: "1 % loss", tone: "bad" }]);
  });
});

describe("lines", () => {
  const [a, b] = [{ x: 0, y: 0 }, { x: 400, y: 0 }];

  it("of two links between the same nodes run beside each other, whichever way each goes", () => {
    const text = "network: {nodes: [a, b], links: [{ends: [a, b]}, {name: back, ends: [b, a]}]}";
    const which = twins(drawingOf(text));
    const [one, other] = [which.get("a-b")!, which.get("back")!];
    const middles = [along(linkBow(a, b, one.twin, one.twins), 0.5), along(linkBow(b, a, other.twin, other.twins), 0.5)];
    expect(Math.abs(middles[0]!.y - middles[1]!.y)).toBeGreaterThan(30);
  });

  it("of flows run around the network: above it, and below it where they are below its middle", () => {
    const height = (middle: number, rank = 0) => along(flowBow(a, b, rank, 2, { x: 200, y: middle }), 0.5).y;
    expect(height(300)).toBeLessThan(-50);
    expect(height(-300)).toBeGreaterThan(50);
    expect(height(0)).toBeLessThan(-50);
    expect(height(300, 1)).toBeLessThan(height(300));
    // The same whichever way the flow goes.
    expect(along(flowBow(b, a, 0, 2, { x: 200, y: 300 }), 0.5).y).toBeCloseTo(height(300));
  });

  it("of a thousand flows between two hosts are not far from them, and none is where another is", () => {
    const many = Array.from({ length: 1000 }, (_, n) => (n % 2 ? `{name: f${n}, kind: tcp, from: a, to: b}` : `{name: f${n}, kind: tcp, from: b, to: a}`));
    const drawing = drawingOf(`network: {nodes: [a, b], links: [{ends: [a, b]}]}\nflows: [${many.join(", ")}]`);
    const { nodes, flows } = scene(drawing, { a, b });
    expect(spanned(nodes, [...flows.values()], 0).height).toBeLessThan(700);
    expect(new Set([...flows.values()].map((bow) => along(bow, 0.5).y.toFixed(3))).size).toBe(1000);
  });

  it("belong to what is seen when everything is shown", () => {
    const node = { ...a, width: NODE_WIDTH, height: NODE_HEIGHT };
    const box = spanned([node, { ...node, ...b }], [flowBow(a, b, 0, 1, { x: 200, y: 100 })], 20);
    expect([box.x, box.width]).toEqual([-44, 488]);
    expect(box.y).toBeCloseTo(along(flowBow(a, b, 0, 1, { x: 200, y: 100 }), 0.5).y - 20);
  });
});
