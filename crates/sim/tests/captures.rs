//! The packets that a capture is shown.

use std::sync::{Arc, Mutex};

use crate::common::*;
use serde_json::{Value, json};
use tcplab_sim::Simulation;
use tcplab_sim::capture::{CaptureSink, Frame};
use tcplab_sim::packet::Body;
use tcplab_units::Time;

type Seen = Vec<(usize, Time, Frame)>;

struct Sink(Arc<Mutex<Seen>>);

impl CaptureSink for Sink {
    fn frame(&mut self, interface: usize, at: Time, frame: &Frame) {
        self.0.lock().expect("one thread").push((interface, at, *frame));
    }
}

fn captured(plan: &Value) -> (Vec<String>, Seen) {
    let mut simulation = Simulation::new(&parse(plan)).expect("a plan that can be simulated");
    let names = simulation.interfaces().iter().map(|i| format!("{}-{}", i.node, i.link)).collect();
    let seen = Arc::new(Mutex::new(Vec::new()));
    simulation.capture(Box::new(Sink(Arc::clone(&seen)))).expect("addresses");
    while !simulation.advance(100) {}
    drop(simulation.finish());
    let frames = seen.lock().expect("one thread").clone();
    (names, frames)
}

fn transfer(at: &str, nodes: &[&str]) -> Value {
    let traffic = with(tcp("cubic"), json!({"bytes": 200_000, "stop": null}));
    let mut plan =
        path(direction(100_000_000, 5 * MS), direction(100_000_000, 5 * MS), vec![flow("t", traffic)]);
    plan["capture"] = json!({"what": "headers", "at": at, "nodes": nodes});
    plan
}

#[test]
fn on_the_wire_a_packet_is_seen_leaving_and_arriving_at_its_exact_times() {
    let (names, seen) = captured(&transfer("wire", &["a", "b"]));
    assert_eq!(names, ["a-path", "b-path"]);
    let of = |interface: usize, outgoing: bool| {
        seen.iter().filter(move |s| s.0 == interface && s.2.outgoing == outgoing).collect::<Vec<_>>()
    };
    for (sender, receiver) in [(0, 1), (1, 0)] {
        let (sent, received) = (of(sender, true), of(receiver, false));
        assert_eq!(sent.len(), received.len());
        assert!(sent.len() > 50);
        for (sent, received) in sent.iter().zip(&received) {
            assert_eq!(received.1.since(sent.1).as_ns(), 5 * MS, "the delay lies between");
            assert_eq!(sent.2.body, received.2.body);
        }
    }
    // The SYN's last bit leaves after its 74 bytes.
    assert_eq!(seen[0].1.as_ns(), 5_920);
    let syn = seen[0].2;
    assert_eq!(
        (syn.source.to_string(), syn.destination.to_string()),
        ("10.0.0.1".to_owned(), "10.0.0.2".to_owned())
    );
    assert_eq!((syn.source_port, syn.destination_port, syn.ttl), (40_000, 5001, 64));
    assert_eq!(syn.source_mac, [2, 0, 10, 0, 0, 1]);
}

#[test]
fn each_interface_is_in_the_order_of_time() {
    let (_, seen) = captured(&transfer("wire", &["a", "b"]));
    for interface in 0..2 {
        let times: Vec<Time> = seen.iter().filter(|s| s.0 == interface).map(|s| s.1).collect();
        assert!(times.is_sorted(), "interface {interface}");
    }
}

#[test]
fn at_the_host_a_burst_is_one_packet() {
    let payload = |seen: &Seen| -> (u64, u32) {
        let lens = seen.iter().filter(|s| s.2.outgoing).filter_map(|s| match s.2.body {
            Body::Tcp(segment) => Some(segment.len),
            _ => None,
        });
        lens.fold((0, 0), |(sum, maximum), len| (sum + u64::from(len), maximum.max(len)))
    };
    let (_, wire) = captured(&transfer("wire", &["a"]));
    let (_, host) = captured(&transfer("host", &["a"]));
    assert_eq!(payload(&wire), (200_000, 1448));
    let (bytes, longest) = payload(&host);
    assert_eq!(bytes, 200_000);
    assert!(longest > 1448 && longest <= 65_536, "{longest}");
    assert_eq!(host[0].1, Time::ZERO, "the SYN is seen before it is sent");
}

