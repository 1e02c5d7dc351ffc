//! The network laid out: routes, the way of each flow, delivery traces, bandwidth-delay products.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use num_bigint::BigInt;
use num_rational::BigRational;
use tcplab_plan::NodeKind;

use crate::language::Scenario;
use crate::quantity::round;
use crate::routes::{Hop, Routes};
use crate::surroundings::{Surroundings, Unreadable};
use crate::topology::{DirectionSpec, LinkSpec, MTU, NodeSpec, Topology, build};
use crate::trace;

/// Of a file of text, bytes.
const LARGEST_TEXT: usize = 1 << 20;

/// The links from a flow's sender to its receiver, and back.
pub(crate) type Way = [Vec<Hop>; 2];

/// A scenario's network and what follows from it.
///
/// Built from any scenario that reads well: a flow without a route has no way, a trace that cannot be read an error.
pub(crate) struct Layout<'s> {
    pub(crate) scenario: &'s Scenario,
    pub(crate) around: &'s dyn Surroundings,
    pub(crate) topology: Topology,
    pub(crate) routes: Routes,
    pub(crate) ways: Vec<Option<Way>>,
    /// Per flow, the links that its packets may cross in either direction.
    crossed: Vec<BTreeSet<usize>>,
    pub(crate) traces: BTreeMap<String, Result<Vec<u64>, Unreadable>>,
    nodes: HashMap<String, usize>,
    /// Per link, the flows that cross it.
    crossing: Vec<Vec<usize>>,
}

