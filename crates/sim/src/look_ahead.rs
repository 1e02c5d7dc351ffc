//! Memory that will soon be read is asked for ahead of time.
//!
//! With thousands of connections, most of an arrival's time is spent waiting for the receiver's state, which the
//! processor's cache no longer holds. A delay line knows whose packets arrive next, so that their state can be on its
//! way while others are served. It is reached by pointers, each of which must be there before the next is followed:
//! hence the steps. No result depends on them.

use tcplab_units::prefetch_start;

use crate::network::DirectionId;
use crate::packet::Packet;
use crate::sim_context::SimContext;
use crate::stream::{Stream, StreamKind};
use crate::tcp_stream::TcpStream;

/// So many streams fit into the processor's cache, where looking ahead only costs.
const FEW: usize = 200;

/// The contents of so many packets fit into it.
const FEW_BODIES: usize = 4096;

/// How many arrivals ahead the entries of delay lines are asked for, from which the steps begin.
const ENTRIES: usize = 32;

/// How many arrivals ahead each step is taken.
const STEPS: [u32; 4] = [8, 6, 4, 2];

/// Whether looking ahead is worthwhile with so many streams.
pub(crate) fn pays(streams: usize) -> bool {
    streams > FEW
}

/// Whether it is with few streams, for the contents of packets alone.
#[inline]
pub(crate) fn pays_for_bodies(sim: &SimContext) -> bool {
    sim.bodies.room() > FEW_BODIES
}

/// Asks for the contents of a packet that arrives soon by `direction`.
#[inline]
pub(crate) fn look_ahead_at_bodies(sim: &SimContext, direction: DirectionId) {
    let link = sim.network.peek(direction);
    link.prefetch(ENTRIES);
    if let Some(packet) = link.upcoming(STEPS[0] as usize) {
        sim.bodies.prefetch(packet.body());
    }
}

/// The next arrivals of each link direction.
#[derive(Debug)]
pub(crate) struct LookAhead(Vec<Soon>);

/// The ends that the next packets of a direction go to.
#[derive(Clone, Debug)]
struct Soon {
    /// Bit n: the packet that arrives after n others goes to another end than the one before it. Only such ends are asked for:
    /// with 1,000 flows on 10 Gbit/s those of a tenth of the packets.
    turns: u32,
    /// So many packets are known.
    known: u32,
    /// The conversation of the last packet which is known.
    last: u32,
    /// The number of the next packet to arrive.
    next: u32,
    /// The ends of the packets at the turns by number, modulo their room: the stream's place, and whether packets to it go
    /// forward.
    ends: [(u32, bool); Soon::ROOM as usize],
}

impl Soon {
    const ROOM: u32 = 16;

    /// The turns at which a step is taken.
    const FOLLOWED: u32 = {
        let [_, stream, end, behind] = STEPS;
        1 << stream | 1 << end | 1 << behind
    };

    /// The end of the packet that arrives after `ahead` others.
    #[inline]
    fn end(&mut self, ahead: u32) -> &mut (u32, bool) {
        &mut self.ends[(self.next.wrapping_add(ahead) % Soon::ROOM) as usize]
    }

    /// The next packet that becomes known is `packet`, which goes to another end than the one before it.
    #[inline(never)]
    fn turn(&mut self, packet: &Packet, streams: &[Stream], sim: &SimContext) {
        self.last = packet.conversation();
        self.turns |= 1 << self.known;
        let place = sim.recorder.place(packet.stream());
        *self.end(self.known) = (place, packet.forward());
        if let Some(stream) = streams.get(place as usize) {
            prefetch_start(stream);
            sim.schedule.prefetch_end_timers(place);
        }
    }

    /// The connection of the packet after `ahead` others, and its end, where it is the first packet to it.
    #[inline]
    fn turned<'a>(&mut self, ahead: u32, streams: &'a [Stream]) -> Option<(&'a TcpStream, bool)> {
        if self.turns & 1 << ahead == 0 {
            return None;
        }
        let (place, forward) = *self.end(ahead);
        let StreamKind::Tcp(tcp) = &streams.get(place as usize)?.kind else { return None };
        Some((&**tcp, forward))
    }

    /// Takes the steps of the packets at which the end changes.
    #[inline(never)]
    fn follow(&mut self, streams: &[Stream]) {
        let [_, stream, end, behind] = STEPS;
        if let Some((tcp, _)) = self.turned(stream, streams) {
            tcp.prefetch();
        }
        if let Some((tcp, forward)) = self.turned(end, streams) {
            tcp.prefetch_end(forward);
        }
        if let Some((tcp, forward)) = self.turned(behind, streams) {
            tcp.prefetch_behind_end(forward);
        }
    }
}

impl LookAhead {
    /// That of a network with so many directions.
    pub(crate) fn new(directions: usize) -> LookAhead {
        let ends = [(u32::MAX, false); Soon::ROOM as usize];
        LookAhead(vec![Soon { turns: 0, known: 0, last: u32::MAX, next: 0, ends }; directions])
    }

    /// A packet arrived by `direction`: asks for what the next ones will need.
    #[inline]
    pub(crate) fn arrived(&mut self, streams: &[Stream], sim: &SimContext, direction: DirectionId) {
        let soon = &mut self.0[direction as usize];
        soon.turns >>= 1;
        soon.next = soon.next.wrapping_add(1);
        soon.known = soon.known.saturating_sub(1);
        let link = sim.network.peek(direction);
        link.prefetch(ENTRIES);
        while soon.known <= STEPS[0]
            && let Some(packet) = link.upcoming(soon.known as usize)
        {
            sim.bodies.prefetch(packet.body());
            if packet.conversation() != soon.last {
                soon.turn(packet, streams, sim);
            }
            soon.known += 1;
        }
        if soon.turns & Soon::FOLLOWED != 0 {
            soon.follow(streams);
        }
    }
}

/// Asks for the counters of streams that are sampled soon: `ahead` has the one that comes after so many others.
pub(crate) fn look_ahead_at_counters<'a>(ahead: impl Fn(usize) -> Option<&'a Stream>) {
    let [stream, _, end, _] = STEPS;
    if let Some(StreamKind::Tcp(tcp)) = ahead(stream as usize).map(|stream| &stream.kind) {
        tcp.prefetch();
    }
    if let Some(StreamKind::Tcp(tcp)) = ahead(end as usize).map(|stream| &stream.kind) {
        tcp.prefetch_counters();
    }
}
