//! One direction of a link, put together.

use tcplab_units::{Span, Time};

use crate::config::{Change, Direction};
use crate::correlated_chance::CorrelatedChance;
use crate::flight::Flight;
use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::observer::{Event, Observer};
use crate::packet::Packet;
use crate::qdisc::{Cause, Class, Discipline, Gauge, Qdisc, Queued, Sink};
use crate::reorder::Reordering;
use crate::service::Service;
use crate::stats::{QueueSample, Stats};

/// One direction of a link.
///
/// It does nothing by itself: every call first advances it to `now`, doing all that happened meanwhile
/// at its exact logical time and in order. So one call for each delivery is enough, and a caller that
/// is late accumulates no lateness. A packet may be offered at a time before that of an earlier call, as a real-time caller
/// does that learns late of an arrival. It counts as having come when the last packet had been sent, if that was later: the
/// link is never faster than its rate.
#[derive(Clone, Debug)]
pub struct Link<P> {
    queue: Discipline<P>,
    /// Packets in the queue.
    waiting: u32,
    service: Service,
    sending: Option<Queued<P>>,
    /// When what is being sent ends, or else the next packet may begin; `NEVER`: nothing to send.
    next_step: Time,
    /// When the serializer was last busy.
    served: Time,
    /// Where none is being sent: the one that may begin at `next_step` follows another without a gap.
    follows: bool,
    loss: Option<Loss>,
    corrupt: Option<CorrelatedChance>,
    duplicate: Option<CorrelatedChance>,
    delay: Span,
    jitter: Option<Jitter>,
    reorder: Option<Reordering>,
    flight: Flight<P>,
    up: bool,
    /// Ascending by time; those before `changes_done` are applied.
    changes: Vec<Change>,
    changes_done: usize,
    next_change: Time,
    seed: u64,
    stats: Stats,
}

impl<P: Packet> Link<P> {
    /// A link direction with these settings, whose random streams derive from `seed`.
    ///
    /// `seed` should come from `component_seed(run seed, name of this direction)`.
    pub fn new(config: &Direction, seed: u64) -> Link<P> {
        let service = Service::new(config);
        let mut changes = config.changes.clone();
        changes.sort_by_key(|change| change.at);
        Link {
            queue: Discipline::new(&config.queue, service.rate(), seed),
            waiting: 0,
            service,
            sending: None,
            next_step: Time::NEVER,
            served: Time::ZERO,
            follows: false,
            loss: config.loss.as_ref().map(|loss| Loss::new(loss, seed)),
            corrupt: config.corrupt.map(|chance| CorrelatedChance::new(chance, seed, "corrupt")),
            duplicate: config.duplicate.map(|chance| CorrelatedChance::new(chance, seed, "duplicate")),
            delay: config.delay,
            jitter: config.jitter.map(|jitter| Jitter::new(jitter, seed, Time::ZERO)),
            reorder: config.reorder.map(|reorder| Reordering::new(&reorder, seed)),
            flight: Flight::new(),
            up: config.up,
            next_change: changes.first().map_or(Time::NEVER, |change| change.at),
            changes,
            changes_done: 0,
            seed,
            stats: Stats::default(),
        }
    }

    /// Offers `packet` at `now`.
    #[inline]
    pub fn enqueue(&mut self, packet: P, now: Time, observer: &mut impl Observer<P>) {
        self.advance(now, observer);
        let now = now.max(self.served);
        self.stats.packets_in += 1;
        let number = self.stats.packets_in;
        self.stats.bytes_in += u64::from(packet.frame_len());
        if !self.up {
            return self.drop_packet(packet, now, observer);
        }
        if self.loss.as_mut().is_some_and(|loss| loss.before_queue() && loss.takes(number)) {
            return self.lose(packet, now, observer);
        }
        if self.next_step == Time::NEVER && self.queue.can_bypass() {
            match &mut self.service {
                Service::Instant => {
                    observer.on(Event::Enqueue, now, &packet, 0);
                    return self.depart(packet, number, now, observer);
                }
                Service::Rate(shaper) => {
                    observer.on(Event::Enqueue, now, &packet, 0);
                    self.next_step = shaper.send(now, false, packet.frame_len());
                    self.sending = Some(Queued { packet, number, since: now });
                    return;
                }
                // The next opportunity is later than now.
                Service::Trace(_) => {}
            }
        }
        let (queue, mut report) = self.queue_and_report(now, observer);
        queue.enqueue(Queued { packet, number, since: now }, now, &mut report);
        if self.sending.is_none() {
            self.begin_next(now, observer);
        }
    }

