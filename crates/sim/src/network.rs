//! Links and routes: where a packet goes next.

use std::collections::BTreeMap;

use tcplab_link::{Link, Medium, Packet as _, component_seed, mix};
use tcplab_units::{Span, Time};

use crate::error::PlanError;
use crate::packet::Packet;
use crate::plan::{Direction, IpVersion, Limit, Nic, Node, NodeKind, Overhead, Plan, Queue, Timing};

/// A node's number: its place in the plan.
pub(crate) type NodeId = u16;

/// A link direction's number: twice the link's place in the plan, one more for backward.
pub(crate) type DirectionId = u32;

const NOWHERE: DirectionId = DirectionId::MAX;
/// The first number that is not a direction but a choice of several.
const CHOICES: DirectionId = 1 << 30;

/// The interface by which a host sends into a link direction.
#[derive(Debug)]
struct Interface {
    link: Link<Packet>,
    into: DirectionId,
}

/// The links with what is in them, and the routes between nodes.
#[derive(Debug)]
pub(crate) struct Network {
    links: Vec<Link<Packet>>,
    far_ends: Vec<NodeId>,
    /// Of hosts whose interfaces take time to send. They are numbered after the directions.
    interfaces: Vec<Interface>,
    /// By direction: the number of the interface before it.
    interface_of: Vec<DirectionId>,
    /// By direction: whether the node at its far end has no other link, and no interface that takes time to send.
    ends_at_leaf: Vec<bool>,
    /// Media that several links share. They are numbered after the interfaces.
    media: Vec<Medium>,
    /// By direction: the number of its medium; empty: there are none.
    medium_of: Vec<DirectionId>,
    /// By node and destination: the direction by which to leave, or the number of a choice. With routing protocols there is
    /// a second such table, for IPv6.
    routes: Vec<DirectionId>,
    choices: Vec<Choice>,
    /// The numbers of choices by node and directions, where routes change.
    known_choices: BTreeMap<(NodeId, Vec<DirectionId>), DirectionId>,
    nodes: usize,
    /// By node: whether it is a router.
    routers: Vec<bool>,
    /// By stream: whether it is of IPv6; empty: there is one table for both.
    six: Vec<bool>,
    seed: u64,
    names: Vec<String>,
}

/// Directions of equal cost, between which a router shares flows.
#[derive(Debug)]
struct Choice {
    directions: Vec<DirectionId>,
    /// The router's own, or flows that one router sends the same way would all go the same way at the next.
    seed: u64,
}

