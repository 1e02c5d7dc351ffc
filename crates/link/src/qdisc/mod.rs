//! Queue disciplines: which packets wait, which is sent next, which are dropped or marked.
//!
//! A discipline is a type in a file of its own that implements [`Qdisc`]; a variant of [`Discipline`] and of
//! `config::Queue` make it known. It reads no clock: whatever it does happens in `enqueue` and `dequeue`, at the
//! time they are given. One that updates its state at intervals catches up there, as nothing else changes a queue.

mod cake;
mod codel;
#[cfg(test)]
mod contract;
mod counting;
mod discipline;
mod droptail;
mod drr;
mod dualpi2;
mod fifo;
mod fq;
mod fq_codel;
mod pie;
mod prio;
mod red;
mod tbf;
#[cfg(test)]
pub(crate) mod testing;

use std::borrow::Cow;

use tcplab_units::{Rate, Span, Time};

pub(crate) use cake::Cake;
pub(crate) use codel::Codel;
pub(crate) use discipline::Discipline;
pub(crate) use droptail::Droptail;
pub(crate) use drr::Drr;
pub(crate) use dualpi2::Dualpi2;
pub(crate) use fq::Fq;
pub(crate) use fq_codel::FqCodel;
pub(crate) use pie::Pie;
pub(crate) use prio::Prio;
pub(crate) use red::Red;
pub(crate) use tbf::Tbf;

use crate::config::Change;
use crate::inside::Inside;
use crate::packet::Packet;

/// A queue discipline.
///
/// The packet in transmission is not in the queue: `dequeue` hands it over.
pub trait Qdisc<P: Packet> {
    /// Takes `packet` in or refuses it, and notifies `sink` which: `enqueued` or `rejected`, once.
    ///
    /// It may drop other packets to make room.
    fn enqueue(&mut self, packet: Queued<P>, now: Time, sink: &mut impl Sink<P>);

    /// Takes the packet out that is sent at `now`. It may drop and mark packets first, and notifies `sink`.
    ///
    /// Where it returns none, `next_ready(now)` is later than `now` from then on.
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>>;

    /// A shaper around it holds `bytes` of what it has handed over: a packet that waits for tokens, and so has not left.
    #[inline]
    fn hold(&mut self, _bytes: u64, _now: Time) {}

    /// When `dequeue` can return a packet: no later than `now` where it can at once, `NEVER` where nothing waits.
    #[inline]
    fn next_ready(&self, now: Time) -> Time {
        if self.backlog().packets == 0 { Time::NEVER } else { now }
    }

    /// Whether a packet that finds the link idle and the queue empty passes without entering the queue, as with
    /// Linux's `TCQ_F_CAN_BYPASS`. Only for a discipline whose state does not depend on such packets.
    #[inline]
    fn can_bypass(&self) -> bool {
        false
    }

    /// The queue's contents.
    fn backlog(&self) -> Backlog;

    /// When the packet at the head arrived.
    fn head_since(&self) -> Option<Time>;

    /// Contents and counts of the classes, for a discipline that has classes.
    fn classes(&self) -> Vec<Class> {
        Vec::new()
    }

    /// State worth plotting: a drop probability, a delay.
    fn gauges(&self, _now: Time) -> Vec<Gauge> {
        Vec::new()
    }

    /// New settings for arrivals: those of `change` that concern it; what waits stays. `rate` is the link's.
    fn change(&mut self, change: &Change, rate: Option<Rate>);

    /// The link's new rate, at which limits given as time are converted; none: there is no rate.
    fn set_rate(&mut self, rate: Option<Rate>);

    /// Drops all that waits.
    fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>);
}

/// A packet that waits in a queue or is being sent.
#[derive(Clone, Debug)]
pub struct Queued<P> {
    /// The packet.
    pub packet: P,
    /// It was offered to the link as the `number`th, counted from 1: what impairments draw by.
    pub number: u64,
    /// When it arrived.
    pub since: Time,
}

/// Packets and bytes that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Frame bytes.
    pub bytes: u64,
}

impl Backlog {
    /// This and one more packet.
    #[inline]
    pub(crate) fn and(self, frame_len: u32) -> Backlog {
        Backlog { packets: self.packets + 1, bytes: self.bytes + u64::from(frame_len) }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// There was no room within the limit.
    Overlimit,
    /// An active queue management dropped it to signal congestion.
    Early,
    /// The link is down.
    Down,
    /// The policer had no tokens for it.
    Policed,
    /// A later acknowledgment made it redundant.
    Redundant,
}

impl Cause {
    /// How many there are.
    pub const COUNT: usize = 5;
}

/// Packets dropped so far, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; Cause::COUNT]);

impl Drops {
    /// One more, for this cause.
    #[inline]
    pub(crate) fn count(&mut self, cause: Cause) {
        self.0[cause as usize] += 1;
    }

    /// Those for this cause.
    pub fn by(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// A figure that a discipline shows of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// Its name, as in `tc -s` where it is there.
    pub name: Cow<'static, str>,
    /// Its value, in `unit`.
    pub value: f64,
    /// Its unit; empty for a share or a count.
    pub unit: &'static str,
}

impl Gauge {
    /// A share or a count.
    pub(crate) fn plain(name: &'static str, value: f64) -> Gauge {
        Gauge { name: name.into(), value, unit: "" }
    }

    /// A time, in ms.
    pub(crate) fn time(name: &'static str, value: Span) -> Gauge {
        Gauge { name: name.into(), value: value.as_secs_f64() * 1e3, unit: "ms" }
    }

    /// The same of the class `class` within a discipline.
    pub(crate) fn of_class(self, class: &str) -> Gauge {
        Gauge { name: format!("{class}: {}", self.name).into(), ..self }
    }
}

/// Contents of a class, and its counts since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name within the discipline.
    pub name: String,
    /// The queue's contents.
    pub backlog: Backlog,
    /// When the packet at its head arrived.
    pub head_since: Option<Time>,
    /// Packets dequeued.
    pub packets_out: u64,
    /// Frame bytes dequeued.
    pub bytes_out: u64,
    /// Packets dropped, refused ones included.
    pub drops: Drops,
    /// Packets marked.
    pub marked: u64,
}

/// A discipline notifies it of what it does to a packet, at the time it was called with.
///
/// A nested discipline hands its own sink on to its children: each packet is reported once.
pub trait Sink<P> {
    /// `packet` waits from now on.
    fn enqueued(&mut self, packet: &P);
    /// `packet`, which arrived just now, was refused.
    fn rejected(&mut self, packet: &P, cause: Cause);
    /// `packet`, which waited, was dropped.
    fn dropped(&mut self, packet: &P, cause: Cause);
    /// `packet` was marked "congestion experienced".
    fn marked(&mut self, packet: &P);

    /// The fields of `packet`, as far as they are known.
    fn inside(&self, _packet: &P) -> Inside {
        Inside::default()
    }
}
