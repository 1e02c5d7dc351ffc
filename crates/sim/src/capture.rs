//! Packets as they pass the interfaces of captured nodes.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use tcplab_link::Event;
use tcplab_units::Time;

use crate::bodies::Bodies;
use crate::error::PlanError;
use crate::network::{DirectionId, Network, NodeId};
use crate::packet::{Body, Packet};
use crate::plan::{CaptureAt, Flow, IpVersion, NodeKind, Plan};

/// First port of servers; the flow's number is added.
const SERVER_PORT: u32 = 5001;
/// First port of clients; the stream's number, counted over all flows, is added.
const CLIENT_PORT: u32 = 40_000;
/// Linux's `net.ipv4.ip_default_ttl`.
const DEFAULT_TTL: u8 = 64;

/// Takes captured frames, interface by interface in the order of time.
pub trait CaptureSink: Send + Sync {
    /// `frame` passed interface number `interface` of [`crate::Simulation::interfaces`] at `at`.
    fn frame(&mut self, interface: usize, at: Time, frame: &Frame);
}

/// A captured interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The node it belongs to.
    pub node: String,
    /// The link it leads to.
    pub link: String,
    /// Largest IP packet of the link, bytes.
    pub mtu: u32,
    /// Link rate, bit/s; none: unlimited.
    pub rate: Option<u64>,
}

/// A frame with all that its headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The interface sends it; otherwise it receives it.
    pub outgoing: bool,
    /// Ethernet source.
    pub source_mac: [u8; 6],
    /// Ethernet destination.
    pub destination_mac: [u8; 6],
    /// IP source.
    pub source: IpAddr,
    /// IP destination, of the same version.
    pub destination: IpAddr,
    /// Transport source port; an ICMP echo uses the client's port as its identifier.
    pub source_port: u16,
    /// Transport destination port.
    pub destination_port: u16,
    /// Time to live, lowered by every router on the way.
    pub ttl: u8,
    /// DSCP and ECN field of its IP header.
    pub traffic_class: u8,
    /// Its contents; the length of a TCP segment may exceed the MTU where it is captured at the host.
    pub body: Body,
    /// Bits were damaged on the way here: its checksum is wrong.
    pub corrupted: bool,
}

impl Frame {
    /// Puts the segments of `before` in front, if this is the one that follows them in a burst.
    fn join(&mut self, before: &Frame) -> bool {
        let ports = |frame: &Frame| (frame.source_port, frame.destination_port);
        let (Body::Tcp(segment), Body::Tcp(first)) = (&mut self.body, &before.body) else { return false };
        if ports(before) != (self.source_port, self.destination_port)
            || (before.source, before.destination) != (self.source, self.destination)
            || segment.seq != first.seq.wrapping_add(first.len)
        {
            return false;
        }
        *segment = tcplab_tcp::Segment {
            len: first.len + segment.len,
            flags: first.flags | segment.flags,
            more: segment.more,
            ..*first
        };
        true
    }
}

/// The captured interfaces and the addresses of packets.
pub(crate) struct Capture {
    sink: Box<dyn CaptureSink>,
    at: CaptureAt,
    /// By link direction: the interface that sends into it, and the one that receives from it.
    interfaces: Vec<[Option<usize>; 2]>,
    /// By flow, forward and reverse.
    journeys: Vec<[Journey; 2]>,
    /// By stream: its flow, and its server's port.
    flows: Vec<(usize, u16)>,
    /// By interface, a burst that leaves it segment by segment.
    bursts: Vec<Option<Frame>>,
}

/// The addresses of a flow's packets on their way from one end to the other.
#[derive(Debug)]
struct Journey {
    source: IpAddr,
    destination: IpAddr,
    hops: Vec<Hop>,
}

#[derive(Debug)]
struct Hop {
    direction: DirectionId,
    source_mac: [u8; 6],
    destination_mac: [u8; 6],
    ttl: u8,
}

impl Capture {
    /// The interfaces that `plan` captures, by link direction as in [`Capture::interfaces`].
    pub(crate) fn interfaces(plan: &Plan) -> (Vec<Interface>, Vec<[Option<usize>; 2]>) {
        let mut interfaces = Vec::new();
        let mut by_direction = vec![[None; 2]; 2 * plan.links.len()];
        let Some(capture) = &plan.capture else { return (interfaces, by_direction) };
        for node in &capture.nodes {
            for (number, link) in plan.links.iter().enumerate() {
                for (end, settings) in [(0, &link.forward), (1, &link.backward)] {
                    if link.ends[end] == *node {
                        by_direction[2 * number + end][0] = Some(interfaces.len());
                        by_direction[2 * number + 1 - end][1] = Some(interfaces.len());
                        interfaces.push(Interface {
                            node: node.clone(),
                            link: link.name.clone(),
                            mtu: link.mtu,
                            rate: settings.rate.map(|rate| rate.bits_per_sec()),
                        });
                    }
                }
            }
        }
        (interfaces, by_direction)
    }

