//! Links and routes: where a packet goes next.

use std::collections::BTreeMap;

use tcplab_link::{Link, component_seed};

use crate::error::PlanError;
use crate::packet::Packet;
use crate::plan::Plan;

/// A node's number: its place in the plan.
pub(crate) type NodeId = u16;

/// A link direction's number: twice the link's place in the plan, one more for backward.
pub(crate) type DirectionId = u32;

const NOWHERE: DirectionId = DirectionId::MAX;

/// The links with what is in them, and the routes between nodes.
#[derive(Debug)]
pub(crate) struct Network {
    links: Vec<Link<Packet>>,
    far_ends: Vec<NodeId>,
    /// By node and destination: the direction by which to leave.
    routes: Vec<DirectionId>,
    nodes: usize,
}

/// The numbers of nodes by their names.
pub(crate) struct Names<'a> {
    nodes: BTreeMap<&'a str, NodeId>,
}

impl Names<'_> {
    /// The number of the node called `name`, which is mentioned at `place`.
    pub(crate) fn node(&self, name: &str, place: impl FnOnce() -> String) -> Result<NodeId, PlanError> {
        let unknown = || PlanError::Unknown { place: place(), what: "node", name: name.to_owned() };
        self.nodes.get(name).copied().ok_or_else(unknown)
    }
}

impl Network {
    /// The network of `plan`, empty, and the names of its nodes.
    pub(crate) fn new(plan: &Plan) -> Result<(Network, Names<'_>), PlanError> {
        let names = Names { nodes: numbered("nodes", plan.nodes.iter().map(|node| node.name.as_str()))? };
        let link_names: BTreeMap<&str, u16> =
            numbered("links", plan.links.iter().map(|link| link.name.as_str()))?;
        let nodes = plan.nodes.len();
        let mut links = Vec::with_capacity(2 * plan.links.len());
        let mut far_ends: Vec<NodeId> = Vec::with_capacity(2 * plan.links.len());
        for link in &plan.links {
            let end = |end: usize| names.node(&link.ends[end], || format!("links.{}.ends", link.name));
            for (settings, direction, far_end) in
                [(&link.forward, "forward", end(1)?), (&link.backward, "backward", end(0)?)]
            {
                let seed = component_seed(plan.seed, &format!("link.{}.{direction}", link.name));
                links.push(Link::new(settings, seed));
                far_ends.push(far_end);
            }
        }
        let mut routes = vec![NOWHERE; nodes * nodes];
        for (from, node) in plan.nodes.iter().enumerate() {
            let place = || format!("nodes.{}.routes", node.name);
            for (to, link) in &node.routes {
                let to = names.node(to, place)?;
                let number = *link_names.get(link.as_str()).ok_or_else(|| PlanError::Unknown {
                    place: place(),
                    what: "link",
                    name: link.clone(),
                })?;
                let forward = 2 * DirectionId::from(number);
                let leaving = [forward, forward + 1]
                    .into_iter()
                    .find(|&direction| usize::from(far_ends[(direction ^ 1) as usize]) == from)
                    .ok_or_else(|| PlanError::ForeignLink { node: node.name.clone(), link: link.clone() })?;
                routes[from * nodes + usize::from(to)] = leaving;
            }
        }
        Ok((Network { links, far_ends, routes, nodes }, names))
    }

    /// Number of link directions.
    pub(crate) fn directions(&self) -> usize {
        self.links.len()
    }

    /// The direction by which packets for `destination` leave `node`.
    #[inline]
    pub(crate) fn next_hop(&self, node: NodeId, destination: NodeId) -> Option<DirectionId> {
        let direction = self.routes[usize::from(node) * self.nodes + usize::from(destination)];
        (direction != NOWHERE).then_some(direction)
    }

    /// The node that packets of `direction` arrive at.
    #[inline]
    pub(crate) fn far_end(&self, direction: DirectionId) -> NodeId {
        self.far_ends[direction as usize]
    }

    /// The link directions from `from` to `to`, or the node where packets would get stuck.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Result<Vec<DirectionId>, NodeId> {
        let mut path = Vec::new();
        let mut node = from;
        while node != to {
            let direction = self.next_hop(node, to).ok_or(node)?;
            node = self.far_end(direction);
            path.push(direction);
            // A path without loops visits each node once.
            if path.len() >= self.nodes {
                return Err(node);
            }
        }
        if path.is_empty() { Err(from) } else { Ok(path) }
    }

    /// The link direction itself.
    #[inline]
    pub(crate) fn link(&mut self, direction: DirectionId) -> &mut Link<Packet> {
        &mut self.links[direction as usize]
    }

    /// Whether no packet is on its way anywhere.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.iter().all(|link| link.held() == 0)
    }
}

/// Numbers by name, in order; refuses a name that comes twice and more names than numbers.
pub(crate) fn numbered<'a>(
    what: &'static str,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> Result<BTreeMap<&'a str, u16>, PlanError> {
    let count = names.len();
    let mut numbers = BTreeMap::new();
    for (number, name) in names.enumerate() {
        let number = u16::try_from(number).map_err(|_| PlanError::TooMany {
            what,
            count: count as u64,
            most: u64::from(u16::MAX) + 1,
        })?;
        if numbers.insert(name, number).is_some() {
            return Err(PlanError::Twice { what, name: name.to_owned() });
        }
    }
    Ok(numbers)
}
