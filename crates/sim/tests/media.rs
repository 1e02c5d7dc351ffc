//! Hosts behind a medium that they share: what each gets of it.

use crate::common::*;
use serde_json::{Value, json};
use tcplab_sim::Simulation;

/// 802.11's times for best-effort traffic at 5 GHz.
fn wifi(frames: u32) -> Value {
    json!({
        "name": "wifi", "aifs": 43_000, "slot": 9000, "cw_min": 15, "cw_max": 1023, "preamble": 36_000,
        "ack": 48_000, "aggregation": {"frames": frames, "bytes": 65_535, "time": 4 * MS}, "retries": 7,
    })
}

/// An access point `ap` between a server `s` and two stations, `a` at 100 Mbit/s and `b` at 6.
fn cell(frames: u32, flows: Vec<Value>) -> Value {
    let nodes = [
        node("s", "host", &[("a", "wire"), ("b", "wire")]),
        node("ap", "router", &[("s", "wire"), ("a", "to-a"), ("b", "to-b")]),
        node("a", "host", &[("s", "to-a"), ("b", "to-a")]),
        node("b", "host", &[("s", "to-b"), ("a", "to-b")]),
    ];
    let shared = |name: &str, station: &str, rate: u64| {
        let on = || direction(rate, 0);
        with(link(name, ["ap", station], on(), on()), json!({"medium": "wifi"}))
    };
    let wire = || direction(1_000_000_000, 5 * MS);
    let links = [
        link("wire", ["s", "ap"], wire(), wire()),
        shared("to-a", "a", 100_000_000),
        shared("to-b", "b", 6_000_000),
    ];
    with(plan(&nodes, &links, flows), json!({"media": [wifi(frames)]}))
}

fn between(name: &str, from: &str, to: &str, traffic: Value) -> Value {
    with(flow(name, traffic), json!({"from": from, "to": to, "stop": 10 * SECOND}))
}

/// Bytes that stream 0 of `flow` received.
fn received(run: &Run, flow: &str) -> f64 {
    run.tables.flows.bytes_received.get(run.flow(flow)).expect("bytes were received") as f64
}

#[test]
fn a_saturated_station_gets_its_payload_over_overhead_and_airtime() {
    for (frames, sent) in [(1, 1.0), (10, 10.0)] {
        // 1000 bytes of payload are a frame of 1042.
        let run = run(&cell(frames, vec![between("up", "a", "s", udp(100_000_000))]));
        let cycle = 43e-6 + 7.5 * 9e-6 + 36e-6 + 48e-6 + sent * 1042.0 * 8.0 / 100e6;
        let expected = 10.0 * sent * 1000.0 / cycle;
        assert!((received(&run, "up") / expected - 1.0).abs() < 0.01, "{} B", received(&run, "up"));
    }
}

#[test]
fn tcp_of_a_fast_station_falls_to_the_pace_of_a_slow_one_without_aggregation() {
    let up = |frames, names: &[&str]| {
        let flows = names.iter().map(|name| between(name, name, "s", tcp("cubic"))).collect();
        run(&cell(frames, flows))
    };
    let alone = received(&up(1, &["a"]), "a");
    let both = up(1, &["a", "b"]);
    let (fast, slow) = (received(&both, "a"), received(&both, "b"));
    assert!(fast < 0.2 * alone, "{fast} of {alone} B");
    assert!((fast / slow - 1.0).abs() < 0.25, "{fast} and {slow} B");
    // With aggregation turns are alike in time, not in frames.
    let aggregated = up(64, &["a", "b"]);
    assert!(received(&aggregated, "a") > 6.0 * received(&aggregated, "b"));
}

#[test]
fn upload_and_download_share_the_air() {
    let [down, up] = [between("down", "s", "a", tcp("cubic")), between("up", "a", "s", tcp("cubic"))];
    let alone = received(&run(&cell(64, vec![down.clone()])), "down");
    let run = run(&cell(64, vec![down, up]));
    let both = [received(&run, "down"), received(&run, "up")];
    let sum = both[0] + both[1];
    assert!(sum < 1.05 * alone && sum > 0.7 * alone, "{both:?} B, {alone} B alone");
    assert!(both.iter().all(|one| *one > 0.2 * sum), "{both:?} B");
}

#[test]
fn losses_of_the_air_are_repaired_before_tcp_sees_them() {
    let chance = json!({"rate": 50_000_000, "correlation": 0});
    let loss = json!({"model": {"kind": "random", "chance": chance}, "before_queue": false});
    // Its window fits into the queue.
    let traffic = with(tcp("cubic"), json!({"receiver": {"receive_buffer": 400_000}}));
    let mut plan = cell(64, vec![between("up", "a", "s", traffic)]);
    plan["links"][1]["backward"]["loss"] = loss;
    let run = run(&plan);
    let flows = &run.tables.flows;
    // With the collisions about 15 % of all transmissions are lost, and one frame in 4 million eight times in a row.
    assert_eq!(flows.losses_true.get(run.flow("up")), Some(0));
    assert_eq!(flows.retransmits.get(run.flow("up")), Some(0), "and nothing comes out of order");
    let share = received(&run, "up") * 8.0 / 10.0 / 100e6;
    assert!((0.6..0.8).contains(&share), "{share} of the rate");
}

#[test]
fn a_run_ends_when_the_last_packet_is_given_up() {
    let chance = json!({"rate": 1_000_000_000, "correlation": 0});
    let loss = json!({"model": {"kind": "random", "chance": chance}, "before_queue": false});
    let datagrams = with(udp(1_000_000), json!({"bytes": 5000}));
    let mut plan = cell(64, vec![between("up", "a", "s", datagrams)]);
    plan["links"][1]["backward"]["loss"] = loss;
    let run = run(&plan);
    assert_eq!(run.tables.flows.losses_true.get(0), Some(5));
    assert!(run.stats.simulated.as_ns() < SECOND, "{}", run.stats.simulated);
}

#[test]
fn the_same_plan_gives_the_same_run_and_another_seed_another() {
    let plan = cell(64, vec![between("down", "s", "b", tcp("bbr1")), between("up", "a", "s", tcp("cubic"))]);
    let [one, again, other] = [1, 1, 2].map(|seed| run(&with(plan.clone(), json!({"seed": seed}))));
    assert_eq!(one.stats, again.stats);
    assert_eq!(received(&one, "up"), received(&again, "up"));
    assert_ne!(one.stats, other.stats);
}

#[test]
fn a_link_on_a_medium_names_one_and_has_a_rate() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut plan = cell(64, vec![between("up", "a", "s", tcp("cubic"))]);
        change(&mut plan);
        Simulation::new(&parse(&plan)).err().expect("a plan that cannot be simulated").to_string()
    };
    let said = refused(&|plan| plan["links"][1]["medium"] = json!("wlan"));
    assert_eq!(said, "links.to-a.medium: unknown medium `wlan`");
    let said = refused(&|plan| plan["links"][2]["forward"]["rate"] = Value::Null);
    assert_eq!(
        said,
        "links.to-b: a link on a medium needs a `rate` in both directions, and takes no `trace`"
    );
}
