//! A stream: one connection or source of a flow.

use tcplab_units::Time;

use crate::network::NodeId;
use crate::packet::{Body, Packet};
use crate::ping_stream::PingStream;
use crate::plan::IpVersion;
use crate::recorder::Mode;
use crate::tcp_stream::TcpStream;
use crate::udp_stream::UdpStream;
use crate::world::{Timer, World};

/// Where a stream is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// Its number, counted over all flows.
    pub(crate) stream: u32,
    /// The flow's place in the plan.
    pub(crate) flow: u32,
    /// The node that offers the load.
    pub(crate) from: NodeId,
    /// The node at the other end.
    pub(crate) to: NodeId,
    /// What carries its packets.
    pub(crate) ip: IpVersion,
    /// Differentiated services codepoint of its packets, there and back.
    pub(crate) dscp: u8,
    /// Where an accelerator splits the connection.
    pub(crate) accelerator: Option<NodeId>,
}

impl Ends {
    /// Sends `body` from one end to the other, or to the accelerator before it; there or back.
    ///
    /// Whether the host's interface had room for it.
    #[inline]
    pub(crate) fn send<M: Mode>(&self, body: Body, forward: bool, world: &mut World) -> bool {
        let (from, to) = if forward { (self.from, self.to) } else { (self.to, self.from) };
        self.send_on::<M>(body, forward, from, self.accelerator.unwrap_or(to), world)
    }

    /// Sends `body` from the accelerator to the end beyond it.
    pub(crate) fn relay<M: Mode>(&self, body: Body, forward: bool, world: &mut World) {
        let Some(accelerator) = self.accelerator else { return };
        self.send_on::<M>(body, forward, accelerator, if forward { self.to } else { self.from }, world);
    }

    #[inline]
    fn send_on<M: Mode>(
        &self,
        body: Body,
        forward: bool,
        from: NodeId,
        to: NodeId,
        world: &mut World,
    ) -> bool {
        let ecn = if let Body::Tcp(segment) = &body { segment.ecn } else { 0 };
        let packet = Packet {
            frame_len: body.frame_len(self.ip),
            conversation: self.stream << 1 | u32::from(forward),
            destination: to,
            traffic_class: self.dscp << 2 | ecn,
            corrupted: false,
            body: world.bodies.insert(body),
        };
        world.send::<M>(from, packet)
    }
}

/// What a stream does.
#[derive(Debug)]
pub(crate) enum Work {
    /// A connection, for bulk data or for requests.
    Tcp(Box<TcpStream>),
    /// Datagrams.
    Udp(Box<UdpStream>),
    /// Probes.
    Ping(Box<PingStream>),
}

/// A stream at work.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) ends: Ends,
    /// The flow's place in the plan.
    pub(crate) flow: usize,
    pub(crate) start: Time,
    /// It is counted as finished.
    pub(crate) done: bool,
    pub(crate) work: Work,
    pub(crate) interval: Interval,
}

/// What a stream's counters stood at when they were sampled last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interval {
    pub(crate) since: Time,
    pub(crate) counts: Counts,
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
    pub(crate) fn wake<M: Mode>(&mut self, timer: Timer, world: &mut World) {
        match &mut self.work {
            Work::Tcp(tcp) => tcp.wake::<M>(timer, &self.ends, world),
            Work::Udp(udp) => udp.wake::<M>(&self.ends, world),
            Work::Ping(ping) => ping.wake::<M>(&self.ends, world),
        }
    }

    /// A packet of the stream arrived at the end it was sent to.
    #[inline]
    pub(crate) fn receive<M: Mode>(&mut self, body: &Body, forward: bool, world: &mut World) {
        match &mut self.work {
            Work::Tcp(tcp) => tcp.receive::<M>(body, forward, &self.ends, world),
            Work::Udp(udp) => udp.receive(body, world.now()),
            Work::Ping(ping) => ping.receive::<M>(body, &self.ends, world),
        }
    }

    /// The host that sent a packet of the stream has it no longer.
    pub(crate) fn departed<M: Mode>(&mut self, body: &Body, forward: bool, world: &mut World) {
        if let Work::Tcp(tcp) = &mut self.work {
            tcp.departed::<M>(body, forward, &self.ends, world);
        }
    }

    /// A packet of the stream arrived at the accelerator on its way.
    pub(crate) fn relay<M: Mode>(&mut self, body: &Body, forward: bool, world: &mut World) {
        if let Work::Tcp(tcp) = &mut self.work {
            tcp.relay::<M>(body, forward, &self.ends, world);
        }
    }

    /// Whether nothing more will come of it once the network is empty.
    pub(crate) fn finished(&self) -> bool {
        match &self.work {
            Work::Tcp(tcp) => tcp.finished(),
            Work::Udp(udp) => udp.stopped(),
            Work::Ping(ping) => ping.stopped(),
        }
    }

    /// Payload bytes its receiving application has got so far.
    pub(crate) fn bytes_received(&self) -> u64 {
        match &self.work {
            Work::Tcp(tcp) => tcp.bytes_received(),
            Work::Udp(udp) => udp.reception.bytes(),
            Work::Ping(ping) => ping.bytes(ping.replies()),
        }
    }
}