    /// Shows what passes the captured interfaces to `sink`.
    pub(crate) fn new(
        plan: &Plan,
        network: &Network,
        sink: Box<dyn CaptureSink>,
    ) -> Result<Capture, PlanError> {
        let mut journeys = Vec::new();
        let mut flows = Vec::new();
        for (number, flow) in plan.flows.iter().enumerate() {
            journeys.push(journeys_of(plan, network, flow)?);
            flows.extend((0..flow.streams).map(|stream| (number, server_port(flow, number, stream))));
        }
        let at = plan.capture.as_ref().map_or(CaptureAt::Wire, |capture| capture.at);
        let (captured, interfaces) = Capture::interfaces(plan);
        let bursts = vec![None; captured.len()];
        Ok(Capture { sink, at, interfaces, journeys, flows, bursts })
    }

    /// Something happened to `packet` on `direction`.
    pub(crate) fn on(
        &mut self,
        event: Event,
        at: Time,
        packet: &Packet,
        bodies: &Bodies,
        direction: DirectionId,
    ) {
        let [sending, receiving] = self.interfaces[direction as usize];
        match event {
            Event::Deliver => {
                let Some(interface) = receiving else { return };
                if let Some(frame) = self.frame(packet, bodies, direction, false) {
                    self.sink.frame(interface, at, &frame);
                }
            }
            Event::Depart if self.at == CaptureAt::Wire => {
                let Some(interface) = sending else { return };
                if let Some(frame) = self.frame(packet, bodies, direction, true) {
                    self.sink.frame(interface, at, &frame);
                }
            }
            _ => {}
        }
    }

    /// A node hands `packet` to `direction`. Captured at the host it is seen here, once, whatever the link does with it: a
    /// queue may drop what it has accepted, and loss may come before the queue.
    pub(crate) fn hand_over(&mut self, at: Time, packet: &Packet, bodies: &Bodies, direction: DirectionId) {
        if self.at != CaptureAt::Host {
            return;
        }
        let Some(interface) = self.interfaces[direction as usize][0] else { return };
        let Some(frame) = self.frame(packet, bodies, direction, true) else { return };
        self.join_burst(interface, at, frame);
    }

    /// The segments of one TSO burst are handed over one after the other.
    fn join_burst(&mut self, interface: usize, at: Time, mut frame: Frame) {
        if let Some(before) = self.bursts[interface].take()
            && !frame.join(&before)
        {
            // The host's own interface had no room for the rest of that burst.
            self.sink.frame(interface, at, &before);
        }
        match frame.body {
            Body::Tcp(segment) if segment.more => self.bursts[interface] = Some(frame),
            _ => self.sink.frame(interface, at, &frame),
        }
    }

    fn frame(
        &self,
        packet: &Packet,
        bodies: &Bodies,
        direction: DirectionId,
        outgoing: bool,
    ) -> Option<Frame> {
        let (flow, server) = self.flows[packet.stream() as usize];
        let client = client_port(packet.stream());
        let journey = &self.journeys[flow][usize::from(!packet.forward())];
        let hop = journey.hops.iter().find(|hop| hop.direction == direction)?;
        let [source_port, destination_port] =
            if packet.forward() { [client, server] } else { [server, client] };
        Some(Frame {
            outgoing,
            source_mac: hop.source_mac,
            destination_mac: hop.destination_mac,
            source: journey.source,
            destination: journey.destination,
            source_port,
            destination_port,
            ttl: hop.ttl,
            traffic_class: packet.traffic_class(),
            body: bodies.get(packet),
            corrupted: packet.is_corrupted() && !outgoing,
        })
    }
}

/// Port at its flow's `from` of stream number `stream` of all.
///
/// They wrap, as a host's do when it has run through them.
pub(crate) fn client_port(stream: u32) -> u16 {
    (CLIENT_PORT + stream % 20_000) as u16
}

