//! Flows made by the real iperf3.

mod lab;

use std::process::Command;

use lab::{Lab, MS, SECOND, sum};
use serde_json::json;

#[test]
fn its_report_becomes_the_same_rows() {
    skip_if_unable!();
    if Command::new("iperf3").arg("--version").output().is_err() {
        return eprintln!("skipped: iperf3 is not installed");
    }
    let mut lab = Lab::new("iperf3");
    let flow = json!({"name": "bulk", "from": "a", "to": "b", "kind": "tcp", "streams": 2,
        "cc": {"name": "cubic"},
        "stop": SECOND});
    lab.flow(flow, json!({"sample": 200 * MS, "generator": "iperf3"}));
    lab.a.command(json!({"do": "probe", "sockets": 10 * MS}));
    lab.run(2 * SECOND);
    lab.assert_no_errors();
    let (sent, received) = (lab.rows("flows", "a"), lab.rows("flows", "b"));
    assert_eq!((sent.len(), received.len()), (2, 2));
    let rate = sum(&received, "bytes_received") as f64 / sum(&sent, "bytes_sent") as f64;
    assert!((0.9..1.1).contains(&rate), "{rate}");
    assert!(lab.rows("intervals", "a").len() >= 8, "{}", lab.rows("intervals", "a").len());
    let sockets = lab.rows("sockets", "a");
    for stream in 0..2 {
        let last = sockets.iter().rfind(|row| row["stream"] == stream).expect("samples of each stream");
        assert_eq!(last["flow"], "bulk");
        assert!(last["bytes_acked"].as_u64().unwrap() > 1_000_000, "not the control connection: {last}");
    }
}

#[test]
fn what_it_cannot_do_is_refused_beforehand() {
    skip_if_unable!();
    let mut lab = Lab::new("iperf3no");
    let flow = json!({"name": "bulk", "from": "a", "to": "b", "kind": "tcp", "cc": {"name": "cubic"},
        "pattern": {"on": MS, "off": MS, "distribution": "constant"}});
    let answer = lab.a.ask(json!({"do": "flow", "role": "client", "address": lab::B, "ports": [5201],
        "generator": "iperf3", "flow": flow}));
    assert_eq!(answer["event"], "error");
    assert!(!answer["hint"].as_str().unwrap().is_empty());
}