    /// When `poll` wants calling next; `NEVER` if nothing is on its way.
    #[inline]
    pub fn next_event(&self) -> Time {
        let mut next = self.flight.next();
        if self.next_step == Time::NEVER {
            if next == Time::NEVER {
                return Time::NEVER;
            }
        } else if self.reorder.is_some() {
            next = next.min(self.next_step);
        } else if next == Time::NEVER {
            // While order is kept, nothing arrives before what is already on its way.
            let least_delay = self.jitter.as_ref().map_or(self.delay, |jitter| jitter.least(self.delay));
            next = self.next_step + least_delay;
        }
        next.min(self.next_change)
    }

    /// The next packet that arrives by `now`, and exactly when it does.
    #[inline]
    pub fn poll(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<(Time, P)> {
        self.advance(now, observer);
        let (at, packet) = self.flight.take_due(now)?;
        self.stats.delivered += 1;
        self.stats.bytes_delivered += u64::from(packet.frame_len());
        observer.on(Event::Deliver, at, &packet, self.waiting);
        Some((at, packet))
    }

    /// What waits in the queue at `now`.
    pub fn sample(&mut self, now: Time, observer: &mut impl Observer<P>) -> QueueSample {
        self.advance(now, observer);
        let backlog = self.queue.backlog();
        QueueSample {
            packets: backlog.packets,
            bytes: backlog.bytes,
            head_sojourn: self.queue.head_since().map_or(Span::ZERO, |since| now.since(since)),
        }
    }

    /// What the queue's classes hold and have done by the time of the last call; empty where it has none.
    pub fn classes(&self) -> Vec<Class> {
        self.queue.classes()
    }

    /// The queue discipline's state at `now`, and what it has dropped so far by cause; empty where it has none.
    pub fn gauges(&mut self, now: Time, observer: &mut impl Observer<P>) -> Vec<Gauge> {
        self.advance(now, observer);
        let mut gauges = self.queue.gauges(now);
        if !gauges.is_empty() {
            for (name, cause) in [("early_drop", Cause::Early), ("overlimit", Cause::Overlimit)] {
                let value = self.stats.dropped_by(cause) as f64;
                gauges.push(Gauge { name, value, unit: "packets" });
            }
        }
        gauges
    }

    /// Plans another change, at a time that has not come yet.
    pub fn change(&mut self, change: Change) {
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
        self.waiting as usize + usize::from(self.sending.is_some()) + self.flight.packets()
    }

    /// Does everything that happens up to and including `now`, each at its own time.
    ///
    /// `enqueue`, `poll` and `sample` do it by themselves; it is of use where events are wanted although
    /// none of them is called.
    #[inline]
    pub fn advance(&mut self, now: Time, observer: &mut impl Observer<P>) {
        while self.next_step.min(self.next_change) <= now {
            // A change comes before what happens at the same time. `NEVER` is no time to do anything at.
            if self.next_change <= self.next_step {
                if self.next_change == Time::NEVER {
                    return;
                }
                self.apply_next_change(observer);
            } else {
                self.step(observer);
            }
        }
    }

    /// Ends the packet that is being sent, and begins the next one.
    #[inline]
    fn step(&mut self, observer: &mut impl Observer<P>) {
        let at = self.next_step;
        self.served = at;
        match self.sending.take() {
            Some(sent) => {
                self.follows = true;
                self.begin_next(at, observer);
                self.depart(sent.packet, sent.number, at, observer);
            }
            None => self.begin_next(at, observer),
        }
    }

    /// Begins the packet whose turn it is, or settles when that may be. None is being sent.
    #[inline]
    fn begin_next(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let ready = self.queue.next_ready(now);
        if ready > now {
            (self.next_step, self.follows) = (ready, false);
            return;
        }
        let begin = self.service.begin(now, self.follows);
        if begin > now {
            (self.next_step, self.follows) = (begin, true);
            return;
        }
        let (queue, mut report) = self.queue_and_report(now, observer);
        match queue.dequeue(now, &mut report) {
            Some(next) => {
                self.waiting -= 1;
                self.next_step = self.service.send(now, self.follows, next.packet.frame_len());
                self.sending = Some(next);
            }
            None => {
                (self.next_step, self.follows) = (self.queue.next_ready(now), false);
                debug_assert!(self.next_step > now, "a queue that is ready gave no packet");
            }
        }
    }

    /// The last bit of `packet`, the `number`th that was offered, leaves the serialiser.
    #[inline]
    fn depart(&mut self, mut packet: P, number: u64, at: Time, observer: &mut impl Observer<P>) {
        let waiting = self.waiting;
        self.stats.serialised += 1;
        self.stats.bytes_serialised += u64::from(packet.frame_len());
        observer.on(Event::Depart, at, &packet, waiting);
        if self.loss.as_mut().is_some_and(|loss| !loss.before_queue() && loss.takes(number)) {
            return self.lose(packet, at, observer);
        }
        if self.corrupt.as_mut().is_some_and(|corrupt| corrupt.hits(number)) {
            packet.corrupt();
            self.stats.corrupted += 1;
            observer.on(Event::Corrupt, at, &packet, waiting);
        }
        let is_doubled = self.duplicate.as_mut().is_some_and(|duplicate| duplicate.hits(number));
        let copy = is_doubled.then(|| packet.duplicate());
        self.launch(packet, number, false, at);
        if let Some(copy) = copy {
            self.stats.duplicated += 1;
            observer.on(Event::Duplicate, at, &copy, waiting);
            self.launch(copy, number, true, at);
        }
    }

    /// Sends `packet` on its way to the far end. A copy goes ahead with its original or not at all.
    #[inline]
    fn launch(&mut self, packet: P, number: u64, copy: bool, at: Time) {
        if let Some(reorder) = &mut self.reorder {
            let varied = |jitter: &Jitter| jitter.independent(self.delay, number, copy);
            let delay = reorder.shorten(self.jitter.as_ref().map_or(self.delay, varied), number);
            self.flight.launch_loose(at + delay, packet);
        } else {
            let delay = self.jitter.as_mut().map_or(self.delay, |jitter| jitter.at(self.delay, at));
            self.flight.launch_in_order(at, delay, packet);
        }
    }

    /// Drops what is offered to a link that is down.
    fn drop_packet(&mut self, packet: P, at: Time, observer: &mut impl Observer<P>) {
        self.queue_and_report(at, observer).1.rejected(&packet, Cause::Down);
    }

    /// The queue, and who is told what it does at `at`.
    #[inline]
    fn queue_and_report<'a, O: Observer<P>>(
        &'a mut self,
        at: Time,
        observer: &'a mut O,
    ) -> (&'a mut Discipline<P>, Report<'a, O>) {
        let report = Report { at, waiting: &mut self.waiting, stats: &mut self.stats, observer };
        (&mut self.queue, report)
    }

