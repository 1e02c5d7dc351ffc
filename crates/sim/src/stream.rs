//! A stream: one connection or source of a flow.

use tcplab_tcp::{Connection, Segment};
use tcplab_units::Time;

use crate::bodies::BodyId;
use crate::network::{DirectionId, NodeId};
use crate::packet::{Body, Packet, segment_frame_len};
use crate::ping_stream::PingStream;
use crate::plan::IpVersion;
use crate::recorder::Mode;
use crate::sim_context::{SimContext, Timer};
use crate::tcp_stream::TcpStream;
use crate::udp_stream::UdpStream;

/// The stream, its flow, and the nodes between which its packets travel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowEndpoints {
    /// Its number, counted over all flows.
    pub(crate) stream: u32,
    /// Where its state is.
    pub(crate) place: u32,
    /// The flow's place in the plan.
    pub(crate) flow: u32,
    /// The node that offers the load.
    pub(crate) from: NodeId,
    /// The node at the other end.
    pub(crate) to: NodeId,
    /// The protocol that carries its packets.
    pub(crate) ip: IpVersion,
    /// Differentiated services codepoint of its packets in both directions.
    pub(crate) dscp: u8,
    /// The ECN field of its packets where no connection negotiates it.
    pub(crate) ecn: u8,
    /// Where accelerators and caches end the connection and go on with another.
    pub(crate) relays: Relays,
}

/// A way on which segments leave an end of a connection.
pub(crate) struct Way {
    /// The link direction that they enter, where nothing but that is concerned.
    direction: Option<DirectionId>,
    /// Their packets, but for what these carry.
    header: Packet,
    forward: bool,
}

/// The nodes that relay a stream's connection, in the order from `from` to `to`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Relays {
    nodes: [NodeId; Relays::MAX],
    count: u8,
}

impl Relays {
    /// As many as one path may have.
    pub(crate) const MAX: usize = 8;

    /// These nodes; at most [`Relays::MAX`].
    pub(crate) fn of(nodes: impl Iterator<Item = NodeId>) -> Relays {
        nodes.take(Relays::MAX).fold(Relays::default(), |mut relays, node| {
            relays.nodes[usize::from(relays.count)] = node;
            relays.count += 1;
            relays
        })
    }

    fn nodes(&self) -> &[NodeId] {
        &self.nodes[..usize::from(self.count)]
    }

    /// The one of this number relays no more.
    fn remove(&mut self, number: usize) {
        self.nodes.copy_within(number + 1.., number);
        self.count -= 1;
    }

    /// Which of them is at `node`.
    #[inline]
    pub(crate) fn at(&self, node: NodeId) -> Option<usize> {
        self.nodes().iter().position(|&other| other == node)
    }
}

impl FlowEndpoints {
    /// Sends `body` from one end to the other, or to the first relay before it.
    ///
    /// Whether the host's interface had room for it.
    pub(crate) fn send<M: Mode>(&self, body: Body, forward: bool, sim: &mut SimContext) -> bool {
        let (from, to) = self.first_hop(forward);
        self.send_on::<M>(body, forward, from, to, sim)
    }

    /// The same for a segment.
    #[inline]
    fn send_segment<M: Mode>(&self, segment: &Segment, forward: bool, sim: &mut SimContext) -> bool {
        let (from, to) = self.first_hop(forward);
        let frame_len = segment_frame_len(segment, self.ip);
        let packet =
            self.packet(sim.bodies.insert_run(segment, 1, self.stream), frame_len, segment.ecn, forward, to);
        sim.send::<M>(from, packet)
    }

    /// The way on which segments of one end leave it.
    #[inline]
    pub(crate) fn way(&self, forward: bool, sim: &SimContext) -> Way {
        let (from, to) = self.first_hop(forward);
        let header = self.packet(0, 0, 0, forward, to);
        Way { direction: sim.direct(from, &header), header, forward }
    }

    /// Sends all that `connection` has to send now.
    #[inline]
    pub(crate) fn transmit<M: Mode>(&self, connection: &mut Connection, forward: bool, sim: &mut SimContext) {
        self.transmit_by::<M>(&self.way(forward, sim), connection, sim);
    }