/// Directions that drop what they have accepted already, or lose it before it comes to the queue.
fn unkind_directions() -> [(&'static str, Value); 5] {
    let narrow = |settings: Value| with(direction(10_000_000, 5 * MS), settings);
    let queue = |settings: Value| narrow(json!({ "queue": settings }));
    let lost = json!({"model": {"kind": "list", "packets": [4, 9, 10, 16, 25]}, "before_queue": true});
    [
        ("drr", queue(json!({"kind": "drr", "limit": {"packets": 6}}))),
        (
            "codel",
            queue(json!({"kind": "codel", "limit": {"packets": 40}, "target": MS, "interval": 5 * MS})),
        ),
        ("loss before the queue", narrow(json!({ "loss": lost }))),
        ("mark", queue(json!({"kind": "droptail", "limit": {"packets": 6}, "mark_above": {"packets": 2}}))),
        ("down", narrow(json!({"changes": [{"at": 30 * MS, "up": false}, {"at": 50 * MS, "up": true}]}))),
    ]
}

#[test]
fn at_the_host_each_packet_is_seen_once_whatever_becomes_of_it() {
    for (name, forward) in unkind_directions() {
        let traffic = with(udp(20_000_000), json!({"stop": 100 * MS, "ect": 0}));
        let mut plan = path(forward, direction(100_000_000, 5 * MS), vec![flow("u", traffic)]);
        plan["capture"] = json!({"what": "headers", "at": "host", "nodes": ["a"]});
        let sent = run(&plan).tables.flows.segments_sent.get(0).expect("datagrams");
        let numbers: Vec<u64> = captured(&plan)
            .1
            .iter()
            .filter_map(|(_, _, frame)| match frame.body {
                Body::Udp { number, .. } => Some(number),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, (0..sent as u64).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn at_the_host_every_byte_is_seen_as_often_as_it_was_sent() {
    for (name, forward) in unkind_directions() {
        let traffic = || with(tcp("cubic"), json!({"bytes": 200_000, "stop": null}));
        let flows = vec![flow("t", traffic()), flow("u", traffic())];
        let mut plan = path(forward, direction(100_000_000, 5 * MS), flows);
        plan["capture"] = json!({"what": "headers", "at": "host", "nodes": ["a"]});
        let run = run(&plan);
        let (_, seen) = captured(&plan);
        for (number, flow) in ["t", "u"].into_iter().enumerate() {
            let row = run.flow(flow);
            let again = run.tables.flows.retransmits.get(row).expect("counted");
            let (mut first, mut segments) = (0, 0);
            for (_, _, frame) in
                seen.iter().filter(|s| s.2.outgoing && s.2.source_port == 40_000 + number as u16)
            {
                let Body::Tcp(segment) = frame.body else { continue };
                if segment.retransmission {
                    segments += segment.len.div_ceil(1448).max(1);
                } else {
                    first += segment.len;
                }
            }
            assert_eq!((first, i64::from(segments)), (200_000, again as i64), "{name}, {flow}");
            assert!(again > 0 || name == "mark", "{name}: nothing was lost");
        }
    }
}

#[test]
fn over_ipv6_segments_are_shorter_by_its_longer_header() {
    let mut plan = transfer("wire", &["a"]);
    plan["links"][0]["addresses6"] = json!(["fd00::1/64", "fd00::2/64"]);
    plan["flows"][0]["ip"] = json!(6);
    let (_, seen) = captured(&plan);
    let syn = seen[0].2;
    assert_eq!(
        (syn.source.to_string(), syn.destination.to_string()),
        ("fd00::1".to_owned(), "fd00::2".to_owned())
    );
    // 20 bytes more than over IPv4.
    assert_eq!(seen[0].1.as_ns(), 94 * 8 * 10);
    let longest = seen.iter().filter_map(|s| match s.2.body {
        Body::Tcp(segment) => Some(segment.len),
        _ => None,
    });
    assert_eq!(longest.max(), Some(1428));
}

#[test]
fn a_router_changes_addresses_and_time_to_live_and_a_switch_does_not() {
    let fast = || direction(1_000_000_000, MS);
    let nodes = [
        node("a", "host", &[("b", "as")]),
        node("s", "switch", &[("a", "as"), ("b", "sr")]),
        node("r", "router", &[("a", "sr"), ("b", "rb")]),
        node("b", "host", &[("a", "rb")]),
    ];
    let mut links = [
        link("as", ["a", "s"], fast(), fast()),
        link("sr", ["s", "r"], fast(), fast()),
        link("rb", ["r", "b"], fast(), fast()),
    ];
    links[0]["addresses"] = json!(["10.0.1.1/24", null]);
    links[1]["addresses"] = json!([null, "10.0.1.2/24"]);
    links[2]["addresses"] = json!(["10.0.2.1/24", "10.0.2.2/24"]);
    let mut plan = plan(&nodes, &links, vec![flow("p", with(ping(), json!({"count": 1})))]);
    plan["capture"] = json!({"what": "full", "at": "wire", "nodes": ["s", "b"]});
    let (names, seen) = captured(&plan);
    assert_eq!(names, ["s-as", "s-sr", "b-rb"]);
    let hops: Vec<_> = seen
        .iter()
        .map(|s| {
            (s.0, s.2.outgoing, s.2.source_mac[3..].to_vec(), s.2.destination_mac[3..].to_vec(), s.2.ttl)
        })
        .collect();
    let (a, r, r_b, b) = (vec![0, 1, 1], vec![0, 1, 2], vec![0, 2, 1], vec![0, 2, 2]);
    assert_eq!(
        hops,
        [
            (0, false, a.clone(), r.clone(), 64),
            (1, true, a.clone(), r.clone(), 64),
            (2, false, r_b.clone(), b.clone(), 63),
            (2, true, b, r_b, 64),
            (1, false, r.clone(), a.clone(), 63),
            (0, true, r, a, 63),
        ]
    );
}
