//! How fast the simulator is: `cargo run --release -p tcplab-sim --example bench [repetitions [scenario]]`.
//!
//! Prints, for each scenario, the median wall time, and the median and the minimum CPU time (which other work on
//! the machine disturbs less). Also prints the CPU time of a data packet alone and as a ratio to that of one flow,
//! and how much the process grew by a stream.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tcplab_sim::{Simulation, plan::Plan};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const MBIT: u64 = 1_000_000;
const GBIT: u64 = 1_000 * MBIT;

struct Scenario {
    name: &'static str,
    title: &'static str,
    plan: Value,
}

struct Run {
    wall: Duration,
    cpu: Duration,
    packets: i64,
    streams: u64,
    /// Memory while all is still in place, bytes.
    memory: u64,
}

fn main() {
    let repetitions = std::env::args().nth(1).and_then(|argument| argument.parse().ok()).unwrap_or(5);
    let only = std::env::args().nth(2);
    let mut scenarios = scenarios();
    scenarios.retain(|scenario| only.as_ref().is_none_or(|only| only == scenario.name));
    let mut runs: Vec<Vec<Run>> = scenarios.iter().map(|_| Vec::new()).collect();
    for _ in 0..repetitions {
        // Alternating, so that a slow moment of the machine hits all.
        for (scenario, runs) in scenarios.iter().zip(&mut runs) {
            runs.push(simulate(&scenario.plan));
        }
    }
    println!("{:<13} wall ms   CPU ms  min CPU  packets  ns/packet  ratio  B/stream  scenario", "name");
    let mut one_flow = None;
    for (scenario, runs) in scenarios.iter().zip(&runs) {
        let median = |of: fn(&Run) -> Duration| {
            let mut times: Vec<Duration> = runs.iter().map(of).collect();
            times.sort();
            times[times.len() / 2].as_secs_f64() * 1e3
        };
        let Some(first) = runs.first() else { continue };
        let cpu = median(|run| run.cpu);
        let minimum = runs.iter().map(|run| run.cpu).min().unwrap_or_default().as_secs_f64() * 1e3;
        let cost = cpu * 1e6 / first.packets.max(1) as f64;
        println!(
            "{:<13} {:>7.1} {cpu:>8.1} {minimum:>8.1} {:>8} {cost:>10.0} {:>6.2} {:>9}  {}",
            scenario.name,
            median(|run| run.wall),
            first.packets,
            cost / *one_flow.get_or_insert(cost),
            first.memory / first.streams,
            scenario.title
        );
    }
}

fn scenarios() -> Vec<Scenario> {
    let scenario = |name, title, plan| Scenario { name, title, plan };
    let lossy = with(
        direction(100 * GBIT, 50, 100_000),
        json!({"loss": {"model": {"kind": "random", "chance": {"rate": 10_000, "correlation": 0}}, "before_queue": false}}),
    );
    let fat = |forward: Value| {
        let flow = bulk("cubic", 1, json!(null));
        plan(forward, direction(100 * GBIT, 50, 1_000_000), 4, vec![flow])
    };
    let cut = with(
        lossy.clone(),
        json!({"changes": [{"at": 1_300 * MS, "up": false}, {"at": 1_600 * MS, "up": true}]}),
    );
    vec![
        scenario(
            "one-cubic",
            "1 cubic flow, 100 Mbit/s, 50 ms, 625 packets, 60 s",
            dumbbell(100 * MBIT, 625, 1, 60),
        ),
        scenario(
            "hundred-cubic",
            "100 flows, 1 Gbit/s, 50 ms, 625 packets, 10 s",
            dumbbell(GBIT, 625, 100, 10),
        ),
        scenario(
            "thousand",
            "1,000 flows, 10 Gbit/s, 50 ms, 6,250 packets, 2 s",
            dumbbell(10 * GBIT, 6_250, 1_000, 2),
        ),
        scenario(
            "ten-thousand",
            "10,000 flows, 10 Gbit/s, 50 ms, 6,250 packets, 2 s",
            dumbbell(10 * GBIT, 6_250, 10_000, 2),
        ),
        scenario("fat-lossy", "1 flow, 100 Gbit/s, 100 ms, 0.001 % loss, 4 s", fat(lossy)),
        scenario("fat-cut", "the same, the link down for 300 ms after 1.3 s", fat(cut)),
        scenario("idle", "10,000 connections that exchange 100 bytes and stay open", idle(10_000)),
        scenario("short", "100,000 flows of 10 kB, 100 of them every 2 ms", short(1_000, 100)),
    ]
}

