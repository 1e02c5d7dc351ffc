//! Generated topologies: what a plan has of them, and what is added to them.

use std::collections::BTreeMap;

use tcplab_plan::{NodeKind, Plan};
use tcplab_scenario::{Document, Memory, plan};
use tcplab_units::{Rate, Span};

fn made(network: &str, flow: &str) -> Result<Plan, String> {
    let text =
        format!("tcplab: 1\nname: t\nnetwork: {network}\nflows:\n  - {{name: f, kind: ping, {flow}}}\n");
    let read = Document::parse(text.as_bytes(), "t.yaml");
    read.and_then(|read| plan(read, &[], &Memory::default())).map_err(|said| said.to_string())
}

fn plan_of(network: &str, flow: &str) -> Plan {
    made(network, flow).unwrap_or_else(|said| panic!("{said}"))
}

#[test]
fn links_of_hosts_and_between_routers_have_settings_of_their_own() {
    let plan = plan_of(
        "{topology: {kind: dumbbell, core: {rate: 10 Mbit/s, delay: 5 ms}, edge: {delay: 1 ms}}}",
        "from: left1, to: right2",
    );
    assert_eq!(plan.nodes.iter().filter(|node| node.kind == NodeKind::Host).count(), 4);
    let core = plan.links.iter().find(|link| link.name == "r1-r2").expect("the bottleneck");
    assert_eq!(core.backward.rate, Rate::from_bits_per_sec(10_000_000));
    let delays = plan.links.iter().map(|link| link.forward.delay.as_us() / 1000).collect::<Vec<_>>();
    assert_eq!(delays, [5, 1, 1, 1, 1]);
    assert_eq!(plan.flows[0].base_rtt, Span::from_ms(14));
}

#[test]
fn a_node_and_a_link_of_the_same_name_add_to_the_generated_ones() {
    let network = "{topology: {kind: ring, routers: 4, routing: {ospf: {}}, core: {rate: 10 Mbit/s}}, \
        nodes: [{name: r2, routing: {ospf: {cost: 7}}}, {name: h1, mss: 1000 B}, extra], \
        links: [{ends: [r2, r1], delay: 3 ms, at: {1 s: {up: off}}}, {ends: [extra, r3]}]}";
    let plan = plan_of(network, "from: extra, to: h1");
    assert_eq!((plan.nodes.len(), plan.links.len()), (9, 9));
    let node = |name: &str| plan.nodes.iter().find(|node| node.name == name).expect("a node");
    assert_eq!(node("r2").kind, NodeKind::Router);
    let cost = |name: &str| node(name).routing.as_ref().and_then(|routing| routing.ospf.as_ref()?.cost);
    assert_eq!((cost("r1"), cost("r2")), (None, Some(7)));
    assert!(node("r1").routing.is_some() && node("h1").routing.is_none());
    assert_eq!(node("h1").tcp.mss, 1000);
    let own = plan.links.iter().find(|link| link.ends == ["r2", "r1"]).expect("the link");
    assert_eq!(
        (own.forward.rate, own.forward.delay),
        (Rate::from_bits_per_sec(10_000_000), Span::from_ms(3))
    );
    assert_eq!(own.forward.changes[0].up, Some(false));
}

#[test]
fn a_flow_between_all_is_one_for_each_ordered_pair() {
    let plan = plan_of(
        "{topology: {kind: star, hosts: 3, joints: switch}, nodes: [x], links: [{ends: [x, r1]}]}",
        "between: all",
    );
    let names: Vec<&str> = plan.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names.len(), 12);
    assert_eq!(names[..4], ["f-h1-h2", "f-h1-h3", "f-h1-x", "f-h2-h1"]);
}

#[test]
fn between_all_of_too_many_hosts_is_refused_at_once() {
    let said =
        made("{topology: {kind: line, routers: 100, hosts: 3}}", "between: all").expect_err("89,700 flows");
    assert!(said.contains("flows.f.between: 300 hosts have 89700 flows between them"), "{said}");
}

/// Of 240 flows between the 16 hosts, the 192 between pods cross the core: 48 by each of its routers.
#[test]
fn routes_of_a_fat_tree_share_its_core_evenly() {
    let plan = plan_of("{topology: {kind: fat-tree, k: 4}}", "between: all");
    let nodes: BTreeMap<&str, _> = plan.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let links: BTreeMap<&str, _> = plan.links.iter().map(|link| (link.name.as_str(), link)).collect();
    let mut crossed: BTreeMap<&str, usize> = BTreeMap::new();
    for flow in &plan.flows {
        let mut at = flow.from.as_str();
        for _ in 0..10 {
            let Some(link) = nodes[at].routes.get(&flow.to) else { break };
            let ends = &links[link.as_str()].ends;
            at = if ends[0] == at { &ends[1] } else { &ends[0] };
            if at.starts_with("core") {
                *crossed.entry(at).or_default() += 1;
            }
        }
        assert_eq!(at, flow.to);
    }
    assert_eq!(crossed.into_values().collect::<Vec<_>>(), [48; 4]);
}

/// BGP discards a route whose AS path has the router's own number (RFC 4271, section 9.1.2).
#[test]
fn routers_of_an_as_are_joined_within_it() {
    let network = |second: u32, third: u32| {
        format!(
            "{{nodes: [{{name: r1, kind: router, routing: {{bgp: {{as: 100}}}}}}, \
             {{name: r2, kind: router, routing: {{bgp: {{as: {second}}}}}}}, \
             {{name: r3, kind: router, routing: {{bgp: {{as: {third}}}}}}}, h1, h3], \
             links: [{{ends: [h1, r1]}}, {{ends: [r1, r2]}}, {{ends: [r2, r3]}}, {{ends: [r3, h3]}}]}}"
        )
    };
    let flow = "from: h1, to: h3";
    let refused = made(&network(200, 100), flow).unwrap_err();
    assert!(refused.contains("`r1` has the AS 100 too, but no path within it joins them"), "{refused}");
    for (second, third) in [(200, 300), (100, 100), (100, 200), (200, 200)] {
        assert!(made(&network(second, third), flow).is_ok(), "100, {second}, {third}");
    }
}
