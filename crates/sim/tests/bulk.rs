//! Bulk transfers over TCP in the simulator.

use crate::common::*;
use serde_json::{Value, json};

/// One CUBIC flow, or several, over 100 Mbit/s and 50 ms with a queue of 625 packets.
fn classic(streams: u32, seconds: u64) -> Value {
    let limit = json!({"queue": {"kind": "droptail", "limit": {"packets": 625}}});
    let forward = with(direction(100_000_000, 25 * MS), limit);
    let bulk = with(flow("bulk", tcp("cubic")), json!({"streams": streams, "stop": seconds * SECOND}));
    with(
        path(forward, direction(100_000_000, 25 * MS), vec![bulk]),
        json!({"duration": (seconds + 5) * SECOND}),
    )
}

fn sum(column: &tcplab_tables::Ints) -> i64 {
    column.iter().flatten().sum()
}

#[test]
fn one_cubic_flow_fills_the_link() {
    let run = run(&classic(1, 20));
    let intervals = &run.tables.intervals;
    let steady = |row: &usize| {
        (5 * SECOND as i64..=20 * SECOND as i64).contains(&intervals.time.get(*row).expect("a time"))
    };
    let rates: Vec<f64> = run
        .intervals("bulk")
        .into_iter()
        .filter(steady)
        .filter_map(|row| intervals.goodput.get(row))
        .collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let maximum = 100e6 * 1448.0 / 1514.0;
    assert!((mean / maximum - 1.0).abs() < 0.01, "goodput {mean} of {maximum}");
}

#[test]
fn round_trips_lie_between_the_path_and_the_full_queue() {
    let run = run(&classic(1, 20));
    let (flows, row) = (&run.tables.flows, run.flow("bulk"));
    let base = 50e6;
    // 625 packets waiting and the one being sent ahead of it, at 121.12 us each.
    let drain = 626.0 * 121_120.0;
    let samples = run.tables.sockets.srtt.iter().chain(run.tables.sockets.min_rtt.iter()).flatten();
    for sample in samples.map(|sample| sample as f64).chain(flows.rtt_p99.get(row)) {
        // A timestamp's or a clock's microsecond is the resolution of a sample.
        assert!((base..=base + drain + 121_120.0 * 2.0 + 1e6).contains(&sample), "RTT {sample}");
    }
}

#[test]
fn bytes_are_conserved_and_losses_agree_with_the_link() {
    let run = run(&classic(3, 10));
    let flows = &run.tables.flows;
    for stream in 0..3 {
        let row = run.flow_stream("bulk", stream);
        assert_eq!(flows.bytes_sent.get(row), flows.bytes_received.get(row), "all that was sent arrived");
        assert_eq!(flows.complete.get(row), Some(true));
    }
    assert!(sum(&flows.losses_true) > 0, "slow start overflows the queue");
    let dropped: i64 = ["forward", "backward"]
        .iter()
        .filter_map(|direction| {
            let rows = run.tables.queues.direction.symbols().zip(run.tables.queues.drops.iter());
            rows.filter(|row| run.string(row.0) == *direction).last().and_then(|row| row.1)
        })
        .sum();
    assert_eq!(sum(&flows.losses_true), dropped);
    assert!(sum(&flows.retransmits) >= sum(&flows.losses_true), "every lost segment is retransmitted");
    let events = run.events();
    assert_eq!(events.iter().filter(|event| event.1 == "established").count(), 3);
    assert_eq!(events.iter().filter(|event| event.1 == "closed").count(), 3);
    assert!(events.iter().any(|event| (event.1, event.2) == ("state", "recovery")));
}

#[test]
fn a_transfer_of_bytes_ends_when_they_have_arrived() {
    let traffic = with(tcp("reno"), json!({"bytes": 1_000_000, "stop": null}));
    let run =
        run(&path(direction(100_000_000, 5 * MS), direction(100_000_000, 5 * MS), vec![flow("t", traffic)]));
    let (flows, row) = (&run.tables.flows, run.flow("t"));
    assert_eq!(flows.bytes_sent.get(row), Some(1_000_000));
    assert_eq!(flows.bytes_received.get(row), Some(1_000_000));
    assert_eq!(flows.segments_sent.get(row), Some(1_000_000 / 1448 + 1));
    assert_eq!((flows.retransmits.get(row), flows.losses_true.get(row)), (Some(0), Some(0)));
    assert_eq!(flows.complete.get(row), Some(true));
    let end = flows.end.get(row).expect("an end");
    // A handshake, at least four windows (10, 20, 40, ... segments for 691), and less than half a second.
    assert!((60 * MS as i64..500 * MS as i64).contains(&end), "{end}");
    assert!(run.stats.simulated.as_ns() < SECOND, "the run ends when the connection is closed");
}