/// Port at a flow's `to` of its stream number `stream`; `number` is the flow's own.
pub(crate) fn server_port(flow: &Flow, number: usize, stream: u32) -> u16 {
    match flow.port {
        Some(first) => first.wrapping_add(stream as u16),
        None => (SERVER_PORT + number as u32 % 30_000) as u16,
    }
}

fn journeys_of(plan: &Plan, network: &Network, flow: &Flow) -> Result<[Journey; 2], PlanError> {
    let node = |name: &str| plan.nodes.iter().position(|node| node.name == name).unwrap_or(0) as NodeId;
    let (from, to) = (node(&flow.from), node(&flow.to));
    let forward = network.path(from, to, flow.ip).unwrap_or_default();
    let reverse = network.path(to, from, flow.ip).unwrap_or_default();
    let own = |path: &[DirectionId], name: &String| -> Result<IpAddr, PlanError> {
        let missing = || PlanError::NoAddress { flow: flow.name.clone(), node: name.clone() };
        let first = *path.first().ok_or_else(missing)?;
        match flow.ip {
            IpVersion::V4 => address(plan, first, Sender)?.map(IpAddr::V4),
            IpVersion::V6 => address6(plan, first)?,
        }
        .ok_or_else(missing)
    };
    let ends = [own(&forward, &flow.from)?, own(&reverse, &flow.to)?];
    Ok([
        Journey { source: ends[0], destination: ends[1], hops: hops(plan, network, &forward)? },
        Journey { source: ends[1], destination: ends[0], hops: hops(plan, network, &reverse)? },
    ])
}

/// Switches pass frames on as they are; hosts and routers put their own addresses on them.
fn hops(plan: &Plan, network: &Network, path: &[DirectionId]) -> Result<Vec<Hop>, PlanError> {
    let is_switch = |node: NodeId| plan.nodes[usize::from(node)].kind == NodeKind::Switch;
    let near_end = |direction: DirectionId| network.far_end(direction ^ 1);
    let mut hops: Vec<Hop> = Vec::new();
    for &direction in path {
        let node = near_end(direction);
        let before = hops.iter().find(|hop| network.far_end(hop.direction) == node);
        let ttl = before.map_or(DEFAULT_TTL, |hop| hop.ttl.saturating_sub(u8::from(!is_switch(node))));
        let passed_on = || before.map_or(mac(Ipv4Addr::UNSPECIFIED), |hop| hop.source_mac);
        let source_mac = address(plan, direction, Sender)?.map_or_else(passed_on, mac);
        let mut last = direction;
        while is_switch(network.far_end(last))
            && let Some(&next) = path.iter().find(|&&next| near_end(next) == network.far_end(last))
        {
            last = next;
        }
        let next = address(plan, last, Receiver)?.unwrap_or(Ipv4Addr::UNSPECIFIED);
        hops.push(Hop { direction, source_mac, destination_mac: mac(next), ttl });
    }
    Ok(hops)
}

use End::{Receiver, Sender};

/// The ends of a link direction.
#[derive(Clone, Copy)]
enum End {
    Sender,
    Receiver,
}

/// The IPv4 address of the interface at one end of a link direction; none: a switch's port.
fn address(plan: &Plan, direction: DirectionId, end: End) -> Result<Option<Ipv4Addr>, PlanError> {
    let link = &plan.links[direction as usize / 2];
    let place = (direction as usize % 2) ^ usize::from(matches!(end, Receiver));
    parsed(&link.name, link.addresses[place].as_ref(), 32)
}

/// The IPv6 address of the interface that sends into a link direction; none: a switch's port.
fn address6(plan: &Plan, direction: DirectionId) -> Result<Option<IpAddr>, PlanError> {
    let link = &plan.links[direction as usize / 2];
    let own = link.addresses6[direction as usize % 2].as_ref();
    Ok(parsed(&link.name, own, 128)?.map(IpAddr::V6))
}

/// An address with a prefix of at most so many bits.
fn parsed<A: FromStr>(link: &str, text: Option<&String>, bits: u8) -> Result<Option<A>, PlanError> {
    let Some(text) = text else { return Ok(None) };
    let wrong = || PlanError::Address { link: link.to_owned(), address: text.clone() };
    let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
    if prefix.parse::<u8>().map_or(true, |prefix| prefix > bits) {
        return Err(wrong());
    }
    address.parse().map(Some).map_err(|_| wrong())
}

/// A locally administered MAC address that shows the IPv4 address.
fn mac(address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [0x02, 0x00, a, b, c, d]
}
