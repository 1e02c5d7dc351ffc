//! Limits of an accelerator, and its death.

use std::collections::BTreeSet;

use crate::common::*;
use serde_json::{Value, json};

/// A client, a router and a server: 100 Mbit/s and 2 ms, then 20 Mbit/s and 40 ms.
fn limited(accelerate: Value, flows: Vec<Value>) -> Value {
    let wan = || direction(20_000_000, 20 * MS);
    with(
        past_router(json!({"accelerate": accelerate}), wan(), wan(), flows),
        json!({"duration": 60 * SECOND}),
    )
}

fn transfer(name: &str, start: u64, more: Value) -> Value {
    let common = json!({"stop": null, "start": start, "bytes": 500_000});
    with(with(flow(name, tcp("cubic")), common), more)
}

/// The flows and streams whose connections were split.
fn split(run: &Run) -> BTreeSet<(String, i64)> {
    let legs = &run.tables.legs;
    let rows = legs.flow.symbols().zip(legs.stream.iter());
    rows.map(|(flow, stream)| (run.string(flow).to_owned(), stream.expect("a stream"))).collect()
}

fn complete(run: &Run) -> Vec<bool> {
    run.tables.flows.complete.iter().map(|complete| complete.expect("known")).collect()
}

#[test]
fn connections_beyond_the_limit_pass_and_later_ones_are_split_again() {
    let flows = vec![
        transfer("first", 0, json!({"streams": 3})),
        // When the first have ended.
        transfer("second", 20 * SECOND, json!({})),
    ];
    let run = run(&limited(json!({"connections": 2}), flows));
    assert_eq!(complete(&run), [true; 4]);
    let names = [("first", 0), ("first", 1), ("second", 0)];
    assert_eq!(split(&run), names.map(|(flow, stream)| (flow.to_owned(), stream)).into());
}

#[test]
fn connections_beyond_the_limit_are_reset_where_asked() {
    let flows = vec![transfer("first", 0, json!({"streams": 3}))];
    let run = run(&limited(json!({"connections": 2, "when_full": "reset"}), flows));
    assert_eq!(complete(&run), [true, true, false]);
    assert_eq!(run.tables.flows.bytes_received.iter().last(), Some(Some(0)));
}

#[test]
fn connections_pass_while_the_payload_held_exceeds_memory() {
    let flows = vec![
        transfer("first", 0, json!({"bytes": 5_000_000})),
        // The first is still there, and holds more.
        transfer("second", SECOND, json!({})),
        // It has ended.
        transfer("third", 20 * SECOND, json!({})),
    ];
    let run = run(&limited(json!({"memory": 100_000}), flows));
    assert_eq!(complete(&run), [true; 3]);
    let names = [("first", 0), ("third", 0)];
    assert_eq!(split(&run), names.map(|(flow, stream)| (flow.to_owned(), stream)).into());
}

#[test]
fn its_death_resets_both_ends_and_what_it_holds_is_lost() {
    let endless = json!({"bytes": null});
    let flows = vec![transfer("first", 0, endless), transfer("later", 6 * SECOND, json!({}))];
    let mut plan = limited(json!({"kill_at": 5 * SECOND}), flows);
    plan["sample"]["sockets"] = json!(10 * MS);
    let run = run(&plan);
    let tables = &run.tables;
    assert_eq!(complete(&run), [false, true], "later ones pass");
    assert_eq!(split(&run), [("first".to_owned(), 0)].into());
    let legs = &tables.legs;
    let last = legs.time.iter().flatten().max().expect("rows");
    assert_eq!(last, 5 * SECOND as i64, "none after its death");
    let exposed: i64 = legs
        .time
        .iter()
        .zip(legs.exposed.iter())
        .filter_map(|(time, exposed)| (time == Some(last)).then_some(exposed).flatten())
        .max()
        .expect("rows");
    // Payload that was acknowledged to the sender, and that had arrived.
    let acked = tables.sockets.bytes_acked.iter().flatten().max().expect("samples");
    let arrived = tables.flows.bytes_received.get(run.flow("first")).expect("a count");
    let lost = acked - arrived;
    // Some of it was on its way, and arrived before the reset. The last sample is up to 10 ms old: 125 kB at 100 Mbit/s.
    assert!(lost > 50_000, "{lost} bytes");
    assert!(lost <= exposed, "{lost} of {exposed} bytes");
    let ends: Vec<_> = tables.flows.end.iter().flatten().collect();
    assert!(ends[0] < 6 * SECOND as i64, "it does not hang: {ends:?}");
}