    /// The same, for which the way is known.
    ///
    /// Apart, or all arrivals would pay for what is computed once before the first segment.
    #[inline(never)]
    pub(crate) fn transmit_by<M: Mode>(&self, way: &Way, connection: &mut Connection, sim: &mut SimContext) {
        let Some(direction) = way.direction else {
            return self.transmit_by_interface::<M>(connection, way.forward, sim);
        };
        connection.transmit_runs(|segment, count| {
            let body = sim.bodies.insert_run(segment, count, self.stream);
            let frame_len = segment_frame_len(segment, self.ip);
            sim.enqueue_run::<M>(direction, way.header.carrying(body, frame_len, segment.ecn), count);
        });
        sim.schedule_arrival(direction);
    }

    /// Transmits through an interface of the host, or a shared medium.
    #[inline(never)]
    fn transmit_by_interface<M: Mode>(
        &self,
        connection: &mut Connection,
        forward: bool,
        sim: &mut SimContext,
    ) {
        connection.transmit(sim.now(), |segment| self.send_segment::<M>(segment, forward, sim));
    }

    /// The end that sends, and the one to which it sends: the other end, or the first relay before it.
    #[inline]
    fn first_hop(&self, forward: bool) -> (NodeId, NodeId) {
        let relays = self.relays.nodes();
        let (from, to, relay) =
            if forward { (self.from, self.to, relays.first()) } else { (self.to, self.from, relays.last()) };
        (from, relay.copied().unwrap_or(to))
    }

    /// A packet of the stream to `to`.
    #[inline]
    fn packet(&self, body: BodyId, frame_len: u32, ecn: u8, forward: bool, to: NodeId) -> Packet {
        let (conversation, traffic_class) = (self.stream << 1 | u32::from(forward), self.dscp << 2 | ecn);
        Packet::new(body, frame_len, conversation, to, traffic_class)
    }

    /// Sends `body` from the relay of this number to the next one, or to the end beyond it.
    pub(crate) fn relay<M: Mode>(&self, number: usize, body: Body, forward: bool, sim: &mut SimContext) {
        let relays = self.relays.nodes();
        let Some(&here) = relays.get(number) else { return };
        let (next, end) =
            if forward { (number.checked_add(1), self.to) } else { (number.checked_sub(1), self.from) };
        let to = next.and_then(|next| relays.get(next)).copied().unwrap_or(end);
        self.send_on::<M>(body, forward, here, to, sim);
    }

    fn send_on<M: Mode>(
        &self,
        body: Body,
        forward: bool,
        from: NodeId,
        to: NodeId,
        sim: &mut SimContext,
    ) -> bool {
        let ecn = if let Body::Tcp(segment) = &body { segment.ecn } else { self.ecn };
        let frame_len = body.frame_len(self.ip);
        let packet = self.packet(sim.bodies.insert(body, self.stream), frame_len, ecn, forward, to);
        sim.send::<M>(from, packet)
    }
}

/// The kind of traffic of a stream, with its state.
#[derive(Debug)]
pub(crate) enum StreamKind {
    /// A connection, for bulk data or for requests.
    Tcp(Box<TcpStream>),
    /// Datagrams.
    Udp(Box<UdpStream>),
    /// Probes.
    Ping(Box<PingStream>),
    /// Nothing any more.
    Gone,
}

/// A stream of a running simulation. Each arrival needs one line of it in the processor's cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Stream {
    pub(crate) endpoints: FlowEndpoints,
    pub(crate) kind: StreamKind,
    /// It is counted as finished.
    pub(crate) done: bool,
    /// The flow's place in the plan.
    pub(crate) flow: usize,
    pub(crate) start: Time,
    pub(crate) interval: Interval,
}

/// The values of a stream's counters when they were sampled last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interval {
    pub(crate) since: Time,
    /// Up to when the stream had ended and nothing happened, if that is later: no row says so yet.
    pub(crate) idle_until: Time,
    pub(crate) counts: Counts,
    pub(crate) jitter: Option<f64>,
}

