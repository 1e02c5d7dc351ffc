//! Accelerators on the way of a connection.

use crate::common::*;
use serde_json::{Value, json};

/// A client, a router and a server: 100 Mbit/s and 2 ms to the router, then 50 Mbit/s and `rtt`, of which one packet in `every`
/// is lost on the way to the server.
fn lossy(accelerate: Option<Value>, rtt: u64, every: Option<u64>, flow_settings: Value) -> Value {
    let wan = || direction(50_000_000, rtt / 2);
    let loss = every.map(|packets| {
        json!({"model": {"kind": "every", "packets": packets, "first": packets}, "before_queue": false})
    });
    let flow = with(with(flow("f", tcp("cubic")), json!({"stop": null})), flow_settings);
    let settings = json!({"accelerate": accelerate});
    let plan = past_router(settings, with(wan(), json!({"loss": loss})), wan(), vec![flow]);
    with(plan, json!({"duration": 40 * SECOND}))
}

fn goodput(plan: &Value) -> f64 {
    let run = run(plan);
    let row = run.flow("f");
    run.tables.flows.goodput.get(row).expect("a goodput")
}

#[test]
fn a_long_lossy_path_is_five_times_faster_with_another_control_on_its_leg() {
    let rtt = 300 * MS;
    let alone = goodput(&lossy(None, rtt, Some(1000), json!({})));
    let leg = json!({"towards_server": {"cc": {"name": "bbr1"}, "send_buffer": 8 << 20}});
    let split = goodput(&lossy(Some(leg), rtt, Some(1000), json!({})));
    assert!(split > 5.0 * alone, "{:.1} and {:.1} Mbit/s", split / 1e6, alone / 1e6);
}

#[test]
fn a_short_clean_path_gains_nothing() {
    let settings = json!({"bytes": 20_000_000});
    let alone = goodput(&lossy(None, 4 * MS, None, settings.clone()));
    let split = goodput(&lossy(Some(json!({})), 4 * MS, None, settings));
    assert!((split / alone - 1.0).abs() < 0.02, "{:.2} and {:.2} Mbit/s", split / 1e6, alone / 1e6);
}

#[test]
fn every_byte_arrives_and_both_ends_close() {
    let run = run(&lossy(Some(json!({})), 50 * MS, Some(100), json!({"bytes": 3_000_000})));
    let (flows, row) = (&run.tables.flows, run.flow("f"));
    assert_eq!(flows.bytes_received.get(row), Some(3_000_000));
    assert_eq!(flows.complete.get(row), Some(true));
    assert!(run.stats.simulated.as_ns() < 40 * SECOND, "it ends by itself");
    let legs = &run.tables.legs;
    let last = |name: &str| {
        legs.leg
            .symbols()
            .enumerate()
            .filter(|(_, leg)| run.string(*leg) == name)
            .last()
            .map(|(row, _)| row)
            .expect("rows of each leg")
    };
    assert_eq!(legs.bytes_received.get(last("client")), Some(3_000_000));
    assert!(legs.retransmits.get(last("server")) > Some(10), "the losses are this leg's");
    assert_eq!(legs.retransmits.get(last("client")), Some(0));
}

#[test]
fn what_an_accelerator_holds_is_bounded_by_its_buffers() {
    // The second leg is 100 times slower than the first; the flow sends as long as it may.
    let accelerate = json!({
        "towards_client": {"receive_buffer": 200_000}, "towards_server": {"send_buffer": 200_000},
    });
    let mut plan = lossy(Some(accelerate), 50 * MS, None, json!({}));
    plan["links"][1]["forward"]["rate"] = json!(1_000_000);
    let run = run(&plan);
    let maximum = run.tables.legs.exposed.iter().flatten().max().expect("rows");
    // Twice each buffer for Linux's overhead, and a pipe of 256 KiB.
    assert!((200_000..800_000 + (256 << 10)).contains(&maximum), "{maximum} bytes");
}

