// A small language for tests, with a kind of traffic and an impairment that the real one does not have.

import { kindsOf } from "./kinds";
import type { Schema } from "./schema";

const time: Schema = { type: "string", pattern: "^\\d+ ms$", examples: ["25 ms"] };
const share: Schema = { description: "Share of packets.", type: "string", pattern: "^\\d+ %$", examples: ["1 %"] };
const limit: Schema = { description: "What may wait.", type: "string", pattern: "^\\d+ packets$", examples: ["50 packets"] };
const control: Schema = { type: "string", examples: ["cubic"] };
const impairment = (about: string): Schema => ({ description: about, anyOf: [share, { description: about, type: "object", properties: { rate: share, correlation: share } }] });

export const LANGUAGE: Schema = {
  $defs: {
    Loss: impairment("Packets lost."),
    Bleach: impairment("Packets that lose their ECN field."),
    Queue: {
      anyOf: [
        limit,
        { enum: ["sieve"] },
        {
          oneOf: [
            { type: "object", required: ["limit"], properties: { kind: { const: "droptail" }, limit } },
            { type: "object", properties: { kind: { const: "sieve" }, limit, mesh: { ...time, default: "5 ms" } } },
          ],
        },
      ],
    },
    Link: { type: "object", properties: { ends: { type: "array" }, rate: { type: "string" }, loss: { $ref: "#/$defs/Loss" }, bleach: { $ref: "#/$defs/Bleach" }, queue: { $ref: "#/$defs/Queue" } } },
    Host: { type: "object", properties: { window: { type: "string" } } },
    Node: { anyOf: [{ type: "string" }, { type: "object", properties: { name: { type: "string" }, kind: { oneOf: [{ const: "host", description: "Sends." }, { const: "router", description: "Forwards." }, { const: "balancer", description: "Shares." }] }, window: { type: "string" }, relay: { type: "string" } } }] },
    Flow: {
      type: "object",
      properties: { name: { type: "string" }, start: time },
      required: ["name"],
      oneOf: [
        { description: "Bulk.", $ref: "#/$defs/Tcp", properties: { kind: { const: "tcp" } }, required: ["kind"] },
        { description: "Frames of a video.", $ref: "#/$defs/Video", properties: { kind: { const: "video" } }, required: ["kind"] },
      ],
    },
    Tcp: { type: "object", properties: { cc: { anyOf: [control, { type: "object", properties: { name: control } }], default: "cubic" }, bytes: { type: "string" } } },
    Video: { type: "object", properties: { frames: time, sizes: { type: "array", items: { examples: ["10 kB"] } } }, required: ["frames", "sizes"] },
  },
  properties: {
    network: {
      properties: {
        path: { type: "object", properties: { rate: { type: "string" }, left: { $ref: "#/$defs/Host" } } },
        nodes: { type: "array", items: { $ref: "#/$defs/Node" } },
        links: { type: "array", items: { $ref: "#/$defs/Link" } },
      },
    },
    flows: { type: "array", items: { $ref: "#/$defs/Flow" } },
  },
};

const kind = (name: string, ends_flows: boolean) => ({ name, ends_flows, bridges: false, forwards: !ends_flows });
export const KINDS = kindsOf(LANGUAGE, [kind("host", true), kind("router", false), kind("balancer", false)]);
