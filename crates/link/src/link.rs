//! One direction of a link, put together.

use tcplab_units::{Span, Time};

use crate::channel::Channel;
use crate::config::{self, Change, Direction};
use crate::observer::{Event, Observer};
use crate::packet::Packet;
use crate::plain::Plain;
use crate::policer::Policer;
use crate::port::Port;
use crate::qdisc::{Cause, Class, Gauge, Queued};
use crate::stats::{QueueSample, Stats};

/// One direction of a link: policer, port and channel.
///
/// It does nothing by itself: every call first advances it to `now`, doing all that happened meanwhile
/// at its exact logical time and in order. So one call for each delivery is enough, and a caller that
/// is late accumulates no lateness. A packet may be offered at a time before that of an earlier call, as a real-time caller
/// does that learns late of an arrival. It counts as having come when the last packet had been sent, if that was later: the
/// link is never faster than its rate.
#[derive(Clone, Debug)]
pub struct Link<P> {
    policer: Option<Policer>,
    port: Port<P>,
    channel: Channel<P>,
    /// In place of queue and service, where departures are computed as packets come.
    plain: Option<Plain>,
    up: bool,
    /// Ascending by time; those before `changes_done` are applied.
    changes: Vec<Change>,
    changes_done: usize,
    next_change: Time,
    stats: Stats,
}

impl<P: Packet> Link<P> {
    /// A link direction with these settings, whose random streams derive from `seed`.
    ///
    /// `seed` should come from `component_seed(run seed, name of this direction)`.
    pub fn new(config: &Direction, seed: u64) -> Link<P> {
        let channel = Channel::new(config, seed);
        let mut changes = config.changes.clone();
        changes.sort_by_key(|change| change.at);
        Link {
            policer: config.policer.map(Policer::new),
            port: Port::new(&config.queue, channel.rate(), seed),
            channel,
            plain: None,
            up: config.up,
            next_change: changes.first().map_or(Time::NEVER, |change| change.at),
            changes,
            changes_done: 0,
            stats: Stats::default(),
        }
    }

    /// The same for an observer that attends to drops, marks and losses only: what can be computed ahead is. Calls come in the
    /// order of their times, and changes cannot be planned later.
    pub fn ahead(config: &Direction, seed: u64) -> Link<P> {
        Link { plain: Plain::new(config), ..Link::new(config, seed) }
    }

    /// Nothing is computed ahead any more. No packet has come yet.
    pub fn observe_all(&mut self) {
        debug_assert!(self.stats.packets_in == 0);
        self.plain = None;
    }

    /// How much later than it is offered a packet arrives at least, where what is offered later changes nothing of those on
    /// their way; else zero. So long ahead of the present arrivals can be polled.
    #[inline]
    pub fn lookahead(&self) -> Span {
        self.plain.as_ref().map_or(Span::ZERO, Plain::delay)
    }

    /// One that shares a medium and has a rate. It sends when the medium says so, in transmissions: `ready`,
    /// `begin_transmission` and `end_transmission` are for the medium.
    pub fn on_medium(config: &Direction, seed: u64) -> Link<P> {
        let mut link = Link::new(config, seed);
        link.channel.share();
        link
    }

    /// The host at the far end takes as long as a Linux host to notice what arrives. Packets that may overtake others
    /// (`reorder`) are noticed at once.
    pub fn wake_up(&mut self, seed: u64) {
        self.observe_all();
        self.channel.wake_up(seed);
    }

    /// When it has something to send over its medium: no later than `now` where it has, `NEVER` where nothing waits.
    pub fn ready(&mut self, now: Time, observer: &mut impl Observer<P>) -> Time {
        self.advance(now, observer);
        self.channel.ready(&self.port, now)
    }