fn simulate(plan: &Value) -> Run {
    let plan: Plan = serde_json::from_value(plan.clone()).expect("a well-formed plan");
    let streams = plan.flows.iter().map(|flow| u64::from(flow.streams)).sum();
    let (begin, cpu_begin, memory_begin) = (Instant::now(), cpu_time(), memory());
    let mut simulation = Simulation::new(&plan).expect("a plan that can be simulated");
    while !simulation.advance(100_000) {}
    let memory = memory().saturating_sub(memory_begin);
    let tables = simulation.finish();
    let packets = tables.flows.segments_sent.iter().flatten().sum();
    Run { wall: begin.elapsed(), cpu: cpu_time() - cpu_begin, packets, streams, memory }
}

/// The path of `tcplab`'s shorthand: one link, 50 ms round trip, and bulk flows that no buffer limits.
fn dumbbell(rate: u64, queue: u64, streams: u32, seconds: u64) -> Value {
    let sockets = if streams <= 100 { json!(10 * MS) } else { json!(null) };
    let flow = bulk("cubic", streams, json!(null));
    let plan = plan(direction(rate, 25, queue), direction(rate, 25, queue), seconds, vec![flow]);
    let sample = with(plan["sample"].clone(), json!({"sockets": sockets}));
    with(plan, json!({"sample": sample}))
}

/// Connections of a client that asks once and thinks until the end.
fn idle(streams: u32) -> Value {
    let flow = json!({
        "name": "idle", "from": "a", "to": "b", "start": 0, "stop": null, "streams": streams, "kind": "request",
        "cc": {"name": "cubic"}, "request": 100, "response": 100, "think": 3_600 * SECOND, "count": null,
        "sender": {}, "receiver": {},
    });
    without_samples(plan(direction(GBIT, 25, 100_000), direction(GBIT, 25, 100_000), 10, vec![flow]))
}

/// The same without any rows that grow with time.
fn without_samples(plan: Value) -> Value {
    let sample = with(plan["sample"].clone(), json!({"sockets": null, "queues": null, "flows": null}));
    with(plan, json!({"sample": sample}))
}

/// Short transfers that start in groups.
fn short(groups: u64, streams: u32) -> Value {
    let flow = |group: u64| {
        let flow = bulk("cubic", streams, json!(10_000));
        with(flow, json!({"name": format!("group-{group}"), "start": group * 2 * MS}))
    };
    let plan = plan(
        direction(10 * GBIT, 5, 10_000),
        direction(10 * GBIT, 5, 10_000),
        600,
        (0..groups).map(flow).collect(),
    );
    without_samples(plan)
}

fn bulk(cc: &str, streams: u32, bytes: Value) -> Value {
    json!({
        "name": "bulk", "from": "a", "to": "b", "start": 0, "stop": null, "streams": streams, "kind": "tcp",
        "cc": {"name": cc}, "bytes": bytes, "pattern": null,
        "sender": {"send_buffer_max": 4_u64 << 30}, "receiver": {"receive_buffer_max": 4_u64 << 30},
    })
}

fn direction(rate: u64, delay_ms: u64, packets: u64) -> Value {
    json!({
        "rate": rate, "delay": delay_ms * MS, "queue": {"kind": "droptail", "limit": {"packets": packets}},
        "jitter": null, "reorder": null, "loss": null, "corrupt": null, "duplicate": null, "up": true,
        "trace": null, "changes": [],
    })
}

fn plan(forward: Value, backward: Value, seconds: u64, flows: Vec<Value>) -> Value {
    let node =
        |name: &str, peer: &str| json!({"name": name, "kind": "host", "tcp": {}, "routes": {peer: "path"}});
    json!({
        "name": "bench", "seed": 1, "duration": seconds * SECOND,
        "nodes": [node("a", "b"), node("b", "a")],
        "links": [{
            "name": "path", "ends": ["a", "b"], "addresses": ["10.0.0.1/24", "10.0.0.2/24"], "mtu": 1500,
            "forward": forward, "backward": backward,
        }],
        "flows": flows,
        "sample": {"sockets": null, "queues": 10 * MS, "flows": 100 * MS, "hosts": null, "packets": false},
        "capture": null,
    })
}

/// `base` with some settings replaced.
fn with(mut base: Value, settings: Value) -> Value {
    for (key, value) in settings.as_object().expect("settings by name") {
        base[key] = value.clone();
    }
    base
}

/// CPU time of this thread by /proc/self/schedstat; zero where there is none.
fn cpu_time() -> Duration {
    // The kernel updates the figure when it schedules: without this it is up to a clock tick old, some milliseconds.
    std::thread::yield_now();
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = schedstat.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// VmRSS of /proc/self/status, bytes; 0 where there is none. After another run it shows too little, for the
/// allocator keeps what that one gave back: the first run of a scenario alone shows most.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kb| kb.parse().ok()).unwrap_or(0) * 1024
}
