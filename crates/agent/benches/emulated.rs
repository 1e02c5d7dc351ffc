//! One TCP flow over an emulated link: how much it carries, at what cost, and what the emulator costs when idle.
//!
//! `cargo bench -p tcplab-agent --bench emulated -- [ROUNDS] [SECONDS]` prints medians.

#[path = "../tests/lab/mod.rs"]
mod lab;

use lab::{Agent, Lab, MS, SECOND};
use serde_json::{Value, json};

/// Buffers that hold more than the fastest of these paths has in flight.
const BUFFER: u64 = 64_000_000;
/// Before the flow is measured: slow start and what follows it.
const WARM_UP: u64 = SECOND;
/// Payload of a full segment with time stamps, over its Ethernet frame.
const SHARE: f64 = 1448.0 / 1514.0;

/// An emulated link between two nodes.
struct Link {
    lab: Lab,
    emulator: Agent,
}

/// Settings of a link.
#[derive(Clone, Copy)]
struct Path {
    name: &'static str,
    /// bit/s
    rate: Option<u64>,
    /// One way, ns.
    delay: u64,
    /// Nodes take packets joined.
    gro: bool,
}

/// Of one run: Gbit/s after the warm-up, the emulator's share of a CPU, the share of packets it delivered late.
#[derive(Clone, Copy)]
struct Figures {
    rate: f64,
    cpu: f64,
    late: f64,
}

impl Link {
    fn new(path: Path) -> Link {
        let mut emulator = Agent::start(&["emu"]);
        let lab = Lab::joined("emulated", |a, b, dir| {
            let end = |agent: &Agent, node: &str, last: u8| {
                json!({"node": node, "pid": agent.pid(), "interface": "eth0",
                    "mac": format!("02:00:00:00:00:0{last}"), "mtu": 1500, "gro": path.gro})
            };
            // One bandwidth-delay product waits at most.
            let limit = path.rate.map(|rate| json!({"bytes": rate / 8 * (2 * path.delay) / SECOND}));
            let direction = json!({"rate": path.rate, "queue": {"kind": "droptail", "limit": limit},
                "delay": path.delay, "up": true, "changes": []});
            let link = json!({"name": "path", "ends": [end(a, "a", 1), end(b, "b", 2)],
                "forward": direction, "backward": direction});
            emulator.command(json!({"do": "configure", "seed": 1, "dir": dir, "links": [link]}));
            for agent in [a, b] {
                for (name, maximum) in [("wmem", 16384), ("rmem", 131_072)] {
                    let setting = format!("net.ipv4.tcp_{name}=4096 {maximum} {BUFFER}");
                    agent.within(&["sysctl", "-qw", &setting]);
                }
            }
        });
        Link { lab, emulator }
    }

    fn start(&mut self, duration: u64) {
        let at = self.lab.start(duration);
        self.emulator.command(json!({"do": "start", "at": at, "duration": duration}));
    }

    fn carry(mut self, seconds: u64) -> Figures {
        let flow = json!({"name": "bulk", "from": "a", "to": "b", "kind": "tcp", "cc": {"name": "cubic"}});
        self.lab.flow(flow, json!({"sample": 100 * MS}));
        self.start(WARM_UP + seconds * SECOND);
        self.lab.a.done();
        self.lab.b.done();
        let facts = self.emulator.done()["facts"].clone();
        let rows = self.lab.rows("intervals", "b");
        let late: Vec<Value> =
            rows.into_iter().filter(|row| row["time"].as_u64().is_some_and(|at| at > WARM_UP)).collect();
        let bytes = lab::sum(&late, "bytes_received");
        let whole = (WARM_UP + seconds * SECOND) as f64 / 1e9;
        Figures {
            rate: bytes as f64 * 8e-9 / seconds as f64,
            cpu: facts["cpu"].as_f64().unwrap_or(f64::NAN) / whole,
            late: facts["lateness"]["late_share"].as_f64().unwrap_or(f64::NAN),
        }
    }

    /// The emulator's share of a CPU while nothing happens.
    fn idle(mut self, seconds: u64) -> f64 {
        self.start(seconds * SECOND);
        let facts = self.emulator.done()["facts"].clone();
        facts["cpu"].as_f64().unwrap_or(f64::NAN) / seconds as f64
    }
}

fn main() {
    if let Some(why) = lab::obstacle() {
        return println!("one flow over an emulated link: skipped: {why}");
    }
    if let Err(error) = std::fs::File::open("/dev/net/tun") {
        return println!("one flow over an emulated link: skipped: /dev/net/tun: {error}");
    }
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [rounds, seconds] = [(0, 3), (1, 3)].map(|(i, default)| *arguments.get(i).unwrap_or(&default));
    let paths = [
        Path { name: "no rate, 10 ms RTT, GRO", rate: None, delay: 5 * MS, gro: true },
        Path { name: "no rate, 10 ms RTT", rate: None, delay: 5 * MS, gro: false },
        Path { name: "1 Gbit/s, 50 ms RTT", rate: Some(1_000_000_000), delay: 25 * MS, gro: false },
    ];
    println!(
        "{:34} {:>8} {:>11} {:>10} {:>6}",
        "one CUBIC flow over emulated", "Gbit/s", "of possible", "emulator", "late"
    );
    let mut figures = vec![Vec::new(); paths.len()];
    // By turns: machines drift by the minute.
    for _ in 0..rounds {
        for (path, figures) in paths.iter().zip(&mut figures) {
            figures.push(Link::new(*path).carry(seconds));
        }
    }
    for (path, figures) in paths.iter().zip(&figures) {
        let of = |pick: fn(&Figures) -> f64| median(figures.iter().map(pick).collect());
        let rate = of(|one| one.rate);
        let possible = path.rate.map(|possible| rate * 1e9 / (possible as f64 * SHARE) * 100.0);
        println!(
            "{:34} {rate:8.3} {:>11} {:8.0} % {:4.1} %",
            path.name,
            possible.map_or("-".into(), |share| format!("{share:.1} %")),
            of(|one| one.cpu) * 100.0,
            of(|one| one.late) * 100.0,
        );
    }
    let idle = Link::new(paths[2]).idle(seconds);
    println!("{:34} {:>8} {:>11} {:8.2} %", "nothing", "0", "-", idle * 100.0);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
