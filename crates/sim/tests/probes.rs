//! Pings in the simulator, and paths through several nodes.

use crate::common::*;
use serde_json::{Value, json};

/// Time to send `bytes` at `rate`, as the link rounds it.
fn sending(bytes: u64, rate: u64) -> u64 {
    (bytes * 8 * SECOND).div_ceil(rate)
}

#[test]
fn a_ping_takes_exactly_the_round_trip_of_the_path() {
    let plan = path(direction(100_000_000, 25 * MS), direction(30_000_000, 17 * MS), vec![flow("p", ping())]);
    let run = run(&plan);
    // 56 bytes of payload make a frame of 98.
    let rtt = 42 * MS + sending(98, 100_000_000) + sending(98, 30_000_000);
    let pings = &run.tables.pings;
    assert_eq!(pings.rtt.iter().collect::<Vec<_>>(), vec![Some(rtt as i64); 10]);
    assert!(pings.lost.iter().all(|lost| lost == Some(false)));
    assert_eq!(pings.time.iter().flatten().collect::<Vec<_>>()[9], 900 * MS as i64);
    let (flows, row) = (&run.tables.flows, run.flow("p"));
    assert_eq!(flows.rtt_mean.get(row), Some(rtt as f64));
    assert_eq!(flows.rtt_p99.get(row), Some(rtt as f64));
    assert_eq!(run.stats.simulated.as_ns(), 900 * MS + rtt, "the run ends with the last reply");
}

/// a - s - r - t - b: hosts, switches and a router, with a side branch.
fn long_path(flows: Vec<Value>) -> Value {
    let fast = || direction(1_000_000_000, MS);
    let nodes = [
        node("a", "host", &[("b", "as"), ("c", "as")]),
        node("s", "switch", &[("a", "as"), ("b", "sr"), ("c", "sr")]),
        node("r", "router", &[("a", "sr"), ("b", "rt"), ("c", "rc")]),
        node("t", "switch", &[("a", "rt"), ("b", "tb"), ("c", "rt")]),
        node("b", "host", &[("a", "tb"), ("c", "tb")]),
        node("c", "host", &[("a", "rc"), ("b", "rc")]),
    ];
    let links = [
        link("as", ["a", "s"], fast(), fast()),
        link("sr", ["s", "r"], fast(), fast()),
        // Named against the direction of travel.
        link("rt", ["t", "r"], fast(), direction(10_000_000, 10 * MS)),
        link("tb", ["t", "b"], fast(), fast()),
        link("rc", ["r", "c"], fast(), fast()),
    ];
    plan(&nodes, &links, flows)
}

#[test]
fn packets_follow_the_routes_through_switches_and_routers() {
    let run = run(&long_path(vec![
        flow("p", ping()),
        with(flow("q", ping()), json!({"to": "c", "start": 5 * MS})),
    ]));
    let hop = sending(98, 1_000_000_000) + MS;
    let slow = sending(98, 10_000_000) + 10 * MS;
    let to_b = 7 * hop + slow;
    let to_c = 6 * hop;
    let row = |flow| run.tables.flows.rtt_p50.get(run.flow(flow));
    assert_eq!(row("p"), Some(to_b as f64));
    assert_eq!(row("q"), Some(to_c as f64));
}

#[test]
fn a_lost_probe_has_no_round_trip_time() {
    let lossy = with(
        direction(100_000_000, 10 * MS),
        json!({"loss": {"model": {"kind": "list", "packets": [2, 10]}, "before_queue": false}}),
    );
    let run = run(&path(lossy, direction(100_000_000, 10 * MS), vec![flow("p", ping())]));
    let lost: Vec<bool> = run.tables.pings.lost.iter().flatten().collect();
    assert_eq!(
        lost.iter().enumerate().filter(|(_, lost)| **lost).map(|(seq, _)| seq).collect::<Vec<_>>(),
        [1, 9]
    );
    assert_eq!(run.tables.pings.rtt.get(1), None);
    let (flows, row) = (&run.tables.flows, run.flow("p"));
    assert_eq!((flows.losses_true.get(row), flows.losses_detected.get(row)), (Some(2), Some(2)));
    assert!(run.stats.simulated.as_ns() < SECOND, "nothing more can come, so the run ends");
}

#[test]
fn a_change_of_delay_and_a_link_that_is_down_show_at_once() {
    let changing = with(
        direction(100_000_000, 10 * MS),
        json!({"changes": [
            {"at": 250 * MS, "delay": 30 * MS},
            {"at": 450 * MS, "up": false},
            {"at": 650 * MS, "up": true},
        ]}),
    );
    let run = run(&path(changing, direction(100_000_000, 10 * MS), vec![flow("p", ping())]));
    let sent = 2 * sending(98, 100_000_000);
    let rtts: Vec<Option<u64>> =
        run.tables.pings.rtt.iter().map(|rtt| rtt.map(|rtt| rtt as u64 - sent)).collect();
    let (before, after) = (Some(20 * MS), Some(40 * MS));
    assert_eq!(rtts, [before, before, before, after, after, None, None, after, after, after]);
    let changes: Vec<_> = run.events().into_iter().filter(|event| event.1 == "link_change").collect();
    assert_eq!(
        changes,
        [
            (250 * MS as i64, "link_change", "forward: delay 30 ms"),
            (450 * MS as i64, "link_change", "forward: down"),
            (650 * MS as i64, "link_change", "forward: up"),
        ]
    );
}

#[test]
fn no_probe_is_sent_at_a_stop_or_at_the_run_s_end() {
    // A probe every 100 ms.
    let counts = |settings: Value, stop: Option<u64>| {
        let link = || direction(100_000_000, 10 * MS);
        let flow = with(flow("p", with(ping(), settings)), json!({"stop": stop}));
        let run = run(&with(path(link(), link(), vec![flow]), json!({"duration": 2 * SECOND})));
        let (flows, row) = (&run.tables.flows, run.flow("p"));
        (flows.segments_sent.get(row), flows.losses_detected.get(row), flows.complete.get(row))
    };
    assert_eq!(counts(json!({"count": null}), Some(SECOND)), (Some(10), Some(0), Some(true)));
    assert_eq!(counts(json!({"count": null}), Some(2 * SECOND)), (Some(20), Some(0), Some(true)));
    assert_eq!(counts(json!({"count": null}), None), (Some(20), Some(0), Some(true)));
    assert_eq!(counts(json!({"count": 10}), Some(SECOND)), (Some(10), Some(0), Some(true)));
    assert_eq!(counts(json!({"count": 11}), Some(SECOND)), (Some(10), Some(0), Some(false)));
    assert_eq!(counts(json!({"count": 21}), None), (Some(20), Some(0), Some(false)));
}

#[test]
fn probes_that_only_the_run_s_end_stops_end_with_it() {
    let end = |settings: Value, stop: u64| {
        let link = || direction(100_000_000, 10 * MS);
        let flow = with(flow("p", with(ping(), settings)), json!({"stop": stop}));
        let run = run(&with(path(link(), link(), vec![flow]), json!({"duration": 2 * SECOND})));
        run.tables.flows.end.get(run.flow("p")).expect("a time") / MS as i64
    };
    assert_eq!(end(json!({"count": null}), 2 * SECOND), 2000);
    assert_eq!(end(json!({"count": null}), SECOND), 920);
    assert_eq!(end(json!({}), 2 * SECOND), 920);
}