#[test]
fn pauses_pause_and_the_bytes_asked_for_arrive_nevertheless() {
    let pattern = json!({"pattern": {"on": 100 * MS, "off": 400 * MS, "distribution": "constant"}});
    let plan = |traffic| {
        path(direction(10_000_000, 5 * MS), direction(10_000_000, 5 * MS), vec![flow("t", traffic)])
    };
    // A small send buffer, so that a pause begins soon after the application has stopped writing.
    let traffic = with(with(tcp("cubic"), pattern), json!({"sender": {"send_buffer": 50_000}}));
    let endless = run(&plan(traffic.clone()));
    let received = endless.tables.flows.bytes_received.get(endless.flow("t")).expect("a count");
    // Ten periods of 100 ms at 10 Mbit/s are 1.25 MB of frames; the send buffer adds the 100 kB it holds.
    assert!((600_000..2_500_000).contains(&received), "{received}");
    let idle = endless
        .intervals("t")
        .into_iter()
        .filter(|&row| endless.tables.intervals.bytes_sent.get(row) == Some(0));
    assert!(idle.count() >= 10, "there are pauses");
    let bounded = run(&plan(with(traffic, json!({"bytes": 300_000, "stop": null}))));
    let row = bounded.flow("t");
    assert_eq!(bounded.tables.flows.bytes_received.get(row), Some(300_000));
    assert_eq!(bounded.tables.flows.complete.get(row), Some(true));
}

#[test]
fn a_connection_across_a_dead_link_is_incomplete() {
    let dead = with(direction(100_000_000, 5 * MS), json!({"up": false}));
    let run = run(&path(dead, direction(100_000_000, 5 * MS), vec![flow("t", tcp("cubic"))]));
    let (flows, row) = (&run.tables.flows, run.flow("t"));
    assert_eq!(flows.bytes_received.get(row), Some(0));
    assert!(flows.losses_true.get(row) > Some(1), "the SYN is tried again");
    assert_eq!(flows.rtt_mean.get(row), None);
    assert_eq!((flows.complete.get(row), flows.cwnd_mean.get(row)), (Some(false), None));
    assert!(run.tables.sockets.cwnd.is_empty(), "no connection, no socket that sends");
    let events: Vec<&str> = run.events().into_iter().map(|event| event.1).collect();
    assert!(!events.is_empty() && events.iter().all(|event| *event == "rto"), "{events:?}");
    assert_eq!(flows.rtos.get(row), flows.retransmits.get(row), "each is of a timeout");
}

#[test]
fn a_connection_that_nobody_answers_ends_when_it_is_given_up() {
    let dead = with(direction(100_000_000, 5 * MS), json!({"up": false}));
    let flows = vec![flow("t", with(tcp("cubic"), json!({"start": SECOND, "stop": null})))];
    let plan = with(path(dead, direction(100_000_000, 5 * MS), flows), json!({"duration": 200 * SECOND}));
    let run = run(&plan);
    assert_eq!(run.tables.flows.end.get(run.flow("t")), Some(132 * SECOND as i64));
}

/// The server's SYN-ACK times out as well, but that of an end without payload is not in its flow's figures.
#[test]
fn every_timeout_has_an_event_that_the_flow_counts() {
    let lost =
        json!({"loss": {"model": {"kind": "list", "packets": [2, 3, 4, 5, 6, 7, 8]}, "before_queue": false}});
    let forward = with(direction(10_000_000, 5 * MS), lost);
    let flows = vec![flow("t", with(tcp("cubic"), json!({"bytes": 1_000, "stop": null})))];
    let run = run(&path(forward, direction(10_000_000, 5 * MS), flows));
    let timeouts = run.events().into_iter().filter(|event| event.1 == "rto").count() as i64;
    assert!(timeouts > 1);
    assert_eq!(run.tables.flows.rtos.get(run.flow("t")), Some(timeouts));
}

/// Linux initializes a control when the connection is established (`tcp_init_transfer`).
#[test]
fn a_control_has_a_phase_and_a_window_from_when_the_connection_is_established() {
    let flows = vec![flow("t", with(tcp("cubic"), json!({"start": 500 * MS, "bytes": 1_000, "stop": null})))];
    let run = run(&path(direction(10_000_000, 5 * MS), direction(10_000_000, 5 * MS), flows));
    let events = run.events();
    let time = |name: &str| events.iter().find(|event| event.1 == name).expect("an event").0;
    assert!(time("established") > 510 * MS as i64);
    assert_eq!(time("phase"), time("established"));
}

