//! Requests and pings between two nodes over veth.

mod lab;

use lab::{B, Lab, MS, SECOND, sum};
use serde_json::json;

#[test]
fn each_exchange_is_timed_and_the_count_ends_the_flow() {
    skip_if_unable!();
    let mut lab = Lab::new("request");
    let flow = json!({"name": "ask", "from": "a", "to": "b", "kind": "request", "cc": {"name": "cubic"},
        "request": 100, "response": 300_000, "think": 5 * MS, "count": 10, "streams": 2});
    lab.flow(flow, json!({}));
    lab.start(20 * SECOND);
    for node in [&mut lab.a, &mut lab.b] {
        node.wait_for(|e| e["event"] == "finished");
        node.command(json!({"do": "stop"}));
        node.done();
    }
    lab.assert_no_errors();
    let rows = lab.rows("echoes", "a");
    assert_eq!(rows.len(), 20);
    for client in 0..2 {
        let own: Vec<_> = rows.iter().filter(|row| row["client"] == client).collect();
        let iterations: Vec<_> = own.iter().map(|row| row["iteration"].as_u64().unwrap()).collect();
        assert_eq!(iterations, (0..10).collect::<Vec<_>>());
        for pair in own.windows(2) {
            let [time, rtt, next] =
                [&pair[0]["time"], &pair[0]["rtt"], &pair[1]["time"]].map(|v| v.as_u64().unwrap());
            assert!(next >= time + rtt + 5 * MS, "the client thinks between exchanges");
        }
    }
    assert_eq!(sum(&lab.rows("flows", "b"), "bytes_received"), 2000);
    assert!(lab.rows("flows", "a").iter().all(|row| row["complete"] == true));
}

#[test]
fn pings_are_answered_within_the_time_a_veth_takes() {
    skip_if_unable!();
    for (name, spin) in [("ping", false), ("spin", true)] {
        let mut lab = Lab::new(name);
        let flow = json!({"name": "ping", "from": "a", "to": "b", "kind": "ping", "interval": 10 * MS,
            "payload": 56,
            "stop": 500 * MS});
        lab.a.command(json!({"do": "flow", "role": "client", "address": B, "spin": spin, "flow": flow}));
        lab.run(600 * MS);
        lab.assert_no_errors();
        let rows = lab.rows("pings", "a");
        // On a busy machine most wake-ups may be late, and the last pings later than the end.
        assert!((10..=50).contains(&rows.len()), "{rows:?}");
        let mut rtts: Vec<_> = rows.iter().map(|row| row["rtt"].as_u64().unwrap()).collect();
        rtts.sort_unstable();
        assert!(rtts[rtts.len() / 10] < MS, "{rtts:?}");
        println!("{name}: median rtt {} ns", rtts[rtts.len() / 2]);
        assert!(rows.iter().all(|row| row["lost"] == false));
    }
}

#[test]
fn a_ping_that_nobody_answers_is_lost() {
    skip_if_unable!();
    let mut lab = Lab::new("unanswered");
    let flow = json!({"name": "ping", "from": "a", "to": "b", "kind": "ping", "interval": 20 * MS,
        "payload": 0,
        "count": 5});
    lab.a.command(json!({"do": "flow", "role": "client", "address": "10.9.0.77", "flow": flow}));
    lab.run(400 * MS);
    let rows = lab.rows("pings", "a");
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row["lost"] == true && row["rtt"].is_null()), "{rows:?}");
}

#[test]
fn ipv6_carries_every_kind() {
    skip_if_unable!();
    let mut lab = Lab::new("ipv6");
    for (agent, address) in [(&lab.a, "fd09::1/64"), (&lab.b, "fd09::2/64")] {
        agent.within(&["ip", "address", "add", address, "dev", "eth0", "nodad"]);
    }
    let common = json!({"from": "a", "to": "b", "cc": {"name": "reno"}, "bytes": 1_000_000,
        "rate": 50_000_000, "payload": 1000,
        "request": 10, "response": 10, "interval": 10 * MS, "count": 3});
    for kind in ["tcp", "udp", "request", "ping"] {
        let mut flow = common.clone();
        (flow["name"], flow["kind"]) = (kind.into(), kind.into());
        if kind == "tcp" {
            // Long enough to be sampled.
            flow["bytes"] = 100_000_000.into();
        }
        let mut ports = json!([]);
        if kind != "ping" {
            let server = json!({"do": "flow", "role": "server", "address": "fd09::2", "flow": flow});
            ports = lab.b.command(server)["ports"].clone();
        }
        lab.a.command(
            json!({"do": "flow", "role": "client", "address": "fd09::2", "ports": ports, "flow": flow}),
        );
    }
    lab.a.command(json!({"do": "probe", "sockets": MS}));
    lab.start(20 * SECOND);
    for kind in ["tcp", "udp", "request"] {
        lab.b.wait_for(|e| e["event"] == "finished" && e["flow"] == kind);
    }
    lab.a.wait_for(|e| e["event"] == "finished" && e["flow"] == "ping");
    for node in [&mut lab.a, &mut lab.b] {
        node.command(json!({"do": "stop"}));
        node.done();
    }
    lab.assert_no_errors();
    let received = lab.rows("flows", "b");
    let of = |kind: &str| received.iter().find(|row| row["flow"] == kind).unwrap()["bytes_received"].as_u64();
    assert_eq!((of("tcp"), of("udp"), of("request")), (Some(100_000_000), Some(1_000_000), Some(30)));
    assert_eq!(lab.rows("pings", "a").iter().filter(|row| row["lost"] == false).count(), 3);
    assert!(!lab.rows("sockets", "a").is_empty());
}
