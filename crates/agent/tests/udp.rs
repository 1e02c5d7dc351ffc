//! Datagrams between two nodes over veth.

mod lab;

use lab::{Lab, MS, SECOND, sum};
use serde_json::json;

fn run(name: &str, rate: u64, streams: u32) -> (Lab, f64) {
    let mut lab = Lab::new(name);
    let flow = json!({"name": "noise", "from": "a", "to": "b", "kind": "udp", "rate": rate, "payload": 1448,
        "streams": streams, "stop": SECOND});
    lab.flow(flow, json!({"sample": 100 * MS}));
    lab.run(1200 * MS);
    lab.assert_no_errors();
    let rate = sum(&lab.rows("flows", "b"), "bytes_received") as f64 * 8.0;
    (lab, rate)
}

#[test]
fn every_datagram_arrives_once_and_at_the_rate_asked() {
    skip_if_unable!();
    for rate in [20_000_000, 100_000_000, 500_000_000] {
        let (lab, measured) = run(&format!("udp{rate}"), rate, 1);
        let (sent, received) = (lab.rows("flows", "a"), lab.rows("flows", "b"));
        assert_eq!(sum(&sent, "bytes_sent"), sum(&received, "bytes_received"));
        assert_eq!(received[0]["losses_detected"], 0);
        assert!((measured / rate as f64 - 1.0).abs() < 0.005, "{measured} for {rate}");
        let intervals = lab.rows("intervals", "b");
        assert_eq!(sum(&intervals, "bytes_received"), sum(&received, "bytes_received"));
        assert_eq!(sum(&intervals, "duplicates") + sum(&intervals, "out_of_order"), 0);
        assert_eq!(sum(&lab.rows("intervals", "a"), "bytes_sent"), sum(&sent, "bytes_sent"));
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
        node.tell(json!({"do": "stop"}));
        node.done();
    }
    let row = &lab.rows("flows", "b")[0];
    assert_eq!((&row["bytes_received"], &row["complete"]), (&json!(100_000), &json!(true)));
}

#[test]
fn what_the_path_drops_is_counted() {
    skip_if_unable!();
    let mut lab = Lab::new("udploss");
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
    assert!((all / 3..all * 2 / 3).contains(&lost), "{lost} of {all}");
    // Those after the last that arrived are known to the sender only.
    assert!(all - datagrams - lost < 20, "{all} {datagrams} {lost}");
    assert_eq!(sum(&lab.rows("intervals", "b"), "lost"), lost);
}

#[test]
fn pauses_are_silent_and_the_rate_holds_between_them() {
    skip_if_unable!();
    let mut lab = Lab::new("udppause");
    let flow = json!({"name": "noise", "from": "a", "to": "b", "kind": "udp", "rate": 8_000_000,
        "payload": 1000,
        "pattern": {"on": 200 * MS, "off": 100 * MS, "distribution": "constant"}, "stop": 600 * MS});
    lab.flow(flow, json!({"sample": 100 * MS}));
    lab.run(700 * MS);
    let bytes: Vec<_> =
        lab.rows("intervals", "b").iter().map(|row| row["bytes_received"].as_u64().unwrap()).collect();
    assert_eq!(bytes[2], 0, "{bytes:?}");
    assert_eq!(bytes.iter().sum::<u64>(), 400_000, "{bytes:?}");
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
        node.tell(json!({"do": "stop"}));
        node.done();
    }
    lab.assert_no_errors();
    assert_eq!(lab.rows("flows", "b")[0]["bytes_received"], 4_000_000);
}
