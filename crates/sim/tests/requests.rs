//! Request and response flows in the simulator.

use crate::common::*;
use serde_json::{Value, json};

fn request(settings: Value) -> Value {
    let request = json!({
        "kind": "request", "cc": {"name": "cubic"}, "request": 100, "response": 1000, "think": 20 * MS,
        "count": 5, "sender": {}, "receiver": {}, "stop": null,
    });
    flow("r", with(request, settings))
}

fn simple(flows: Vec<Value>) -> Value {
    path(direction(100_000_000, 10 * MS), direction(100_000_000, 10 * MS), flows)
}

#[test]
fn a_small_exchange_takes_one_round_trip() {
    let run = run(&simple(vec![request(json!({}))]));
    let echoes = &run.tables.echoes;
    let rtts: Vec<i64> = echoes.rtt.iter().flatten().collect();
    // Frames of 166 and 1066 bytes at 100 Mbit/s on top of 20 ms. The first request waits for the ACK of the
    // handshake, 66 bytes, and its response for the ACK of a connection that is not yet interactive.
    let (rtt, ack) = (20 * MS as i64 + 13_280 + 85_280, 5_280);
    assert_eq!(rtts, [rtt + 2 * ack, rtt, rtt, rtt, rtt]);
    assert_eq!(echoes.iteration.iter().flatten().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(echoes.size.get(0), Some(100));
    let times: Vec<i64> = echoes.time.iter().flatten().collect();
    for (pair, rtt) in times.windows(2).zip(&rtts) {
        assert_eq!(pair[1] - pair[0], rtt + 20 * MS as i64, "it thinks for 20 ms");
    }
    let (flows, row) = (&run.tables.flows, run.flow("r"));
    assert_eq!(flows.bytes_received.get(row), Some(5 * 1100), "requests and responses");
    assert_eq!(flows.complete.get(row), Some(true));
    assert!(run.stats.simulated.as_ns() < SECOND);
}

#[test]
fn several_clients_ask_independently_until_they_are_stopped() {
    let settings = json!({"streams": 3, "count": null, "think": 0, "stop": SECOND, "response": 50_000});
    let run = run(&simple(vec![request(settings)]));
    let echoes = &run.tables.echoes;
    for client in 0..3 {
        let exchanges = echoes.client.iter().filter(|number| *number == Some(client)).count();
        // At most one each round trip; slow start needs up to three for the first responses.
        assert!((20..50).contains(&exchanges), "client {client}: {exchanges}");
        assert_eq!(run.tables.flows.complete.get(run.flow_stream("r", client)), Some(true));
    }
    assert!(echoes.time.iter().flatten().all(|time| time < SECOND as i64), "none is issued after the stop");
    assert!((SECOND..SECOND + 200 * MS).contains(&run.stats.simulated.as_ns()));
}

/// From `accept` to the end of what it reads, as on real hosts.
#[test]
fn a_server_s_socket_is_sampled_while_its_application_has_it() {
    let mut plan = simple(vec![request(json!({"count": 1}))]);
    plan["sample"]["sockets"] = json!(MS);
    let run = run(&plan);
    let sockets = &run.tables.sockets;
    let rows = sockets.node.symbols().zip(sockets.time.iter().flatten());
    let times: Vec<i64> = rows.filter(|(node, _)| run.string(*node) == "b").map(|(_, time)| time).collect();
    let events = run.events();
    let time = |name: &str| events.iter().find(|event| event.1 == name).expect("an event").0;
    let (one_way, moment) = (10 * MS as i64, 2 * MS as i64);
    let within = |time: i64, from: i64| (from..from + moment).contains(&time);
    assert!(within(times[0], time("established") + one_way), "{times:?}");
    // The client has closed when it has the server's FIN, which answers its own.
    let last = times[times.len() - 1];
    assert!(within(time("closed") - one_way, last), "{last}, closed at {}", time("closed"));
}

#[test]
fn the_server_is_a_sender_too() {
    let run = run(&simple(vec![request(json!({"response": 5_000_000, "count": 1}))]));
    let sockets = &run.tables.sockets;
    let mut nodes: Vec<&str> = sockets.node.symbols().map(|node| run.string(node)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!(nodes, ["a", "b"]);
    assert!(
        run.tables.flows.cwnd_mean.get(run.flow("r")) > Some(20.0),
        "the window is that of the longer side"
    );
}
