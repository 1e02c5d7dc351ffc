//! Cost of sampling 100 sockets at 1 kHz, under the kernel's own BBR and, where it can be loaded, under a
//! control of tcplab's with what it publishes.
//!
//! `cargo bench -p tcplab-agent --bench sampling` prints the share of a core that the sampling thread uses,
//! and what writing the rows costs besides.

#[path = "../tests/lab/mod.rs"]
mod lab;

use lab::{Agent, Lab, MS, SECOND};
use serde_json::{Value, json};

const SECONDS: u64 = 3;

fn main() {
    if let Some(why) = lab::obstacle() {
        return println!("sampling sockets: skipped: {why}");
    }
    let mut loader = Agent::start(&["controls"]);
    let ours = loader.ask(json!({"do": "load", "name": "bbr2"}));
    measure("bbr", &[]);
    match ours["registered"].as_str() {
        Some(name) => measure(name, &[&ours]),
        None => println!("sampling sockets of a control of tcplab's: skipped: {}", ours["message"]),
    }
}

fn measure(cc: &str, controls: &[&Value]) {
    for streams in [1, 100] {
        let mut lab = Lab::new("sampling");
        let flow = json!({"name": "bulk", "from": "a", "to": "b", "kind": "tcp", "streams": streams,
            "cc": {"name": cc}});
        lab.flow(flow, json!({"max_pacing_rate": 100_000}));
        lab.a.command(json!({"do": "probe", "sockets": MS, "hosts": SECOND, "controls": controls}));
        let (done, _) = lab.run(SECONDS * SECOND);
        let samples = &done["facts"]["socket_samples"];
        let figure = |key: &str| samples[key].as_f64().unwrap_or(f64::NAN);
        let hosts = lab.rows("hosts", "a");
        let process: f64 = hosts
            .last()
            .map(|row| row["cpu_user"].as_f64().unwrap_or(0.0) + row["cpu_system"].as_f64().unwrap_or(0.0))
            .unwrap_or(f64::NAN);
        println!(
            "{streams} sockets of {cc} at 1 kHz: {:.1} % of a core sampling, {:.1} % for the whole agent; \
             {} samples, {} missed, {} rows",
            100.0 * figure("cpu") / SECONDS as f64,
            100.0 * process / SECONDS as f64,
            figure("taken"),
            figure("missed"),
            done["facts"]["rows"]["sockets"],
        );
    }
}
