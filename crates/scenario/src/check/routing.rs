//! Contradictions in the routing protocols of routers.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use tcplab_plan::{Bgp, NodeKind, Ospf, Routing, StaticRoute, community};

use super::Finding;
use super::network::{for_routers, kind_of, neighbour, node_names};
use crate::layout::Layout;
use crate::quantity::{Dimension, format, quoted};
use crate::reader::Path;
use crate::routes::Hop;
use crate::suggestions::near_name;
use crate::topology::{NodeSpec, at, below};

const SECOND: u64 = 1_000_000_000;

pub(super) fn routing(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    let mut systems: HashMap<u32, &str> = HashMap::new();
    for node in &layout.topology.nodes {
        let place = below(&node.place, "routing");
        if node.kind != NodeKind::Router {
            let given = node.routing.iter().map(|_| "routing").chain(node.frr.iter().map(|_| "frr"));
            found.extend(given.map(|key| for_routers(node, key)));
            continue;
        }
        if let Some((name, Err(wrong))) = &node.frr.as_ref().map(|name| (name, layout.text(name))) {
            let near = if wrong.missing { neighbour(layout, name) } else { String::new() };
            let message = format!("the file {} {}", quoted(name), wrong.reason);
            found.push(Finding::new(below(&node.place, "frr"), message).suggest(near));
        }
        let Some(routing) = &node.routing else { continue };
        if let Some(bgp) = &routing.bgp {
            let place = below(&place, "bgp");
            let number = bgp.autonomous_system;
            let first = *systems.entry(number).or_insert(&node.name);
            if first != node.name && !is_joined(layout, first, &node.name, number) {
                let message =
                    format!("{} has the AS {number} too, but no path within it joins them", quoted(first));
                found.push(Finding::new(below(&place, "as"), message).depends(vec![at!["network"]]));
            }
            for (key, value, minimum) in [
                ("keepalive", bgp.keepalive, 1),
                ("hold_time", bgp.hold_time, 3),
                ("connect_retry", bgp.connect_retry, 1),
                ("advertisement_interval", bgp.advertisement_interval, 0),
            ] {
                seconds(below(&place, key), key, value.as_ns(), minimum, found);
            }
            self::bgp(layout, node, &place, bgp, found);
        }
        for (key, ospf) in [("ospf", &routing.ospf), ("ospf6", &routing.ospf6)] {
            if let Some(ospf) = ospf {
                self::ospf(layout, node, &below(&place, key), ospf, found);
            }
        }
        for (number, route) in routing.static_routes.iter().enumerate() {
            let place = below(&below(&place, "static"), number);
            static_route(layout, node, &place, route, found);
            let is_same = |other: &StaticRoute| (&other.to, &other.via) == (&route.to, &route.via);
            if routing.static_routes[..number].iter().any(is_same) {
                // FRR has one route of these, with the last distance.
                let message = format!("duplicate route to {} via {}", quoted(&route.to), quoted(&route.via));
                found.push(Finding::new(place, message));
            }
        }
    }
}

/// Flows whose first router, at either end, runs no protocol that carries their version of IP.
pub(super) fn versions(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    for ((flow, ways), ends) in layout.scenario.flows.iter().zip(&layout.ways).zip(&layout.topology.ends) {
        let (Some(ways), [Some(from), Some(to)]) = (ways, ends) else { continue };
        let version = flow.common.ip;
        let lacks = |(way, target): (&Vec<Hop>, &str)| {
            let nodes = way.iter().filter_map(|hop| layout.node(&hop.to));
            let router = nodes.into_iter().find(|node| node.kind == NodeKind::Router)?;
            let routing = router.routing.as_ref().filter(|_| router.frr.is_none())?;
            let is_near = layout.neighbours(&router.name).contains(&target);
            (!is_near && !carries(routing, version)).then_some(&router.name)
        };
        let Some(router) = [(&ways[0], to.as_str()), (&ways[1], from.as_str())].into_iter().find_map(lacks)
        else {
            continue;
        };
        let ospf = if version == 6 { "ospf6" } else { "ospf" };
        let message = format!(
            "the routing protocols of {} do not carry IPv{version}: add `{ospf}`, `bgp` or a static route",
            quoted(router)
        );
        let finding = Finding::new(at!["flows", flow.number], message).depends(vec![at!["network"]]);
        found.push(finding.at_key());
    }
}

/// Whether routes of this version of IP may come from these protocols.
fn carries(routing: &Routing, version: u8) -> bool {
    let ospf = if version == 6 { &routing.ospf6 } else { &routing.ospf };
    let of_version = |text: &str| {
        let address = text.split('/').next().unwrap_or_default().parse::<IpAddr>();
        address.is_ok_and(|address| address.is_ipv6() == (version == 6))
    };
    let is_static = |route: &StaticRoute| !is_prefix(&route.to) || of_version(&route.to);
    routing.bgp.is_some() || ospf.is_some() || routing.static_routes.iter().any(is_static)
}

/// Whether routers of an AS, or without BGP, make a path between two of it.
fn is_joined(layout: &Layout<'_>, from: &str, to: &str, number: u32) -> bool {
    let is_within = |name: &str| {
        let router = layout.node(name).filter(|node| node.kind == NodeKind::Router);
        let bgp = router.map(|node| node.routing.as_ref().and_then(|routing| routing.bgp.as_ref()));
        bgp.is_some_and(|bgp| bgp.is_none_or(|bgp| bgp.autonomous_system == number))
    };
    let mut seen = BTreeSet::from([from]);
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        if at == to {
            return true;
        }
        let next = layout.neighbours(at).into_iter().filter(|name| is_within(name));
        waiting.extend(next.filter(|name| seen.insert(name)));
    }
    false
}

