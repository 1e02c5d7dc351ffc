//! Datagrams between two nodes over veth.

mod lab;

use lab::{Lab, MS, SECOND, sum};
use serde_json::json;

/// A second's datagrams at `rate`; none where this machine was so busy that it dropped some, and says so.
fn a_second(rate: u64) -> Option<Lab> {
    let mut lab = Lab::new(&format!("udp{rate}"));
    let flow = json!({"name": "noise", "from": "a", "to": "b", "kind": "udp", "rate": rate, "payload": 1448,
        "pattern": {"on": SECOND, "off": 9 * SECOND, "distribution": "constant"}, "stop": 9 * SECOND});
    lab.flow(flow, json!({"sample": 200 * MS}));
    // A sender that was held up catches up in the pause.
    lab.run(4 * SECOND);
    lab.assert_no_errors();
    let dropped =
        lab.b.all("warning").iter().any(|said| said["message"].as_str().unwrap().contains("dropped"));
    // A CPU's queue of arrivals was full.
    let lost = lab.a.all("done").iter().any(|done| done["facts"]["dropped"] != json!({}));
    (!dropped && !lost).then_some(lab)
}

/// The datagrams that had arrived by the end of each interval.
fn arrived(lab: &Lab) -> Vec<u64> {
    let bytes = lab.rows("intervals", "b").into_iter().map(|row| row["bytes_received"].as_u64().unwrap());
    bytes.scan(0, |sum, bytes| Some(std::mem::replace(sum, *sum + bytes) + bytes)).collect()
}

// However busy the machine, no datagram leaves before it is due, and all that are due by the end have left: both hold
// at the rate asked for alone.
#[test]
fn every_datagram_arrives_once_and_at_the_rate_asked() {
    skip_if_unable!();
    for rate in [20_000_000, 100_000_000, 500_000_000] {
        let Some(lab) = (0..3).find_map(|_| a_second(rate)) else {
            return eprintln!("skipped: three times this machine had no time to read {rate} bit/s");
        };
        let (sent, received) = (lab.rows("flows", "a"), lab.rows("flows", "b"));
        let all = (rate / 8).div_ceil(1448) * 1448;
        assert_eq!((sum(&sent, "bytes_sent"), sum(&received, "bytes_received")), (all, all));
        assert_eq!(received[0]["losses_detected"], 0);
        for (interval, bytes) in arrived(&lab).into_iter().enumerate() {
            let due = rate / 8 / 5 * (interval as u64 + 1);
            assert!(bytes <= due + 2 * 1448, "{bytes} of {due} due in interval {interval} at {rate}");
        }
        let intervals = lab.rows("intervals", "b");
        assert_eq!(sum(&intervals, "bytes_received"), sum(&received, "bytes_received"));
        assert_eq!(sum(&intervals, "duplicates") + sum(&intervals, "out_of_order"), 0);
        assert_eq!(sum(&lab.rows("intervals", "a"), "bytes_sent"), sum(&sent, "bytes_sent"));
    }
}

/// Datagrams of a Poisson process with a second's time to be sent.
fn a_random_second(rate: u64, seed: u64) -> u64 {
    let mut lab = Lab::new(&format!("poisson{rate}"));
    let flow = json!({"name": "noise", "from": "a", "to": "b", "kind": "udp", "rate": rate, "payload": 1000,
        "spacing": "exponential", "stop": 9 * SECOND,
        "pattern": {"on": SECOND, "off": 9 * SECOND, "distribution": "constant"}});
    lab.flow(flow, json!({"seed": seed}));
    // A sender that was held up catches up in the pause.
    lab.run(4 * SECOND);
    lab.assert_no_errors();
    sum(&lab.rows("flows", "a"), "bytes_sent") / 1000
}

// However busy the machine, the seed alone decides how many leave.
#[test]
fn a_poisson_process_sends_at_its_mean_rate_as_the_seed_decides() {
    skip_if_unable!();
    // 1000 and 50,000 datagrams on average: more than ten thousand a second leave together.
    for rate in [8_000_000, 400_000_000] {
        let sent = [1, 1, 2].map(|seed| a_random_second(rate, seed));
        let mean = (rate / 8000) as f64;
        assert!(sent.iter().all(|&sent| (sent as f64 - mean).abs() < 4.0 * mean.sqrt()), "{sent:?}");
        assert!(sent[0] == sent[1] && sent[1] != sent[2], "{sent:?}");
    }
}

