//! Static routes: shortest paths by number of links. Ties go by the order in which links are declared; in a generated
//! network by destination, so that the routers of a fat tree use all links upwards (Al-Fares, Loukissas and Vahdat
//! 2008); or they are shared between all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tcplab_plan::NodeKind;

use crate::topology::{NodeSpec, Topology};

/// One link of a route, left at its end `to`.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    /// Its number among the links.
    pub(crate) link: usize,
    /// The node it leads to.
    pub(crate) to: String,
}

/// For every node, the link by which each host and router is reached.
#[derive(Debug)]
pub(crate) struct Routes {
    /// The links at each node, by number.
    pub(crate) links: HashMap<String, Vec<usize>>,
    /// Per node: destination to link number.
    pub(crate) tables: HashMap<String, BTreeMap<String, usize>>,
    /// Per node with equal-cost multipath: destination to the numbers of its links, where there are several.
    pub(crate) multipath: HashMap<String, BTreeMap<String, Vec<usize>>>,
}

/// The network by numbers: a thousand nodes have a million routes.
struct Graph<'t> {
    names: Vec<&'t str>,
    /// Whether packets for others pass.
    forwards: Vec<bool>,
    /// The links at each node, and the nodes that they lead to.
    links: Vec<Vec<(usize, usize)>>,
}

impl<'t> Graph<'t> {
    fn new(topology: &'t Topology, links: &HashMap<String, Vec<usize>>) -> Graph<'t> {
        let names: Vec<&str> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
        let numbers: HashMap<&str, usize> = names.iter().copied().zip(0..).collect();
        let at = |name: &&str| {
            let leads = |&link: &usize| Some((link, *numbers.get(topology.links[link].other(name))?));
            links[*name].iter().filter_map(leads).collect()
        };
        Graph {
            forwards: topology.nodes.iter().map(|node| node.kind != NodeKind::Host).collect(),
            links: names.iter().map(at).collect(),
            names,
        }
    }
}

impl Routes {
    pub(crate) fn new(topology: &Topology) -> Routes {
        let mut links: HashMap<String, Vec<usize>> =
            topology.nodes.iter().map(|node| (node.name.clone(), Vec::new())).collect();
        for (number, link) in topology.links.iter().enumerate() {
            for end in &link.ends {
                if let Some(at_node) = links.get_mut(end)
                    && at_node.last() != Some(&number)
                {
                    at_node.push(number);
                }
            }
        }
        let tables = topology.nodes.iter().map(|node| (node.name.clone(), BTreeMap::new())).collect();
        let shares = |node: &&NodeSpec| node.ecmp == Some(true);
        let multipath = topology.nodes.iter().filter(shares).map(|node| (node.name.clone(), BTreeMap::new()));
        let multipath = multipath.collect();
        let mut routes = Routes { links, tables, multipath };
        let graph = Graph::new(topology, &routes.links);
        let ends = topology.nodes.iter().enumerate().filter(|(_, node)| node.kind != NodeKind::Switch);
        for (number, (destination, _)) in ends.enumerate() {
            routes.towards(&graph, destination, if topology.spread { number } else { 0 });
        }
        routes
    }

    /// Breadth first from the destination; only switches and routers pass packets on. Of n equal links that at the place
    /// `number` modulo n is taken, or `number / n` at an odd distance: two levels of routers must not choose alike.
    fn towards(&mut self, graph: &Graph<'_>, destination: usize, number: usize) {
        let passes = |node: usize| node == destination || graph.forwards[node];
        let mut distance = vec![usize::MAX; graph.names.len()];
        distance[destination] = 0;
        let mut reached = vec![destination];
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            if !passes(node) {
                continue;
            }
            for &(_, neighbour) in &graph.links[node] {
                if distance[neighbour] == usize::MAX {
                    distance[neighbour] = distance[node] + 1;
                    reached.push(neighbour);
                }
            }
        }
        let to = graph.names[destination];
        for node in reached.into_iter().skip(1) {
            let nearer = |&&(_, neighbour): &&(usize, usize)| {
                passes(neighbour) && distance[neighbour].checked_add(1) == Some(distance[node])
            };
            let equal: Vec<usize> = graph.links[node].iter().filter(nearer).map(|(link, _)| *link).collect();
            let ways = equal.len().max(1);
            let choice = if distance[node] % 2 == 1 { number / ways } else { number };
            let Some(&chosen) = equal.get(choice % ways) else { continue };
            if let Some(table) = self.tables.get_mut(graph.names[node]) {
                table.insert(to.to_owned(), chosen);
            }
            if let Some(table) = self.multipath.get_mut(graph.names[node])
                && ways > 1
            {
                table.insert(to.to_owned(), equal);
            }
        }
    }

    /// The links by which packets for `destination` leave `node`.
    fn next(&self, node: &str, destination: &str) -> &[usize] {
        let shared = self.multipath.get(node).and_then(|table| table.get(destination));
        let only =
            || self.tables.get(node).and_then(|table| table.get(destination)).map(std::slice::from_ref);
        shared.map(Vec::as_slice).or_else(only).unwrap_or_default()
    }

    /// The links of all paths from one node to another; none if there is no path.
    pub(crate) fn between(&self, topology: &Topology, source: &str, destination: &str) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut waiting = vec![source];
        while let Some(node) = waiting.pop() {
            for &link in self.next(node, destination) {
                if found.insert(link) {
                    waiting.push(topology.links[link].other(node));
                }
            }
        }
        found
    }

    /// The links from one node to another in order; none if there is no way.
    pub(crate) fn route(&self, topology: &Topology, source: &str, destination: &str) -> Option<Vec<Hop>> {
        let mut hops = Vec::new();
        let mut node = source;
        while node != destination {
            let link = *self.tables.get(node)?.get(destination)?;
            node = topology.links[link].other(node);
            hops.push(Hop { link, to: node.to_owned() });
        }
        Some(hops)
    }
}
