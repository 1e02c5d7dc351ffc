//! The configuration of routers follows from the plan alone.

use tcplab_scenario::{Document, Memory};

use super::*;

const NETWORK: &str = "
tcplab: 1
name: t
network:
  nodes:
    - h1
    - h2
    - {name: s, kind: switch}
    - {name: r1, kind: router, routing: {bgp: {as: 100}, ospf: {interfaces: [{link: r1-r2, cost: 7, area: 1}]}}}
    - {name: r2, kind: router, routing: {bgp: {as: 200, bfd: on}, ospf: {hello_interval: 1 s, dead_interval: 4 s}}}
    - {name: r3, kind: router, routing: {static: [{to: h1, via: r1}]}}
    - {name: r4, kind: router, frr: r4.conf}
  links:
    - {ends: [h1, r1], rate: 10 Mbit/s}
    - {ends: [r1, r2], rate: 10 Mbit/s}
    - {ends: [r1, s]}
    - {ends: [r2, s]}
    - {ends: [r3, s]}
    - {ends: [r2, h2]}
    - {ends: [r2, r4]}
flows: [{name: f, kind: ping, from: h1, to: h2}]
";

fn configured() -> Vec<Router> {
    let mut around = Memory::default();
    around.files.insert("r4.conf".to_owned(), b"router rip\n network eth0\n".to_vec());
    let document = Document::parse(NETWORK.as_bytes(), "t.yaml").unwrap();
    routers(&tcplab_scenario::plan(document, &[], &around).unwrap())
}

/// The lines of a section, which begins at the left and whose lines are indented.
fn section<'t>(router: &'t Router, head: &str) -> Vec<&'t str> {
    let lines = router.configuration.lines().skip_while(|line| *line != head).skip(1);
    lines.take_while(|line| line.starts_with(' ')).map(str::trim).collect()
}

#[test]
fn daemons_follow_from_the_configuration() {
    let daemons: Vec<Vec<&str>> = configured().iter().map(Router::daemons).collect();
    let expected: [&[&str]; 4] = [&["bgpd", "ospfd"], &["bfdd", "bgpd", "ospfd"], &["staticd"], &["ripd"]];
    assert_eq!(daemons, expected);
}

#[test]
fn two_ospf_routers_are_point_to_point_unless_a_switch_is_between_them() {
    let all = configured();
    let between = section(&all[0], "interface eth1");
    assert!(between.contains(&"ip ospf network point-to-point"));
    assert!(between.contains(&"ip ospf cost 7"));
    assert!(between.contains(&"ip ospf area 0.0.0.1"));
    let lan = section(&all[0], "interface eth2");
    assert!(!lan.iter().any(|line| line.contains("point-to-point") || line.contains("passive")));
    assert!(lan.contains(&"ip ospf cost 1"));
}

#[test]
fn where_no_other_router_speaks_ospf_is_passive_and_the_cost_is_by_rate() {
    let all = configured();
    let to_host = section(&all[0], "interface eth0");
    assert!(to_host.contains(&"ip ospf passive"));
    assert!(to_host.contains(&"ip ospf cost 10"));
}

#[test]
fn a_bgp_router_has_a_session_for_each_address_of_a_neighbour() {
    let all = configured();
    let bgp = section(&all[0], "router bgp 100");
    let sessions: Vec<&&str> = bgp.iter().filter(|line| line.contains("remote-as 200")).collect();
    assert_eq!(sessions.len(), 4, "two subnets, two families");
    assert!(bgp.contains(&"timers bgp 60 180"));
    assert!(bgp.contains(&"network 10.0.0.0/24"));
    // bgpd's own default holds for neighbors in the user's file.
    assert!(!bgp.iter().any(|line| line.contains("default ipv4-unicast")));
    let inactive =
        bgp.iter().filter(|line| line.starts_with("no neighbor fd00:") && line.ends_with(" activate"));
    assert_eq!(inactive.count(), 2);
    assert!(section(&all[1], "router bgp 200").contains(&"neighbor 10.0.1.1 bfd"));
}

