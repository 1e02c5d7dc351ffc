//! How routers share flows between paths of equal cost.

use std::collections::BTreeMap;

use crate::common::*;
use serde_json::{Value, json};

/// Routers that have two links to the next ones: `r` to `p` and `q`, both of these to `s` and `t`, all of these to `b`.
const LINKS: [[&str; 2]; 9] = [
    ["a", "r"],
    ["r", "p"],
    ["r", "q"],
    ["p", "s"],
    ["p", "t"],
    ["q", "s"],
    ["q", "t"],
    ["s", "b"],
    ["t", "b"],
];

fn router(name: &str, back: &str, shares: [&str; 2]) -> Value {
    let mut made = node(name, "router", &[("b", shares[0]), ("a", back)]);
    made["multipath"] = json!({"b": shares});
    made
}

/// `streams` streams of 20 small datagrams from `a` to `b`; the links differ in delay by up to 8 ms.
fn plan_of(streams: u32) -> Value {
    let nodes = [
        node("a", "host", &[("b", "a-r")]),
        router("r", "a-r", ["r-p", "r-q"]),
        router("p", "r-p", ["p-s", "p-t"]),
        router("q", "r-q", ["q-s", "q-t"]),
        node("s", "router", &[("b", "s-b"), ("a", "p-s")]),
        node("t", "router", &[("b", "t-b"), ("a", "q-t")]),
        node("b", "host", &[("a", "s-b")]),
    ];
    let links: Vec<Value> = LINKS
        .iter()
        .enumerate()
        .map(|(number, ends)| {
            let direction = direction(1_000_000_000, (1 + number as u64) * MS);
            link(&ends.join("-"), *ends, direction.clone(), direction)
        })
        .collect();
    let datagrams = json!({"kind": "udp", "rate": 160_000, "payload": 100, "bytes": null, "pattern": null});
    let flow = with(flow("u", datagrams), json!({"streams": streams, "stop": 100 * MS}));
    let mut plan = plan(&nodes, &links, vec![flow]);
    plan["sample"] =
        json!({"sockets": null, "queues": null, "flows": 100 * MS, "hosts": null, "packets": true});
    plan
}

/// The links that each stream's packets were delivered by, and how many by each.
fn ways(run: &Run) -> BTreeMap<i64, BTreeMap<&str, u64>> {
    let packets = &run.tables.packets;
    let mut found: BTreeMap<i64, BTreeMap<&str, u64>> = BTreeMap::new();
    let rows = packets.event.symbols().zip(packets.stream.iter()).zip(packets.link.symbols());
    for ((event, stream), link) in rows {
        if run.string(event) == "deliver" {
            let stream = stream.expect("a packet of a stream");
            *found.entry(stream).or_default().entry(run.string(link)).or_default() += 1;
        }
    }
    found
}

#[test]
fn each_flow_keeps_to_one_path_and_all_paths_get_their_share() {
    let streams = 400;
    let run = run(&plan_of(streams));
    let ways = ways(&run);
    assert_eq!(ways.len(), streams as usize);
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    for links in ways.values() {
        assert_eq!(links.len(), 4, "one link of each tier: {links:?}");
        assert!(links.values().all(|&packets| packets == 20));
        let [middle] = links.keys().filter(|link| matches!(&link[..1], "p" | "q")).collect::<Vec<_>>()[..]
        else {
            panic!("one link between the tiers: {links:?}");
        };
        *taken.entry((*middle).to_owned()).or_default() += 1;
    }
    // A quarter each, 100 with a standard deviation of 8.7: the second router divides each half anew.
    assert_eq!(taken.len(), 4, "{taken:?}");
    assert!(taken.values().all(|streams| (65..=135).contains(streams)), "{taken:?}");
    let late: i64 = run.tables.intervals.out_of_order.iter().flatten().sum();
    assert_eq!(late, 0, "a flow on one path is never reordered");
}

#[test]
fn both_ends_of_a_connection_may_use_different_paths() {
    let mut plan = plan_of(1);
    plan["flows"] = json!([with(flow("t", tcp("cubic")), json!({"streams": 20, "stop": null}))]);
    plan["flows"][0]["bytes"] = json!(20_000);
    let run = run(&plan);
    assert!(run.tables.flows.complete.iter().all(|complete| complete == Some(true)));
    assert_eq!(run.tables.flows.retransmits.iter().flatten().sum::<i64>(), 0);
}

#[test]
fn another_seed_gives_other_paths() {
    let paths = |seed: u64| {
        let mut plan = plan_of(20);
        plan["seed"] = json!(seed);
        let run = run(&plan);
        ways(&run).values().map(|links| links.keys().map(|link| (*link).to_owned()).collect()).collect()
    };
    let [first, again, other]: [Vec<Vec<String>>; 3] = [paths(1), paths(1), paths(2)];
    assert_eq!(first, again);
    assert_ne!(first, other);
}
