//! A port: where packets wait for a channel.

use tcplab_units::{Rate, Span, Time};

use crate::config::{Change, Queue};
use crate::inside::Inside;
use crate::observer::{Event, Observer};
use crate::packet::Packet;
use crate::qdisc::{Cause, Class, Discipline, Gauge, Qdisc, Queued, Sink};
use crate::stats::{QueueSample, Stats};

/// A queue discipline, which counts what it does and reports it.
#[derive(Clone, Debug)]
pub(crate) struct Port<P> {
    queue: Discipline<P>,
    /// Packets in the queue.
    waiting: u32,
}

impl<P: Packet> Port<P> {
    /// A port with the discipline that `config` describes, in front of a channel with `rate`.
    pub(crate) fn new(config: &Queue, rate: Option<Rate>, seed: u64) -> Port<P> {
        Port { queue: Discipline::new(config, rate, seed), waiting: 0 }
    }

    /// Packets that wait.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Whether a packet that finds the channel idle passes without entering the queue.
    #[inline]
    pub(crate) fn can_bypass(&self) -> bool {
        self.queue.can_bypass()
    }

    /// When a packet may leave: no later than `now` where one may at once, `NEVER` where none waits.
    #[inline]
    pub(crate) fn next_ready(&self, now: Time) -> Time {
        self.queue.next_ready(now)
    }

    /// Takes `packet` in, or drops it.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        packet: Queued<P>,
        now: Time,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        let (queue, mut report) = self.queue_and_report(now, stats, observer);
        queue.enqueue(packet, now, &mut report);
    }

    /// Hands over the packet whose turn it is.
    #[inline]
    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) -> Option<Queued<P>> {
        let (queue, mut report) = self.queue_and_report(now, stats, observer);
        let next = queue.dequeue(now, &mut report)?;
        if *report.waiting == 1 {
            // As Linux's it asks until it gets none: so the queue learns that none waits.
            let none = queue.dequeue(now, &mut report);
            debug_assert!(none.is_none(), "a packet that did not wait");
        }
        self.waiting -= 1;
        stats.dequeued += 1;
        stats.waited += now.since(next.since);
        Some(next)
    }

    /// Drops `packet`, which does not wait.
    pub(crate) fn reject(
        &mut self,
        packet: &P,
        cause: Cause,
        now: Time,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        self.queue_and_report(now, stats, observer).1.rejected(packet, cause);
    }

    /// Drops all that waits, and before it `ahead`. The events of one instant all show the queue empty.
    pub(crate) fn purge(
        &mut self,
        ahead: impl Iterator<Item = P>,
        now: Time,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        self.waiting = 0;
        let (queue, mut report) = self.queue_and_report(now, stats, observer);
        for ahead in ahead {
            report.rejected(&ahead, Cause::Down);
        }
        queue.purge(Cause::Down, &mut report);
    }

    /// The packets and bytes that wait at `now`.
    pub(crate) fn sample(&self, now: Time) -> QueueSample {
        let backlog = self.queue.backlog();
        QueueSample {
            packets: backlog.packets,
            bytes: backlog.bytes,
            head_sojourn: self.queue.head_since().map_or(Span::ZERO, |since| now.since(since)),
        }
    }

    /// Contents and counters of the queue's classes; empty where it has none.
    pub(crate) fn classes(&self) -> Vec<Class> {
        self.queue.classes()
    }

    /// The queue discipline's state at `now`.
    pub(crate) fn gauges(&self, now: Time) -> Vec<Gauge> {
        self.queue.gauges(now)
    }

    /// New settings of the queue, in front of a channel with `rate`.
    pub(crate) fn change(&mut self, change: &Change, rate: Option<Rate>) {
        if change.rate.is_some() {
            self.queue.set_rate(rate);
        }
        self.queue.change(change, rate);
    }

    /// The queue, and the observer of what it does at `at`.
    #[inline]
    fn queue_and_report<'a, O: Observer<P>>(
        &'a mut self,
        at: Time,
        stats: &'a mut Stats,
        observer: &'a mut O,
    ) -> (&'a mut Discipline<P>, Report<'a, O>) {
        (&mut self.queue, Report { at, waiting: &mut self.waiting, stats, observer })
    }
}

/// Counts what the queue does, and notifies the observer.
struct Report<'a, O> {
    at: Time,
    waiting: &'a mut u32,
    stats: &'a mut Stats,
    observer: &'a mut O,
}

impl<P: Packet, O: Observer<P>> Sink<P> for Report<'_, O> {
    #[inline]
    fn enqueued(&mut self, packet: &P) {
        *self.waiting += 1;
        self.observer.on(Event::Enqueue, self.at, packet, *self.waiting);
    }

    #[inline]
    fn rejected(&mut self, packet: &P, cause: Cause) {
        self.stats.count_drop(cause);
        self.observer.on(Event::Drop, self.at, packet, *self.waiting);
    }

    #[inline]
    fn dropped(&mut self, packet: &P, cause: Cause) {
        *self.waiting = self.waiting.saturating_sub(1);
        self.rejected(packet, cause);
    }

    #[inline]
    fn marked(&mut self, packet: &P) {
        self.stats.marked += 1;
        self.observer.on(Event::Mark, self.at, packet, *self.waiting);
    }

    fn inside(&self, packet: &P) -> Inside {
        self.observer.inside(packet)
    }
}
