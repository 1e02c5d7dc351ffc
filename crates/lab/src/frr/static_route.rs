//! Static routes: names of nodes become networks and addresses.

use std::net::IpAddr;

use tcplab_plan::{Node, StaticRoute};

use super::network::Network;

pub(super) fn lines(network: &Network<'_>, node: &Node, routes: &[StaticRoute]) -> Vec<String> {
    let mut lines = Vec::new();
    for route in routes {
        for six in [false, true] {
            let Some(via) = gateway(network, node, route, six) else { continue };
            for to in targets(network, route, six) {
                let family = if six { "ipv6" } else { "ip" };
                lines.push(format!("{family} route {to} {via} {}", route.distance));
            }
        }
    }
    lines
}

/// The prefixes of a route's target.
fn targets(network: &Network<'_>, route: &StaticRoute, six: bool) -> Vec<String> {
    if let Some((address, _)) = route.to.split_once('/') {
        let is_six = address.contains(':');
        return if is_six == six { vec![route.to.clone()] } else { Vec::new() };
    }
    let subnets = network.of(&route.to).filter_map(|one| one.subnet(six));
    subnets.map(|subnet| format!("{}/{}", subnet.network(), subnet.prefix)).collect()
}

fn gateway(network: &Network<'_>, node: &Node, route: &StaticRoute, six: bool) -> Option<IpAddr> {
    if let Ok(address) = route.via.parse::<IpAddr>() {
        return (address.is_ipv6() == six).then_some(address);
    }
    let peers = network.of(&node.name).flat_map(|near| network.peers(near, six));
    let via = peers.into_iter().find(|far| far.node.name == route.via)?;
    via.subnet(six).map(|subnet| subnet.address)
}
