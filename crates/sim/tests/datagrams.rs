//! UDP flows in the simulator.

use std::collections::BTreeSet;

use crate::common::*;
use serde_json::{Value, json};

#[test]
fn on_an_ample_link_every_datagram_arrives_at_the_rate_asked_for() {
    let plan = path(
        direction(100_000_000, 10 * MS),
        direction(100_000_000, 10 * MS),
        vec![flow("u", udp(8_000_000))],
    );
    let run = run(&plan);
    let (flows, row) = (&run.tables.flows, run.flow("u"));
    // 1000 datagrams a second for 5 s, the first one at 0.
    assert_eq!(flows.segments_sent.get(row), Some(5000));
    assert_eq!(flows.bytes_received.get(row), Some(5_000_000));
    assert_eq!(flows.losses_true.get(row), Some(0));
    assert_eq!(flows.losses_detected.get(row), Some(0));
    assert_eq!(flows.complete.get(row), Some(true));
    // The last one leaves at 4.999 s, is sent for 1042 · 8 / 10^8 s and travels 10 ms.
    assert_eq!(flows.end.get(row), Some((4_999 * MS + 83_360 + 10 * MS) as i64));
    let intervals = &run.tables.intervals;
    let rows = run.intervals("u");
    assert_eq!(rows.len(), 51, "50 whole intervals and a partial one");
    for &row in &rows[1..50] {
        assert_eq!(intervals.goodput.get(row), Some(8e6));
        assert_eq!(intervals.duration.get(row), Some(100 * MS as i64));
        assert_eq!(intervals.retransmits.get(row), None);
        assert_eq!(intervals.lost.get(row), Some(0));
    }
    assert_eq!(intervals.duration.get(rows[50]), Some((9 * MS + 83_360) as i64));
}

#[test]
fn an_overloaded_link_carries_its_rate_and_what_is_missing_was_dropped() {
    let mut plan =
        path(direction(4_168_000, 10 * MS), direction(100_000_000, 10 * MS), vec![flow("u", udp(8_000_000))]);
    plan["sample"]["packets"] = json!(true);
    let run = run(&plan);
    let (flows, row) = (&run.tables.flows, run.flow("u"));
    // A frame of 1042 bytes takes 2 ms: half of the datagrams get through once the queue is full.
    let last = run.tables.queues.drops.iter().flatten().max();
    assert_eq!(flows.losses_true.get(row), last);
    assert_eq!(flows.losses_detected.get(row), flows.losses_true.get(row));
    let lost: i64 = run.intervals("u").iter().filter_map(|&row| run.tables.intervals.lost.get(row)).sum();
    assert_eq!(Some(lost), flows.losses_detected.get(row));
    assert_eq!(flows.bytes_received.get(row), Some((5000 - lost) * 1000));
    let waiting = run.tables.packets.queue_packets.iter().flatten().max();
    assert_eq!(waiting, Some(1000), "the queue's limit");
}

#[test]
fn copies_and_late_datagrams_are_counted() {
    let damaged = with(
        direction(100_000_000, 10 * MS),
        json!({
            "duplicate": {"rate": 100_000_000, "correlation": 0},
            "reorder": {"chance": {"rate": 100_000_000, "correlation": 0}, "by": 5 * MS},
            "corrupt": {"rate": 100_000_000, "correlation": 0},
        }),
    );
    let plan = path(damaged, direction(100_000_000, 10 * MS), vec![flow("u", udp(8_000_000))]);
    let run = run(&plan);
    let total = |column: &tcplab_tables::Ints| column.iter().flatten().sum::<i64>();
    let intervals = &run.tables.intervals;
    let (flows, row) = (&run.tables.flows, run.flow("u"));
    assert!(total(&intervals.duplicates) > 300, "{}", total(&intervals.duplicates));
    assert!(total(&intervals.out_of_order) > 300, "{}", total(&intervals.out_of_order));
    assert!(total(&intervals.lost) > 300, "a corrupted datagram is discarded: {}", total(&intervals.lost));
    assert_eq!(flows.losses_detected.get(row), Some(total(&intervals.lost)));
    assert!(flows.losses_true.get(row) >= flows.losses_detected.get(row), "a lost packet may have a copy");
    assert!(intervals.jitter.iter().flatten().any(|jitter| jitter > 0.0));
}