const ONE_SYSTEM: &str = "
tcplab: 1
name: t
network:
  topology: {kind: line, routers: 3, routing: {bgp: {as: 65001}, ospf: {}}}
flows: [{name: f, kind: ping, from: h1, to: h3}]
";

#[test]
fn routers_of_one_system_have_a_session_each_with_each() {
    let document = Document::parse(ONE_SYSTEM.as_bytes(), "t.yaml").unwrap();
    let all = routers(&tcplab_scenario::plan(document, &[], &Memory::default()).unwrap());
    let bgp = section(&all[0], "router bgp 65001");
    // r2 is a neighbour; r3 is reached by its first address, from this router's own.
    let own: Vec<&&str> = bgp.iter().filter(|line| line.contains("update-source")).collect();
    assert_eq!(
        own,
        [&"neighbor 10.0.1.2 update-source 10.0.0.1", &"neighbor fd00:0:0:1::2 update-source fd00::1"]
    );
    assert_eq!(bgp.iter().filter(|line| line.ends_with("remote-as 65001")).count(), 4);
    assert_eq!(bgp.iter().filter(|line| line.ends_with("next-hop-self")).count(), 4);
}

#[test]
fn sessions_prefixes_communities_and_paths_become_lines() {
    let text = ONE_SYSTEM.replace(
        "{as: 65001}",
        "{as: 65001, neighbours: [r1, r2], networks: [10.9.0.0/16], communities: ['100:20', no-export], \
         maximum_paths: 1}",
    );
    let document = Document::parse(text.as_bytes(), "t.yaml").unwrap();
    let plan = tcplab_scenario::plan(document, &[], &Memory::default());
    // r1 is not a neighbour of itself.
    assert!(plan.is_err());
    let text = text.replace("neighbours: [r1, r2], ", "");
    let document = Document::parse(text.as_bytes(), "t.yaml").unwrap();
    let all = routers(&tcplab_scenario::plan(document, &[], &Memory::default()).unwrap());
    let bgp = section(&all[0], "router bgp 65001");
    assert!(bgp.contains(&"network 10.9.0.0/16"));
    assert!(bgp.contains(&"maximum-paths ibgp 1"));
    assert!(bgp.contains(&"neighbor 10.0.1.2 route-map OWN-ipv4 out"));
    let lines: Vec<&str> = all[0].configuration.lines().collect();
    for expected in [
        "ip prefix-list OWN-ipv4 permit 10.9.0.0/16",
        " set community 100:20 no-export additive",
        "ip route 10.9.0.0/16 blackhole 254",
    ] {
        assert!(lines.contains(&expected), "{expected}");
    }
    assert!(section(&all[0], "router ospf").contains(&"maximum-paths 256"));
    assert_eq!(all[0].daemons(), ["staticd", "bgpd", "ospfd"]);
}

#[test]
fn names_in_static_routes_become_networks_and_addresses() {
    let text = &configured()[2].configuration;
    assert!(text.contains("\nip route 10.0.0.0/24 10.0.2.1 1\n"), "{text}");
    assert!(text.contains("\nipv6 route fd00::/64 fd00:0:0:2::1 1\n"), "{text}");
}

#[test]
fn a_file_is_part_of_the_configuration() {
    let last = configured().pop().unwrap();
    assert!(last.configuration.ends_with("router rip\n network eth0\n"));
    let file = last.file.unwrap();
    assert_eq!(last.configuration.lines().nth(file.offset), Some("router rip"));
}

#[test]
fn a_file_that_asks_for_bfd_has_its_daemon() {
    let configuration = "router bgp 1\n neighbor 10.0.0.1 remote-as 2\n neighbor 10.0.0.1 bfd\n".to_owned();
    let router = Router { node: "r".to_owned(), configuration, file: None };
    assert_eq!(router.daemons(), ["bfdd", "bgpd"]);
}
