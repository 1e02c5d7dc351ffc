use serde_json::json;

use super::*;
use crate::plan::{Limit, Queue};

/// Ten transfers of 50 kB over a path that loses one packet in thirty.
fn plan() -> Plan {
    transfers(10, 50_000)
}

/// The same with so many transfers of so many bytes.
fn transfers(streams: u32, bytes: u64) -> Plan {
    let direction = json!({
        "rate": 10_000_000, "delay": 5_000_000, "queue": {"kind": "droptail", "limit": {"packets": 1000}},
        "jitter": null, "reorder": null, "corrupt": null, "duplicate": null, "up": true, "trace": null,
        "changes": [],
        "loss": {"model": {"kind": "every", "packets": 30, "first": 7}, "before_queue": false},
    });
    let node =
        |name: &str, peer: &str| json!({"name": name, "kind": "host", "tcp": {}, "routes": {peer: "path"}});
    let plan = json!({
        "name": "test", "seed": 1, "duration": 60_000_000_000_u64,
        "nodes": [node("a", "b"), node("b", "a")],
        "links": [{
            "name": "path", "ends": ["a", "b"], "addresses": [null, null], "mtu": 1500,
            "forward": direction.clone(), "backward": direction,
        }],
        "flows": [{
            "name": "bulk", "from": "a", "to": "b", "start": 0, "stop": null, "streams": streams, "kind": "tcp",
            "cc": {"name": "cubic"}, "bytes": bytes, "pattern": null, "sender": {}, "receiver": {},
        }],
        "sample": {"sockets": null, "queues": null, "flows": null, "hosts": null, "packets": false},
        "capture": null,
    });
    serde_json::from_value(plan).expect("a well-formed plan")
}

#[test]
fn looking_ahead_changes_nothing() -> Result<(), PlanError> {
    let mut plan = plan();
    plan.flows[0].streams = 300;
    let tables = [true, false].map(|looks_ahead| -> Result<Tables, PlanError> {
        let mut simulation = Simulation::new(&plan)?;
        assert!(simulation.look_ahead.is_some());
        simulation.look_ahead = simulation.look_ahead.filter(|_| looks_ahead);
        while !simulation.advance(1000) {}
        Ok(simulation.finish())
    });
    let [with, without] = tables;
    assert_eq!(with?, without?);
    Ok(())
}

#[test]
fn a_node_served_ahead_of_the_others_changes_nothing() -> Result<(), PlanError> {
    let mut plan = plan();
    (plan.links[0].forward.loss, plan.links[0].backward.loss) = (None, None);
    plan.links[0].forward.queue = Queue::droptail(Some(Limit::Packets(20)));
    plan.links[0].backward.rate = tcplab_units::Rate::from_bits_per_sec(100_000);
    plan.links[0].backward.queue = Queue::droptail(Some(Limit::Packets(5)));
    plan.sample.sockets = Some(Span::from_ms(7));
    plan.sample.queues = Some(Span::from_ms(3));
    plan.sample.flows = Some(Span::from_ms(10));
    // One event at a time leaves no room for another.
    let runs = [1, 1000].map(|events| -> Result<(RunStats, Time, Tables), PlanError> {
        let mut simulation = Simulation::new(&plan)?;
        while !simulation.advance(events) {}
        Ok((simulation.stats(), simulation.furthest, simulation.finish()))
    });
    let [one, other] = runs;
    let ((one, never, without), (other, furthest, with)) = (one?, other?);
    assert!(never == Time::ZERO && furthest > Time::ZERO);
    assert_eq!((one, without), (other, with));
    Ok(())
}

#[test]
fn segments_served_in_trains_change_nothing() -> Result<(), PlanError> {
    for (streams, bytes, loses) in [(1, 5_000_000, false), (1, 5_000_000, true), (250, 50_000, false)] {
        let mut plan = transfers(streams, bytes);
        plan.links[0].backward.loss = None;
        if !loses {
            plan.links[0].forward.loss = None;
        }
        plan.links[0].forward.queue = Queue::droptail(Some(Limit::Packets(40)));
        plan.sample.sockets = Some(Span::from_ms(7));
        plan.sample.flows = Some(Span::from_ms(10));
        let runs = [true, false].map(|serves_trains| -> Result<(RunStats, Tables), PlanError> {
            let mut simulation = Simulation::new(&plan)?;
            simulation.serves_trains = serves_trains;
            while !simulation.advance(1000) {}
            Ok((simulation.stats(), simulation.finish()))
        });
        let [with, without] = runs;
        assert_eq!(with?, without?);
    }
    Ok(())
}

#[test]
fn the_last_counts_of_queues_are_those_of_the_run() -> Result<(), PlanError> {
    let mut plan = plan();
    (plan.links[0].forward.loss, plan.links[0].backward.loss) = (None, None);
    plan.links[0].forward.queue = Queue::droptail(Some(Limit::Packets(5)));
    plan.sample.queues = Some(Span::from_ms(300));
    let mut simulation = Simulation::new(&plan)?;
    while !simulation.advance(1000) {}
    let end = simulation.stats().simulated.as_ns();
    assert_ne!(end % 300_000_000, 0);
    let tables = simulation.finish();
    let times = tables.queues.time.values();
    assert_eq!(times[times.len() - 3..], [end as i64 / 300_000_000 * 300_000_000, end as i64, end as i64]);
    let drops = tables.queues.drops.values()[times.len() - 2];
    assert!(drops > 0);
    assert_eq!(drops, tables.flows.losses_true.iter().flatten().sum::<i64>());
    Ok(())
}

#[test]
fn closed_connections_are_freed_and_their_figures_kept() -> Result<(), PlanError> {
    let mut simulation = Simulation::new(&plan())?;
    while !simulation.advance(1000) {}
    assert!(simulation.streams.all_finished());
    for stream in simulation.streams.by_place() {
        assert!(matches!(&stream.kind, StreamKind::Tcp(tcp) if tcp.is_freed()));
    }
    let flows = simulation.finish().flows;
    assert!(flows.complete.iter().all(|complete| complete == Some(true)));
    assert!(flows.segments_sent.iter().flatten().all(|segments| segments >= 35));
    assert!(flows.rtt_p50.iter().flatten().all(|rtt| rtt > 10e6));
    Ok(())
}
