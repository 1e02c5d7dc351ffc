//! Shared by the tests of disciplines: a packet, and a sink that writes down what it is notified.

use tcplab_units::Time;

use super::{Cause, Qdisc, Queued, Sink};
use crate::config::Change;
use crate::packet::{Ecn, Packet};

/// A packet that is nothing but what disciplines look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) len: u32,
    pub(crate) flow: u32,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
}

impl Unit {
    /// Of flow 0, not capable of ECN, without a DSCP.
    pub(crate) fn new(len: u32) -> Unit {
        Unit { len, flow: 0, ecn: Ecn::NotEct, dscp: 0 }
    }
}

impl Packet for Unit {
    fn frame_len(&self) -> u32 {
        self.len
    }
    fn flow_hash(&self) -> u32 {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn corrupt(&mut self) {}
    fn duplicate(&self) -> Unit {
        *self
    }
}

/// The notifications of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notified {
    Enqueued,
    Rejected(Cause),
    Dropped(Cause),
    Marked,
}

impl<P> Sink<P> for Vec<Notified> {
    fn enqueued(&mut self, _: &P) {
        self.push(Notified::Enqueued);
    }
    fn rejected(&mut self, _: &P, cause: Cause) {
        self.push(Notified::Rejected(cause));
    }
    fn dropped(&mut self, _: &P, cause: Cause) {
        self.push(Notified::Dropped(cause));
    }
    fn marked(&mut self, _: &P) {
        self.push(Notified::Marked);
    }
}

/// A change of nothing.
pub(crate) fn no_change() -> Change {
    Change {
        at: Time::ZERO,
        rate: None,
        limit: None,
        mark_above: None,
        delay: None,
        jitter: None,
        reorder: None,
        loss: None,
        corrupt: None,
        duplicate: None,
        up: None,
    }
}

/// Enqueues `packet` and returns what `queue` notified the sink of.
pub(crate) fn enqueue(queue: &mut impl Qdisc<Unit>, packet: Unit, now: Time) -> Vec<Notified> {
    enqueue_number(queue, packet, 1, now)
}

/// Enqueues `packet` as the `number`th, which random decisions go by.
pub(crate) fn enqueue_number(
    queue: &mut impl Qdisc<Unit>,
    packet: Unit,
    number: u64,
    now: Time,
) -> Vec<Notified> {
    let mut notified = Vec::new();
    queue.enqueue(Queued { packet, number, since: now }, now, &mut notified);
    notified
}
