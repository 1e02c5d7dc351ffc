//! A jittered path delays a probe by what was asked for, however much traffic shares it.

use crate::common::*;
use serde_json::{Value, json};

/// Round trips in ms, sorted, of probes every 5 ms in 40 s over 100 Mbit/s and 40 ms with this jitter of 2 ms,
/// beside datagrams at this rate.
fn round_trips(distribution: &str, load: Option<u64>) -> Vec<f64> {
    let jitter =
        json!({"jitter": {"distribution": distribution, "amount": 2 * MS, "correlation_time": 20 * MS}});
    let forward = with(direction(100_000_000, 20 * MS), jitter);
    let stop = json!({"interval": 5 * MS, "count": null, "stop": 40 * SECOND});
    let mut flows = vec![flow("p", with(ping(), stop))];
    flows.extend(load.map(|rate| with(flow("u", udp(rate)), json!({"stop": 40 * SECOND}))));
    let mut plan = path(forward, direction(100_000_000, 20 * MS), flows);
    plan["duration"] = Value::from(40 * SECOND);
    let mut rtts: Vec<f64> =
        run(&plan).tables.pings.rtt.iter().flatten().map(|rtt| rtt as f64 / MS as f64).collect();
    rtts.sort_by(f64::total_cmp);
    assert!(rtts.len() > 7900);
    rtts
}

#[test]
fn a_probe_beside_datagrams_meets_the_delay_asked_for() {
    // The mean and the 99th percentile of the variation, in ms.
    for (distribution, mean, late) in
        [("uniform", 0.0, 2.0 * 0.98), ("normal", 0.0, 2.0 * 2.326), ("pareto", 2.0, 2.0 * 7.283)]
    {
        for load in [None, Some(50_000_000)] {
            let rtts = round_trips(distribution, load);
            let at = rtts.iter().sum::<f64>() / rtts.len() as f64;
            assert!((at / (40.0 + mean) - 1.0).abs() < 0.01, "{distribution}, {load:?}: mean {at}");
            let at = rtts[rtts.len() * 99 / 100];
            assert!((at / (40.0 + late) - 1.0).abs() < 0.05, "{distribution}, {load:?}: p99 {at}");
        }
    }
}