impl<'s> Layout<'s> {
    pub(crate) fn new(scenario: &'s Scenario, around: &'s dyn Surroundings) -> Layout<'s> {
        let topology = build(scenario);
        let routes = Routes::new(&topology);
        let way = |[sender, receiver]: &[Option<String>; 2]| {
            let (sender, receiver) = (sender.as_deref()?, receiver.as_deref()?);
            if sender == receiver {
                return None;
            }
            Some([routes.route(&topology, sender, receiver)?, routes.route(&topology, receiver, sender)?])
        };
        let ways: Vec<Option<Way>> = topology.ends.iter().map(way).collect();
        let named: BTreeSet<&String> = topology
            .links
            .iter()
            .flat_map(|link| [&link.forward, &link.backward])
            .filter_map(|spec| spec.settings.trace.as_ref().map(|trace| &trace.value))
            .collect();
        let traces = named.into_iter().map(|name| (name.clone(), trace::read(name, around))).collect();
        let links = |[sender, receiver]: &[Option<String>; 2]| {
            let (Some(sender), Some(receiver)) = (sender, receiver) else { return BTreeSet::new() };
            let forward = routes.between(&topology, sender, receiver);
            &forward | &routes.between(&topology, receiver, sender)
        };
        let crossed: Vec<BTreeSet<usize>> = topology.ends.iter().map(links).collect();
        let mut crossing = vec![Vec::new(); topology.links.len()];
        for (flow, links) in crossed.iter().enumerate() {
            for &link in links {
                crossing[link].push(flow);
            }
        }
        let nodes = topology.nodes.iter().enumerate().map(|(n, node)| (node.name.clone(), n)).collect();
        Layout { scenario, around, topology, routes, ways, crossed, traces, nodes, crossing }
    }

    /// The node of this name; the last of several.
    pub(crate) fn node(&self, name: &str) -> Option<&NodeSpec> {
        self.nodes.get(name).map(|&number| &self.topology.nodes[number])
    }

    /// The nodes at the other ends of a node's links, and of the switches that these lead to.
    pub(crate) fn neighbours(&self, name: &str) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        let mut passed = BTreeSet::from([name]);
        let mut waiting = vec![name];
        while let Some(at) = waiting.pop() {
            for &link in self.routes.links.get(at).into_iter().flatten() {
                let other = self.topology.links[link].other(at);
                let Some(node) = self.node(other) else { continue };
                if node.kind != NodeKind::Switch {
                    found.push(&node.name);
                } else if passed.insert(&node.name) {
                    waiting.push(&node.name);
                }
            }
        }
        found.retain(|other| *other != name);
        found
    }

    /// A file of text that the scenario names, or what is wrong with it.
    pub(crate) fn text(&self, name: &str) -> Result<String, Unreadable> {
        let wrong = |reason: String| Unreadable { reason, missing: false };
        let bytes = self.around.file(name, LARGEST_TEXT + 1)?;
        if bytes.len() > LARGEST_TEXT {
            return Err(wrong(format!("has more than {LARGEST_TEXT} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| wrong("is not text in UTF-8".to_owned()))
    }

    /// Every direction of every link, with the link's number.
    pub(crate) fn directions(&self) -> impl Iterator<Item = (usize, &LinkSpec, &DirectionSpec)> {
        let links = self.topology.links.iter().enumerate();
        links.flat_map(|(number, link)| [(number, link, &link.forward), (number, link, &link.backward)])
    }

    /// The delivery trace of a direction, if it has one that could be read.
    pub(crate) fn opportunities(&self, spec: &DirectionSpec) -> Option<&Vec<u64>> {
        self.traces.get(&spec.settings.trace.as_ref()?.value)?.as_ref().ok()
    }

    /// The rate of a direction at a time, in bit/s; a trace's mean; none if unlimited.
    pub(crate) fn rate(&self, spec: &DirectionSpec, time: u64) -> Option<u64> {
        match self.opportunities(spec) {
            Some(opportunities) => trace::mean_rate(opportunities),
            None => spec.rate_at(time),
        }
    }

    /// The propagation delays of a flow's path in both directions at a time, in ns.
    pub(crate) fn base_rtt(&self, flow: usize, time: u64) -> u64 {
        let hops = self.ways[flow].iter().flatten().flatten();
        let delays = hops.map(|hop| self.topology.links[hop.link].towards(&hop.to).delay_at(time));
        delays.fold(0, u64::saturating_add)
    }

    /// Bandwidth-delay product of a direction in bytes; none where the rate is unlimited.
    ///
    /// The delay is the longest base RTT of the flows that cross the link, and at least twice the direction's own. The
    /// rate is that of the shaper, where there is one.
    pub(crate) fn bdp(
        &self,
        link: usize,
        spec: &DirectionSpec,
        shaper: Option<u64>,
        time: u64,
    ) -> Option<u128> {
        let rate = shaper.or_else(|| self.rate(spec, time))?;
        let crossing = self.crossing[link].iter().map(|&flow| self.base_rtt(flow, time)).max().unwrap_or(0);
        Some(bytes_in(rate, spec.delay_at(time).saturating_mul(2).max(crossing)))
    }

    /// The lowest rate on a flow's way times its base RTT, in bytes; none where no rate is limited.
    pub(crate) fn flow_bdp(&self, flow: usize) -> Option<u128> {
        let forward = self.ways[flow].as_ref().map_or(&[][..], |[forward, _]| forward.as_slice());
        let rates =
            forward.iter().filter_map(|hop| self.rate(self.topology.links[hop.link].towards(&hop.to), 0));
        Some(bytes_in(rates.min()?, self.base_rtt(flow, 0)))
    }

    /// Per node, the largest BDP of the flows that start or end there.
    pub(crate) fn node_bdps(&self) -> HashMap<String, u128> {
        let mut largest = HashMap::new();
        for (flow, ends) in self.topology.ends.iter().enumerate() {
            if let Some(bdp) = self.flow_bdp(flow) {
                for end in ends {
                    let known = largest.entry(end.clone().unwrap_or_default()).or_insert(0);
                    *known = bdp.max(*known);
                }
            }
        }
        largest
    }

    /// The lowest MTU of a node's links.
    pub(crate) fn node_mtu(&self, node: &str) -> u32 {
        let links = self.routes.links.get(node).into_iter().flatten();
        links.map(|&link| self.topology.links[link].mtu).min().unwrap_or(MTU)
    }

    /// The lowest MTU on a flow's path in both directions.
    pub(crate) fn path_mtu(&self, flow: usize) -> u32 {
        self.crossed[flow].iter().map(|&link| self.topology.links[link].mtu).min().unwrap_or(MTU)
    }
}

/// Whole bytes that a rate in bit/s carries in a time in ns.
pub(crate) fn bytes_in(rate: u64, ns: u64) -> u128 {
    u128::from(rate) * u128::from(ns) / 8_000_000_000
}

/// A multiple of a BDP in bytes, rounded with ties to even.
pub(crate) fn multiple(of: &BigRational, bdp: u128) -> u64 {
    round(&(of * BigRational::from(BigInt::from(bdp))))
}