    fn lose(&mut self, packet: P, at: Time, observer: &mut impl Observer<P>) {
        self.stats.lost += 1;
        observer.on(Event::Lose, at, &packet, self.waiting);
    }

    #[cold]
    fn apply_next_change(&mut self, observer: &mut impl Observer<P>) {
        let change = self.changes[self.changes_done].clone();
        self.changes_done += 1;
        self.next_change = self.changes.get(self.changes_done).map_or(Time::NEVER, |change| change.at);
        if let Some(rate) = change.rate {
            if self.sending.is_some() {
                self.next_step = self.service.change_rate(rate, change.at, self.next_step);
            } else {
                self.service.set_rate(rate);
            }
            self.queue.set_rate(self.service.rate());
        }
        self.queue.change(&change, self.service.rate());
        self.delay = change.delay.unwrap_or(self.delay);
        if let Some(loss) = &change.loss {
            self.loss.get_or_insert_with(|| Loss::new(loss, self.seed)).set(loss);
        }
        if let Some(chance) = change.corrupt {
            self.corrupt
                .get_or_insert_with(|| CorrelatedChance::new(chance, self.seed, "corrupt"))
                .set(chance);
        }
        if let Some(chance) = change.duplicate {
            self.duplicate
                .get_or_insert_with(|| CorrelatedChance::new(chance, self.seed, "duplicate"))
                .set(chance);
        }
        if let Some(jitter) = change.jitter {
            match &mut self.jitter {
                Some(present) => present.set(jitter, change.at),
                absent => *absent = Some(Jitter::new(jitter, self.seed, change.at)),
            }
        }
        if let Some(reorder) = change.reorder {
            self.reorder.get_or_insert_with(|| Reordering::new(&reorder, self.seed)).set(&reorder);
        }
        if let Some(up) = change.up {
            self.up = up;
            if !up {
                self.drop_all(change.at, observer);
            }
        }
    }

    /// Drops what waits and what is being sent; what is on its way arrives.
    fn drop_all(&mut self, at: Time, observer: &mut impl Observer<P>) {
        (self.next_step, self.follows) = (Time::NEVER, false);
        self.service.reset();
        // The events of one instant all show the queue empty.
        self.waiting = 0;
        let sending = self.sending.take();
        let (queue, mut report) = self.queue_and_report(at, observer);
        if let Some(sending) = sending {
            report.rejected(&sending.packet, Cause::Down);
        }
        queue.purge(Cause::Down, &mut report);
    }
}

/// Counts what the queue does, and tells the observer.
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
}
