//! Echo flows between two nodes over veth.

mod lab;

use lab::{Lab, MS, SECOND, sum};
use serde_json::{Value, json};

fn echo(settings: Value) -> Value {
    let mut flow = json!({"name": "e", "from": "a", "to": "b", "kind": "echo", "cc": {"name": "cubic"},
        "sizes": [1, 2000], "iterations": 30, "streams": 2});
    for (key, value) in settings.as_object().into_iter().flatten() {
        flow[key] = value.clone();
    }
    flow
}

#[test]
fn each_echo_is_timed_and_the_last_ends_the_flow() {
    skip_if_unable!();
    let mut lab = Lab::new("echo");
    lab.flow(echo(json!({})), json!({"sample": 10 * MS}));
    lab.start(20 * SECOND);
    for node in [&mut lab.a, &mut lab.b] {
        node.wait_for(|e| e["event"] == "finished");
        node.command(json!({"do": "stop"}));
        node.done();
    }
    lab.assert_no_errors();
    let rows = lab.rows("echoes", "a");
    assert_eq!((rows.len(), sum(&rows, "count")), (2 * 2 * 30, 2 * 2 * 30));
    for (client, size) in [(0, 1), (0, 2000), (1, 1), (1, 2000)] {
        let own = rows.iter().filter(|row| row["client"] == client && row["size"] == size);
        let iterations: Vec<_> = own.map(|row| row["iteration"].as_u64().unwrap()).collect();
        assert_eq!(iterations, (0..30).collect::<Vec<_>>());
    }
    for node in ["a", "b"] {
        assert!(lab.rows("flows", node).iter().all(|row| row["complete"] == true));
    }
    assert_eq!(sum(&lab.rows("flows", "b"), "bytes_received"), 2 * 30 * 2001);
    assert_eq!(sum(&lab.rows("intervals", "b"), "bytes_received"), 2 * 30 * 2001);
}

#[test]
fn more_than_a_million_round_trips_are_reported_as_histograms() {
    skip_if_unable!();
    let mut lab = Lab::new("echo-many");
    lab.flow(echo(json!({"iterations": 600_000, "sizes": [1], "stop": 2 * SECOND})), json!({}));
    lab.run(2_300 * MS);
    lab.assert_no_errors();
    let (single, many): (Vec<Value>, Vec<Value>) =
        lab.rows("echoes", "a").into_iter().partition(|row| !row["iteration"].is_null());
    assert_eq!(single.len(), 200);
    assert!(sum(&many, "count") > 100);
    assert_eq!(sum(&many, "count"), sum(&lab.rows("echo_batches", "a"), "count"));
}

#[test]
fn when_the_server_dies_the_client_says_where_and_keeps_what_it_measured() {
    skip_if_unable!();
    let mut lab = Lab::new("echo-dies");
    lab.flow(echo(json!({"iterations": 100_000, "interval": MS, "sizes": [64], "streams": 1})), json!({}));
    lab.start(10 * SECOND);
    lab.a.wait_for(|e| e["event"] == "progress" && e["time"].as_u64() > Some(400 * MS));
    lab.b.kill();
    let error = lab.a.wait_for(|e| e["event"] == "error");
    assert!(error["message"].as_str().unwrap().starts_with("client 0, size 64, iteration "), "{error}");
    lab.a.command(json!({"do": "stop"}));
    lab.a.done();
    assert!(lab.rows("echoes", "a").len() > 50);
}

#[test]
fn nothing_to_echo_is_refused() {
    skip_if_unable!();
    let mut lab = Lab::new("echo-zero");
    for (key, value) in [("sizes", json!([])), ("iterations", json!(0))] {
        let answer = lab.b.ask(json!({"do": "flow", "role": "server", "address": lab::B,
            "flow": echo(json!({key: value}))}));
        assert_eq!(answer["event"], "error");
        assert!(answer["message"].as_str().unwrap().contains(key), "{answer}");
    }
}