#[test]
fn a_flow_that_never_connects_is_incomplete_whatever_it_was_asked_to_do() {
    let dead = || with(direction(100_000_000, 5 * MS), json!({"up": false}));
    for settings in [json!({"stop": null}), json!({"stop": SECOND}), json!({"stop": null, "bytes": 0})] {
        let flows = vec![flow("t", with(tcp("cubic"), settings.clone()))];
        let run = run(&with(path(dead(), dead(), flows), json!({"duration": 2 * SECOND})));
        assert_eq!(run.tables.flows.complete.get(0), Some(false), "{settings}");
    }
}

#[test]
fn a_connection_that_carried_nothing_ends_when_its_receiver_has_the_fin() {
    let flows = vec![flow("t", with(tcp("cubic"), json!({"start": 500 * MS, "stop": 505 * MS})))];
    let other = flow("other", tcp("cubic"));
    let plan =
        path(direction(10_000_000, 5 * MS), direction(10_000_000, 5 * MS), [flows, vec![other]].concat());
    let run = run(&plan);
    let (flows, row) = (&run.tables.flows, run.flow("t"));
    assert_eq!(flows.bytes_received.get(row), Some(0));
    let closed = run.events().into_iter().find(|event| event.1 == "closed").expect("an end").0;
    let end = flows.end.get(row).expect("an end");
    // The client has closed when the receiver's own FIN has come back, through an empty queue.
    let before = closed - end;
    assert!((5 * MS as i64..6 * MS as i64).contains(&before), "{end}, the client closed at {closed}");
    assert!(flows.cwnd_mean.get(row).is_some());

    // The run may end before that.
    let run = crate::common::run(&with(plan, json!({"duration": end + 2 * MS as i64})));
    assert!(!run.events().iter().any(|event| event.1 == "closed"));
    assert_eq!(run.tables.flows.end.get(run.flow("t")), Some(end));
}

/// The last row of table `sockets` at each node: time, acknowledged payload, segments in flight.
fn last_rows(run: &Run) -> Vec<(&str, i64, i64, i64)> {
    let sockets = &run.tables.sockets;
    let of = |column: &tcplab_tables::Ints, row| column.get(row).expect("a figure");
    let mut last = std::collections::BTreeMap::new();
    for (row, node) in sockets.node.symbols().enumerate() {
        let figures = (of(&sockets.time, row), of(&sockets.bytes_acked, row), of(&sockets.inflight, row));
        last.insert(run.string(node), figures);
    }
    last.into_iter().map(|(node, (time, acked, inflight))| (node, time, acked, inflight)).collect()
}

#[test]
fn a_socket_s_last_row_is_of_its_end() {
    let path = |settings: Value| {
        let flows = vec![flow("t", with(tcp("cubic"), settings))];
        let plan = path(direction(10_000_000, 5 * MS), direction(10_000_000, 5 * MS), flows);
        with(plan, json!({"duration": 2 * SECOND}))
    };
    // It begins and ends between two samples.
    let short = run(&path(json!({"bytes": 5_000, "start": 101 * MS, "stop": null})));
    let closed = short.events().into_iter().find(|event| event.1 == "closed").expect("an end").0;
    assert_eq!(last_rows(&short), [("a", closed, 5_000, 0)]);
    // The run's end is that of a socket which is still open, wherever samples fall.
    let mut open = path(json!({"stop": null}));
    open["sample"]["sockets"] = json!(300 * MS);
    let open = run(&open);
    assert_eq!(last_rows(&open)[0].1, 2 * SECOND as i64);
    // Without samples there are no rows.
    let mut none = path(json!({"bytes": 5_000, "stop": null}));
    none["sample"]["sockets"] = Value::Null;
    assert!(run(&none).tables.sockets.time.is_empty());
}

#[test]
fn tcp_runs_are_equal_too() {
    let plan = classic(4, 3);
    assert!(run(&plan).tables == run(&plan).tables);
}

#[test]
fn the_mean_window_is_that_of_its_samples() {
    let run = run(&classic(1, 20));
    let sockets = &run.tables.sockets;
    let sampled = sum(&sockets.cwnd) as f64 / sockets.cwnd.len() as f64;
    let mean = run.tables.flows.cwnd_mean.get(run.flow("bulk")).expect("a mean");
    assert!((mean / sampled - 1.0).abs() < 0.02, "{mean} and {sampled}");
}

