//! The estimate of a run: links are shared max-min fairly, UDP does not yield, windows and loss limit TCP.

use tcplab_plan::Estimate;
use tcplab_scenario::{Document, Memory, plan};

fn estimate(network: &str, flows: &str, more: &str) -> Estimate {
    let text = format!(
        "tcplab: 1\nname: t\nnetwork: {{path: {{rate: 12 Mbit/s, rtt: 20 ms{network}}}}}\nduration: 10 s\nflows: {flows}\n{more}"
    );
    let document = Document::parse(text.as_bytes(), "t.yaml").expect("YAML");
    plan(document, &[], &Memory::default()).unwrap_or_else(|said| panic!("{said}")).estimate()
}

/// Packets in units of those that fill the link for the run: 10,000 data packets.
fn fills(flows: &str) -> f64 {
    estimate("", flows, "").packets as f64 / 10_000.0
}

/// Whether `found` is near `expected`: ACKs are half as many as segments, and frames have headers.
fn about(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.05
}

const BULK: &str = "{name: bulk, kind: tcp}";

#[test]
fn a_bulk_transfer_fills_the_link_alone_and_with_others() {
    let one = fills(&format!("[{BULK}]"));
    assert!(about(one, 1.5), "{one}");
    let two = fills(&format!("[{BULK}, {{name: more, kind: tcp, streams: 3}}]"));
    assert!(about(two, one), "{two}");
}

#[test]
fn udp_does_not_yield() {
    // 9 of 12 Mbit/s have no ACKs.
    let both = fills(&format!("[{BULK}, {{name: u, kind: udp, rate: 8.75 Mbit/s}}]"));
    assert!(about(both, 0.75 + 0.25 * 1.5), "{both}");
    let alone = fills("[{name: u, kind: udp, rate: 30 Mbit/s}]");
    assert!(about(alone, 1.0), "{alone}");
}

#[test]
fn what_has_an_amount_ends_with_it() {
    let some = fills("[{name: f, kind: tcp, bytes: 1.5 MB}]");
    assert!(about(some, 0.15), "{some}");
    let pings = estimate("", "[{name: p, kind: ping, interval: 10 ms, count: 50}]", "");
    assert_eq!((pings.rows["pings"], pings.packets), (50, 100));
}

#[test]
fn flows_that_do_not_overlap_take_little_memory() {
    let memory = |starts: [u32; 2]| {
        let flow = |name: &str, start| {
            format!("{{name: {name}, kind: tcp, bytes: 1 kB, streams: 1000, start: {start} s}}")
        };
        let flows = format!("[{}, {}]", flow("f", starts[0]), flow("g", starts[1]));
        estimate("", &flows, "sample: {sockets: off, queues: off, flows: off}").memory
    };
    // A stream at work takes 60 kB.
    assert_eq!(memory([0, 0]) - memory([0, 5]), 60_000 * 1000);
    assert_eq!(memory([5, 0]), memory([0, 5]));
}

#[test]
fn a_window_and_random_loss_limit_a_connection() {
    // The buffer is 30 kB a round trip of 20 ms: 12 Mbit/s; a tenth of it is a tenth of the link.
    let windowed = fills("[{name: f, kind: tcp, window: 3 kB}]");
    assert!(about(windowed, 0.15), "{windowed}");
    let lossy = |cc: &str| {
        let flows = format!("[{{name: f, kind: tcp, cc: {cc}}}]");
        estimate(", loss: 5 %", &flows, "").packets as f64 / 10_000.0
    };
    // Mathis: 1448 B · 8 / 20 ms · sqrt(1.5 / 0.05) is 3.2 Mbit/s.
    assert!(about(lossy("reno"), 1.5 * 3.17 * 1526.0 / 1460.0 / 12.0), "{}", lossy("reno"));
    assert!(lossy("bbr2") > 2.0 * lossy("cubic"));
}

#[test]
fn a_link_that_is_down_carries_nothing() {
    let half = estimate(", at: {5 s: {up: off}}", &format!("[{BULK}]"), "").packets as f64 / 10_000.0;
    assert!(about(half, 0.75), "{half}");
}

#[test]
fn rows_follow_from_samples() {
    let rows = |sample: &str| estimate("", &format!("[{BULK}]"), &format!("sample: {{{sample}}}\n")).rows;
    let every = rows("sockets: 10 ms, queues: 20 ms, flows: 100 ms");
    assert_eq!((every["sockets"], every["intervals"]), (1000, 100));
    let queues = every["queues"];
    assert!(queues >= 1000 && queues.is_multiple_of(1000), "{queues}");
    assert!(!rows("sockets: off").contains_key("sockets"));
    assert!(rows("packets: on")["packets"] > 0);
}
