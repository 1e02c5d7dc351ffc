//! Static routes: shortest paths by number of links. Ties go by the order in which links are declared; in a generated
//! network by destination, so that the routers of a fat tree use all links upwards (Al-Fares, Loukissas and Vahdat
//! 2008); or they are shared between all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

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
        let ends = topology.nodes.iter().filter(|node| node.kind != NodeKind::Switch);
        for (number, node) in ends.enumerate() {
            routes.towards(topology, &node.name, if topology.spread { number } else { 0 });
        }
        routes
    }

    /// Breadth first from the destination; only switches and routers pass packets on. Of n equal links that at the place
    /// `number` modulo n is taken, or `number / n` at an odd distance: two levels of routers must not choose alike.
    fn towards(&mut self, topology: &Topology, destination: &str, number: usize) {
        let forwards: HashMap<&str, bool> =
            topology.nodes.iter().map(|node| (node.name.as_str(), node.kind != NodeKind::Host)).collect();
        let passes = |node: &str| node == destination || forwards.get(node).copied().unwrap_or(false);
        let mut distance: HashMap<&str, usize> = HashMap::from([(destination, 0)]);
        let mut reached = vec![destination];
        let mut waiting = VecDeque::from([destination]);
        while let Some(node) = waiting.pop_front() {
            if !passes(node) {
                continue;
            }
            for &link in &self.links[node] {
                let neighbour = topology.links[link].other(node);
                if self.links.contains_key(neighbour) && !distance.contains_key(neighbour) {
                    distance.insert(neighbour, distance[node] + 1);
                    reached.push(neighbour);
                    waiting.push_back(neighbour);
                }
            }
        }
        for node in reached.into_iter().skip(1) {
            let nearer = |link: &&usize| {
                let neighbour = topology.links[**link].other(node);
                passes(neighbour) && distance.get(neighbour).is_some_and(|away| away + 1 == distance[node])
            };
            let equal: Vec<usize> = self.links[node].iter().filter(nearer).copied().collect();
            let ways = equal.len().max(1);
            let choice = if distance[node] % 2 == 1 { number / ways } else { number };
            let Some(&chosen) = equal.get(choice % ways) else { continue };
            if let Some(table) = self.tables.get_mut(node) {
                table.insert(destination.to_owned(), chosen);
            }
            if let Some(table) = self.multipath.get_mut(node)
                && ways > 1
            {
                table.insert(destination.to_owned(), equal);
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
