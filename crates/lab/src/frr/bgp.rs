//! BGP-4: a session with every neighbour that has it, one for each family of addresses.

use std::net::IpAddr;

use tcplab_plan::{Bgp, Node};

use super::network::Network;

pub(super) fn lines(network: &Network<'_>, node: &Node, bgp: &Bgp) -> Vec<String> {
    let seconds = |span: tcplab_units::Span| span.as_ns() / 1_000_000_000;
    let mut lines = vec![
        format!("router bgp {}", bgp.autonomous_system),
        format!(" bgp router-id {}", network.router_id(&node.name)),
        " bgp log-neighbor-changes".to_owned(),
        // RFC 8212 asks for a policy towards other systems; without one nothing would be announced.
        " no bgp ebgp-requires-policy".to_owned(),
        format!(" timers bgp {} {}", seconds(bgp.keepalive), seconds(bgp.hold_time)),
    ];
    let mut families = Vec::new();
    for (six, family) in [(false, "ipv4"), (true, "ipv6")] {
        families.push(format!(" address-family {family} unicast"));
        for session in sessions(network, node, bgp, six) {
            let neighbour = format!(" neighbor {}", session.address);
            lines.push(format!("{neighbour} remote-as {}", session.system));
            lines.push(format!("{neighbour} timers connect {}", seconds(bgp.connect_retry)));
            lines.extend(session.source.map(|source| format!("{neighbour} update-source {source}")));
            if bgp.advertisement_interval.as_ns() > 0 {
                let interval = seconds(bgp.advertisement_interval);
                lines.push(format!("{neighbour} advertisement-interval {interval}"));
            }
            if bgp.bfd {
                lines.push(format!("{neighbour} bfd"));
            }
            families.push(format!(" {neighbour} activate"));
            if !bgp.communities.is_empty() {
                families.push(format!(" {neighbour} route-map OWN-{family} out"));
            }
            if session.system == bgp.autonomous_system {
                // The others of this system may not know the networks between it and the next.
                families.push(format!(" {neighbour} next-hop-self"));
            }
        }
        if !six {
            // bgpd's default is IPv4 for every neighbor, and those in the user's own file count on it.
            let others = sessions(network, node, bgp, true);
            families.extend(others.iter().map(|one| format!("  no neighbor {} activate", one.address)));
        }
        let own = announced(network, node, bgp, six);
        families.extend(own.iter().map(|prefix| format!("  network {prefix}")));
        families.extend(["", " ibgp"].map(|kind| format!("  maximum-paths{kind} {}", bgp.maximum_paths)));
        families.push(" exit-address-family".to_owned());
    }
    lines.extend(families);
    lines.push("exit".to_owned());
    lines.extend(communities(network, node, bgp));
    lines.extend(discarded(bgp));
    lines
}

/// The prefixes that a router announces as its own.
fn announced(network: &Network<'_>, node: &Node, bgp: &Bgp, six: bool) -> Vec<String> {
    let mut near: Vec<_> = network.of(&node.name).filter_map(|near| near.subnet(six)).collect();
    near.dedup_by_key(|subnet| subnet.network());
    let near = near.iter().map(|subnet| format!("{}/{}", subnet.network(), subnet.prefix));
    near.chain(bgp.networks.iter().filter(|prefix| is_six(prefix) == six).cloned()).collect()
}

fn is_six(prefix: &str) -> bool {
    prefix.contains(':')
}

/// Communities are set as the own prefixes leave, so that they bind the neighbours and not the router itself.
fn communities(network: &Network<'_>, node: &Node, bgp: &Bgp) -> Vec<String> {
    let mut lines = Vec::new();
    if bgp.communities.is_empty() {
        return lines;
    }
    for (six, family, ip) in [(false, "ipv4", "ip"), (true, "ipv6", "ipv6")] {
        let list = format!("OWN-{family}");
        let own = announced(network, node, bgp, six);
        lines.extend(own.iter().map(|prefix| format!("{ip} prefix-list {list} permit {prefix}")));
        lines.extend([
            format!("route-map {list} permit 10"),
            format!(" match {ip} address prefix-list {list}"),
            format!(" set community {} additive", bgp.communities.join(" ")),
            "exit".to_owned(),
            format!("route-map {list} permit 20"),
            "exit".to_owned(),
        ]);
    }
    lines
}

/// bgpd announces a prefix that the router has a route to: one that discards what no longer prefix fits.
fn discarded(bgp: &Bgp) -> impl Iterator<Item = String> {
    bgp.networks.iter().map(|prefix| {
        let ip = if is_six(prefix) { "ipv6" } else { "ip" };
        format!("{ip} route {prefix} blackhole 254")
    })
}

/// A session with another router.
struct Session {
    address: IpAddr,
    system: u32,
    /// The own end's address, where the other is not in one of this router's subnets.
    source: Option<IpAddr>,
}

/// One with every neighbour that has BGP, and with the other routers of the system.
///
/// An announcement of one of the system's routers is not passed on to a third (RFC 4271, section 9.2.1).
fn sessions(network: &Network<'_>, node: &Node, bgp: &Bgp, six: bool) -> Vec<Session> {
    let of = |other: &Node| other.routing.as_ref()?.bgp.as_ref().map(|bgp| bgp.autonomous_system);
    let is_wanted = |other: &Node| {
        let far = other.routing.as_ref().and_then(|routing| routing.bgp.as_ref());
        bgp.wants(&other.name) && far.is_some_and(|far| far.wants(&node.name))
    };
    let (mut found, mut near_nodes) = (Vec::new(), Vec::new());
    for near in network.of(&node.name) {
        for far in network.peers(near, six) {
            let (Some(system), Some(at)) = (of(far.node), far.subnet(six)) else { continue };
            if !is_wanted(far.node) {
                continue;
            }
            near_nodes.push(&far.node.name);
            found.push(Session { address: at.address, system, source: None });
        }
    }
    let first = |node: &Node| network.of(&node.name).find_map(|one| one.subnet(six)).map(|one| one.address);
    let own_system = bgp.autonomous_system;
    for other in network.nodes().filter(|other| of(other) == Some(own_system) && other.name != node.name) {
        if is_wanted(other)
            && !near_nodes.contains(&&other.name)
            && let (Some(address), Some(source)) = (first(other), first(node))
        {
            found.push(Session { address, system: own_system, source: Some(source) });
        }
    }
    found
}