#[test]
fn datagrams_behind_the_last_arrival_are_lost_when_none_is_on_its_way_whatever_else_is() {
    let failing =
        with(direction(100_000_000, 10 * MS), json!({"changes": [{"at": 3 * SECOND, "up": false}]}));
    let other = with(flow("v", udp(8_000_000)), json!({"from": "b", "to": "a", "stop": 10 * SECOND}));
    let run = run(&path(failing, direction(100_000_000, 10 * MS), vec![flow("u", udp(8_000_000)), other]));
    let (flows, row) = (&run.tables.flows, run.flow("u"));
    let lost = 5000 - flows.bytes_received.get(row).unwrap() / 1000;
    assert!(lost >= 2000, "{lost}");
    assert_eq!(flows.losses_true.get(row), Some(lost));
    assert_eq!(flows.losses_detected.get(row), Some(lost));
    let (intervals, rows) = (&run.tables.intervals, run.intervals("u"));
    assert_eq!(rows.iter().filter_map(|&row| intervals.lost.get(row)).sum::<i64>(), lost);
    // The last row has them, at the run's end. Those before it cover all the time until then.
    assert_eq!(intervals.time.get(rows[rows.len() - 1]), Some(10 * SECOND as i64));
    let covered: i64 = rows.iter().filter_map(|&row| intervals.duration.get(row)).sum();
    assert_eq!(covered, 10 * SECOND as i64);
}

#[test]
fn bytes_end_a_flow_with_a_shorter_datagram() {
    let traffic = with(udp(8_000_000), json!({"bytes": 2500, "stop": null}));
    let plan = path(direction(100_000_000, MS), direction(100_000_000, MS), vec![flow("u", traffic)]);
    let run = run(&plan);
    let row = run.flow("u");
    assert_eq!(run.tables.flows.segments_sent.get(row), Some(3));
    assert_eq!(run.tables.flows.bytes_received.get(row), Some(2500));
    assert_eq!(run.stats.simulated.as_ns(), 2 * MS + 43_360 + MS, "the run ends with the last arrival");
}

#[test]
fn pauses_are_silent_and_the_pace_goes_on_after_them() {
    let pattern = json!({"pattern": {"on": 250 * MS, "off": 250 * MS, "distribution": "constant"}});
    let plan = path(
        direction(1_000_000_000, 0),
        direction(1_000_000_000, 0),
        vec![flow("u", with(udp(8_000_000), pattern))],
    );
    let run = run(&plan);
    assert_eq!(run.tables.flows.segments_sent.get(run.flow("u")), Some(10 * 250));
    let goodput = |row: usize| run.tables.intervals.goodput.get(row).expect("a rate");
    // The first whole period but its very first interval, in which the delay cuts off one datagram.
    let rates: Vec<f64> = run.intervals("u")[5..10].iter().map(|&row| goodput(row)).collect();
    assert_eq!(rates, [8e6, 8e6, 4e6, 0.0, 0.0]);
}

#[test]
fn a_source_with_pauses_keeps_its_mean_rate_however_short_it_sends() {
    // A datagram each 8 ms: in most times of sending there is none, or it comes late in them.
    for (on, off, distribution) in
        [(MS, 2 * MS, "constant"), (10 * MS, 30 * MS, "constant"), (10 * MS, 90 * MS, "exponential")]
    {
        let pattern = json!({"pattern": {"on": on, "off": off, "distribution": distribution}, "streams": 40});
        let plan = path(
            direction(1_000_000_000, 0),
            direction(1_000_000_000, 0),
            vec![flow("u", with(udp(1_000_000), pattern))],
        );
        let run = run(&plan);
        let sent: i64 = run.tables.flows.segments_sent.iter().flatten().sum();
        let mean = 40.0 * 5e9 / 8e6 * on as f64 / (on + off) as f64;
        // The first datagram of each stream leaves at once: half an interval too early on average.
        let excess = sent as f64 - mean - 20.0;
        // Of exponential times: the standard deviation of 40 · 50 of them, each 1.25 datagrams.
        let tolerance = if distribution == "constant" { 20.0 } else { 3.0 * 1.25 * (2.0 * 2000f64).sqrt() };
        assert!(excess.abs() <= tolerance, "on {on}, off {off}: {sent} datagrams, {mean} expected");
    }
}

