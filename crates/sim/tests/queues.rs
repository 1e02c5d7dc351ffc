//! The effect of queue disciplines on the flows that share them.

use crate::common::*;
use serde_json::{Value, json};

/// Flows and a ping through a bottleneck of 10 Mbit/s with this queue and a base RTT of 20 ms.
fn bottleneck(queue: Value, flows: &[Value]) -> Run {
    let forward = with(direction(10_000_000, 10 * MS), json!({"queue": queue}));
    let probes = json!({"kind": "ping", "interval": 50 * MS, "payload": 56, "count": null, "stop": null});
    let ping = with(flow("ping", probes), json!({"start": 5 * SECOND, "stop": 30 * SECOND}));
    let flows = flows.iter().cloned().chain([ping]).collect();
    run(&with(path(forward, direction(10_000_000, 10 * MS), flows), json!({"duration": 30 * SECOND})))
}

fn bulk(name: &str, settings: Value) -> Value {
    let traffic = with(tcp("cubic"), json!({"sender": settings.clone(), "receiver": settings}));
    with(flow(name, traffic), json!({"stop": 30 * SECOND}))
}

fn four(settings: Value) -> Vec<Value> {
    ["a1", "a2", "a3", "a4"].map(|name| bulk(name, settings.clone())).to_vec()
}

/// The longest round trip of a ping, ms.
fn longest(run: &Run) -> i64 {
    run.tables.pings.rtt.iter().flatten().max().expect("pings came back") / MS as i64
}

fn received(run: &Run, flow: &str) -> f64 {
    run.tables.flows.bytes_received.get(run.flow(flow)).expect("bytes were received") as f64
}

#[test]
fn a_ping_beside_four_flows_waits_for_a_whole_droptail_but_not_for_fq_codel() {
    let droptail = bottleneck(json!({"kind": "droptail", "limit": {"packets": 200}}), &four(json!({})));
    assert!(longest(&droptail) > 200, "{} ms", longest(&droptail));
    let codel = bottleneck(json!({"kind": "codel"}), &four(json!({})));
    assert!(longest(&codel) < 80, "{} ms", longest(&codel));
    let fq_codel = bottleneck(json!({"kind": "fq_codel"}), &four(json!({})));
    // The packet that is being sent takes 1.2 ms, and each of the four flows may send one first.
    assert!(longest(&fq_codel) < 20 + 7, "{} ms", longest(&fq_codel));
}

#[test]
fn fq_codel_shares_evenly_and_keeps_the_link_busy() {
    let run = bottleneck(json!({"kind": "fq_codel"}), &four(json!({})));
    let shares = ["a1", "a2", "a3", "a4"].map(|flow| received(&run, flow));
    let mean = shares.iter().sum::<f64>() / 4.0;
    assert!(shares.iter().all(|share| (share / mean - 1.0).abs() < 0.02), "{shares:?}");
    assert!(4.0 * mean * 8.0 / 30e6 > 9.2, "{mean} B");
}

#[test]
fn cake_shapes_shares_and_keeps_a_ping_short() {
    let cake = json!({"kind": "cake", "bandwidth": 8_000_000});
    let run = bottleneck(cake, &four(json!({})));
    // A full packet takes 1.5 ms at 8 Mbit/s.
    assert!(longest(&run) < 20 + 8, "{} ms", longest(&run));
    let shares = ["a1", "a2", "a3", "a4"].map(|flow| received(&run, flow));
    let mean = shares.iter().sum::<f64>() / 4.0;
    assert!(shares.iter().all(|share| (share / mean - 1.0).abs() < 0.02), "{shares:?}");
    // 1448 of 1514 bytes are payload.
    let rate = 4.0 * mean * 8.0 / 30.0;
    assert!((7.3e6..8e6 * 1448.0 / 1514.0).contains(&rate), "{rate} bit/s");
}

