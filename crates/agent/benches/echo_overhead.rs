//! Round trips over a plain veth pair: ours, a bare ping-pong loop in C and sockperf by turns, since machines drift
//! by the minute.
//!
//! Both ends sleep while they wait, or poll, each on a CPU of its own. Unless they are pinned, the scheduler puts
//! both ends of some runs on one CPU, which saves waking the other.
//!
//! `cargo bench -p tcplab-agent --bench echo_overhead -- [ROUNDS] [ITERATIONS]` prints medians in µs and ratios.

#[path = "../tests/lab/mod.rs"]
mod lab;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lab::{B, Lab};
use serde_json::{Value, json};

/// sockperf's shortest message, and a long one within its limit of 65,507 bytes.
const SIZES: [u64; 5] = [1, 14, 1024, 65_000, 65_536];
const PORT: &str = "7001";

struct Bench {
    lab: Lab,
    bare: PathBuf,
    sockperf: bool,
    iterations: u64,
    polls: bool,
    pinned: bool,
}

fn main() {
    if let Some(why) = lab::obstacle() {
        return eprintln!("skipped: {why}");
    }
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [rounds, iterations] = [(0, 5), (1, 3000)].map(|(i, default)| *arguments.get(i).unwrap_or(&default));
    let bare = std::env::temp_dir().join(format!("tcplab-pingpong-{}", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/pingpong.c");
    let built = Command::new("cc").args(["-O2", "-o"]).arg(&bare).arg(source).status();
    assert!(built.is_ok_and(|status| status.success()), "cc builds {source}");
    let sockperf = Command::new("sockperf").arg("--version").output().is_ok();
    let lab = Lab::new("echo-bench");
    for agent in [&lab.a, &lab.b] {
        // sockperf takes the default, whatever the host's is; so do the others here. Reno is allowed everywhere.
        agent.within(&["sysctl", "-q", "-w", "net.ipv4.tcp_congestion_control=reno"]);
    }
    let mut bench = Bench { lab, bare, sockperf, iterations, polls: false, pinned: false };
    for (polls, pinned) in [(false, false), (false, true), (true, true)] {
        (bench.polls, bench.pinned) = (polls, pinned);
        bench.mode(rounds);
    }
    let _ = std::fs::remove_file(&bench.bare);
    if !sockperf {
        println!("sockperf is not installed: apt-get install sockperf");
    }
}

impl Bench {
    fn mode(&self, rounds: u64) {
        let waits = if self.polls { "polling" } else { "sleeping" };
        println!("{waits}, {}", if self.pinned { "a CPU for each end" } else { "not pinned" });
        let mut measured: Vec<[Vec<f64>; 3]> = SIZES.iter().map(|_| Default::default()).collect();
        for _ in 0..rounds {
            for (place, median) in self.ours().into_iter().enumerate() {
                measured[place][0].push(median);
            }
            for (place, size) in SIZES.into_iter().enumerate() {
                if [1, 1024, 65_536].contains(&size) {
                    measured[place][1].push(self.bare(size));
                }
                if self.sockperf && [14, 1024, 65_000].contains(&size) {
                    measured[place][2].push(self.theirs(size));
                }
            }
        }
        for (size, [ours, bare, theirs]) in SIZES.iter().zip(&mut measured) {
            let ours = median(ours);
            let beside = |name: &str, figures: &mut Vec<f64>| {
                if figures.is_empty() {
                    return String::new();
                }
                let other = median(figures);
                format!("   {name} {other:8.2} ({:.3})", ours / other)
            };
            println!("{size:6} B  ours {ours:8.2}{}{}", beside("bare C", bare), beside("sockperf", theirs));
        }
    }

    fn within(&self, pid: u32, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &pid.to_string(), "-n", program]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Medians by size, µs.
    fn ours(&self) -> Vec<f64> {
        let agent = env!("CARGO_BIN_EXE_tcplab-agent");
        let (server_cpus, client_cpus) = if self.pinned { (vec![1], vec![0]) } else { (vec![], vec![]) };
        let serve = json!({"addresses": [format!("{B}:{PORT}")], "clients": 1, "size": 1 << 20,
            "busy_poll": self.polls, "cpus": server_cpus});
        let (mut server, mut output) = start(self.within(self.lab.b.pid(), agent).arg("echo-serve"), &serve);
        assert_eq!(next(&mut output)["event"], "listening");
        let run = json!({"addresses": [format!("{B}:{PORT}")], "sizes": SIZES, "iterations": self.iterations,
            "clients": 1, "warmup": 0, "interval": 0, "timeout": 10_000_000_000u64, "nodelay": true,
            "busy_poll": self.polls, "control": "", "cpus": client_cpus, "raw": null});
        let (mut client, mut events) = start(self.within(self.lab.a.pid(), agent).arg("echo-run"), &run);
        let mut medians = Vec::new();
        loop {
            let event = next(&mut events);
            match event["event"].as_str() {
                Some("series") => medians.push(median_of(&event)),
                Some("done") => break,
                Some("error") => panic!("{event}"),
                _ => {}
            }
        }
        for child in [&mut client, &mut server] {
            drop(child.stdin.take());
            let _ = child.wait();
        }
        medians
    }

    fn bare(&self, size: u64) -> f64 {
        let program = self.bare.to_str().expect("a path");
        let (spin, size, count) =
            (u8::from(self.polls).to_string(), size.to_string(), self.iterations.to_string());
        let (server_cpu, client_cpu) = if self.pinned { ("1", "0") } else { ("-1", "-1") };
        let mut server = self.within(self.lab.b.pid(), program);
        let mut server =
            server.args(["serve", PORT, &size, &spin, server_cpu]).spawn().expect("the loop runs");
        std::thread::sleep(Duration::from_millis(100));
        let mut client = self.within(self.lab.a.pid(), program);
        let out = client.args(["ask", B, PORT, &size, &count, &spin, client_cpu]).output();
        let _ = server.wait();
        let text = String::from_utf8(out.expect("the loop runs").stdout).expect("a number");
        text.trim().parse::<f64>().expect("a number") / 1e3
    }

    fn theirs(&self, size: u64) -> f64 {
        let common = ["--tcp", "-i", B, "-p", PORT];
        let pinned = |cpu: &str| {
            let mut words = vec!["-c".to_owned(), cpu.to_owned(), "sockperf".to_owned()];
            if !self.pinned {
                words = vec!["-c".to_owned(), "0-1".to_owned(), "sockperf".to_owned()];
            }
            words
        };
        let polls: &[&str] = if self.polls { &["--nonblocked"] } else { &[] };
        let mut server = self.within(self.lab.b.pid(), "taskset");
        let mut server =
            server.args(pinned("1")).arg("server").args(common).args(polls).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(300));
        let mut client = self.within(self.lab.a.pid(), "taskset");
        let out = client
            .args(pinned("0"))
            .arg("ping-pong")
            .args(common)
            .args(["--full-rtt", "-t", "1", "-m", &size.to_string()])
            .args(polls)
            .output();
        let _ = server.kill();
        let _ = server.wait();
        let text = String::from_utf8_lossy(&out.expect("it runs").stdout).into_owned();
        let line = text.lines().find(|line| line.contains("percentile 50.0"));
        let value = line.and_then(|line| line.rsplit('=').next()).and_then(|word| word.trim().parse().ok());
        value.unwrap_or_else(|| panic!("sockperf says no median: {text}"))
    }
}

fn start(command: &mut Command, what: &Value) -> (Child, impl BufRead + use<>) {
    let mut child = command.spawn().expect("the agent starts");
    writeln!(child.stdin.as_mut().expect("piped"), "{what}").expect("the agent reads");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    (child, output)
}

fn next(events: &mut impl BufRead) -> Value {
    let mut line = String::new();
    events.read_line(&mut line).expect("the agent writes");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

/// The median of a series, µs: of round trips reported one by one and of those in buckets.
fn median_of(series: &Value) -> f64 {
    let pairs = |key: &str| series[key].as_array().cloned().unwrap_or_default();
    let mut counted: Vec<(u64, u64)> =
        pairs("rounds").iter().map(|pair| (pair[1].as_u64().unwrap_or(0), 1)).collect();
    let bucket = |pair: &Value| (pair[0].as_u64().unwrap_or(0), pair[1].as_u64().unwrap_or(0));
    counted.extend(pairs("buckets").iter().map(bucket));
    counted.sort_unstable();
    let half = counted.iter().map(|(_, count)| count).sum::<u64>() / 2;
    let mut seen = 0;
    for (rtt, count) in counted {
        seen += count;
        if seen > half {
            return rtt as f64 / 1e3;
        }
    }
    f64::NAN
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