#[test]
fn exponential_pauses_come_from_the_seed() {
    let pattern = json!({"pattern": {"on": 20 * MS, "off": 30 * MS, "distribution": "exponential"}});
    let plan = path(
        direction(1_000_000_000, MS),
        direction(1_000_000_000, MS),
        vec![flow("u", with(udp(80_000_000), pattern))],
    );
    let sent = |seed: u64| {
        let run = run(&with(plan.clone(), json!({"seed": seed})));
        run.tables.flows.segments_sent.get(run.flow("u")).expect("a count")
    };
    assert_eq!(sent(1), sent(1));
    assert_ne!(sent(1), sent(2));
    // 2/5 of 50,000 on average; 100 periods of standard deviation about 1/sqrt(100) each.
    assert!((12_000..28_000).contains(&sent(1)), "{}", sent(1));
}

/// Datagrams of a Poisson process: 1000 a second on average, on a link that never delays them for long.
fn poisson(settings: Value) -> Value {
    let traffic = with(with(udp(8_000_000), json!({"spacing": "exponential"})), settings);
    let link = || direction(1_000_000_000, MS);
    path(link(), link(), vec![flow("u", traffic)])
}

fn sent(run: &Run) -> Vec<i64> {
    run.tables.flows.segments_sent.iter().flatten().collect()
}

#[test]
fn exponential_spacing_keeps_the_mean_rate_and_begins_with_an_interval() {
    let mut plan = poisson(json!({"streams": 40}));
    plan["sample"]["packets"] = json!(true);
    let run = run(&plan);
    let total: i64 = sent(&run).iter().sum();
    // 40 · 5 s · 1000 a second; four standard deviations of a Poisson variable.
    assert!((total - 200_000).abs() < 4 * 448, "{total}");
    let packets = &run.tables.packets;
    let of_stream = |stream: i64| {
        let times = packets.stream.iter().zip(packets.time.iter());
        times.filter_map(move |(of, time)| if of == Some(stream) { time } else { None }).min()
    };
    let first: BTreeSet<i64> = (0..40).filter_map(of_stream).collect();
    assert_eq!(first.len(), 40, "each stream has its own intervals");
    // Forty exponential times: the mean's standard deviation is 1 / √40 of it.
    let mean = first.iter().sum::<i64>() as f64 / 40.0 / MS as f64;
    assert!((mean - 1.0).abs() < 4.0 / 40f64.sqrt(), "{mean} ms until the first");
}

#[test]
fn exponential_spacing_with_pauses_keeps_the_mean_rate() {
    for (on, off, distribution) in
        [(MS, 2 * MS, "constant"), (10 * MS, 30 * MS, "constant"), (10 * MS, 90 * MS, "exponential")]
    {
        let pattern = json!({"pattern": {"on": on, "off": off, "distribution": distribution}, "streams": 40});
        let total: i64 = sent(&run(&poisson(pattern))).iter().sum();
        let mean = 200_000.0 * on as f64 / (on + off) as f64;
        // Besides the process, the times of sending vary: 40 · 50 pairs of them, each for 10 datagrams.
        let pauses = if distribution == "constant" { 0.0 } else { 2.0 * 2000.0 * 10f64.powi(2) };
        // Constant ones begin together: a stream has at most one time of sending more than its share.
        let surplus = 40.0 * on as f64 / MS as f64;
        assert!(
            (total as f64 - mean).abs() < 4.0 * (mean + pauses).sqrt() + surplus,
            "on {on}, off {off}: {total} datagrams, {mean} expected"
        );
    }
}

#[test]
fn exponential_spacing_comes_from_the_seed_and_is_not_that_of_the_pauses() {
    let pattern = json!({"pattern": {"on": 20 * MS, "off": 30 * MS, "distribution": "exponential"}});
    let sent = |seed: u64| sent(&run(&with(poisson(pattern.clone()), json!({"seed": seed}))));
    assert_eq!(sent(1), sent(1));
    assert_ne!(sent(1), sent(2));
}