/// The rate of a download whose acknowledgments share 300 kbit/s, and how many of them were dropped as redundant.
fn download(ack_filter: &str) -> (f64, f64) {
    let queue =
        json!({"kind": "cake", "bandwidth": 300_000, "ack_filter": ack_filter, "diffserv": "besteffort"});
    let backward = with(direction(10_000_000, 10 * MS), json!({"queue": queue}));
    let flows = vec![bulk("download", json!({}))];
    let forward = with(direction(50_000_000, 10 * MS), json!({"queue": {"kind": "fq_codel"}}));
    let run = run(&with(path(forward, backward, flows), json!({"duration": 30 * SECOND})));
    let dropped = shown(&run, "ack_drop").last().copied().unwrap_or(0.0);
    (received(&run, "download") * 8.0 / 30.0, dropped)
}

#[test]
fn filtered_acknowledgments_make_room_for_a_download() {
    let (plain, none) = download("off");
    let (filtered, some) = download("on");
    let (aggressive, maximum) = download("aggressive");
    assert!(none == 0.0 && some > 1000.0 && maximum > 1000.0, "{none}, {some}, {maximum} dropped");
    assert!(filtered > 1.2 * plain && aggressive > 1.2 * plain, "{plain}, {filtered}, {aggressive} bit/s");
}

#[test]
fn senders_that_use_ecn_lose_nothing() {
    for kind in ["codel", "fq_codel"] {
        let run = bottleneck(json!({"kind": kind, "ecn": true}), &four(json!({"ecn": "on"})));
        let row = run.tables.queues.marks.iter().flatten().max();
        assert!(row > Some(10), "{kind}: {row:?} marks");
        // Pings cannot be marked, and CoDel does not tell flows apart.
        let lost = ["a1", "a2", "a3", "a4"].map(|name| run.tables.flows.losses_true.get(run.flow(name)));
        assert_eq!(lost, [Some(0); 4], "{kind}");
    }
}

#[test]
fn a_ping_with_a_codepoint_of_its_own_passes_the_others() {
    let bands = json!([
        {"dscp": [46], "queue": {"kind": "droptail", "limit": {"packets": 10}}},
        {"queue": {"kind": "droptail", "limit": {"packets": 200}}},
    ]);
    let forward = with(direction(10_000_000, 10 * MS), json!({"queue": {"kind": "prio", "bands": bands}}));
    let longest_ping = |dscp: u8| {
        let probes = json!({"kind": "ping", "interval": 50 * MS, "payload": 56, "count": null, "stop": null});
        let ping =
            with(flow("ping", probes), json!({"start": 5 * SECOND, "stop": 20 * SECOND, "dscp": dscp}));
        let flows = four(json!({})).into_iter().chain([ping]).collect();
        let plan = path(forward.clone(), direction(10_000_000, 10 * MS), flows);
        longest(&run(&with(plan, json!({"duration": 20 * SECOND}))))
    };
    // At most the packet that is being sent goes first, 1.2 ms.
    assert!(longest_ping(46) <= 22);
    assert!(longest_ping(0) > 200);
}

#[test]
fn a_smaller_cut_for_a_mark_fills_a_short_queue_better() {
    // ABE (RFC 8511): a queue that marks from 5 ms on is empty after Reno has halved its window.
    let goodput = |beta_ecn: Value| {
        let settings = json!({"ecn": "on"});
        let cc =
            json!({"cc": {"name": "reno", "params": beta_ecn}, "sender": settings, "receiver": settings});
        let own = with(flow("own", with(tcp("reno"), cc)), json!({"stop": 30 * SECOND}));
        received(&bottleneck(json!({"kind": "codel", "ecn": true}), &[own]), "own")
    };
    let (as_ever, abe) = (goodput(json!({})), goodput(json!({"beta_ecn": 0.8})));
    assert!(abe > 1.02 * as_ever, "{abe} B with ABE, {as_ever} B without");
}