/// A stream's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) bytes_received: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) retransmits: u64,
    pub(crate) lost: u64,
    pub(crate) out_of_order: u64,
    pub(crate) duplicates: u64,
}

impl Stream {
    /// One of the stream's timers fires.
    pub(crate) fn wake<M: Mode>(&mut self, timer: Timer, sim: &mut SimContext) {
        match &mut self.kind {
            StreamKind::Tcp(tcp) => tcp.wake::<M>(timer, &self.endpoints, sim),
            StreamKind::Udp(udp) => udp.wake::<M>(&self.endpoints, sim),
            StreamKind::Ping(ping) => ping.wake::<M>(&self.endpoints, sim),
            StreamKind::Gone => {}
        }
    }

    /// A timer of one of the two endpoints fires.
    pub(crate) fn time_out<M: Mode>(&mut self, end: usize, sim: &mut SimContext) {
        if let StreamKind::Tcp(tcp) = &mut self.kind {
            tcp.time_out::<M>(end, &self.endpoints, sim);
        }
    }

    /// A packet of the stream arrived at the end it was sent to, and with it `more`.
    #[inline]
    pub(crate) fn receive<M: Mode>(&mut self, packet: &Packet, more: bool, sim: &mut SimContext) {
        match &mut self.kind {
            StreamKind::Tcp(tcp) => tcp.receive::<M>(packet, more, &self.endpoints, sim),
            _ => self.receive_datagram::<M>(packet, sim),
        }
    }

    #[inline(never)]
    fn receive_datagram<M: Mode>(&mut self, packet: &Packet, sim: &mut SimContext) {
        match &mut self.kind {
            StreamKind::Udp(udp) => udp.receive(&sim.bodies.take(packet), sim.now()),
            StreamKind::Ping(ping) => ping.receive::<M>(&sim.bodies.take(packet), &self.endpoints, sim),
            StreamKind::Tcp(_) | StreamKind::Gone => sim.bodies.release(packet.body()),
        }
    }

    /// `packet` arrives at the relay of this number.
    #[inline(never)]
    pub(crate) fn arrive_at_relay<M: Mode>(&mut self, number: usize, packet: &Packet, sim: &mut SimContext) {
        let body = sim.bodies.take(packet);
        self.relay::<M>(number, &body, packet.forward(), sim);
    }

    /// The host that sent a packet of the stream has it no longer.
    pub(crate) fn departed<M: Mode>(&mut self, body: &Body, forward: bool, sim: &mut SimContext) {
        match &mut self.kind {
            StreamKind::Tcp(tcp) => tcp.departed::<M>(body, forward, &self.endpoints, sim),
            StreamKind::Udp(udp) => udp.departed::<M>(body, &self.endpoints, sim),
            StreamKind::Ping(_) | StreamKind::Gone => {}
        }
    }

    /// A packet of the stream arrived at the relay of this number.
    fn relay<M: Mode>(&mut self, number: usize, body: &Body, forward: bool, sim: &mut SimContext) {
        let StreamKind::Tcp(tcp) = &mut self.kind else { return };
        if tcp.passes(number, body, forward, sim) {
            self.endpoints.relay::<M>(number, *body, forward, sim);
            self.endpoints.relays.remove(number);
        } else {
            tcp.relay::<M>(number, body, forward, &self.endpoints, sim);
        }
    }

    /// Whether nothing more will come of it once the network is empty.
    pub(crate) fn finished(&self) -> bool {
        match &self.kind {
            StreamKind::Tcp(tcp) => tcp.finished(),
            StreamKind::Udp(udp) => udp.stopped(),
            StreamKind::Ping(ping) => ping.stopped(),
            StreamKind::Gone => true,
        }
    }

    /// Payload bytes its receiving application has got so far.
    pub(crate) fn bytes_received(&self) -> u64 {
        match &self.kind {
            StreamKind::Tcp(tcp) => tcp.bytes_received(),
            StreamKind::Udp(udp) => udp.reception.bytes(),
            StreamKind::Ping(ping) => ping.bytes(ping.replies()),
            StreamKind::Gone => 0,
        }
    }
}