fn bgp(layout: &Layout<'_>, node: &NodeSpec, place: &Path, bgp: &Bgp, found: &mut Vec<Finding>) {
    let has_bgp = |name: &str| {
        layout
            .node(name)
            .is_some_and(|other| other.routing.as_ref().is_some_and(|routing| routing.bgp.is_some()))
    };
    let named =
        bgp.neighbours.iter().enumerate().filter(|(_, name)| *name != "auto" || bgp.neighbours.len() > 1);
    for (number, name) in named {
        if name != &node.name && has_bgp(name) {
            continue;
        }
        let others = layout.topology.nodes.iter().map(|node| node.name.as_str());
        let near = near_name(name, others.filter(|other| *other != node.name && has_bgp(other)));
        let message = format!("{} is not another router with `bgp`", quoted(name));
        let place = below(&below(place, "neighbours"), number);
        found.push(Finding::new(place, message).suggest(near).depends(node_names(layout)));
    }
    for (number, prefix) in bgp.networks.iter().enumerate().filter(|(_, prefix)| !is_prefix(prefix)) {
        let message = format!("{} is not a prefix such as 10.9.0.0/16", quoted(prefix));
        found.push(Finding::new(below(&below(place, "networks"), number), message));
    }
    for (number, text) in bgp.communities.iter().enumerate().filter(|(_, text)| community(text).is_none()) {
        let message = format!(
            "{} is not a community: two numbers up to 65535 such as 100:20, `no-export` or `no-advertise`",
            quoted(text)
        );
        found.push(Finding::new(below(&below(place, "communities"), number), message));
    }
}

fn ospf(layout: &Layout<'_>, node: &NodeSpec, place: &Path, ospf: &Ospf, found: &mut Vec<Finding>) {
    let (hello, dead) = (ospf.hello_interval.as_ns(), ospf.dead_interval.as_ns());
    seconds(below(place, "hello_interval"), "hello_interval", hello, 1, found);
    seconds(below(place, "dead_interval"), "dead_interval", dead, 1, found);
    if dead <= hello {
        let message = "`dead_interval` must be longer than `hello_interval`";
        let suggestion = format(hello.saturating_mul(4), Dimension::Time);
        found.push(Finding::new(below(place, "dead_interval"), message).suggest(suggestion));
    }
    for (number, interface) in ospf.interfaces.iter().enumerate() {
        let own = layout.topology.links.iter().filter(|link| link.ends.contains(&node.name));
        let names: Vec<&str> = own.map(|link| link.name.as_str()).collect();
        if !names.contains(&interface.link.as_str()) {
            let message = format!("no link of {} is called {}", quoted(&node.name), quoted(&interface.link));
            let near = near_name(&interface.link, names.iter().copied());
            let place = below(&below(&below(place, "interfaces"), number), "link");
            found.push(Finding::new(place, message).suggest(near).depends(node_names(layout)));
        }
    }
}

fn static_route(
    layout: &Layout<'_>,
    node: &NodeSpec,
    place: &Path,
    route: &StaticRoute,
    found: &mut Vec<Finding>,
) {
    if !is_prefix(&route.to) && layout.node(&route.to).is_none() {
        let near = near_name(&route.to, layout.topology.nodes.iter().map(|node| node.name.as_str()));
        let message = format!("{} is neither a node nor a prefix such as 10.0.3.0/24", quoted(&route.to));
        found.push(Finding::new(below(place, "to"), message).suggest(near).depends(node_names(layout)));
    }
    let neighbours = layout.neighbours(&node.name);
    if route.via.parse::<IpAddr>().is_err() && !neighbours.contains(&route.via.as_str()) {
        let near = near_name(&route.via, neighbours.iter().copied());
        let message = format!("{} is not a neighbour of {}", quoted(&route.via), quoted(&node.name));
        found.push(Finding::new(below(place, "via"), message).suggest(near).depends(node_names(layout)));
    } else if let Some(host) = layout.node(&route.via).filter(|node| node.kind == NodeKind::Host)
        && layout.node(&route.to).is_some_and(|node| node.name != host.name)
    {
        let message = format!(
            "{} is a host, which does not forward packets to {}",
            quoted(&host.name),
            quoted(&route.to)
        );
        let is_router = |name: &&str| layout.node(name).is_some_and(|node| node.kind == NodeKind::Router);
        let routers: Vec<&str> = neighbours.iter().copied().filter(is_router).collect();
        let near = if let [only] = routers[..] { only } else { "" };
        let mut depends = node_names(layout);
        depends.push(kind_of(host));
        found.push(Finding::new(below(place, "via"), message).suggest(near).depends(depends));
    }
}

/// Whether a text is an address with the length of its prefix.
fn is_prefix(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, length)| {
        let maximum = match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        length.parse::<u8>().is_ok_and(|length| length <= maximum)
    })
}

/// Timers that are whole seconds in the protocol's packets.
fn seconds(place: Path, key: &str, value: u64, minimum: u64, found: &mut Vec<Finding>) {
    if !value.is_multiple_of(SECOND) || value < minimum * SECOND || value > 65_535 * SECOND {
        let message = format!("`{key}` is a number of whole seconds, {minimum} s to 65535 s");
        let near = value.div_ceil(SECOND).clamp(minimum, 65_535);
        found.push(Finding::new(place, message).suggest(format!("{near} s")));
    }
}