/// The values of a figure that the discipline in front of the path shows.
fn shown(run: &Run, name: &str) -> Vec<f64> {
    let gauges = &run.tables.queue_gauges;
    let rows = gauges.name.symbols().zip(gauges.value.iter());
    rows.filter(|(own, _)| run.string(*own) == name).filter_map(|(_, value)| value).collect()
}

#[test]
fn a_discipline_shows_its_state_and_its_classes() {
    let run = bottleneck(json!({"kind": "pie"}), &four(json!({})));
    let (probabilities, early) = (shown(&run, "prob"), shown(&run, "early_drop"));
    assert!(probabilities.iter().any(|share| (0.001..0.2).contains(share)));
    let dropped = run.tables.queues.drops.iter().flatten().max();
    assert_eq!(early.last().map(|drops| *drops as i64), dropped, "nothing is dropped for want of room");
    assert_eq!(run.tables.queue_classes.time.len(), 0, "PIE has no classes");

    let run = bottleneck(json!({"kind": "dualpi2"}), &four(json!({})));
    let classes = &run.tables.queue_classes;
    let samples = run.tables.queues.time.len() / 2;
    assert_eq!(classes.time.len(), 2 * samples, "L and C in each sample of one direction");
    let out: i64 =
        [0, 1].map(|back| classes.bytes_out.get(2 * samples - 1 - back).expect("bytes")).into_iter().sum();
    let forward = run.tables.queues.bytes_out.get(2 * samples - 2).expect("bytes");
    assert!(forward.abs_diff(out) <= 2 * 1514, "{forward} B left the link, {out} B its classes");

    let run = bottleneck(json!({"kind": "droptail", "limit": {"packets": 200}}), &four(json!({})));
    assert_eq!(run.tables.queue_gauges.time.len(), 0);
}

/// Datagrams at more than the rate of the bottleneck, with these settings.
fn overload(queue: Value, settings: Value) -> Run {
    let datagrams = with(flow("datagrams", with(udp(11_000_000), settings)), json!({"stop": 30 * SECOND}));
    bottleneck(queue, &[datagrams])
}

#[test]
fn datagrams_are_ecn_capable_as_they_are_set() {
    let marks = |settings: Value| {
        let queue = json!({"kind": "droptail", "limit": {"packets": 50}, "mark_above": {"packets": 2}});
        overload(queue, settings).tables.queues.marks.iter().flatten().max().expect("samples")
    };
    assert_eq!(marks(json!({})), 0);
    assert!([0, 1].iter().all(|ect| marks(json!({"ect": ect})) > 1000));

    // A queue of L4S tells the two codepoints apart.
    let packets = |settings: Value| {
        let run = overload(json!({"kind": "dualpi2"}), settings);
        let classes = &run.tables.queue_classes;
        ["L", "C"].map(|name| {
            let rows = classes.class.symbols().zip(classes.packets_out.iter());
            let own = rows.filter(|(class, _)| run.string(*class) == name);
            own.filter_map(|(_, packets)| packets).max().expect("samples")
        })
    };
    let [low_latency, classic] = packets(json!({"ect": 1}));
    assert!(low_latency > 20_000 && classic < 1000, "{low_latency}, {classic}");
    let [low_latency, classic] = packets(json!({"ect": 0}));
    assert!(low_latency == 0 && classic > 20_000, "{low_latency}, {classic}");
}

#[test]
fn settings_left_out_are_those_of_linux() {
    let (short, long) = (
        json!({"kind": "fq_codel"}),
        json!({
            "kind": "fq_codel", "limit": {"packets": 10240}, "flows": 1024, "quantum": 1514,
            "target": 5 * MS, "interval": 100 * MS, "ecn": true,
        }),
    );
    let plan = |queue| {
        let forward = with(direction(10_000_000, 10 * MS), json!({"queue": queue}));
        parse(&path(forward, direction(10_000_000, 10 * MS), vec![]))
    };
    assert_eq!(plan(short), plan(long));
}
