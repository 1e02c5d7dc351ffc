//! The directions of links that a flow's packets take.

use std::collections::HashMap;

use tcplab_units::Time;

use crate::{Accelerator, Direction, Flow, Link, Medium, Node, Plan};

/// The maximum of a link without a rate: no host of today sends more, bit/s.
const UNLIMITED: f64 = 100e9;
/// Bits of a full frame, such as an opportunity of a trace carries.
const FULL_FRAME: f64 = 1514.0 * 8.0;
/// Hosts take their time too, s.
const MIN_RTT: f64 = 20e-6;

/// One direction of a link.
#[derive(Clone, Copy)]
pub(crate) struct Hop<'p> {
    /// Its place among the plan's: two for each link.
    number: usize,
    pub(super) direction: &'p Direction,
    /// The medium that it shares, and its place among the plan's.
    medium: Option<(usize, &'p Medium)>,
}

impl Hop<'_> {
    /// The resource that it is a part of: the direction alone, or a medium.
    pub(super) fn resource(&self) -> usize {
        self.medium.map_or(self.number, |(place, _)| usize::MAX - place)
    }

    /// All there is of the resource: bit/s, or of a medium 1, its time.
    pub(super) fn room(&self, time: f64) -> f64 {
        if self.medium.is_some() { 1.0 } else { rate(self.direction, time) }
    }

    /// How much of it a bit/s takes.
    pub(super) fn cost(&self, time: f64) -> f64 {
        if self.medium.is_some() { 1.0 / self.rate(time).max(1.0) } else { 1.0 }
    }

    /// Its rate at a time (s) by itself, frame bits per second: of a medium, with nobody else to send.
    fn rate(&self, time: f64) -> f64 {
        let rate = rate(self.direction, time);
        let Some((_, medium)) = self.medium.filter(|_| rate > 0.0) else { return rate };
        let aggregation = &medium.aggregation;
        let by_bytes = aggregation.bytes as f64 * 8.0 / FULL_FRAME;
        let by_time = aggregation.time.as_secs_f64() * rate / FULL_FRAME;
        let frames = f64::from(aggregation.frames).min(by_bytes).min(by_time).floor().max(1.0);
        let fixed = (medium.aifs + medium.preamble + medium.ack).as_secs_f64();
        let backoff = medium.slot.as_secs_f64() * f64::from(medium.cw_min) / 2.0;
        let bits = frames * FULL_FRAME;
        bits / (fixed + backoff + bits / rate)
    }
}

/// A flow's paths, forward and reverse.
pub(crate) struct Paths<'p> {
    /// From its first node to its second.
    pub(crate) forward: Vec<Hop<'p>>,
    pub(crate) reverse: Vec<Hop<'p>>,
    /// The accelerators that split its connections on the way.
    pub(crate) accelerator: Option<&'p Accelerator>,
    /// How long the flow may last, s.
    pub(crate) time: f64,
}

impl Paths<'_> {
    /// Propagation of both directions, s.
    pub(crate) fn rtt(&self) -> f64 {
        let delays = self.forward.iter().chain(&self.reverse).map(|hop| hop.direction.delay.as_ns());
        MIN_RTT.max(delays.sum::<u64>() as f64 / 1e9)
    }
}

/// The links and nodes of a plan by name.
pub(super) struct Map<'p> {
    links: HashMap<&'p str, (usize, &'p Link)>,
    media: &'p [Medium],
    nodes: HashMap<&'p str, &'p Node>,
    /// Of the run.
    end: Time,
}

impl<'p> Map<'p> {
    pub(super) fn new(plan: &'p Plan) -> Map<'p> {
        let links = plan.links.iter().enumerate().map(|(number, link)| (link.name.as_str(), (number, link)));
        let nodes = plan.nodes.iter().map(|node| (node.name.as_str(), node));
        Map {
            links: links.collect(),
            media: &plan.media,
            nodes: nodes.collect(),
            end: Time::ZERO + plan.duration,
        }
    }

    pub(super) fn paths(&self, flow: &Flow) -> Paths<'p> {
        let (forward, passed) = self.way(&flow.from, &flow.to);
        let splits = |accelerator: &&Accelerator| accelerator.splits(&flow.to, flow.port.unwrap_or(0));
        let accelerator = passed.iter().find_map(|node| node.accelerate.as_ref().filter(splits));
        let stop = flow.stop.map_or(self.end, |stop| stop.min(self.end));
        let time = stop.max(flow.start).since(flow.start).as_secs_f64();
        Paths { forward, reverse: self.way(&flow.to, &flow.from).0, accelerator, time }
    }

    /// The hops from a node to another, and the nodes that they lead to; as far as there is a route.
    fn way(&self, from: &str, to: &str) -> (Vec<Hop<'p>>, Vec<&'p Node>) {
        let (mut hops, mut passed) = (Vec::new(), Vec::new());
        let mut here = self.nodes.get(from).copied();
        // A routing loop is followed for as many hops as the network has nodes.
        while let Some(node) = here.filter(|node| node.name != to && hops.len() <= self.nodes.len()) {
            let link = node.routes.get(to).and_then(|link| self.links.get(link.as_str()));
            let Some(&(number, link)) = link else { break };
            let side = usize::from(link.ends[0] != node.name);
            let direction = if side == 0 { &link.forward } else { &link.backward };
            let shared = |(_, medium): &(usize, &Medium)| link.medium.as_ref() == Some(&medium.name);
            let medium = self.media.iter().enumerate().find(shared);
            hops.push(Hop { number: 2 * number + side, direction, medium });
            here = self.nodes.get(link.ends[1 - side].as_str()).copied();
            passed.extend(here);
        }
        (hops, passed)
    }
}

/// The rate of a direction at a time (s), frame bits per second.
fn rate(direction: &Direction, time: f64) -> f64 {
    if let Some(trace) = &direction.trace {
        let period = trace.opportunities_ms.last().copied().unwrap_or(1);
        return trace.opportunities_ms.len() as f64 * FULL_FRAME * 1000.0 / period as f64;
    }
    let (mut rate, mut up) = (direction.rate, direction.up);
    for change in direction.changes.iter().filter(|change| change.at.as_secs_f64() <= time) {
        rate = change.rate.or(rate);
        up = change.up.unwrap_or(up);
    }
    match (up, rate) {
        (false, _) => 0.0,
        (true, None) => UNLIMITED,
        (true, Some(rate)) => rate.bits_per_sec() as f64,
    }
}

/// The rate of the slowest hop when the run starts, frame bits per second.
pub(crate) fn slowest(hops: &[Hop<'_>]) -> f64 {
    hops.iter().map(|hop| hop.rate(0.0)).reduce(f64::min).unwrap_or(UNLIMITED)
}

/// Share of packets lost at random on a way.
pub(super) fn loss(hops: &[Hop<'_>]) -> f64 {
    let losses = hops.iter().filter_map(|hop| hop.direction.loss.as_ref());
    1.0 - losses.map(|loss| 1.0 - loss.model.mean()).product::<f64>()
}
