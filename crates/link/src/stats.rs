//! Counters of a link direction, and the contents of its queue.

use tcplab_units::Span;

use crate::qdisc::{Cause, Drops};

/// Counters since the start. `packets_in + duplicated = delivered + dropped + lost + held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets offered.
    pub packets_in: u64,
    /// Frame bytes offered.
    pub bytes_in: u64,
    /// Packets dropped by the queue discipline or by a link that is down.
    pub dropped: u64,
    drops: Drops,
    /// Packets marked "congestion experienced".
    pub marked: u64,
    /// Packets that left the queue, or found it empty and the link free. Where departures are computed ahead it is as old
    /// as the last sample.
    pub dequeued: u64,
    /// How long those had waited, added up; as old.
    pub waited: Span,
    /// Packets that left the serializer.
    pub serialized: u64,
    /// Frame bytes that left the serializer.
    pub bytes_serialized: u64,
    /// Bytes of the link's capacity that they took: with their overhead; at a trace, which counts IP packets, without their
    /// Ethernet header. Where departures are computed ahead it is as old as the last sample.
    pub capacity_used: u64,
    /// Packets taken by the loss process.
    pub lost: u64,
    /// Packets damaged (they are delivered).
    pub corrupted: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets delivered, copies and damaged ones included.
    pub delivered: u64,
    /// Frame bytes delivered.
    pub bytes_delivered: u64,
}

impl Stats {
    /// Packets dropped for this cause.
    pub fn dropped_by(&self, cause: Cause) -> u64 {
        self.drops.by(cause)
    }

    #[inline]
    pub(crate) fn count_drop(&mut self, cause: Cause) {
        self.dropped += 1;
        self.drops.count(cause);
    }
}

/// A queue at one instant. The packet in transmission is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSample {
    /// Packets that wait.
    pub packets: u32,
    /// Frame bytes that wait.
    pub bytes: u64,
    /// How long the first of them has waited; zero when none waits.
    pub head_sojourn: Span,
}
