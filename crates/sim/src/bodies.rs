//! The contents of packets on their way.
//!
//! A packet names its body by number; the body is written when it is sent and read when it arrives, and never moved in
//! between. Copies that a link makes share the body of their original, and segments of a burst that are alike have one.

use tcplab_tcp::Segment;
use tcplab_tcp::segment::{FIN, RST, SYN};
use tcplab_units::prefetch;

use crate::packet::{Body, Packet};

/// A body's place.
pub(crate) type BodyId = u32;

/// How many insertions ahead a free place is asked for.
const AHEAD: usize = 6;

#[derive(Debug)]
struct Slot {
    body: Body,
    /// Packets that carry it.
    packets: u32,
    /// The stream whose packets these are.
    stream: u32,
    /// The sequence number of the first segment, where several have this body.
    first_seq: u32,
}

/// The bodies of all packets in a network.
#[derive(Debug)]
pub(crate) struct Bodies {
    slots: Vec<Slot>,
    /// The free places. The one left last is used next, as it may be in the processor's cache still.
    free: Vec<BodyId>,
}

impl Bodies {
    pub(crate) fn new() -> Bodies {
        Bodies { slots: Vec::new(), free: Vec::new() }
    }

    /// A place for a body; none: there has to be one more.
    #[inline]
    fn free_place(&mut self) -> Option<BodyId> {
        let id = self.free.pop()?;
        if let Some(&soon) = self.free.len().checked_sub(AHEAD).and_then(|index| self.free.get(index)) {
            self.prefetch(soon);
        }
        Some(id)
    }

    /// Keeps the body of a packet that `stream` sends.
    #[inline]
    pub(crate) fn insert(&mut self, body: Body, stream: u32) -> BodyId {
        let Some(id) = self.free_place() else { return self.grow(body, stream) };
        self.slots[id as usize] = Slot { body, packets: 1, stream, first_seq: first_seq(&body) };
        id
    }

    /// The same for a run of segments, the first of which is copied once.
    #[inline]
    pub(crate) fn insert_run(&mut self, segment: &Segment, count: u32, stream: u32) -> BodyId {
        let Some(id) = self.free_place() else {
            let id = self.grow(Body::Tcp(*segment), stream);
            self.slots[id as usize].packets = count;
            return id;
        };
        let slot = &mut self.slots[id as usize];
        match &mut slot.body {
            // As a rule a segment was there before.
            Body::Tcp(place) => *place = *segment,
            other => *other = Body::Tcp(*segment),
        }
        slot.packets = count;
        slot.stream = stream;
        slot.first_seq = segment.seq;
        id
    }

    #[cold]
    fn grow(&mut self, body: Body, stream: u32) -> BodyId {
        let id = self.slots.len() as BodyId;
        self.slots.push(Slot { body, packets: 1, stream, first_seq: first_seq(&body) });
        id
    }

    /// The contents of `packet`.
    #[inline]
    pub(crate) fn get(&self, packet: &Packet) -> Body {
        let slot = &self.slots[packet.body() as usize];
        let mut body = slot.body;
        if let Body::Tcp(segment) = &mut body {
            fit(segment, packet, slot.first_seq);
        }
        body
    }

    /// The segment of `packet`, where it lies; none: its contents are of another kind.
    #[inline]
    pub(crate) fn segment(&mut self, packet: &Packet) -> Option<&Segment> {
        let slot = &mut self.slots[packet.body() as usize];
        let Body::Tcp(segment) = &mut slot.body else { return None };
        fit(segment, packet, slot.first_seq);
        Some(segment)
    }

    /// Whether `packet` brings data of a connection, and neither opens nor ends it.
    #[inline]
    pub(crate) fn is_data(&self, packet: &Packet) -> bool {
        matches!(&self.slots[packet.body() as usize].body,
            Body::Tcp(segment) if segment.len > 0 && segment.flags & (SYN | FIN | RST) == 0)
    }

    /// The contents of a packet that has come to its end.
    pub(crate) fn take(&mut self, packet: &Packet) -> Body {
        let body = self.get(packet);
        self.release(packet.body());
        body
    }

    /// The body `id` will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, id: BodyId) {
        prefetch(&self.slots[id as usize]);
    }

    /// How many were kept at most.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.slots.len()
    }

    /// A link made a copy of a packet with this body.
    pub(crate) fn share(&mut self, id: BodyId) {
        self.slots[id as usize].packets += 1;
    }

    /// A packet with this body is gone.
    #[inline]
    pub(crate) fn release(&mut self, id: BodyId) {
        let slot = &mut self.slots[id as usize];
        slot.packets -= 1;
        if slot.packets == 0 {
            self.free.push(id);
        }
    }

    /// The streams that have packets on their way; one with several may come several times.
    pub(crate) fn streams(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().filter(|slot| slot.packets > 0).map(|slot| slot.stream)
    }

    /// How many are kept.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.slots.iter().filter(|slot| slot.packets > 0).count()
    }
}

/// Makes a segment that packets share that of `packet`, by its place behind the first one and the mark that a queue set.
#[inline]
fn fit(segment: &mut Segment, packet: &Packet, first_seq: u32) {
    segment.seq = first_seq.wrapping_add(packet.place().wrapping_mul(segment.len));
    segment.ecn = packet.ecn_bits();
}

fn first_seq(body: &Body) -> u32 {
    if let Body::Tcp(segment) = body { segment.seq } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(number: u64) -> Body {
        Body::Echo { number, row: 0, payload: 0, reply: false }
    }

    fn packet(body: BodyId) -> Packet {
        Packet::new(body, 0, 0, 0, 0)
    }

    #[test]
    fn places_are_used_again() {
        let mut bodies = Bodies::new();
        let first = bodies.insert(body(1), 0);
        let second = bodies.insert(body(2), 7);
        assert_eq!(bodies.streams().collect::<Vec<_>>(), [0, 7]);
        bodies.release(first);
        assert_eq!(bodies.insert(body(3), 0), first);
        assert_eq!([first, second].map(|id| bodies.get(&packet(id))), [body(3), body(2)]);
        assert_eq!(bodies.slots.len(), 2);
    }

    #[test]
    fn a_body_is_kept_until_its_last_copy_is_gone() {
        let mut bodies = Bodies::new();
        let id = bodies.insert(body(1), 0);
        bodies.share(id);
        bodies.release(id);
        assert_eq!((bodies.get(&packet(id)), bodies.kept()), (body(1), 1));
        bodies.release(id);
        assert_eq!(bodies.kept(), 0);
    }
}
