//! Bulk TCP between two nodes over veth.

mod lab;

use std::io::Read;
use std::time::Duration;

use lab::{Lab, MS, SECOND, sum};
use serde_json::{Value, json};

fn bulk(streams: u32) -> serde_json::Value {
    json!({"name": "bulk", "from": "a", "to": "b", "kind": "tcp", "streams": streams,
        "cc": {"name": "cubic"}})
}

#[test]
fn what_one_end_sent_the_other_received_in_aligned_intervals() {
    skip_if_unable!();
    let mut lab = Lab::new("aligned");
    let mut flow = bulk(3);
    flow["start"] = (130 * MS).into();
    flow["stop"] = (730 * MS).into();
    lab.flow(flow, json!({"sample": 100 * MS}));
    lab.a.command(json!({"do": "probe", "sockets": 10 * MS}));
    lab.run(SECOND);
    lab.assert_no_errors();

    let (sent, received) = (lab.rows("flows", "a"), lab.rows("flows", "b"));
    assert_eq!((sent.len(), received.len()), (3, 3));
    assert_eq!(sum(&sent, "bytes_sent"), sum(&received, "bytes_received"));
    assert!(sum(&received, "bytes_received") > 10_000_000);
    assert!(sent.iter().chain(&received).all(|row| row["complete"] == true), "{sent:?} {received:?}");
    let intervals = lab.rows("intervals", "b");
    assert_eq!(sum(&intervals, "bytes_received"), sum(&received, "bytes_received"));
    assert_eq!(sum(&lab.rows("intervals", "a"), "bytes_sent"), sum(&sent, "bytes_sent"));
    assert!(intervals.iter().all(|row| row["time"].as_u64().unwrap() % (100 * MS) == 0));
    for stream in 0..3 {
        let of = |rows: &[Value], column| {
            rows.iter().find(|row| row["stream"] == stream).unwrap()[column].as_u64().unwrap()
        };
        assert!(of(&received, "start") >= 130 * MS);
        // The first is the one in which the flow may start, however late a busy machine is.
        assert_eq!(of(&intervals, "time"), 200 * MS);
    }
}

#[test]
fn the_socket_table_shows_the_control_of_each_sending_socket() {
    skip_if_unable!();
    let mut lab = Lab::new("sockets");
    let mut flow = bulk(2);
    flow["cc"]["name"] = "bbr".into();
    lab.flow(flow, json!({}));
    for node in [&mut lab.a, &mut lab.b] {
        node.command(json!({"do": "probe", "sockets": 5 * MS}));
    }
    let (done, _) = lab.run(500 * MS);
    lab.assert_no_errors();
    let rows = lab.rows("sockets", "a");
    assert_eq!(done["facts"]["rows"]["sockets"].as_u64(), Some(rows.len() as u64));
    assert!(rows.len() > 20, "{}", rows.len());
    // Not the last: a connection that is closing shows no control any more.
    let row = &rows[rows.len() / 2];
    assert_eq!((&row["flow"], &row["node"]), (&json!("bulk"), &json!("a")));
    assert_eq!(row["mss"], 1448);
    assert!(row["bandwidth"].as_f64().unwrap() > 1e8, "{row}");
    assert!(["STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT"].contains(&row["phase"].as_str().unwrap()));
    assert!(row["pacing_rate"].is_f64() && row["srtt"].is_i64() && row["rwnd"].as_u64().unwrap() > 0);
    assert!(lab.rows("sockets", "b").is_empty(), "a receiver's sockets send nothing");
}

#[test]
fn a_number_of_bytes_is_sent_exactly() {
    skip_if_unable!();
    let mut lab = Lab::new("bytes");
    let mut flow = bulk(2);
    flow["bytes"] = 1_234_567.into();
    lab.flow(flow, json!({}));
    lab.start(20 * SECOND);
    lab.a.wait_for(|e| e["event"] == "finished");
    lab.b.wait_for(|e| e["event"] == "finished");
    lab.a.command(json!({"do": "stop"}));
    lab.b.command(json!({"do": "stop"}));
    lab.a.done();
    lab.b.done();
    lab.assert_no_errors();
    for row in lab.rows("flows", "b") {
        assert_eq!((&row["bytes_received"], &row["complete"]), (&json!(1_234_567), &json!(true)));
    }
}