#[test]
fn a_flow_is_complete_if_it_was_not_cut_off() {
    let complete = |settings: Value, duration: u64| {
        let flows = vec![flow("t", with(tcp("cubic"), settings))];
        let plan = path(direction(10_000_000, 5 * MS), direction(10_000_000, 5 * MS), flows);
        let run = run(&with(plan, json!({"duration": duration})));
        run.tables.flows.complete.get(run.flow("t")).expect("an answer")
    };
    assert!(complete(json!({"stop": 2 * SECOND}), 2 * SECOND), "it sent for as long as it was asked to");
    assert!(!complete(json!({"stop": 3 * SECOND}), 2 * SECOND));
    assert!(complete(json!({"stop": null}), 2 * SECOND), "it has no other end than the run's");
    assert!(!complete(json!({"stop": null, "bytes": 100_000_000}), 2 * SECOND));
}

#[test]
fn a_run_broken_off_has_what_was_recorded_until_then() {
    let plan = parse(&classic(1, 20));
    let mut simulation = tcplab_sim::Simulation::new(&plan).expect("a plan that can be simulated");
    assert!(!simulation.advance(10_000));
    let time = simulation.stats().simulated.as_ns() as i64;
    let tables = simulation.finish();
    assert_eq!(tables.flows.complete.get(0), Some(false));
    assert_eq!(tables.flows.end.get(0), Some(time));
    let received: i64 = tables.intervals.bytes_received.iter().flatten().sum();
    assert_eq!(tables.flows.bytes_received.get(0), Some(received));
}

/// A link without a rate delivers whole flights at once: after 10 ms, 30 ms, and so at the end of the run too.
#[test]
fn the_last_interval_has_what_arrives_at_the_end_of_the_run() {
    let link = || {
        let queue = json!({"kind": "droptail", "limit": null});
        with(direction(1, 10 * MS), json!({"rate": null, "queue": queue}))
    };
    let bulk = with(flow("bulk", tcp("cubic")), json!({"stop": 990 * MS}));
    let mut plan = with(path(link(), link(), vec![bulk]), json!({"duration": 990 * MS}));
    plan["sample"]["flows"] = json!(90 * MS);
    let run = run(&plan);
    let total = sum(&run.tables.flows.bytes_received);
    assert!(total > 1_000_000);
    assert_eq!(sum(&run.tables.intervals.bytes_received), total);
}

#[test]
fn while_a_fin_is_repaired_no_interval_says_that_nothing_came() {
    let lossy = with(
        direction(10_000_000, 5 * MS),
        json!({"loss": {"model": {"kind": "list", "packets": [4, 5]}, "before_queue": false}}),
    );
    let request = json!({"kind": "request", "request": 100, "response": 100, "think": 0, "count": 1,
        "cc": {"name": "cubic"}, "sender": {}, "receiver": {}, "stop": null});
    let mut plan = path(lossy, direction(10_000_000, 5 * MS), vec![flow("t", request)]);
    plan["sample"]["flows"] = json!(10 * MS);
    let run = run(&plan);
    let (flows, intervals, row) = (&run.tables.flows, &run.tables.intervals, run.flow("t"));
    let end = flows.end.get(row).expect("an end");
    assert!(end < 30 * MS as i64, "the response came after two round trips: {end}");
    let repairs = flows.retransmits.get(row).expect("a count");
    assert!(repairs >= 2, "{repairs}");
    let after = |&row: &usize| intervals.time.get(row) > Some(end + 10 * MS as i64);
    let counted = |&row: &usize| intervals.retransmits.get(row) > Some(0);
    let (counting, idle): (Vec<_>, Vec<_>) = run.intervals("t").into_iter().filter(after).partition(counted);
    assert!(!counting.is_empty() && idle.len() <= counting.len(), "{idle:?}, {counting:?}");
}

#[test]
fn a_connection_that_carries_nothing_has_an_interval() {
    // It stops before it is established.
    let flow = with(flow("t", tcp("cubic")), json!({"stop": 10 * MS}));
    let run = run(&path(direction(10_000_000, 50 * MS), direction(10_000_000, 50 * MS), vec![flow]));
    assert_eq!(run.tables.flows.bytes_received.get(run.flow("t")), Some(0));
    assert!(!run.intervals("t").is_empty());
}