    /// Begins a transmission over its medium; how long its frames take, none: nothing may leave now.
    pub fn begin_transmission(
        &mut self,
        medium: &config::Medium,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Span> {
        self.advance(now, observer);
        self.channel.begin_transmission(&mut self.port, medium, now, &mut self.stats, observer)
    }

    /// Ends it: what was not lost, nor waits for an older frame, goes on to the far end. Returns whether any frame arrived
    /// or was given up.
    pub fn end_transmission(
        &mut self,
        collided: bool,
        medium: &config::Medium,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> bool {
        self.advance(now, observer);
        let waiting = self.port.waiting();
        self.channel.end_transmission(collided, medium, now, waiting, &mut self.stats, observer)
    }

    /// Offers `packet` at `now`.
    #[inline]
    pub fn enqueue(&mut self, packet: P, now: Time, observer: &mut impl Observer<P>) {
        if let Some(plain) = &mut self.plain {
            return plain.enqueue(packet, now, self.channel.line(), &mut self.stats, observer);
        }
        self.enqueue_in_steps(packet, now, observer);
    }

    /// The same for `count` packets of one size, the n-th of which is `packet(n)`.
    #[inline]
    pub fn enqueue_run(
        &mut self,
        count: u32,
        packet: impl Fn(u32) -> P,
        now: Time,
        observer: &mut impl Observer<P>,
    ) {
        if let Some(plain) = &mut self.plain {
            return plain.enqueue_run(count, packet, now, self.channel.line(), &mut self.stats, observer);
        }
        for place in 0..count {
            self.enqueue_in_steps(packet(place), now, observer);
        }
    }

    fn enqueue_in_steps(&mut self, packet: P, now: Time, observer: &mut impl Observer<P>) {
        self.advance(now, observer);
        let now = now.max(self.channel.served());
        let (port, channel, stats) = (&mut self.port, &mut self.channel, &mut self.stats);
        stats.packets_in += 1;
        let number = stats.packets_in;
        let len = packet.frame_len();
        stats.bytes_in += u64::from(len);
        if !self.up {
            return port.reject(&packet, Cause::Down, now, stats, observer);
        }
        if channel.lose_before_queue(number) {
            stats.lost += 1;
            return observer.on(Event::Lose, now, &packet, port.waiting());
        }
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, len)) {
            return port.reject(&packet, Cause::Policed, now, stats, observer);
        }
        let packet = Queued { packet, number, since: now };
        if channel.is_free() && port.can_bypass() {
            observer.on(Event::Enqueue, now, &packet.packet, 0);
            return channel.send_at_once(packet, now, stats, observer);
        }
        port.enqueue(packet, now, stats, observer);
        if !channel.is_sending() {
            channel.begin(port, now, stats, observer);
        }
    }

    /// When `poll` wants calling next; `NEVER` if nothing is on its way.
    #[inline]
    pub fn next_event(&self) -> Time {
        let next = self.channel.next_arrival();
        // Changes of an idle link are applied when it is next used.
        if next == Time::NEVER { next } else { next.min(self.next_change) }
    }

    /// Whether it is known of each packet when it arrives, and none is lost or overtaken on its way.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// When the first packet of a plain link arrives, and the packet.
    #[inline]
    pub fn first(&self) -> Option<(Time, &P)> {
        self.channel.first()
    }

    /// The first packet of a plain link has arrived.
    #[inline]
    pub fn deliver_first(&mut self) {
        if let Some(packet) = self.channel.line().take_first() {
            self.stats.delivered += 1;
            self.stats.bytes_delivered += u64::from(packet.frame_len());
        }
    }