#[test]
fn requests_and_echoes_pass() {
    let request = json!({
        "kind": "request", "cc": {"name": "cubic"}, "request": 100, "response": 100_000, "think": 0,
        "count": 20, "sender": {}, "receiver": {}, "stop": null,
    });
    let run = run(&lossy(Some(json!({})), 50 * MS, Some(200), request));
    let (flows, row) = (&run.tables.flows, run.flow("f"));
    assert_eq!(flows.bytes_received.get(row), Some(20 * 100_100));
    assert_eq!(flows.complete.get(row), Some(true));
}

#[test]
fn several_accelerators_split_a_connection_several_times() {
    let mut plan = lossy(Some(json!({})), 100 * MS, Some(100), json!({"bytes": 3_000_000}));
    // A second router on the way, with an accelerator too: a - r - s - b.
    let routes = |of: &[(&str, &str)]| node("any", "host", of)["routes"].clone();
    plan["nodes"][0]["routes"] = routes(&[("r", "lan"), ("s", "lan"), ("b", "lan")]);
    plan["nodes"][1]["routes"] = routes(&[("a", "lan"), ("s", "wan"), ("b", "wan")]);
    plan["nodes"][2]["routes"] = routes(&[("a", "far"), ("r", "far"), ("s", "far")]);
    let mut second = node("s", "router", &[("a", "wan"), ("r", "wan"), ("b", "far")]);
    second["accelerate"] = json!({});
    plan["nodes"].as_array_mut().expect("nodes").push(second);
    plan["links"][1]["ends"] = json!(["r", "s"]);
    let far = || direction(100_000_000, MS);
    plan["links"].as_array_mut().expect("links").push(link("far", ["s", "b"], far(), far()));
    let run = run(&plan);
    let (flows, row) = (&run.tables.flows, run.flow("f"));
    assert_eq!(flows.bytes_received.get(row), Some(3_000_000));
    assert_eq!(flows.complete.get(row), Some(true));
    let legs = &run.tables.legs;
    let mut retransmits = std::collections::BTreeMap::new();
    for (number, (node, leg)) in legs.node.symbols().zip(legs.leg.symbols()).enumerate() {
        let leg = (run.string(node).to_owned(), run.string(leg).to_owned());
        retransmits.insert(leg, legs.retransmits.get(number).expect("a count"));
    }
    let of = |node: &str, leg: &str| retransmits[&(node.to_owned(), leg.to_owned())];
    // The losses are between the routers.
    assert!(of("r", "server") > 10);
    assert_eq!((of("r", "client"), of("s", "client"), of("s", "server")), (0, 0, 0));
}

#[test]
fn only_connections_to_the_ports_and_hosts_asked_for_are_split() {
    let split = |accelerate: Value, port: Value| {
        let settings = json!({"bytes": 300_000, "streams": 3, "port": port});
        let run = run(&lossy(Some(accelerate), 20 * MS, None, settings));
        let (flows, legs) = (&run.tables.flows, &run.tables.legs);
        assert!(flows.complete.iter().all(|complete| complete == Some(true)));
        let streams: std::collections::BTreeSet<i64> = legs.stream.iter().flatten().collect();
        streams.into_iter().collect::<Vec<i64>>()
    };
    assert_eq!(split(json!({}), json!(443)), [0, 1, 2]);
    assert_eq!(split(json!({"ports": [80, 444, 445]}), json!(443)), [1, 2], "443 to 445");
    assert_eq!(split(json!({"ports": [80]}), json!(null)), Vec::<i64>::new());
    assert_eq!(split(json!({"hosts": ["b"]}), json!(null)), [0, 1, 2]);
    assert_eq!(split(json!({"hosts": ["a"]}), json!(null)), Vec::<i64>::new(), "hosts are destinations");
    assert_eq!(split(json!({"hosts": ["b"], "ports": [443]}), json!(443)), [0]);
}
