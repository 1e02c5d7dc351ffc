//! Controls of tcplab carry traffic in the running kernel, report their state, and leave no trace.

mod lab;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab::{Agent, Lab, MS, SECOND};
use serde_json::{Value, json};

/// One test at a time: names are host-wide, and another test would take one that has just been given up.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a loader; none, with the reason printed, where controls cannot be loaded.
fn loader() -> Option<Agent> {
    if let Some(why) = lab::obstacle() {
        eprintln!("skipped: {why}");
        return None;
    }
    let mut loader = Agent::start(&["controls"]);
    let hello = loader.wait_for(|event| event["event"] == "hello");
    if !hello["obstacle"].is_null() {
        eprintln!("skipped: {}", hello["obstacle"]["message"]);
        return None;
    }
    Some(loader)
}

fn load(loader: &mut Agent, name: &str, params: Value) -> Value {
    let answer = loader.command(json!({"do": "load", "name": name, "params": params}));
    json!({"registered": answer["registered"], "state": answer["state"], "phases": answer["phases"]})
}

fn registered(control: &Value) -> &str {
    control["registered"].as_str().unwrap()
}

fn offered(name: &str) -> bool {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    text.split_whitespace().any(|offered| offered == name)
}

/// Sends `bytes` with `control`, and returns what was sampled of its socket.
fn samples(lab: &mut Lab, control: &Value, bytes: u64) -> Vec<Value> {
    let flow = json!({
        "name": "bulk", "from": "a", "to": "b", "kind": "tcp",
        "cc": {"name": control["registered"]}, "bytes": bytes, "streams": 1,
    });
    // Without a bound a transfer over veth is over within a few samples.
    lab.flow(flow, json!({"max_pacing_rate": 400_000_000}));
    lab.a.command(json!({"do": "probe", "sockets": MS, "controls": [control]}));
    lab.start(25 * SECOND);
    lab.b.wait_for(|event| event["event"] == "finished");
    lab.a.command(json!({"do": "stop"}));
    lab.b.command(json!({"do": "stop"}));
    lab.a.done();
    lab.b.done();
    lab.assert_no_errors();
    assert!(lab.a.all("warning").is_empty(), "{:?}", lab.a.all("warning"));
    lab.rows("sockets", "a")
}

#[test]
fn a_transfer_completes_with_every_control_and_shows_its_state() {
    let _alone = alone();
    let Some(mut loader) = loader() else { return };
    let hello = loader.wait_for(|event| event["event"] == "hello");
    for name in hello["controls"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let control = load(&mut loader, name, json!({}));
        let mut lab = Lab::new(&format!("control-{name}"));
        let rows = samples(&mut lab, &control, 30_000_000);
        // Of a connection that has ended, which is in no dump any more.
        assert_eq!(rows.last().unwrap()["bytes_acked"], json!(30_000_000), "{name}");
        let flow = &lab.rows("flows", "b")[0];
        assert_eq!(
            (&flow["complete"], &flow["bytes_received"]),
            (&json!(true), &json!(30_000_000)),
            "{name}"
        );
        let phases = control["phases"].as_array().unwrap();
        assert!(
            !rows.is_empty() && rows.iter().all(|row| phases.contains(&row["phase"])),
            "{name}: {rows:?}"
        );
        if name.starts_with("bbr") {
            let last = rows.last().unwrap();
            assert!(last["bandwidth"].as_f64() > Some(1e6), "{name}: {last}");
            assert!(last["pacing_gain"].as_f64() > Some(0.2), "{name}: {last}");
            assert!(last["cwnd_gain"].as_f64() > Some(0.2), "{name}: {last}");
            // Both count from the same samples, but BBR lets its estimate expire.
            let (estimate, minimum) = (last["min_rtt_estimate"].as_u64(), last["min_rtt"].as_u64());
            assert!(estimate.is_some() && estimate >= minimum, "{name}: {last}");
        }
    }
}

#[test]
fn two_loaders_at_once_do_not_disturb_each_other_and_a_killed_one_leaves_nothing() {
    let _alone = alone();
    let (Some(mut first), Some(mut second)) = (loader(), loader()) else { return };
    let one = load(&mut first, "tl_reno", json!({}));
    let other = load(&mut second, "reno", json!({}));
    assert_ne!(one["registered"], other["registered"]);
    assert!(offered(registered(&one)) && offered(registered(&other)));

    Command::new("kill").args(["-9", &first.pid().to_string()]).status().unwrap();
    assert!(first.wait_exit(Duration::from_secs(50)));
    assert!(!offered(registered(&one)), "{one} is still offered");
    assert!(offered(registered(&other)), "{other} went with the other process");

    second.close_input();
    assert!(second.wait_exit(Duration::from_secs(50)));
    assert!(!offered(registered(&other)), "{other} is still offered");
}

#[test]
fn what_cannot_be_loaded_is_rejected_with_a_hint() {
    let _alone = alone();
    let Some(mut loader) = loader() else { return };
    for (name, params, word) in [
        ("nosuch", json!({}), "nosuch"),
        ("cubic", json!({"beta": 7}), "7"),
        ("cubic", json!({"alpha": 1}), "alpha"),
    ] {
        let answer = loader.ask(json!({"do": "load", "name": name, "params": params}));
        assert_eq!(answer["event"], "error", "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(word), "{answer}");
        assert!(!answer["hint"].as_str().unwrap().is_empty(), "{answer}");
    }
    let answer = loader.ask(json!({"do": "start"}));
    assert_eq!(answer["event"], "error", "{answer}");
}
