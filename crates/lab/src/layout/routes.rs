//! The routes of a node, and the neighbours that they lead to.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use tcplab_plan::{Node, NodeKind};

use super::{Interface, Mac, Nodes, Route, Subnet, Wire};
use crate::LabError;

/// A network by the names of its links and nodes.
pub(super) struct Map<'a> {
    nodes: &'a Nodes<'a>,
    wires: HashMap<&'a str, &'a Wire>,
    /// The links of each node.
    at: HashMap<&'a str, Vec<&'a Wire>>,
}

type Neighbour = (IpAddr, Mac, String);

impl<'a> Map<'a> {
    pub(super) fn new(nodes: &'a Nodes<'a>, wires: &'a [Wire]) -> Map<'a> {
        let mut at: HashMap<&str, Vec<&Wire>> = HashMap::new();
        for (wire, end) in wires.iter().flat_map(|wire| wire.ends.iter().map(move |end| (wire, end))) {
            at.entry(&end.node).or_default().push(wire);
        }
        Map { nodes, wires: wires.iter().map(|wire| (wire.name.as_str(), wire)).collect(), at }
    }

    /// The links of a node.
    pub(super) fn links(&self, node: &str) -> impl Iterator<Item = &'a Wire> {
        self.at.get(node).into_iter().flatten().copied()
    }

    /// The interfaces of a node, in the order of links.
    pub(super) fn interfaces(&self, node: &str) -> impl Iterator<Item = &'a Interface> {
        self.links(node).map(|wire| wire.seen_from(node).0)
    }

    pub(super) fn is_switch(&self, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|node| node.kind == NodeKind::Switch)
    }

    /// The routes of a host or router, and its neighbours.
    pub(super) fn routes(&self, node: &Node) -> Result<(Vec<Route>, Vec<Neighbour>), LabError> {
        let (mut routes, mut neighbours, mut known) = (Vec::new(), Vec::new(), HashSet::new());
        for (destination, link) in &node.routes {
            let several = node.multipath.get(destination);
            let links = several.map_or(std::slice::from_ref(link), Vec::as_slice);
            let hops = links.iter().map(|link| self.next_hop(&node.name, link, destination));
            let hops: Vec<(&Interface, &Interface)> = hops.collect::<Result<_, _>>()?;
            for six in [false, true] {
                let mut ways = Vec::new();
                for (out, hop) in &hops {
                    let (Some(own), Some(next)) = (out.ip(six), hop.ip(six)) else { continue };
                    let neighbour = (next, hop.mac, out.name.clone());
                    if known.insert(neighbour.clone()) {
                        neighbours.push(neighbour);
                    }
                    ways.push(Way { next, out: &out.name, own });
                }
                let ends = self.interfaces(destination).filter_map(|end| end.ip(six));
                routes.extend(ends.filter_map(|address| route(address, &ways)));
            }
        }
        if node.kind == NodeKind::Host {
            routes = collapsed(routes);
        }
        Ok((routes, neighbours))
    }

    /// The interface by which a link is left, and that of the next host or router.
    fn next_hop(
        &self,
        node: &str,
        link: &str,
        destination: &str,
    ) -> Result<(&'a Interface, &'a Interface), LabError> {
        let no_link = |link: &str| LabError::Shape(format!("no link is called {link:?}"));
        let (out, mut hop) = self.wires.get(link).ok_or_else(|| no_link(link))?.seen_from(node);
        // A way through switches enters each of them once.
        for _ in 0..=self.nodes.len() {
            if !self.is_switch(&hop.node) {
                return Ok((out, hop));
            }
            let next = self.nodes[hop.node.as_str()].routes.get(destination);
            let next =
                next.ok_or_else(|| LabError::Shape(format!("{}: no route to {destination}", hop.node)))?;
            hop = self.wires.get(next.as_str()).ok_or_else(|| no_link(next))?.seen_from(&hop.node).1;
        }
        Err(LabError::Shape(format!("{node}: the route to {destination} goes round in circles")))
    }
}

/// A next hop: its address, the interface that leads to it, and this one's own address.
struct Way<'a> {
    next: IpAddr,
    out: &'a str,
    own: IpAddr,
}

/// Directly where one of the ways leads to the address itself, else through the gateways of all.
fn route(address: IpAddr, ways: &[Way<'_>]) -> Option<Route> {
    let direct = ways.iter().find(|way| way.next == address);
    let way = direct.or(ways.first())?;
    let gateways = if direct.is_some() { &[] } else { ways };
    Some(Route {
        to: Subnet::alone(address),
        gateway: gateways.first().map(|way| way.next),
        interface: way.out.to_owned(),
        source: Some(way.own),
        others: gateways.iter().skip(1).map(|way| (way.next, way.out.to_owned())).collect(),
    })
}

/// Routes of which those through the only gateway of a version of IP are the default route.
fn collapsed(routes: Vec<Route>) -> Vec<Route> {
    let (indirect, mut found): (Vec<Route>, Vec<Route>) =
        routes.into_iter().partition(|route| route.gateway.is_some());
    for six in [false, true] {
        let version: Vec<Route> =
            indirect.iter().filter(|route| route.to.address.is_ipv6() == six).cloned().collect();
        let way = |route: &Route| (route.gateway, route.interface.clone(), route.source);
        match version.first() {
            Some(first) if version.iter().all(|route| way(route) == way(first)) => {
                found.push(Route { to: Subnet::everywhere(six), ..first.clone() });
            }
            _ => found.extend(version),
        }
    }
    found
}
