//! Memory that will soon be read is asked for ahead of time.
//!
//! With thousands of connections, most of an arrival's time is spent waiting for the receiver's state, which the
//! processor's cache no longer holds. A delay line knows whose packets arrive next, so that their state can be on its
//! way while others are served. It is reached by pointers, each of which must be there before the next is followed:
//! hence the steps. No result depends on them.

use std::mem::offset_of;

use tcplab_units::prefetch_start;

use crate::network::DirectionId;
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
const STEPS: [usize; 4] = [8, 6, 4, 2];

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
    if let Some(packet) = link.upcoming(STEPS[0]) {
        sim.bodies.prefetch(packet.body());
    }
}

/// The next arrivals of each link direction.
#[derive(Debug)]
pub(crate) struct LookAhead(Vec<Soon>);

/// The ends that the next packets of a direction go to.
#[derive(Clone, Debug)]
struct Soon {
    /// Those of the packets by number, modulo their room.
    ends: [End; Soon::ROOM],
    /// That of the last packet which is known.
    last: End,
    /// The number of the next packet to arrive.
    next: usize,
    /// So many packets from there on are known.
    known: usize,
}

/// The end of a stream to which a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    place: u32,
    forward: bool,
}

/// That of a packet for which nothing more has to be asked for.
const NONE: End = End { place: u32::MAX, forward: false };

impl Soon {
    const ROOM: usize = 16;

    /// The end of the packet that arrives after `ahead` others.
    #[inline]
    fn end(&mut self, ahead: usize) -> &mut End {
        &mut self.ends[(self.next.wrapping_add(ahead)) % Soon::ROOM]
    }
}

impl LookAhead {
    /// That of a network with so many directions.
    pub(crate) fn new(directions: usize) -> LookAhead {
        LookAhead(vec![Soon { ends: [NONE; Soon::ROOM], last: NONE, next: 0, known: 0 }; directions])
    }

    /// A packet arrived by `direction`: asks for what the next ones will need.
    pub(crate) fn arrived(&mut self, streams: &[Stream], sim: &SimContext, direction: DirectionId) {
        let [packet, stream, end, behind] = STEPS;
        let soon = &mut self.0[direction as usize];
        soon.next = soon.next.wrapping_add(1);
        soon.known = soon.known.saturating_sub(1);
        let link = sim.network.peek(direction);
        link.prefetch(ENTRIES);
        while soon.known <= packet
            && let Some(packet) = link.upcoming(soon.known)
        {
            sim.bodies.prefetch(packet.body());
            let end = End { place: sim.recorder.place(packet.stream()), forward: packet.forward() };
            // The packet before has asked for the same end.
            let is_asked = end == soon.last;
            *soon.end(soon.known) = if is_asked { NONE } else { end };
            if !is_asked && let Some(stream) = streams.get(end.place as usize) {
                prefetch_start::<{ offset_of!(Stream, flow) }>(stream);
                sim.schedule.prefetch_end_timers(end.place);
            }
            soon.last = end;
            soon.known += 1;
        }
        let mut connection = |ahead| -> Option<(&TcpStream, bool)> {
            let end = *soon.end(ahead);
            let StreamKind::Tcp(tcp) = &streams.get(end.place as usize)?.kind else { return None };
            Some((&**tcp, end.forward))
        };
        if let Some((tcp, _)) = connection(stream) {
            tcp.prefetch();
        }
        if let Some((tcp, forward)) = connection(end) {
            tcp.prefetch_end(forward);
        }
        if let Some((tcp, forward)) = connection(behind) {
            tcp.prefetch_behind_end(forward);
        }
    }
}

/// Asks for the counters of streams that are sampled soon: `ahead` has the one that comes after so many others.
pub(crate) fn look_ahead_at_counters<'a>(ahead: impl Fn(usize) -> Option<&'a Stream>) {
    let [stream, _, end, _] = STEPS;
    if let Some(StreamKind::Tcp(tcp)) = ahead(stream).map(|stream| &stream.kind) {
        tcp.prefetch();
    }
    if let Some(StreamKind::Tcp(tcp)) = ahead(end).map(|stream| &stream.kind) {
        tcp.prefetch_counters();
    }
}
