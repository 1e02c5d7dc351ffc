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

/// Asks for what the packets will need that arrive next by `direction`.
pub(crate) fn look_ahead(streams: &[Stream], sim: &SimContext, direction: DirectionId) {
    let link = sim.network.peek(direction);
    link.prefetch(ENTRIES);
    let connection = |ahead| -> Option<(&TcpStream, bool)> {
        let packet = link.upcoming(ahead)?;
        let stream = streams.get(sim.recorder.place(packet.stream()) as usize)?;
        let StreamKind::Tcp(tcp) = &stream.kind else { return None };
        Some((&**tcp, packet.forward()))
    };
    let [packet, stream, end, behind] = STEPS;
    if let Some(packet) = link.upcoming(packet) {
        sim.bodies.prefetch(packet.body());
        let place = sim.recorder.place(packet.stream());
        if let Some(stream) = streams.get(place as usize) {
            prefetch_start::<{ offset_of!(Stream, flow) }>(stream);
            sim.end_timers.prefetch(place);
        }
    }
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
