//! How fast the simulator is: `cargo run --release -p tcplab-sim --example bench [repetitions]`.
//!
//! Prints, for each scenario, the median and the least wall time, the median CPU time (which other work on
//! the machine disturbs less), data packets per second, and the process's peak memory.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tcplab_sim::{Simulation, Tables, plan::Plan};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn main() {
    let repetitions = std::env::args().nth(1).and_then(|argument| argument.parse().ok()).unwrap_or(7);
    let only = std::env::args().nth(2);
    let scenarios = [
        ("one-cubic", "1 cubic flow, 100 Mbit/s, 50 ms, 625 packets, 60 s", dumbbell(100_000_000, 1, 60)),
        (
            "hundred-cubic",
            "100 cubic flows, 1 Gbit/s, 50 ms, 625 packets, 10 s",
            dumbbell(1_000_000_000, 100, 10),
        ),
    ];
    let mut walls: Vec<Vec<Duration>> = vec![Vec::new(); scenarios.len()];
    let mut cpus = walls.clone();
    let mut packets = [0; 2];
    for _ in 0..repetitions {
        // Alternating, so that a slow moment of the machine strikes both.
        for (number, (name, _, plan)) in scenarios.iter().enumerate() {
            if only.as_ref().is_some_and(|only| only != name) {
                continue;
            }
            let (begin, cpu_begin) = (Instant::now(), cpu_time());
            let tables = simulate(plan);
            walls[number].push(begin.elapsed());
            cpus[number].push(cpu_time() - cpu_begin);
            packets[number] = tables.flows.segments_sent.iter().flatten().sum::<i64>();
        }
    }
    for (number, (_, title, _)) in scenarios.iter().enumerate() {
        let (wall, cpu) = (&mut walls[number], &mut cpus[number]);
        wall.sort();
        cpu.sort();
        let (Some(least), Some(median)) = (wall.first(), wall.get(wall.len() / 2)) else { continue };
        let cpu = cpu[cpu.len() / 2];
        let rate = packets[number] as f64 / cpu.as_secs_f64() / 1e6;
        println!("{title}:");
        println!("  {median:.1?} median and {least:.1?} least of {repetitions}, {cpu:.1?} of CPU");
        println!("  {rate:.2} M data packets a second of CPU");
    }
    println!("peak memory: {} MB", peak_memory_kb() / 1000);
}

fn simulate(plan: &Value) -> Tables {
    let plan: Plan = serde_json::from_value(plan.clone()).expect("a well-formed plan");
    let mut simulation = Simulation::new(&plan).expect("a plan that can be simulated");
    while !simulation.advance(100_000) {}
    simulation.finish()
}

/// The path of `tcplab`'s shorthand: one link, 625 packets of queue, 50 ms round trip.
fn dumbbell(rate: u64, streams: u32, seconds: u64) -> Value {
    let direction = json!({
        "rate": rate, "delay": 25 * MS, "queue": {"kind": "droptail", "limit": {"packets": 625}},
        "jitter": null, "reorder": null, "loss": null, "corrupt": null, "duplicate": null, "up": true,
        "trace": null, "changes": [],
    });
    let node =
        |name: &str, peer: &str| json!({"name": name, "kind": "host", "tcp": {}, "routes": {peer: "path"}});
    json!({
        "name": "bench", "seed": 1, "duration": seconds * SECOND,
        "nodes": [node("a", "b"), node("b", "a")],
        "links": [{
            "name": "path", "ends": ["a", "b"], "addresses": ["10.0.0.1/24", "10.0.0.2/24"], "mtu": 1500,
            "forward": direction.clone(), "backward": direction,
        }],
        "flows": [{
            "name": "bulk", "from": "a", "to": "b", "start": 0, "stop": null, "streams": streams,
            "kind": "tcp", "cc": {"name": "cubic"}, "bytes": null, "pattern": null,
            // Buffers that never limit a flow.
            "sender": {"send_buffer_max": 64 << 20}, "receiver": {"receive_buffer_max": 64 << 20},
        }],
        "sample": {
            "sockets": 10 * MS, "queues": 10 * MS, "flows": 100 * MS, "hosts": null, "packets": false,
        },
        "capture": null,
    })
}

/// CPU time of this thread by /proc/self/schedstat; zero where there is none.
fn cpu_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = schedstat.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// VmHWM of /proc/self/status; 0 where there is none.
fn peak_memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}