impl Choice {
    /// The direction for a flow: hashes are divided into equal ranges, one for each direction (RFC 2992 section 1,
    /// "hash-threshold"), as Linux does.
    fn of(&self, flow_hash: u32) -> DirectionId {
        let draw = mix(self.seed ^ u64::from(flow_hash));
        let place = (u128::from(draw) * self.directions.len() as u128) >> 64;
        self.directions[place as usize]
    }
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

/// The node where packets get no further.
pub(crate) struct Stuck {
    pub(crate) node: NodeId,
    /// It sends them on, but they come back.
    pub(crate) goes_round: bool,
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
                let mut made = match link.medium {
                    Some(_) => Link::on_medium(settings, seed),
                    None if plan.sample.packets => Link::new(settings, seed),
                    None => Link::ahead(settings, seed),
                };
                let receiver = &plan.nodes[usize::from(far_end)];
                if receiver.kind == NodeKind::Host && receiver.timing == Timing::Linux {
                    made.wake_up(seed);
                }
                links.push(made);
                far_ends.push(far_end);
            }
        }
        let leaving = |node: &Node, link: &str| -> Result<DirectionId, PlanError> {
            let number = *link_names.get(link).ok_or_else(|| PlanError::Unknown {
                place: format!("nodes.{}.routes", node.name),
                what: "link",
                name: link.to_owned(),
            })?;
            let forward = 2 * DirectionId::from(number);
            let starts_here = |direction: &DirectionId| {
                let link = &plan.links[*direction as usize / 2];
                link.ends[*direction as usize % 2] == node.name
            };
            let foreign = || PlanError::ForeignLink { node: node.name.clone(), link: link.to_owned() };
            [forward, forward + 1].into_iter().find(starts_here).ok_or_else(foreign)
        };
        let mut routes = vec![NOWHERE; nodes * nodes];
        let mut choices: Vec<Choice> = Vec::new();
        for (from, node) in plan.nodes.iter().enumerate() {
            let seed = component_seed(plan.seed, &format!("node.{}.multipath", node.name));
            let place = |to: &str| {
                let to = names.node(to, || format!("nodes.{}.routes", node.name))?;
                Ok(from * nodes + usize::from(to))
            };
            for (to, link) in &node.routes {
                routes[place(to)?] = leaving(node, link)?;
            }
            for (to, links) in node.multipath.iter().filter(|(_, links)| links.len() > 1) {
                let directions = links.iter().map(|link| leaving(node, link)).collect::<Result<_, _>>()?;
                routes[place(to)?] = CHOICES + choices.len() as DirectionId;
                choices.push(Choice { directions, seed });
            }
        }
        let mut interfaces = Vec::new();
        let mut interface_of = vec![NOWHERE; links.len()];
        for (into, number) in (0..).zip(&mut interface_of) {
            let host = usize::from(far_ends[into as usize ^ 1]);
            if let Some(nic) = plan.nodes[host].nic {
                *number = (links.len() + interfaces.len()) as DirectionId;
                interfaces.push(Interface { link: Link::new(&sending(nic), 0), into });
            }
        }
        let is_only = |node: &NodeId| far_ends.iter().filter(|other| *other == node).count() == 1;
        let ends_at_leaf = (0..)
            .zip(&far_ends)
            .map(|(number, node)| is_only(node) && interface_of[number ^ 1] == NOWHERE)
            .collect();
        let (media, medium_of) = media(plan, &far_ends, links.len() + interfaces.len())?;
        let network = Network {
            links,
            far_ends,
            interfaces,
            interface_of,
            ends_at_leaf,
            media,
            medium_of,
            routes,
            choices,
            known_choices: BTreeMap::new(),
            nodes,
            routers: plan.nodes.iter().map(|node| node.kind == NodeKind::Router).collect(),
            six: Vec::new(),
            seed: plan.seed,
            names: plan.nodes.iter().map(|node| node.name.clone()).collect(),
        };
        Ok((network, names))
    }

    /// Routers with routing protocols know no way, and each version of IP has a table of its own.
    pub(crate) fn forget_routes(&mut self, plan: &Plan) {
        for (node, _) in plan.nodes.iter().enumerate().filter(|(_, node)| node.routing.is_some()) {
            self.routes[node * self.nodes..][..self.nodes].fill(NOWHERE);
        }
        self.routes.extend_from_within(..);
        let versions = plan.flows.iter().map(|flow| (flow.ip == IpVersion::V6, flow.streams as usize));
        self.six = versions.flat_map(|(is_six, streams)| std::iter::repeat_n(is_six, streams)).collect();
    }

    /// Packets of IPv4 (family 0) or IPv6 (1) from `node` to `destination` leave by one of these directions from now on.
    pub(crate) fn turn(
        &mut self,
        node: NodeId,
        destination: NodeId,
        family: usize,
        directions: &[DirectionId],
    ) {
        let route = match directions {
            [] => NOWHERE,
            [one] => *one,
            several => *self.known_choices.entry((node, several.to_vec())).or_insert_with(|| {
                let name = &self.names[usize::from(node)];
                let seed = component_seed(self.seed, &format!("node.{name}.multipath"));
                self.choices.push(Choice { directions: several.to_vec(), seed });
                CHOICES + self.choices.len() as DirectionId - 1
            }),
        };
        let place = (family * self.nodes + usize::from(node)) * self.nodes + usize::from(destination);
        self.routes[place] = route;
    }

    /// The name of `node`.
    pub(crate) fn name(&self, node: NodeId) -> &str {
        &self.names[usize::from(node)]
    }

    /// Whether `node` counts down the time to live of what it forwards.
    #[inline]
    pub(crate) fn is_router(&self, node: NodeId) -> bool {
        self.routers[usize::from(node)]
    }

    /// All that happens to packets is observed, not drops, marks and losses only. None was sent yet.
    pub(crate) fn observe_all(&mut self) {
        self.links.iter_mut().for_each(Link::observe_all);
    }

    /// Number of link directions.
    pub(crate) fn directions(&self) -> usize {
        self.links.len()
    }

    /// Number of link directions, interfaces and media.
    pub(crate) fn components(&self) -> usize {
        self.links.len() + self.interfaces.len() + self.media.len()
    }

    /// Whether number `component` is a medium's.
    #[inline]
    pub(crate) fn is_medium(&self, component: DirectionId) -> bool {
        component as usize >= self.links.len() + self.interfaces.len()
    }

    /// The number of the medium that `direction` sends over, if it shares one.
    #[inline]
    pub(crate) fn medium_of(&self, direction: DirectionId) -> Option<DirectionId> {
        self.medium_of.get(direction as usize).copied().filter(|&number| number != NOWHERE)
    }

    /// Medium `number`, and the link directions.
    pub(crate) fn medium(&mut self, number: DirectionId) -> (&mut Medium, &mut [Link<Packet>]) {
        let place = number as usize - self.links.len() - self.interfaces.len();
        (&mut self.media[place], &mut self.links)
    }

    /// The number of the interface before `direction`, if there is one.
    #[inline]
    pub(crate) fn interface_before(&self, direction: DirectionId) -> Option<DirectionId> {
        let number = self.interface_of[direction as usize];
        (number != NOWHERE).then_some(number)
    }

    /// Interface `number`, and the direction it sends into.
    pub(crate) fn interface(&mut self, number: DirectionId) -> (&mut Link<Packet>, DirectionId) {
        let interface = &mut self.interfaces[number as usize - self.links.len()];
        (&mut interface.link, interface.into)
    }

    /// The direction by which `packet` leaves `node`.
    #[inline(always)]
    pub(crate) fn next_hop(&self, node: NodeId, packet: &Packet) -> Option<DirectionId> {
        let is_six = self.six.get(packet.stream() as usize).is_some_and(|&is_six| is_six);
        let direction = self.route(node, packet.destination(), is_six);
        if direction < CHOICES {
            return Some(direction);
        }
        self.choice(direction).map(|choice| choice.of(packet.flow_hash()))
    }

    #[inline]
    fn route(&self, node: NodeId, destination: NodeId, is_six: bool) -> DirectionId {
        let row = usize::from(is_six) * self.nodes + usize::from(node);
        self.routes[row * self.nodes + usize::from(destination)]
    }

    #[inline(never)]
    fn choice(&self, number: DirectionId) -> Option<&Choice> {
        self.choices.get((number - CHOICES) as usize)
    }

    /// The node that packets of `direction` arrive at.
    #[inline]
    pub(crate) fn far_end(&self, direction: DirectionId) -> NodeId {
        self.far_ends[direction as usize]
    }

    /// The link directions that packets from `from` to `to` may pass, or why they would not arrive.
    pub(crate) fn path(&self, from: NodeId, to: NodeId, ip: IpVersion) -> Result<Vec<DirectionId>, Stuck> {
        let is_six = ip == IpVersion::V6 && !self.six.is_empty();
        let mut path = Vec::new();
        let mut here = vec![from];
        // A path without loops visits each node once.
        for _ in 1..self.nodes {
            let mut next = Vec::new();
            for node in here {
                let direction = self.route(node, to, is_six);
                let directions = match self.choice(direction.max(CHOICES)) {
                    Some(choice) if direction >= CHOICES => choice.directions.as_slice(),
                    _ if direction == NOWHERE => return Err(Stuck { node, goes_round: false }),
                    _ => std::slice::from_ref(&direction),
                };
                path.extend(directions);
                next.extend(directions.iter().map(|&direction| self.far_end(direction)));
            }
            next.retain(|&node| node != to);
            next.sort_unstable();
            next.dedup();
            if next.is_empty() {
                return Ok(path);
            }
            here = next;
        }
        Err(Stuck { node: here[0], goes_round: true })
    }

    /// How long ahead of the present the arrivals by `direction` can be served. No other component changes them, nor is
    /// affected by them, any sooner.
    #[inline]
    pub(crate) fn lookahead(&self, direction: DirectionId) -> Span {
        // Packets sent back must not become the first on their way, whose arrival would be scheduled out of turn.
        let is_ready = || {
            let back = self.peek(direction ^ 1);
            back.lookahead() > Span::ZERO && back.next_event() != Time::NEVER
        };
        if self.ends_at_leaf[direction as usize] && is_ready() {
            self.peek(direction).lookahead()
        } else {
            Span::ZERO
        }
    }

    /// The link direction itself.
    #[inline]
    pub(crate) fn link(&mut self, direction: DirectionId) -> &mut Link<Packet> {
        &mut self.links[direction as usize]
    }

    /// The same, only to look at.
    #[inline]
    pub(crate) fn peek(&self, direction: DirectionId) -> &Link<Packet> {
        &self.links[direction as usize]
    }

    /// Whether no packet is on its way anywhere.
    pub(crate) fn is_empty(&self) -> bool {
        let interfaces = self.interfaces.iter().map(|interface| &interface.link);
        self.links.iter().chain(interfaces).all(|link| link.held() == 0)
    }
}