#[test]
fn either_end_can_be_the_sender() {
    skip_if_unable!();
    let mut lab = Lab::new("reverse");
    let mut flow = bulk(1);
    (flow["from"], flow["to"]) = ("b".into(), "a".into());
    flow["bytes"] = 5_000_000.into();
    lab.flow(flow, json!({"reverse": true}));
    lab.b.command(json!({"do": "probe", "sockets": MS}));
    lab.run(SECOND);
    lab.assert_no_errors();
    assert_eq!(sum(&lab.rows("flows", "a"), "bytes_received"), 5_000_000);
    assert_eq!(sum(&lab.rows("flows", "b"), "bytes_sent"), 5_000_000);
    assert!(lab.rows("sockets", "b").iter().all(|row| row["flow"] == "bulk"));
}

#[test]
fn settings_reach_the_socket() {
    skip_if_unable!();
    let mut lab = Lab::new("settings");
    let mut flow = bulk(1);
    flow["sender"] = json!({"mss": 1000, "nagle": false});
    flow["receiver"] = json!({"receive_buffer": 100_000});
    lab.flow(flow, json!({"sample": 250 * MS, "max_pacing_rate": 80_000_000}));
    lab.a.command(json!({"do": "probe", "sockets": 10 * MS}));
    lab.run(2 * SECOND);
    lab.assert_no_errors();
    let last = lab.rows("sockets", "a").pop().unwrap();
    assert_eq!(last["mss"], 988, "timestamps take 12 bytes");
    assert!(last["rwnd"].as_u64().unwrap() <= 200_000);
    // The bound is on wire bytes: headers of a 1000-byte segment are about 6.5 %, and pacing starts with a
    // burst. A machine that stands still takes from intervals, and pacing gives nothing back.
    let rates: Vec<_> =
        lab.rows("intervals", "b").iter().map(|row| row["bytes_received"].as_f64().unwrap() * 32.0).collect();
    let best = rates.iter().copied().fold(0.0, f64::max);
    assert!((68e6..86e6).contains(&best), "{rates:?}");
    assert!(sum(&lab.rows("flows", "b"), "bytes_received") as f64 * 4.0 < 82e6, "{rates:?}");
}

#[test]
fn pauses_are_kept() {
    skip_if_unable!();
    let mut lab = Lab::new("pauses");
    let mut flow = bulk(1);
    flow["pattern"] = json!({"on": 200 * MS, "off": 200 * MS, "distribution": "constant"});
    // The contents of the send buffer when a pause begins still leave: here 8 ms of it.
    flow["sender"] = json!({"send_buffer": 100_000});
    lab.flow(flow, json!({"sample": 100 * MS, "max_pacing_rate": 100_000_000}));
    lab.run(800 * MS);
    let bytes: Vec<u64> =
        lab.rows("intervals", "b").iter().map(|row| row["bytes_received"].as_u64().unwrap()).collect();
    assert!(bytes[0] + bytes[1] > 100_000 && bytes[4] + bytes[5] > 100_000, "{bytes:?}");
    assert_eq!((bytes[3], bytes[7]), (0, 0), "{bytes:?}");
}

#[test]
fn a_writer_without_room_sleeps_until_a_third_of_its_buffer_is_free() {
    skip_if_unable!();
    let mut lab = Lab::new("room");
    let listener = lab.b.listen();
    listener.set_recv_buffer_size(64 << 10).unwrap();
    let port = listener.local_addr().unwrap().as_socket().unwrap().port();
    let mut flow = bulk(1);
    flow["sender"] = json!({"send_buffer": 2 << 20});
    lab.a.command(json!({"do": "flow", "role": "client", "address": lab::B, "ports": [port], "flow": flow}));
    lab.a.command(json!({"do": "start", "at": lab::monotonic(), "duration": 3600 * SECOND}));
    let (mut peer, _) = listener.accept().unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let asleep = lab.a.settled_send_memory(3_500_000);

    // An eighth of 4 MiB is read: the writer sleeps on, however long that takes.
    peer.read_exact(&mut vec![0; 500_000]).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(lab.a.send_memory() + 200_000 < asleep);

    // More is read than it had written: it was woken.
    peer.read_exact(&mut vec![0; 8_000_000]).unwrap();

    // Asleep again, it learns that the run is over.
    lab.a.settled_send_memory(2_700_000);
    lab.a.command(json!({"do": "stop"}));
    lab.a.done();
    lab.a.wait_for(|event| event["event"] == "finished");
}
