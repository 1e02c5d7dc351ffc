//! HTTP caches on the way of a flow's connections.

use crate::common::*;
use serde_json::{Value, json};

/// A client, a router with `settings` and a server: 100 Mbit/s and 2 ms to the router, then 20 Mbit/s and 100 ms.
fn pages(settings: Value, web: Value) -> Run {
    let wan = || direction(20_000_000, 50 * MS);
    let base = json!({
        "objects": 10, "sizes": [100_000], "popularity": "uniform", "page": 1, "ranges": 1, "think": 0,
        "count": 60,
    });
    let flow = with(
        flow("f", json!({"kind": "http", "cc": {"name": "cubic"}, "sender": {}, "receiver": {}})),
        json!({"streams": 2, "stop": null, "web": with(base, web)}),
    );
    let mut plan = past_router(settings, wan(), wan(), vec![flow]);
    plan["duration"] = json!(60 * SECOND);
    run(&plan)
}

/// How each request was answered, by its first byte's time in ns.
fn answers(run: &Run) -> Vec<(String, i64)> {
    let fetches = &run.tables.fetches;
    let first = fetches.first_byte.iter().map(|time| time.expect("a time"));
    let cache = fetches.cache.symbols().map(|cache| cache.map_or("", |_| run.string(cache)).to_owned());
    cache.zip(first).collect()
}

fn count(answers: &[(String, i64)], name: &str) -> usize {
    answers.iter().filter(|(answer, _)| answer == name).count()
}

fn wan_bytes(run: &Run) -> i64 {
    run.tables.flows.bytes_sent.iter().flatten().sum()
}

fn assert_whole(run: &Run, requests: usize) {
    assert_eq!(run.tables.fetches.bytes.iter().count(), requests);
    for stream in 0..2 {
        assert_eq!(run.tables.flows.complete.get(run.flow_stream("f", stream)), Some(true));
    }
    assert!(run.stats.simulated.as_ns() < 60 * SECOND, "it ends by itself");
}

#[test]
fn each_object_is_asked_for_once_and_then_comes_from_beside_the_client() {
    let run = pages(json!({"cache": {}}), json!({}));
    assert_whole(&run, 60);
    let answers = answers(&run);
    let mut objects: Vec<_> = run.tables.fetches.object.iter().collect();
    objects.sort_unstable();
    objects.dedup();
    assert!(objects.len() > 5);
    assert_eq!((count(&answers, "miss"), count(&answers, "hit")), (objects.len(), 60 - objects.len()));
    for (answer, first_byte) in &answers {
        let limit = if answer == "hit" { 2 * MS..4 * MS } else { 102 * MS..300 * MS };
        assert!(limit.contains(&(*first_byte as u64)), "{answer}: {first_byte} ns");
    }
    assert!(wan_bytes(&run) < 11 * 100_350 + 60 * 100, "the server sends each object once");
}

#[test]
fn without_a_cache_nothing_is_said_of_one() {
    let run = pages(json!({}), json!({"count": 3}));
    assert_whole(&run, 3);
    assert_eq!(count(&answers(&run), ""), 3);
}

#[test]
fn a_store_with_room_for_one_object_keeps_the_last() {
    let run = pages(json!({"cache": {"size": 150_000}}), json!({}));
    assert_whole(&run, 60);
    let fetches = &run.tables.fetches;
    let objects: Vec<i64> = fetches.object.iter().map(|object| object.expect("a number")).collect();
    // One page is one object, so that requests follow each other.
    for (place, (answer, _)) in answers(&run).iter().enumerate() {
        let repeated = place > 0 && objects[place - 1] == objects[place];
        assert_eq!(answer == "hit", repeated, "request {place}");
    }
}

#[test]
fn what_has_aged_is_confirmed_by_a_head_and_comes_from_the_cache() {
    let run = pages(json!({"cache": {}}), json!({"max_age": 0, "objects": 1, "count": 20}));
    assert_whole(&run, 20);
    let answers = answers(&run);
    assert_eq!((count(&answers, "miss"), count(&answers, "revalidated")), (1, 19));
    assert!(answers.iter().all(|(_, first_byte)| *first_byte as u64 > 102 * MS), "the server is asked");
    assert!(wan_bytes(&run) < 100_250 + 19 * 250 + 20 * 200, "the object crosses the long link once");
}

#[test]
fn a_range_is_answered_from_a_whole_object_only() {
    let run = pages(json!({"cache": {}}), json!({"ranges": 4, "objects": 1, "count": 5}));
    assert_whole(&run, 20);
    assert_eq!(count(&answers(&run), "miss"), 20);
}

#[test]
fn a_store_smaller_than_an_object_lets_everything_pass() {
    let run = pages(json!({"cache": {"size": 50_000}}), json!({"objects": 1, "count": 5}));
    assert_whole(&run, 5);
    assert_eq!(count(&answers(&run), "miss"), 5);
}

#[test]
fn a_cache_leaves_other_flows_alone_and_an_accelerator_there_takes_them() {
    let both = json!({"cache": {}, "accelerate": {}});
    let run = pages(both, json!({"count": 4, "objects": 1}));
    assert_whole(&run, 4);
    assert_eq!(count(&answers(&run), "hit"), 3);
}