/// The media of `plan`, and by direction the number of its medium. They are numbered from `first` on.
fn media(
    plan: &Plan,
    far_ends: &[NodeId],
    first: usize,
) -> Result<(Vec<Medium>, Vec<DirectionId>), PlanError> {
    if plan.media.is_empty() && plan.links.iter().all(|link| link.medium.is_none()) {
        return Ok((Vec::new(), Vec::new()));
    }
    let numbers = numbered("media", plan.media.iter().map(|medium| medium.name.as_str()))?;
    let mut medium_of = vec![NOWHERE; far_ends.len()];
    let mut stations: Vec<BTreeMap<NodeId, Vec<u32>>> = vec![BTreeMap::new(); plan.media.len()];
    for (number, link) in plan.links.iter().enumerate() {
        let Some(name) = &link.medium else { continue };
        let medium = usize::from(*numbers.get(name.as_str()).ok_or_else(|| PlanError::Unknown {
            place: format!("links.{}.medium", link.name),
            what: "medium",
            name: name.clone(),
        })?);
        for (side, settings) in [&link.forward, &link.backward].into_iter().enumerate() {
            if settings.rate.is_none() || settings.trace.is_some() {
                return Err(PlanError::NoRate { link: link.name.clone() });
            }
            let direction = 2 * number + side;
            medium_of[direction] = (first + medium) as DirectionId;
            // It is sent into at the far end of the other direction.
            stations[medium].entry(far_ends[direction ^ 1]).or_default().push(direction as u32);
        }
    }
    let made = plan.media.iter().zip(stations).map(|(settings, stations)| {
        let stations: Vec<Vec<u32>> = stations.into_values().collect();
        Medium::new(settings, &stations, component_seed(plan.seed, &format!("medium.{}", settings.name)))
    });
    Ok((made.collect(), medium_of))
}

/// An interface as a link that takes no more than the time to send.
fn sending(nic: Nic) -> Direction {
    Direction {
        rate: Some(nic.rate),
        overhead: Overhead::default(),
        policer: None,
        queue: Queue::droptail(Some(Limit::Packets(u64::from(nic.queue)))),
        delay: Span::ZERO,
        jitter: None,
        reorder: None,
        loss: None,
        corrupt: None,
        duplicate: None,
        up: true,
        trace: None,
        changes: Vec::new(),
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
            maximum: u64::from(u16::MAX) + 1,
        })?;
        if numbers.insert(name, number).is_some() {
            return Err(PlanError::Twice { what, name: name.to_owned() });
        }
    }
    Ok(numbers)
}
