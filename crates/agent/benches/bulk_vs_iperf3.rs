//! Bulk TCP over a plain veth pair: this agent and iperf3 by turns, since machines drift by the minute.
//!
//! `cargo bench -p tcplab-agent --bench bulk_vs_iperf3 -- [ROUNDS] [SECONDS] [STREAMS]` prints the ratio of
//! medians, and the CPU time per Gbit/s of the whole machine.

#[path = "../tests/lab/mod.rs"]
mod lab;

use std::process::Command;
use std::time::Duration;

use lab::{B, Lab, SECOND};
use serde_json::{Value, json};

/// Rate in Gbit/s and CPUs kept busy.
type Figure = (f64, f64);

fn main() {
    if let Some(why) = lab::obstacle() {
        return eprintln!("skipped: {why}");
    }
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [rounds, seconds, streams] = [(0, 5), (1, 3), (2, 1)].map(|(i, d)| *arguments.get(i).unwrap_or(&d));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        ours.push(agent(seconds, streams));
        theirs.push(iperf3(seconds, streams));
        let ((rate, cpu), (their_rate, their_cpu)) = (ours[round as usize], theirs[round as usize]);
        println!(
            "agent {rate:6.2} Gbit/s {cpu:.2} CPUs    iperf3 {their_rate:6.2} Gbit/s {their_cpu:.2} CPUs"
        );
    }
    let rate = |figures: &[Figure]| median(figures.iter().map(|f| f.0));
    let cost = |figures: &[Figure]| median(figures.iter().map(|f| f.1 / f.0));
    println!("rate: {:.2} of iperf3's", rate(&ours) / rate(&theirs));
    println!(
        "CPUs per Gbit/s: {:.4} and {:.4}, {:.2} of iperf3's",
        cost(&ours),
        cost(&theirs),
        cost(&ours) / cost(&theirs)
    );
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn busy() -> f64 {
    let sample = tcplab_probe::hosts::machine().expect("/proc/stat");
    sample.user + sample.system + sample.softirq.unwrap_or(0.0)
}

fn agent(seconds: u64, streams: u64) -> Figure {
    let mut lab = Lab::new("bench");
    let flow = json!({"name": "bulk", "from": "a", "to": "b", "kind": "tcp", "streams": streams,
        "cc": {"name": "cubic"}});
    lab.flow(flow, json!({}));
    let before = busy();
    lab.run(seconds * SECOND);
    let cpus = (busy() - before) / seconds as f64;
    let bytes = lab::sum(&lab.rows("flows", "b"), "bytes_received");
    (bytes as f64 * 8e-9 / seconds as f64, cpus)
}

fn iperf3(seconds: u64, streams: u64) -> Figure {
    let lab = Lab::new("bench");
    let enter = |pid: u32| {
        let mut command = Command::new("nsenter");
        command.args(["-t", &pid.to_string(), "-n", "iperf3"]).stdout(std::process::Stdio::piped());
        command
    };
    let mut server = enter(lab.b.pid()).args(["-s", "-1"]).spawn().expect("iperf3 runs");
    std::thread::sleep(Duration::from_millis(200));
    let (seconds_text, streams) = (seconds.to_string(), streams.to_string());
    let before = busy();
    let out = enter(lab.a.pid())
        .args(["-c", B, "-t", &seconds_text, "-P", &streams, "-C", "cubic", "-J"])
        .output()
        .expect("iperf3 runs");
    let cpus = (busy() - before) / seconds as f64;
    let _ = server.wait();
    let report: Value = serde_json::from_slice(&out.stdout).expect("iperf3 -J prints JSON");
    (report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0) / 1e9, cpus)
}
