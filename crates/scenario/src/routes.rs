//! Static routes: shortest paths by number of links, ties by the order in which links are declared.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tcplab_plan::NodeKind;

use crate::topology::Topology;

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
        let mut routes = Routes { links, tables };
        for node in &topology.nodes {
            if node.kind != NodeKind::Switch {
                routes.towards(topology, &node.name);
            }
        }
        routes
    }

    /// Breadth first from the destination; only switches and routers pass packets on.
    fn towards(&mut self, topology: &Topology, destination: &str) {
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
            if let Some(&link) = self.links[node].iter().find(nearer)
                && let Some(table) = self.tables.get_mut(node)
            {
                table.insert(destination.to_owned(), link);
            }
        }
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
