//! Static routes: shortest paths by number of links. Ties go by the order in which links are declared. In a generated
//! network they go by destination, so that the routers of a fat tree use all links upwards (Al-Fares, Loukissas and
//! Vahdat 2008). Or they are shared between all of them.

use std::collections::{BTreeSet, HashMap};

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
///
/// By numbers: a thousand nodes have a million routes.
#[derive(Debug)]
pub(crate) struct Routes {
    /// The links at each node, by number.
    pub(crate) links: HashMap<String, Vec<usize>>,
    numbers: HashMap<String, usize>,
    /// Hosts and routers in the order of their names.
    destinations: Vec<usize>,
    /// By destination and node, the link's number or [`NONE`]; nothing for a switch.
    next: Vec<Vec<u32>>,
    /// Of nodes with equal-cost multipath, by node and destination: the links, where there are several.
    multipath: HashMap<(usize, usize), Vec<u32>>,
}

/// No link leads there.
const NONE: u32 = u32::MAX;

/// The network by numbers.
struct Graph {
    /// Whether packets for others pass.
    forwards: Vec<bool>,
    /// Whether equal links share.
    shares: Vec<bool>,
    /// The links at each node, and the nodes that they lead to.
    links: Vec<Vec<(u32, usize)>>,
}

impl Graph {
    fn new(topology: &Topology, routes: &Routes) -> Graph {
        let at = |node: &NodeSpec| {
            let leads = |&link: &usize| {
                let other = routes.numbers.get(topology.links[link].other(&node.name))?;
                Some((u32::try_from(link).ok()?, *other))
            };
            routes.links[&node.name].iter().filter_map(leads).collect()
        };
        Graph {
            forwards: topology.nodes.iter().map(|node| node.kind != NodeKind::Host).collect(),
            shares: topology.nodes.iter().map(|node| node.ecmp == Some(true)).collect(),
            links: topology.nodes.iter().map(at).collect(),
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
        let numbers: HashMap<String, usize> =
            topology.nodes.iter().enumerate().map(|(number, node)| (node.name.clone(), number)).collect();
        let ends: Vec<usize> =
            (0..topology.nodes.len()).filter(|&node| topology.nodes[node].kind != NodeKind::Switch).collect();
        let mut destinations = ends.clone();
        destinations.sort_by_key(|&node| &topology.nodes[node].name);
        let next = vec![Vec::new(); topology.nodes.len()];
        let mut routes = Routes { links, numbers, destinations, next, multipath: HashMap::new() };
        let graph = Graph::new(topology, &routes);
        for (number, destination) in ends.into_iter().enumerate() {
            routes.towards(&graph, destination, if topology.spread { number } else { 0 });
        }
        routes
    }

    /// Breadth first from the destination; only switches and routers pass packets on. Of n equal links that at the place
    /// `number` modulo n is taken, or `number / n` at an odd distance: two levels of routers must not choose alike.
    fn towards(&mut self, graph: &Graph, destination: usize, number: usize) {
        let passes = |node: usize| node == destination || graph.forwards[node];
        let mut distance = vec![usize::MAX; graph.links.len()];
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
        let mut table = vec![NONE; graph.links.len()];
        let mut equal: Vec<u32> = Vec::new();
        for node in reached.into_iter().skip(1) {
            let nearer = |&&(_, neighbour): &&(u32, usize)| {
                passes(neighbour) && distance[neighbour].checked_add(1) == Some(distance[node])
            };
            equal.clear();
            equal.extend(graph.links[node].iter().filter(nearer).map(|(link, _)| *link));
            let ways = equal.len().max(1);
            let choice = if distance[node] % 2 == 1 { number / ways } else { number };
            let Some(&chosen) = equal.get(choice % ways) else { continue };
            table[node] = chosen;
            if graph.shares[node] && ways > 1 {
                self.multipath.insert((node, destination), equal.clone());
            }
        }
        self.next[destination] = table;
    }

    /// The links by which packets for `destination` leave `node`; none, or several where they share.
    fn next(&self, node: usize, destination: usize) -> &[u32] {
        if let Some(several) = self.multipath.get(&(node, destination)) {
            return several;
        }
        match self.next[destination].get(node) {
            Some(&NONE) | None => &[],
            Some(link) => std::slice::from_ref(link),
        }
    }

    /// By which link a node reaches each host and router, in the order of their names.
    pub(crate) fn table<'t>(
        &self,
        topology: &'t Topology,
        node: &str,
    ) -> impl Iterator<Item = (&'t str, usize)> {
        let node = self.numbers.get(node);
        self.destinations.iter().filter_map(move |&to| match *self.next[to].get(*node?)? {
            NONE => None,
            link => Some((topology.nodes[to].name.as_str(), link as usize)),
        })
    }

    /// The links that a node shares the packets for a host or router between, in the order of these names.
    pub(crate) fn shared<'t>(
        &self,
        topology: &'t Topology,
        node: &str,
    ) -> impl Iterator<Item = (&'t str, impl Iterator<Item = usize>)> {
        let node = self.numbers.get(node);
        self.destinations.iter().filter_map(move |&to| {
            let links = self.multipath.get(&(*node?, to))?;
            Some((topology.nodes[to].name.as_str(), links.iter().map(|&link| link as usize)))
        })
    }

    /// The links of all paths from one node to another; none if there is no path.
    pub(crate) fn between(&self, topology: &Topology, source: &str, destination: &str) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let Some(&to) = self.numbers.get(destination) else { return found };
        let mut waiting = vec![source];
        while let Some(node) = waiting.pop() {
            let Some(&at) = self.numbers.get(node) else { continue };
            for &link in self.next(at, to) {
                let link = link as usize;
                if found.insert(link) {
                    waiting.push(topology.links[link].other(node));
                }
            }
        }
        found
    }

    /// The links from one node to another in order; none if there is no path.
    pub(crate) fn route(&self, topology: &Topology, source: &str, destination: &str) -> Option<Vec<Hop>> {
        let to = *self.numbers.get(destination)?;
        let mut hops = Vec::new();
        let mut node = source;
        while node != destination {
            let link = match *self.next[to].get(*self.numbers.get(node)?)? {
                NONE => return None,
                link => link as usize,
            };
            node = topology.links[link].other(node);
            hops.push(Hop { link, to: node.to_owned() });
        }
        Some(hops)
    }
}