    /// The next packet that arrives by `now`, and exactly when it does.
    #[inline]
    pub fn poll(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<(Time, P)> {
        self.advance(now, observer);
        let (at, packet) = self.channel.take_due(now)?;
        self.stats.delivered += 1;
        self.stats.bytes_delivered += u64::from(packet.frame_len());
        observer.on(Event::Deliver, at, &packet, self.port.waiting());
        Some((at, packet))
    }

    /// A packet that will arrive after `ahead` others, if it is that far on its way and nothing overtakes it.
    #[inline]
    pub fn upcoming(&self, ahead: usize) -> Option<&P> {
        self.channel.upcoming(ahead)
    }

    /// The packet that the host at the far end handles with the one that arrived last, at `now`: both arrived before it woke up.
    pub fn arrived_meanwhile(&self, now: Time) -> Option<&P> {
        (self.channel.wakes_up() && self.channel.next_arrival() <= now).then(|| self.upcoming(0))?
    }

    /// `upcoming` will be asked soon for the packet that arrives after `ahead` others.
    #[inline]
    pub fn prefetch(&self, ahead: usize) {
        self.channel.prefetch(ahead);
    }

    /// The packets and bytes that wait in the queue at `now`.
    pub fn sample(&mut self, now: Time, observer: &mut impl Observer<P>) -> QueueSample {
        if let Some(plain) = &mut self.plain {
            return plain.sample(now, self.channel.line(), &mut self.stats);
        }
        self.advance(now, observer);
        self.port.sample(now)
    }

    /// Contents and counters of the queue's classes at the time of the last call; empty where it has none.
    pub fn classes(&self) -> Vec<Class> {
        self.port.classes()
    }

    /// The queue discipline's state at `now`, and what it has dropped so far by cause; empty where it has none.
    pub fn gauges(&mut self, now: Time, observer: &mut impl Observer<P>) -> Vec<Gauge> {
        self.advance(now, observer);
        let mut gauges = self.port.gauges(now);
        if !gauges.is_empty() {
            for (name, cause) in [("early_drop", Cause::Early), ("overlimit", Cause::Overlimit)] {
                let value = self.stats.dropped_by(cause) as f64;
                gauges.push(Gauge { name: name.into(), value, unit: "packets" });
            }
        }
        gauges.extend(self.channel.gauges());
        gauges
    }

    /// Plans another change, at a time that has not come yet.
    pub fn change(&mut self, change: Change) {
        debug_assert!(self.plain.is_none());
        let later = self.changes[self.changes_done..].partition_point(|other| other.at <= change.at);
        self.changes.insert(self.changes_done + later, change);
        self.next_change = self.changes[self.changes_done].at;
    }

    /// Counters since the start.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Packets inside: waiting, being sent and on their way.
    pub fn held(&self) -> usize {
        self.port.waiting() as usize + self.channel.held()
    }

    /// Does everything that happens up to and including `now`, each at its own time.
    ///
    /// `enqueue`, `poll` and `sample` do it by themselves; it is of use where events are wanted although
    /// none of them is called.
    #[inline]
    pub fn advance(&mut self, now: Time, observer: &mut impl Observer<P>) {
        if self.channel.next_step().min(self.next_change) <= now {
            self.catch_up(now, observer);
        }
    }

    #[inline(never)]
    fn catch_up(&mut self, now: Time, observer: &mut impl Observer<P>) {
        while self.channel.next_step().min(self.next_change) <= now {
            // A change comes before what happens at the same time. Nothing happens at `NEVER`.
            if self.next_change <= self.channel.next_step() {
                if self.next_change == Time::NEVER {
                    return;
                }
                self.apply_next_change(observer);
            } else {
                self.channel.step(&mut self.port, &mut self.stats, observer);
            }
        }
    }

    #[cold]
    fn apply_next_change(&mut self, observer: &mut impl Observer<P>) {
        let change = self.changes[self.changes_done].clone();
        self.changes_done += 1;
        self.next_change = self.changes.get(self.changes_done).map_or(Time::NEVER, |change| change.at);
        self.channel.change(&change);
        self.port.change(&change, self.channel.rate());
        if let Some(up) = change.up {
            self.up = up;
            if !up {
                // Packets that wait or are being sent are dropped; those on their way arrive.
                let sending = self.channel.cut();
                self.port.purge(sending, change.at, &mut self.stats, observer);
            }
        }
    }
}
