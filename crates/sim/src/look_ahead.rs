//! Memory that will soon be read is asked for ahead of time.
//!
//! With thousands of connections, most of an arrival's time is spent waiting for the receiver's state, which the
//! processor's cache no longer holds. A delay line knows whose packets arrive next, so that their state can be on its
//! way while others are served. It is reached by pointers, each of which must be there before the next is followed:
//! hence the steps. No result depends on them.

use tcplab_link::Link;
use tcplab_units::prefetch_start;

use crate::bodies::{Bodies, BodyId};
use crate::network::DirectionId;
use crate::packet::Packet;
use crate::sim_context::SimContext;
use crate::stream::{Stream, StreamKind};
use crate::tcp_stream::TcpStream;

/// So many streams fit into the processor's cache, where looking ahead only costs.
const FEW: usize = 200;

/// The contents of so many packets fit into it.
const FEW_BODIES: usize = 4096;

/// How many arrivals ahead of those that are known the entries of delay lines are asked for.
const ENTRIES: usize = 32;

/// How many arrivals ahead the contents of packets are asked for.
const BODIES: usize = 8;

/// How many trains ahead each step is taken: for the stream, its connection, the end of that, and what is behind the end.
const STEPS: [u32; 4] = [4, 3, 2, 1];

/// How many samples ahead the stream and its end are asked for.
const COUNTERS: [usize; 2] = [8, 4];

/// So many packets of a direction are known at most.
const KNOWN: u32 = 64;

/// Whether looking ahead is worthwhile with so many streams.
pub(crate) fn pays(streams: usize) -> bool {
    streams > FEW
}

/// Whether it is with few streams, for the contents of packets alone.
#[inline]
pub(crate) fn pays_for_bodies(bodies: &Bodies) -> bool {
    bodies.room() > FEW_BODIES
}

/// Asks for the contents of a packet that arrives soon by `link`.
#[inline]
pub(crate) fn look_ahead_at_bodies(link: &Link<Packet>, bodies: &Bodies) {
    link.prefetch(ENTRIES);
    if let Some(packet) = link.upcoming(BODIES) {
        bodies.prefetch(packet.body());
    }
}

/// The next trains of each link direction: packets that go to the same end, one after another.
#[derive(Debug)]
pub(crate) struct LookAhead(Vec<Soon>);

/// The ends that the next packets of a direction go to.
#[derive(Clone, Debug)]
struct Soon {
    /// The end of each train that is known, by its number modulo their room: the stream's place, and whether packets go forward.
    ends: [(u32, bool); Soon::ROOM as usize],
    /// The number of the first train.
    first: u32,
    /// How many are known.
    trains: u32,
    /// So many packets are known.
    packets: u32,
    /// The conversation of the last of these, and its contents.
    last: (u32, BodyId),
    /// All that the first train needs has been asked for.
    begun: bool,
}

impl Soon {
    const ROOM: u32 = 8;
    const NONE: (u32, BodyId) = (u32::MAX, BodyId::MAX);

    /// Looks at one packet more.
    #[inline]
    fn note(&mut self, packet: &Packet, streams: &[Stream], sim: &SimContext) {
        self.packets += 1;
        let (conversation, body) = (packet.conversation(), packet.body());
        if body != self.last.1 {
            sim.bodies.prefetch(body);
        }
        if conversation != self.last.0 {
            let place = sim.recorder.place(packet.stream());
            self.ends[(self.first.wrapping_add(self.trains) % Soon::ROOM) as usize] =
                (place, packet.forward());
            self.trains += 1;
            if let Some(stream) = streams.get(place as usize) {
                prefetch_start(stream);
                sim.schedule.prefetch_end_timers(place);
            }
        }
        self.last = (conversation, body);
    }

    /// The connection of the train after `ahead` others, and its end.
    #[inline]
    fn train<'a>(&self, ahead: u32, streams: &'a [Stream]) -> Option<(&'a TcpStream, bool)> {
        if ahead >= self.trains {
            return None;
        }
        let (place, forward) = self.ends[(self.first.wrapping_add(ahead) % Soon::ROOM) as usize];
        let StreamKind::Tcp(tcp) = &streams.get(place as usize)?.kind else { return None };
        Some((&**tcp, forward))
    }

    /// Takes the steps of the trains after the first one, which begins.
    #[inline(never)]
    fn begin(&mut self, streams: &[Stream], sim: &SimContext, direction: DirectionId) {
        self.begun = true;
        let link = sim.network.peek(direction);
        let [stream, connection, end, behind] = STEPS;
        while self.trains <= stream
            && self.packets < KNOWN
            && let Some(packet) = link.upcoming(self.packets as usize)
        {
            self.note(packet, streams, sim);
            link.prefetch(self.packets as usize + ENTRIES);
        }
        if let Some((tcp, _)) = self.train(connection, streams) {
            tcp.prefetch();
        }
        if let Some((tcp, forward)) = self.train(end, streams) {
            tcp.prefetch_end(forward);
        }
        if let Some((tcp, forward)) = self.train(behind, streams) {
            tcp.prefetch_behind_end(forward);
        }
    }
}

impl LookAhead {
    /// That of a network with so many directions.
    pub(crate) fn new(directions: usize) -> LookAhead {
        let ends = [(u32::MAX, false); Soon::ROOM as usize];
        LookAhead(vec![
            Soon { ends, first: 0, trains: 0, packets: 0, last: Soon::NONE, begun: false };
            directions
        ])
    }

    /// Packets will arrive by `direction`: asks for what those after the first train of them need.
    #[inline]
    pub(crate) fn begin(&mut self, streams: &[Stream], sim: &SimContext, direction: DirectionId) {
        let soon = &mut self.0[direction as usize];
        if !soon.begun {
            soon.begin(streams, sim, direction);
        }
    }

    /// `packets` of one `conversation` have arrived by `direction`.
    #[inline]
    pub(crate) fn arrived(
        &mut self,
        packets: u32,
        conversation: u32,
        sim: &SimContext,
        direction: DirectionId,
    ) {
        let soon = &mut self.0[direction as usize];
        soon.packets = soon.packets.saturating_sub(packets);
        let next = sim.network.peek(direction).upcoming(0).map(Packet::conversation);
        if next != Some(conversation) {
            soon.begun = false;
            soon.first = soon.first.wrapping_add(1);
            soon.trains = soon.trains.saturating_sub(1);
        }
        if soon.packets == 0 {
            (soon.trains, soon.last) = (0, Soon::NONE);
        }
    }
}

/// Asks for the counters of streams that are sampled soon: `ahead` has the one that comes after so many others.
pub(crate) fn look_ahead_at_counters<'a>(ahead: impl Fn(usize) -> Option<&'a Stream>) {
    let [stream, end] = COUNTERS;
    if let Some(StreamKind::Tcp(tcp)) = ahead(stream).map(|stream| &stream.kind) {
        tcp.prefetch();
    }
    if let Some(StreamKind::Tcp(tcp)) = ahead(end).map(|stream| &stream.kind) {
        tcp.prefetch_counters();
    }
}
