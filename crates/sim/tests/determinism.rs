//! Equal plans give equal tables; packets are neither made nor lost unseen.

use crate::common::*;
use serde_json::{Value, json};

/// Two datagram flows and pings over a link that does everything at random that a link can do.
fn random_plan() -> Value {
    let chance = |ppb: u64| json!({"rate": ppb, "correlation": 250_000_000});
    let lossy = with(
        direction(10_000_000, 20 * MS),
        json!({
            "queue": {"kind": "droptail", "limit": {"packets": 20}},
            "jitter": {"distribution": "pareto", "amount": 2 * MS, "correlation_time": 100 * MS},
            "reorder": {"chance": chance(20_000_000), "by": 10 * MS},
            "loss": {"model": {"kind": "random", "chance": chance(10_000_000)}, "before_queue": false},
            "corrupt": chance(10_000_000),
            "duplicate": chance(10_000_000),
        }),
    );
    let pattern = json!({"pattern": {"on": 200 * MS, "off": 100 * MS, "distribution": "exponential"}});
    let flows = vec![
        flow("u", with(udp(9_000_000), pattern)),
        with(flow("v", udp(3_000_000)), json!({"streams": 3, "start": 500 * MS})),
        flow("p", with(ping(), json!({"interval": 7 * MS, "count": null, "stop": 5 * SECOND}))),
    ];
    let mut plan = path(lossy, direction(10_000_000, 20 * MS), flows);
    plan["sample"]["packets"] = json!(true);
    plan
}

#[test]
fn a_plan_run_twice_gives_the_same_tables() {
    let plan = random_plan();
    let (first, second) = (run(&plan), run(&plan));
    assert!(first.tables == second.tables);
    assert_eq!(first.stats, second.stats);
}

#[test]
fn how_many_events_are_processed_at_a_time_changes_nothing() {
    let plan = parse(&random_plan());
    let tables = |maximum| {
        let mut simulation = tcplab_sim::Simulation::new(&plan).expect("a plan that can be simulated");
        while !simulation.advance(maximum) {}
        simulation.finish()
    };
    assert!(tables(1) == tables(u64::MAX));
}

#[test]
fn another_seed_gives_other_tables() {
    let plan = random_plan();
    let other = with(plan.clone(), json!({"seed": 2}));
    assert!(run(&plan).tables != run(&other).tables);
}

#[test]
fn recording_packets_changes_nothing_else() {
    let plan = random_plan();
    let mut unrecorded = plan.clone();
    unrecorded["sample"]["packets"] = json!(false);
    let (with_packets, without) = (run(&plan).tables, run(&unrecorded).tables);
    assert!(with_packets.packets.time.len() > 10_000 && without.packets.time.is_empty());
    assert!(with_packets.flows == without.flows && with_packets.queues == without.queues);
    assert!(with_packets.pings == without.pings && with_packets.intervals == without.intervals);
}

#[test]
fn every_packet_that_enters_a_link_leaves_it_or_is_accounted_for() {
    let run = run(&random_plan());
    let packets = &run.tables.packets;
    let count = |direction: &str, event: &str| {
        let rows = packets.direction.symbols().zip(packets.event.symbols());
        rows.filter(|row| run.string(row.0) == direction && run.string(row.1) == event).count()
    };
    let flows = &run.tables.flows;
    let sum = |column: &tcplab_tables::Ints| column.iter().flatten().sum::<i64>() as usize;
    // Every datagram and probe there is offered to the forward direction once.
    assert_eq!(count("forward", "enqueue") + count("forward", "drop"), sum(&flows.segments_sent));
    for direction in ["forward", "backward"] {
        let of = |event| count(direction, event);
        assert_eq!(of("enqueue"), of("depart"), "the run ends with nothing left in {direction}");
        assert_eq!(of("depart") + of("duplicate"), of("deliver") + of("lose"), "{direction}");
    }
    // A packet's copy follows its corruption at once, and is as corrupt.
    let events: Vec<&str> = packets.event.symbols().map(|event| run.string(event)).collect();
    let corrupt_copies = events.windows(2).filter(|pair| *pair == ["corrupt", "duplicate"]).count();
    let corrupted = count("forward", "corrupt") + corrupt_copies;
    let gone = count("forward", "drop") + count("forward", "lose") + corrupted;
    assert!(gone > 100 && corrupted > 10, "the plan does lose packets: {gone}, {corrupted}");
    assert_eq!(sum(&flows.losses_true), gone, "corrupted packets are lost to the application");
}

#[test]
fn the_end_of_the_run_cuts_everything_off() {
    let plan = with(random_plan(), json!({"duration": SECOND}));
    let run = run(&plan);
    assert_eq!(run.stats.simulated.as_ns(), SECOND);
    let (flows, row) = (&run.tables.flows, run.flow("u"));
    assert_eq!(flows.end.get(row), Some(SECOND as i64));
    assert_eq!(flows.complete.get(row), Some(false));
    let last = run.intervals("u").into_iter().last().and_then(|row| run.tables.intervals.time.get(row));
    assert_eq!(last, Some(SECOND as i64));
}

#[test]
fn rows_grow_with_the_samples_only() {
    let plan = |rate: u64| {
        path(direction(1_000_000_000, MS), direction(1_000_000_000, MS), vec![flow("u", udp(rate))])
    };
    let rows = |rate| {
        let tables = run(&plan(rate)).tables;
        [tables.queues.time.len(), tables.intervals.time.len(), tables.events.time.len()]
    };
    assert_eq!(rows(8_000_000), rows(160_000_000));
}
