//! The addresses of networks whose subnets come from a prefix of their own.

use tcplab_plan::Plan;
use tcplab_scenario::{Document, Memory, plan};

fn made(subnets: &str, network: &str) -> Result<Plan, String> {
    let text = format!(
        "tcplab: 1\nname: t\nnetwork:\n  subnets: {subnets}\n  {network}\nflows:\n  - {{name: f, kind: ping, from: h1, to: h2}}\n"
    );
    let read = Document::parse(text.as_bytes(), "t.yaml");
    read.and_then(|read| plan(read, &[], &Memory::default())).map_err(|said| said.to_string())
}

/// Both ends of each link, by version 4 and 6.
fn addresses(subnets: &str, network: &str) -> Vec<[String; 4]> {
    let plan = made(subnets, network).unwrap_or_else(|said| panic!("{said}"));
    let text = |address: &Option<String>| address.clone().unwrap_or_default();
    let of = |link: &tcplab_plan::Link| {
        let ([a, b], [c, d]) = (&link.addresses, &link.addresses6);
        [text(a), text(b), text(c), text(d)]
    };
    plan.links.iter().map(of).collect()
}

const LINE: &str = "topology: {kind: line, routers: 3}";

#[test]
fn a_large_prefix_has_a_slash_24_for_each_subnet() {
    let found = addresses("172.16.0.0/12", LINE);
    assert_eq!(found[0], ["172.16.0.1/24", "172.16.0.2/24", "fd00::1/64", "fd00::2/64"]);
    assert_eq!(found[1], ["172.16.1.1/24", "172.16.1.2/24", "fd00:0:0:1::1/64", "fd00:0:0:1::2/64"]);
}

#[test]
fn in_a_small_prefix_a_subnet_is_as_small_as_its_interfaces_allow() {
    let links = addresses("192.0.2.0/24", LINE).len();
    let found = addresses("192.0.2.64/27", LINE);
    assert_eq!(found.len(), links);
    assert_eq!(found[0], ["192.0.2.65/30", "192.0.2.66/30", "fd00::1/64", "fd00::2/64"]);
    assert_eq!(found[1], ["192.0.2.69/30", "192.0.2.70/30", "fd00:0:0:1::1/64", "fd00:0:0:1::2/64"]);
}

#[test]
fn interfaces_behind_a_switch_share_a_subnet_that_begins_where_its_size_allows() {
    let network = "nodes: [h1, h2, h3, {name: s, kind: switch}]\n  \
        links: [{ends: [h1, h2]}, {ends: [h1, s]}, {ends: [h2, s]}, {ends: [h3, s]}]";
    let found = addresses("192.0.2.0/28", network);
    assert_eq!(found[0][..2], ["192.0.2.1/30", "192.0.2.2/30"]);
    assert_eq!(found[1][..2], ["192.0.2.9/29", ""]);
    assert_eq!(found[3][..2], ["192.0.2.11/29", ""]);
}

#[test]
fn a_prefix_that_cannot_be_used_is_refused_at_its_line() {
    let refused = |subnets: &str| made(subnets, LINE).expect_err("no plan");
    let says = [
        ("192.0.2.0/29", "`192.0.2.0/29` is too small for this network, which needs a /27"),
        ("192.0.2.1/24", "`192.0.2.1/24` has bits set behind its prefix; the prefix is 192.0.2.0/24"),
        ("10.1.0.0", "`10.1.0.0` is not an IPv4 prefix such as 10.1.0.0/16"),
        ("10.1.0.0/33", "is not an IPv4 prefix"),
        ("fd01::/16", "is not an IPv4 prefix"),
        ("127.0.0.0/8", "hosts cannot have addresses of `127.0.0.0/8` (RFC 6890)"),
        ("224.0.0.0/8", "hosts cannot have addresses"),
        ("0.0.0.0/0", "hosts cannot have addresses"),
    ];
    for (subnets, expected) in says {
        let said = refused(subnets);
        assert!(said.contains(expected), "{subnets}: {said}");
        assert!(said.contains("t.yaml:4:"), "{said}");
    }
}