#[test]
fn bytes_and_stop_end_exponential_spacing() {
    let run_of = |settings: Value| run(&poisson(settings));
    let run = run_of(json!({"bytes": 2500, "stop": null}));
    let row = run.flow("u");
    assert_eq!(run.tables.flows.segments_sent.get(row), Some(3));
    assert_eq!(run.tables.flows.bytes_received.get(row), Some(2500));
    assert_eq!(run.tables.flows.complete.get(row), Some(true));
    // One datagram in 8000 s: none comes before the flow stops.
    let run = run_of(json!({"rate": 1}));
    let row = run.flow("u");
    assert_eq!(run.tables.flows.segments_sent.get(row), Some(0));
    assert_eq!(run.tables.flows.complete.get(row), Some(true));
    assert_eq!(run.stats.simulated.as_ns(), 5 * SECOND, "the run ends with the flow");
    let run = run_of(json!({"rate": 1, "stop": null}));
    assert_eq!(run.stats.simulated.as_ns(), 10 * SECOND);
}

#[test]
fn a_rate_of_many_datagrams_in_a_microsecond_is_kept_by_exponential_spacing() {
    // Of 16 B at 10 Gbit/s: one in 12.8 ns, of which whole nanoseconds are 12.
    let settings = json!({"rate": 10_000_000_000u64, "payload": 16, "stop": 5 * MS});
    let total = sent(&run(&poisson(settings)))[0] as f64;
    let mean = 5e6 / 12.8;
    assert!((total - mean).abs() < 4.0 * f64::sqrt(mean), "{total} of {mean}");
}

#[test]
fn bytes_that_a_stop_or_the_run_s_end_leaves_unsent_make_a_flow_incomplete() {
    let complete = |bytes: u64, stop: Option<u64>| {
        let flow = with(flow("u", with(udp(1_000_000), json!({"bytes": bytes}))), json!({"stop": stop}));
        let link = || direction(100_000_000, 10 * MS);
        let run = run(&with(path(link(), link(), vec![flow]), json!({"duration": 2 * SECOND})));
        run.tables.flows.complete.get(run.flow("u"))
    };
    assert_eq!(complete(100_000, Some(SECOND)), Some(true));
    assert_eq!(complete(200_000, Some(SECOND)), Some(false));
    assert_eq!(complete(200_000, None), Some(true));
    assert_eq!(complete(300_000, None), Some(false));
}

#[test]
fn nothing_is_sent_at_a_stop_or_at_the_run_s_end() {
    // One datagram of 1000 B in 8 ms.
    let sent = |stop: Option<u64>, settings: Value| {
        let flow = with(flow("u", with(udp(1_000_000), settings)), json!({"stop": stop}));
        let link = || direction(100_000_000, 10 * MS);
        let run = run(&with(path(link(), link(), vec![flow]), json!({"duration": 2 * SECOND})));
        run.tables.flows.segments_sent.get(run.flow("u"))
    };
    assert_eq!(sent(Some(SECOND), json!({})), Some(125));
    assert_eq!(sent(Some(2 * SECOND), json!({})), Some(250));
    assert_eq!(sent(None, json!({})), Some(250));
    assert_eq!(sent(None, json!({"bytes": 1_000_000})), Some(250));
}

#[test]
fn a_flow_that_only_the_run_s_end_stops_ends_with_it() {
    let pauses = json!({"pattern": {"on": 200 * MS, "off": 300 * MS, "distribution": "constant"}});
    let link = || direction(100_000_000, 10 * MS);
    let sent = |stop: u64, settings: Value| {
        let flow = with(flow("u", with(udp(1_000_000), settings)), json!({"stop": stop}));
        run(&with(path(link(), link(), vec![flow]), json!({"duration": 2 * SECOND})))
    };
    let ends = |run: &Run| {
        let last = run.intervals("u").into_iter().last().and_then(|row| run.tables.intervals.time.get(row));
        [run.tables.flows.end.get(run.flow("u")), last].map(|time| time.expect("a time") / MS as i64)
    };
    assert_eq!(ends(&sent(2 * SECOND, pauses.clone())), [2000, 2000]);
    assert_eq!(ends(&sent(SECOND, pauses))[0], 702, "its own stop ends it");
    assert_eq!(ends(&sent(2 * SECOND, json!({"bytes": 10_000})))[0], 82);
}
