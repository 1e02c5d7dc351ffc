//! Counts of a class, taken between it and the sink of the discipline around it.

use tcplab_units::Time;

use super::{Backlog, Cause, Class, Drops, Sink};
use crate::inside::Inside;
use crate::packet::Packet;

/// Counters of a class since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    packets_out: u64,
    bytes_out: u64,
    drops: Drops,
    marked: u64,
}

impl Counts {
    /// `packet` was dequeued.
    #[inline]
    pub(crate) fn count_out(&mut self, packet: &impl Packet) {
        self.packets_out += 1;
        self.bytes_out += u64::from(packet.frame_len());
    }

    /// A packet of the class was dropped.
    #[inline]
    pub(crate) fn count_drop(&mut self, cause: Cause) {
        self.drops.count(cause);
    }

    /// A packet of the class was marked.
    #[inline]
    pub(crate) fn count_mark(&mut self) {
        self.marked += 1;
    }

    /// Whether packets have left the class, or were dropped.
    fn is_used(&self) -> bool {
        self.packets_out + self.drops.total() > 0
    }

    /// The class `name` with these counters, in which `backlog` waits, the first since `head_since`.
    pub(crate) fn class(&self, name: String, backlog: Backlog, head_since: Option<Time>) -> Class {
        let Counts { packets_out, bytes_out, drops, marked } = *self;
        Class { name, backlog, head_since, packets_out, bytes_out, drops, marked }
    }
}

/// The numbers of the classes that packets have joined, ascending: a few of perhaps 65,536, through all of which a sample would
/// take too long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Used(Vec<u32>);

impl Used {
    /// A packet joins the class `number`, which has these counters and is empty.
    #[inline]
    pub(crate) fn joins(&mut self, number: u32, counts: &Counts) {
        if !counts.is_used() {
            self.note(number);
        }
    }

    #[cold]
    fn note(&mut self, number: u32) {
        if let Err(place) = self.0.binary_search(&number) {
            self.0.insert(place, number);
        }
    }

    /// All.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}

/// Counts notifications, and passes them on. It is the same type however deep disciplines nest.
pub(crate) struct Counting<'a, P> {
    pub(crate) counts: &'a mut Counts,
    pub(crate) sink: &'a mut dyn Sink<P>,
}

impl<P> Sink<P> for Counting<'_, P> {
    fn enqueued(&mut self, packet: &P) {
        self.sink.enqueued(packet);
    }
    fn rejected(&mut self, packet: &P, cause: Cause) {
        self.counts.count_drop(cause);
        self.sink.rejected(packet, cause);
    }
    fn dropped(&mut self, packet: &P, cause: Cause) {
        self.counts.count_drop(cause);
        self.sink.dropped(packet, cause);
    }
    fn marked(&mut self, packet: &P) {
        self.counts.count_mark();
        self.sink.marked(packet);
    }
    fn inside(&self, packet: &P) -> Inside {
        self.sink.inside(packet)
    }
}
