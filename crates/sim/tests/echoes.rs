//! Echo flows in the simulator.

use crate::common::*;
use serde_json::{Value, json};

fn echo(settings: Value) -> Value {
    let echo = json!({
        "kind": "echo", "cc": {"name": "cubic"}, "sizes": [1, 1024, 65536], "iterations": 50,
        "sender": {"nagle": false, "tso": false}, "receiver": {"nagle": false, "tso": false}, "stop": null,
    });
    flow("e", with(echo, settings))
}

fn lan(flows: Vec<Value>) -> Value {
    path(direction(100_000_000, MS / 10), direction(100_000_000, MS / 10), flows)
}

fn rtts(run: &Run, client: i64, size: i64) -> Vec<i64> {
    let echoes = &run.tables.echoes;
    let row = |row: &usize| echoes.client.get(*row) == Some(client) && echoes.size.get(*row) == Some(size);
    (0..echoes.rtt.len()).filter(row).filter_map(|row| echoes.rtt.get(row)).collect()
}

#[test]
fn a_small_echo_takes_the_round_trip_and_both_serialisations() {
    let run = run(&lan(vec![echo(json!({}))]));
    let small = rtts(&run, 0, 1);
    assert_eq!(small.len(), 50);
    // Frames of 67 bytes at 100 Mbit/s, both ways.
    assert_eq!(small[10], MS as i64 / 5 + 2 * 5_360);
    assert!(small[0] > small[10], "the first waits for the ACK of the handshake");
    assert_eq!(run.tables.flows.complete.get(run.flow("e")), Some(true));
}

/// As on the kernel: with 58 bytes and 14, which no figure counts.
#[test]
fn client_and_server_greet_each_other_before_the_first_message() {
    let both_ways = || direction(100_000_000, 10 * MS);
    let run = run(&path(both_ways(), both_ways(), vec![echo(json!({"sizes": [1000], "iterations": 2}))]));
    // SYN, SYN-ACK, ACK and greeting, ACK and answer: so many bytes are their frames.
    let first = 40 * MS as i64 + 80 * (74 + 74 + 66 + 124 + 66 + 80);
    assert_eq!(run.tables.echoes.time.get(0), Some(first));
    let (flows, row) = (&run.tables.flows, run.flow("e"));
    let counts =
        [&flows.bytes_sent, &flows.bytes_received, &flows.segments_sent].map(|column| column.get(row));
    assert_eq!(counts, [Some(4000), Some(4000), Some(4)]);
    assert_eq!(run.tables.sockets.bytes_acked.iter().flatten().max(), Some(2000));
}

#[test]
fn serialisation_explains_the_slope() {
    let run = run(&lan(vec![echo(json!({}))]));
    let (small, large) = (rtts(&run, 0, 1), rtts(&run, 0, 65_536));
    // 45 full segments and one of 376 bytes, each with 66 bytes of headers; less the one of the small message.
    let bytes = 65_536 + 46 * 66 - 67;
    let expected = f64::from(2 * bytes * 8) / 0.1;
    let slope = (large[40] - small[40]) as f64;
    assert!((slope / expected - 1.0).abs() < 0.05, "{slope} ns, {expected} expected");
}

#[test]
fn on_a_longer_path_the_first_large_messages_wait_for_the_window() {
    let both_ways = || direction(100_000_000, 10 * MS);
    let run = run(&path(both_ways(), both_ways(), vec![echo(json!({"streams": 1}))]));
    let large = rtts(&run, 0, 65_536);
    // Ten segments, then twenty, then the rest: two more round trips each way than once the window has grown.
    assert!(large[0] > large[40] + 60 * MS as i64, "{large:?}");
    assert_eq!(large[30], large[40]);
}

#[test]
fn clients_wait_for_each_other_before_each_size_and_share_the_link() {
    let mean = |clients: i64| {
        let run = run(&lan(vec![echo(json!({"streams": clients}))]));
        let echoes = &run.tables.echoes;
        assert_eq!(echoes.rtt.len() as i64, 3 * 50 * clients);
        let ends = |size: i64| {
            let of = (0..echoes.rtt.len()).filter(move |row| echoes.size.get(*row) == Some(size));
            of.map(|row| (echoes.time.get(row).unwrap(), echoes.rtt.get(row).unwrap()))
        };
        let last = ends(1).map(|(time, rtt)| time + rtt).max();
        assert!(ends(1024).map(|(time, _)| time).min() >= last);
        let large: Vec<i64> = (0..clients).flat_map(|client| rtts(&run, client, 65_536)).collect();
        large.iter().sum::<i64>() as f64 / large.len() as f64
    };
    let (four, eight) = (mean(4), mean(8));
    assert!((eight / four - 2.0).abs() < 0.1, "{four} and {eight}");
}

#[test]
fn more_than_a_million_become_histograms_with_their_order_in_batches() {
    let mut plan = lan(vec![echo(json!({"sizes": [1, 8], "iterations": 600_000}))]);
    plan["duration"] = json!(300 * SECOND);
    let run = run(&plan);
    let (echoes, batches) = (&run.tables.echoes, &run.tables.echo_batches);
    let total: i64 = echoes.count.iter().flatten().sum();
    assert_eq!(total, 1_200_000);
    assert_eq!(echoes.iteration.iter().flatten().count(), 200);
    assert!(echoes.rtt.len() < 400, "{} rows", echoes.rtt.len());
    assert_eq!(batches.count.iter().flatten().sum::<i64>(), total - 200);
}

#[test]
fn a_stop_leaves_nobody_waiting() {
    let run = run(&lan(vec![echo(json!({"streams": 3, "iterations": 100_000, "stop": 50 * MS}))]));
    assert!(run.stats.simulated.as_ns() < SECOND, "{:?}", run.stats.simulated);
    assert_eq!(run.tables.flows.complete.get(run.flow_stream("e", 1)), Some(false));
    assert!(run.tables.echoes.time.iter().flatten().all(|time| time < 50 * MS as i64));
}

#[test]
fn the_interval_is_the_minimum_time_between_messages() {
    let run = run(&lan(vec![echo(json!({"sizes": [1], "interval": 5 * MS}))]));
    let times: Vec<i64> = run.tables.echoes.time.iter().flatten().collect();
    assert!(times.windows(2).all(|two| two[1] - two[0] == 5 * MS as i64));
}
