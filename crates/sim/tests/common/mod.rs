//! Plans for tests, as Python writes them, and how to run them.
#![allow(dead_code)] // Each test file uses its part.

use serde_json::{Value, json};
use tcplab_sim::plan::Plan;
use tcplab_sim::{Simulation, Tables};
use tcplab_tables::Symbol;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

/// A link direction with a rate in bit/s, a delay in ns and a queue of 1000 packets.
pub fn direction(rate: u64, delay: u64) -> Value {
    json!({
        "rate": rate, "delay": delay, "queue": {"kind": "droptail", "limit": {"packets": 1000}},
        "jitter": null, "reorder": null, "loss": null, "corrupt": null, "duplicate": null, "up": true,
        "trace": null, "changes": [],
    })
}

/// `base` with some settings replaced.
pub fn with(mut base: Value, settings: Value) -> Value {
    for (key, value) in settings.as_object().expect("settings by name") {
        base[key] = value.clone();
    }
    base
}

/// A node with its routes: destination and link.
pub fn node(name: &str, kind: &str, routes: &[(&str, &str)]) -> Value {
    let routes: serde_json::Map<String, Value> =
        routes.iter().map(|(to, link)| ((*to).to_owned(), json!(link))).collect();
    json!({"name": name, "kind": kind, "tcp": {}, "routes": routes})
}

/// A link without addresses.
pub fn link(name: &str, ends: [&str; 2], forward: Value, backward: Value) -> Value {
    json!({
        "name": name, "ends": ends, "addresses": [null, null], "mtu": 1500,
        "forward": forward, "backward": backward,
    })
}

/// A plan of two hosts, `a` and `b`, with one link between them.
pub fn path(forward: Value, backward: Value, flows: Vec<Value>) -> Value {
    let nodes = [node("a", "host", &[("b", "path")]), node("b", "host", &[("a", "path")])];
    let mut link = link("path", ["a", "b"], forward, backward);
    link["addresses"] = json!(["10.0.0.1/24", "10.0.0.2/24"]);
    plan(&nodes, &[link], flows)
}

/// A plan of two hosts, `a` and `b`, past a router `r` with `settings`: 100 Mbit/s and 2 ms to it, then `wan` forward and `back`.
pub fn past_router(settings: Value, wan: Value, back: Value, flows: Vec<Value>) -> Value {
    let nodes = [
        node("a", "host", &[("b", "lan"), ("r", "lan")]),
        with(node("r", "router", &[("a", "lan"), ("b", "wan")]), settings),
        node("b", "host", &[("a", "wan"), ("r", "wan")]),
    ];
    let lan = || direction(100_000_000, MS);
    plan(&nodes, &[link("lan", ["a", "r"], lan(), lan()), link("wan", ["r", "b"], wan, back)], flows)
}

/// A plan of 10 s that samples sockets, queues and flows every 10 ms.
pub fn plan(nodes: &[Value], links: &[Value], flows: Vec<Value>) -> Value {
    json!({
        "name": "test", "seed": 1, "duration": 10 * SECOND, "nodes": nodes, "links": links, "flows": flows,
        "sample": {
            "sockets": 10 * MS, "queues": 10 * MS, "flows": 100 * MS, "hosts": null, "packets": false,
        },
        "capture": null,
    })
}

/// A flow from `a` to `b` for the first 5 s.
pub fn flow(name: &str, traffic: Value) -> Value {
    let flow = json!({"name": name, "from": "a", "to": "b", "start": 0, "stop": 5 * SECOND, "streams": 1});
    with(flow, traffic)
}

/// UDP traffic at a rate in bit/s with 1000-byte payloads.
pub fn udp(rate: u64) -> Value {
    json!({"kind": "udp", "rate": rate, "payload": 1000, "bytes": null, "pattern": null})
}

/// A bulk transfer.
pub fn tcp(cc: &str) -> Value {
    json!({
        "kind": "tcp", "cc": {"name": cc}, "bytes": null, "pattern": null, "sender": {}, "receiver": {},
    })
}

/// Ten probes, 100 ms apart.
pub fn ping() -> Value {
    json!({"kind": "ping", "interval": 100 * MS, "payload": 56, "count": 10, "stop": null})
}

/// A run that has ended.
pub struct Run {
    pub tables: Tables,
    pub stats: tcplab_sim::RunStats,
}

/// Simulates `plan` to its end.
pub fn run(plan: &Value) -> Run {
    let mut simulation = Simulation::new(&parse(plan)).expect("a plan that can be simulated");
    while !simulation.advance(1000) {}
    let stats = simulation.stats();
    Run { tables: simulation.finish(), stats }
}

/// Reads a plan as Python's JSON is read.
pub fn parse(plan: &Value) -> Plan {
    serde_json::from_str(&plan.to_string()).expect("a well-formed plan")
}

impl Run {
    /// The string behind a symbol.
    pub fn string(&self, symbol: Option<Symbol>) -> &str {
        symbol.map_or("", |symbol| self.tables.dictionary.string(symbol))
    }
    /// The row of table `flows` for stream 0 of `flow`.
    pub fn flow(&self, flow: &str) -> usize {
        self.flow_stream(flow, 0)
    }
    /// The row of table `flows` for a stream of `flow`.
    pub fn flow_stream(&self, flow: &str, stream: i64) -> usize {
        let flows = &self.tables.flows;
        let mut rows = flows.flow.symbols().zip(flows.stream.iter());
        rows.position(|(name, number)| self.string(name) == flow && number == Some(stream)).expect("a row")
    }
    /// Rows of table `intervals` for stream 0 of `flow`.
    pub fn intervals(&self, flow: &str) -> Vec<usize> {
        let names = self.tables.intervals.flow.symbols();
        names.enumerate().filter(|(_, name)| self.string(*name) == flow).map(|(row, _)| row).collect()
    }
    /// Events by name with their details.
    pub fn events(&self) -> Vec<(i64, &str, &str)> {
        let events = &self.tables.events;
        let times = events.time.iter().map(|time| time.expect("an event has a time"));
        times
            .zip(events.event.symbols().zip(events.detail.symbols()))
            .map(|(time, (event, detail))| (time, self.string(event), self.string(detail)))
            .collect()
    }
}
