//! Plans that cannot be simulated are refused with what is wrong.

use crate::common::*;
use serde_json::{Value, json};
use tcplab_sim::Simulation;

fn refusal(plan: &Value) -> String {
    match Simulation::new(&parse(plan)) {
        Ok(_) => panic!("the plan was taken"),
        Err(error) => error.to_string(),
    }
}

fn simple(flows: Vec<Value>) -> Value {
    path(direction(1_000_000, MS), direction(1_000_000, MS), flows)
}

#[test]
fn a_name_that_nothing_bears() {
    let plan = simple(vec![with(flow("u", udp(1000)), json!({"to": "bee"}))]);
    assert_eq!(refusal(&plan), "flows.u.to: unknown node `bee`");
    let mut plan = simple(vec![]);
    plan["nodes"][0]["routes"]["b"] = json!("pth");
    assert_eq!(refusal(&plan), "nodes.a.routes: unknown link `pth`");
    let mut plan = simple(vec![]);
    plan["links"][0]["ends"][1] = json!("c");
    assert_eq!(refusal(&plan), "links.path.ends: unknown node `c`");
}

#[test]
fn a_name_borne_twice() {
    assert_eq!(
        refusal(&simple(vec![flow("u", udp(1000)), flow("u", ping())])),
        "flows: two flows are called `u`"
    );
    let mut plan = simple(vec![]);
    plan["nodes"][1]["name"] = json!("a");
    assert_eq!(refusal(&plan), "nodes: two nodes are called `a`");
}

#[test]
fn a_flow_without_a_route() {
    let mut plan = simple(vec![flow("u", udp(1000))]);
    plan["nodes"][1]["routes"] = json!({});
    assert_eq!(refusal(&plan), "flows.u: no route from `b` to `a` (it ends at `b`)");
    let plan = simple(vec![with(flow("u", udp(1000)), json!({"to": "a"}))]);
    assert_eq!(refusal(&plan), "flows.u: no route from `a` to `a` (it ends at `a`)");
}

#[test]
fn routes_in_a_circle() {
    let nodes = [
        node("a", "host", &[("b", "ac")]),
        node("c", "router", &[("b", "cd")]),
        node("d", "router", &[("b", "cd")]),
        node("b", "host", &[]),
    ];
    let link = |name, ends| link(name, ends, direction(1_000_000, MS), direction(1_000_000, MS));
    let plan = plan(&nodes, &[link("ac", ["a", "c"]), link("cd", ["c", "d"])], vec![flow("u", udp(1000))]);
    let refusal = refusal(&plan);
    assert!(refusal.starts_with("flows.u: no route from `a` to `b`"), "{refusal}");
}

#[test]
fn a_datagram_longer_than_the_path_carries() {
    let traffic = with(udp(1000), json!({"payload": 1473}));
    assert_eq!(
        refusal(&simple(vec![flow("u", traffic)])),
        "flows.u.payload: 1473 B make an IP packet of 1501 B, but the path carries at most 1500 B and \
         fragments are not simulated"
    );
}

#[test]
fn a_codepoint_that_does_not_fit_its_field() {
    let plan = simple(vec![with(flow("u", udp(1000)), json!({"dscp": 64}))]);
    assert_eq!(refusal(&plan), "flows.u.dscp: 64 is not a codepoint from 0 to 63");
}

#[test]
fn settings_that_would_stop_the_clock() {
    let traffic = with(ping(), json!({"interval": 0}));
    assert_eq!(refusal(&simple(vec![flow("p", traffic)])), "flows.p.interval: must be more than zero");
    let instant = || with(direction(1, 0), json!({"rate": null}));
    assert_eq!(
        refusal(&path(instant(), instant(), vec![flow("t", tcp("cubic"))])),
        "flows.t: no link on its path has a rate or a delay, so a round trip would take no time"
    );
}

#[test]
fn a_refusal_says_which_setting_fixes_it() {
    let hint = |plan: &Value| match Simulation::new(&parse(plan)) {
        Ok(_) => panic!("the plan was taken"),
        Err(error) => error.hint(),
    };
    let instant = || with(direction(1, 0), json!({"rate": null}));
    let no_time = hint(&path(instant(), instant(), vec![flow("t", tcp("cubic"))]));
    assert!(no_time.contains("`edge: {rate: 1 Gbit/s, delay: 10 us}`"), "{no_time}");
    let traffic = with(udp(1000), json!({"payload": 1473}));
    let plan = simple(vec![flow("u", traffic)]);
    assert_eq!(hint(&plan), "use a `payload` of at most 1472 B");
    let traffic = with(udp(1000), json!({"payload": 1472}));
    assert!(Simulation::new(&parse(&simple(vec![flow("u", traffic)]))).is_ok());
}

#[test]
fn a_control_that_does_not_exist() {
    let refusal = refusal(&simple(vec![flow("t", tcp("qubic"))]));
    assert!(refusal.starts_with("flows.t.cc: ") && refusal.contains("`qubic`"), "{refusal}");
}
