//! Controls with an answer to marks of their own, at a bottleneck that marks.

use crate::common::*;
use serde_json::{Value, json};

/// Flows of these controls for 20 s over 100 Mbit/s and 20 ms, through a queue that drops beyond 1,000 packets.
fn beside(queue: Value, controls: &[&str], settings: Value) -> Run {
    let forward = with(direction(100_000_000, 10 * MS), json!({"queue": queue}));
    let one = |(number, cc): (usize, &&str)| {
        let traffic = with(tcp(cc), json!({"sender": settings.clone(), "receiver": settings}));
        with(flow(&format!("f{number}"), traffic), json!({"stop": 20 * SECOND}))
    };
    let flows = controls.iter().enumerate().map(one).collect();
    run(&with(path(forward, direction(100_000_000, 10 * MS), flows), json!({"duration": 20 * SECOND})))
}

fn marking(above: u32) -> Value {
    json!({"kind": "droptail", "limit": {"packets": 1000}, "mark_above": {"packets": above}})
}

fn ecn(how: &str) -> Value {
    // Without bursts, as the published thresholds assume.
    json!({"ecn": how, "tso": false})
}

/// The mean length of the queue in the second half, packets.
fn queue_of(run: &Run) -> f64 {
    let queues = &run.tables.queues;
    let rows = queues.time.iter().zip(queues.packets.iter()).zip(queues.direction.symbols());
    let late: Vec<f64> = rows
        .filter(|((time, _), direction)| {
            *time >= Some(10 * SECOND as i64) && run.string(*direction) == "forward"
        })
        .filter_map(|((_, packets), _)| packets.map(|packets| packets as f64))
        .collect();
    assert!(late.len() > 20, "{} samples", late.len());
    late.iter().sum::<f64>() / late.len() as f64
}

fn drops(run: &Run) -> i64 {
    run.tables.queues.drops.iter().flatten().max().expect("samples")
}

/// The rate of each flow, and the share of the link that is, Mbit/s.
fn rates(run: &Run, flows: usize) -> Vec<f64> {
    let received = |n| run.tables.flows.bytes_received.get(run.flow(&format!("f{n}"))).expect("bytes");
    (0..flows).map(|n| received(n) as f64 * 8.0 / 20e6).collect()
}

fn jain(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>().powi(2)
        / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

#[test]
fn dctcp_holds_the_queue_at_the_threshold_and_shares_it() {
    for how in ["on", "accecn"] {
        let run = beside(marking(40), &["dctcp"; 4], ecn(how));
        let (queue, rates) = (queue_of(&run), rates(&run, 4));
        // RFC 8257: around the threshold, whatever the product; a packet of each flow may be above.
        assert!((20.0..60.0).contains(&queue), "{how}: {queue} packets");
        assert!(rates.iter().sum::<f64>() > 90.0, "{how}: {rates:?}");
        assert!(jain(&rates) > 0.9, "{how}: {rates:?}");
        assert_eq!(drops(&run), 0, "{how}");
    }
}

#[test]
fn the_versions_of_bbr_that_answer_marks_keep_a_shorter_queue_by_them() {
    for cc in ["bbr2", "bbr3"] {
        let marked = beside(marking(16), &[cc; 2], ecn("on"));
        let unmarked = beside(marking(16), &[cc; 2], ecn("off"));
        let (short, long) = (queue_of(&marked), queue_of(&unmarked));
        assert!(short < 0.7 * long, "{cc}: {short} packets with marks, {long} without");
        let rates = rates(&marked, 2);
        assert!(rates.iter().sum::<f64>() > 75.0, "{cc}: {rates:?}");
        assert!(jain(&rates) > 0.8, "{cc}: {rates:?}");
        assert_eq!(drops(&marked), 0, "{cc}");
    }
}

#[test]
fn prague_keeps_a_dual_queue_below_its_target_and_full() {
    let run = beside(json!({"kind": "dualpi2"}), &["prague"; 2], json!({"ecn": "accecn"}));
    let (queue, rates) = (queue_of(&run), rates(&run, 2));
    // The step is at 1 ms, 8.3 packets.
    assert!(queue < 17.0, "{queue} packets");
    assert!(rates.iter().sum::<f64>() > 80.0, "{rates:?}");
    assert!(jain(&rates) > 0.9, "{rates:?}");
    assert_eq!(drops(&run), 0);
    let feedback: Vec<&str> =
        run.events().into_iter().filter(|event| event.1 == "established").map(|event| event.2).collect();
    assert_eq!(feedback, ["AccECN"; 2]);
}

#[test]
fn prague_and_cubic_share_a_dual_queue() {
    let settings = json!({"ecn": "accecn"});
    let run = beside(json!({"kind": "dualpi2"}), &["prague", "cubic"], settings);
    let rates = rates(&run, 2);
    assert!((0.5..2.5).contains(&(rates[0] / rates[1])), "{rates:?}");
}