#[test]
fn a_number_of_bytes_ends_both_ends_without_a_deadline() {
    skip_if_unable!();
    let mut lab = Lab::new("udpbytes");
    let flow = json!({"name": "noise", "from": "a", "to": "b", "kind": "udp", "rate": 10_000_000,
        "payload": 1000,
        "bytes": 100_000});
    lab.flow(flow, json!({}));
    lab.start(20 * SECOND);
    for node in [&mut lab.a, &mut lab.b] {
        node.wait_for(|e| e["event"] == "finished");
        node.command(json!({"do": "stop"}));
        node.done();
    }
    let row = &lab.rows("flows", "b")[0];
    assert_eq!((&row["bytes_received"], &row["complete"]), (&json!(100_000), &json!(true)));
}

#[test]
fn what_the_path_drops_is_counted() {
    skip_if_unable!();
    // Those after the last that arrived are known to the sender only: more than a few where the machine stood still.
    let many: Vec<u64> = (0..3).map(known_to_the_sender_alone).take_while(|count| *count >= 20).collect();
    assert!(many.len() < 3, "{many:?}");
}

/// Counts what a path drops; the datagrams sent after the last that arrived.
fn known_to_the_sender_alone(attempt: u32) -> u64 {
    let mut lab = Lab::new(&format!("udploss{attempt}"));
    // A policer at half the rate: about half of the datagrams are lost on the way.
    let police = "tc qdisc add dev eth0 root tbf rate 10mbit burst 20kb limit 20kb";
    lab.a.within(&police.split(' ').collect::<Vec<_>>());
    let flow = json!({"name": "noise", "from": "a", "to": "b", "kind": "udp", "rate": 20_000_000,
        "payload": 1000,
        "stop": SECOND});
    lab.flow(flow, json!({"sample": 100 * MS}));
    lab.run(1200 * MS);
    let (sent, received) = (&lab.rows("flows", "a")[0], &lab.rows("flows", "b")[0]);
    let datagrams = received["bytes_received"].as_u64().unwrap() / 1000;
    let lost = received["losses_detected"].as_u64().unwrap();
    let all = sent["segments_sent"].as_u64().unwrap();
    // A sender that was held up catches up at a rate of which the policer takes more than half.
    assert!((all / 3..all).contains(&lost), "{lost} of {all}");
    assert_eq!(sum(&lab.rows("intervals", "b"), "lost"), lost);
    all - datagrams - lost
}

#[test]
fn pauses_are_silent_and_the_rate_holds_between_them() {
    skip_if_unable!();
    // A reader that was held back has no room for some of them.
    assert!((0..3).any(|attempt| pattern(attempt) == 400_000), "some were dropped each time");
}

/// Sends in two periods with a pause between; bytes that arrived.
fn pattern(attempt: u32) -> u64 {
    let mut lab = Lab::new(&format!("udppause{attempt}"));
    let flow = json!({"name": "noise", "from": "a", "to": "b", "kind": "udp", "rate": 8_000_000,
        "payload": 1000,
        "pattern": {"on": 200 * MS, "off": 100 * MS, "distribution": "constant"}, "stop": 600 * MS});
    lab.flow(flow, json!({"sample": 50 * MS}));
    // A busy machine may hold datagrams back, into the pause and beyond the end. None is early.
    lab.run(2 * SECOND);
    let arrived = arrived(&lab);
    let due = [50, 100, 150, 200, 200, 200, 250, 300, 350, 400, 400, 400];
    for (interval, (bytes, due)) in arrived.iter().zip(due).enumerate() {
        assert!(*bytes <= (due + 2) * 1000, "{bytes} of {due} kB due in interval {interval}: {arrived:?}");
    }
    assert_eq!(lab.rows("flows", "a")[0]["segments_sent"], 400, "{arrived:?}");
    arrived.last().copied().unwrap_or_default()
}

#[test]
fn datagrams_too_small_for_their_header_are_refused() {
    skip_if_unable!();
    let mut lab = Lab::new("udpsmall");
    let flow = json!({"name": "noise", "from": "a", "to": "b", "kind": "udp", "rate": 1000, "payload": 15});
    let answer = lab.b.ask(json!({"do": "flow", "role": "server", "address": lab::B, "flow": flow}));
    assert_eq!(answer["event"], "error");
    assert!(answer["message"].as_str().unwrap().contains("15"), "{answer}");
}

#[test]
fn datagrams_larger_than_a_packet_arrive_from_their_fragments() {
    skip_if_unable!();
    let mut lab = Lab::new("udplarge");
    let flow = json!({"name": "noise", "from": "a", "to": "b", "kind": "udp", "rate": 500_000_000,
        "payload": 4000, "bytes": 4_000_000});
    lab.flow(flow, json!({}));
    lab.start(20 * SECOND);
    for node in [&mut lab.a, &mut lab.b] {
        node.wait_for(|e| e["event"] == "finished");
        node.command(json!({"do": "stop"}));
        node.done();
    }
    lab.assert_no_errors();
    assert_eq!(lab.rows("flows", "b")[0]["bytes_received"], 4_000_000);
}
