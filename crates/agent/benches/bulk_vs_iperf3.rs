//! Bulk TCP over a plain veth pair: this agent and iperf3 by turns, since machines drift by the minute.
//!
//! `cargo bench -p tcplab-agent --bench bulk_vs_iperf3 -- [ROUNDS] [SECONDS]` prints medians and their ratios for one
//! stream and for four: rate, and CPU time per Gbit/s of the whole machine.

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
        return println!("bulk over veth: skipped: {why}");
    }
    if let Err(error) = Command::new("iperf3").arg("--version").output() {
        return println!("bulk over veth: skipped: iperf3 cannot be run ({error}): apt-get install iperf3");
    }
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [rounds, seconds] = [(0, 3), (1, 3)].map(|(i, default)| *arguments.get(i).unwrap_or(&default));
    println!("{:22} {:^24}   {:^24}", "bulk over veth", "Gbit/s", "CPUs per Gbit/s");
    let columns = ["tcplab", "iperf3", "ratio"].map(|name| format!("{name:>8}")).concat();
    println!("{:22} {columns}   {columns}", "");
    for streams in [1, 4] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(agent(seconds, streams));
            theirs.push(iperf3(seconds, streams));
        }
        let rates = [&ours, &theirs].map(|figures| median(figures.iter().map(|f| f.0)));
        let costs = [&ours, &theirs].map(|figures| median(figures.iter().map(|f| f.1 / f.0)));
        println!(
            "{:22} {:8.1}{:8.1}{:8.2}   {:8.4}{:8.4}{:8.2}",
            format!("{streams} stream{}", if streams == 1 { "" } else { "s" }),
            rates[0],
            rates[1],
            rates[0] / rates[1],
            costs[0],
            costs[1],
            costs[0] / costs[1]
        );
    }
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
