//! Interfaces of hosts: the flows of a host share their rate, and TCP sees what waits there.

use crate::common::*;
use serde_json::{Value, json};

/// A host whose interface sends at 10 Mbit/s into a link of 100 Mbit/s; 10 ms both ways.
fn behind_interface(queue: u32, flows: Vec<Value>) -> Value {
    let mut plan = path(direction(100_000_000, 5 * MS), direction(100_000_000, 5 * MS), flows);
    plan["nodes"][0]["nic"] = json!({"rate": 10_000_000, "queue": queue});
    plan
}

#[test]
fn tcp_fills_the_interface_and_keeps_its_queue_short() {
    let run = run(&behind_interface(1000, vec![flow("t", tcp("cubic"))]));
    let (flows, row) = (&run.tables.flows, run.flow("t"));
    // 1448 bytes of payload in frames of 1514, a whole number of which arrive in each interval of 100 ms.
    let maximum = 10e6 * 1448.0 / 1514.0;
    let rows = run.intervals("t");
    let goodput = rows[10..50].iter().filter_map(|&row| run.tables.intervals.goodput.get(row));
    let mean = goodput.sum::<f64>() / 40.0;
    assert!((0.999..1.001).contains(&(mean / maximum)), "{mean}");
    assert_eq!(flows.losses_true.get(row), Some(0));
    // Three bursts of two segments are there at the most: 6 frames of 1.2 ms.
    let longest = run.tables.sockets.srtt.iter().flatten().max().expect("a sample");
    assert!(longest < (10 + 8) * MS as i64, "{longest} ns");
    let rest = run.tables.queues.packets.iter().flatten().max();
    assert_eq!(rest, Some(0), "the link itself is never the bottleneck");
}

#[test]
fn the_flows_of_a_host_share_its_interface() {
    let eight = with(flow("t", tcp("cubic")), json!({"streams": 8}));
    let run = run(&behind_interface(1000, vec![eight]));
    let received = |stream| run.tables.flows.bytes_received.get(run.flow_stream("t", stream)).unwrap_or(0);
    let all: i64 = (0..8).map(received).sum();
    assert!((0..8).all(|stream| received(stream) > all / 16), "none is starved");
}

#[test]
fn what_finds_the_queue_full_is_lost_before_the_link() {
    let run = run(&behind_interface(50, vec![flow("u", udp(20_000_000))]));
    let (flows, row) = (&run.tables.flows, run.flow("u"));
    let (sent, received) =
        (flows.segments_sent.get(row), flows.bytes_received.get(row).map(|bytes| bytes / 1000));
    // Frames of 1042 bytes at 10 Mbit/s until the last datagram comes, at 4.9996 s: then one is being sent, 50 wait.
    assert_eq!(received, Some(49_996_000 / (8 * 1042) + 51));
    assert_eq!(flows.losses_true.get(row), sent.zip(received).map(|(sent, received)| sent - received));
    assert_eq!(run.tables.queues.drops.iter().flatten().max(), Some(0));
}

#[test]
fn a_datagram_socket_blocks_until_half_of_its_buffer_is_free() {
    let flows = vec![
        flow("large", with(udp(20_000_000), json!({"payload": 1472}))),
        flow("small", with(udp(20_000_000), json!({"payload": 100}))),
    ];
    let run = run(&behind_interface(1000, flows));
    let of = |name| {
        let (flows, row) = (&run.tables.flows, run.flow(name));
        assert_eq!(flows.losses_true.get(row), Some(0), "{name}");
        flows.bytes_received.get(row).expect("a figure") as f64
    };
    // The buffer of each has 70 to 139 kB of 1514 bytes, or 20 to 39 kB of 142 bytes.
    let frames = [of("large") / 1472.0 * 1514.0, of("small") / 100.0 * 142.0];
    assert!((3.0..4.0).contains(&(frames[0] / frames[1])), "{frames:?}");
    // All that the interface sends in 5 s, and what waits then.
    assert!((50e6..52e6).contains(&((frames[0] + frames[1]) * 8.0)), "{frames:?}");
}
