//! One direction of a link, put together.

use tcplab_units::{Span, Time};

use crate::config::{Change, Direction, Queue};
use crate::droptail::Droptail;
use crate::flight::Flight;
use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::observer::{Event, Observer};
use crate::packet::Packet;
use crate::reorder::Reordering;
use crate::service::Service;
use crate::stats::{QueueSample, Stats};
use crate::strikes::Strikes;

/// One direction of a link.
///
/// It does nothing by itself: every call first advances it to `now`, doing all that happened meanwhile
/// at its exact logical time and in order. So one call for each delivery is enough, and a caller that
/// is late accumulates no lateness. `now` must not go back from call to call.
#[derive(Clone, Debug)]
pub struct Link<P> {
    queue: Droptail<P>,
    service: Service,
    /// When the next packet begins (if none is being sent) or the present one ends; `NEVER`: nothing to send.
    next_step: Time,
    /// When the packet whose turn it is ends.
    end: Time,
    loss: Option<Loss>,
    corrupt: Option<Strikes>,
    duplicate: Option<Strikes>,
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
        let Queue::Droptail { limit, mark_above } = config.queue;
        let mut changes = config.changes.clone();
        changes.sort_by_key(|change| change.at);
        Link {
            queue: Droptail::new(limit, mark_above, service.rate()),
            service,
            next_step: Time::NEVER,
            end: Time::NEVER,
            loss: config.loss.as_ref().map(|loss| Loss::new(loss, seed)),
            corrupt: config.corrupt.map(|chance| Strikes::new(chance, seed, "corrupt")),
            duplicate: config.duplicate.map(|chance| Strikes::new(chance, seed, "duplicate")),
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
        self.stats.packets_in += 1;
        let number = self.stats.packets_in;
        self.stats.bytes_in += u64::from(packet.frame_len());
        if !self.up {
            return self.drop_packet(packet, now, observer);
        }
        if self.loss.as_mut().is_some_and(|loss| loss.before_queue() && loss.takes(number)) {
            return self.lose(packet, now, observer);
        }
        let free = self.next_step == Time::NEVER;
        match &mut self.service {
            Service::Instant => {
                observer.on(Event::Enqueue, now, &packet, 0);
                self.depart(packet, number, now, observer);
            }
            Service::Rate(shaper) if free => {
                observer.on(Event::Enqueue, now, &packet, 0);
                self.end = shaper.send(now, false, packet.frame_len());
                self.next_step = self.end;
                self.queue.push_sending(packet, number, now);
            }
            Service::Rate(_) | Service::Trace(_) => self.wait(packet, number, now, free, observer),
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
            next = next.min(self.end);
        } else if next == Time::NEVER {
            // While order is kept, nothing arrives before what is already on its way.
            let least_delay = self.jitter.as_ref().map_or(self.delay, |jitter| jitter.least(self.delay));
            next = self.end + least_delay;
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
        observer.on(Event::Deliver, at, &packet, self.queue.packets());
        Some((at, packet))
    }

    /// What waits in the queue at `now`.
    pub fn sample(&mut self, now: Time, observer: &mut impl Observer<P>) -> QueueSample {
        self.advance(now, observer);
        QueueSample {
            packets: self.queue.packets(),
            bytes: self.queue.bytes(),
            head_sojourn: self.queue.head_since().map_or(Span::ZERO, |since| now.since(since)),
        }
    }

    /// Counters since the start.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Packets inside: waiting, being sent and on their way.
    pub fn held(&self) -> usize {
        self.queue.packets() as usize + usize::from(self.queue.is_sending()) + self.flight.packets()
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

    /// Lets `packet` wait for its turn.
    fn wait(&mut self, mut packet: P, number: u64, now: Time, free: bool, observer: &mut impl Observer<P>) {
        let len = packet.frame_len();
        let marked = self.queue.is_marking() && packet.is_ect();
        if marked {
            packet.mark_ce();
        }
        match self.queue.push(packet, number, now) {
            Err(packet) => self.drop_packet(packet, now, observer),
            Ok(()) => {
                self.stats.marked += u64::from(marked);
                if let Some(packet) = self.queue.tail() {
                    observer.on(Event::Enqueue, now, packet, self.queue.packets());
                    if marked {
                        observer.on(Event::Mark, now, packet, self.queue.packets());
                    }
                }
                if free {
                    self.schedule(now, false, len);
                }
            }
        }
    }

    /// Begins the packet whose turn it is, or ends the one that is being sent.
    #[inline]
    fn step(&mut self, observer: &mut impl Observer<P>) {
        let at = self.next_step;
        if !self.queue.is_sending() {
            self.queue.begin_sending();
            self.next_step = self.end;
        } else if let Some((packet, number)) = self.queue.end_sending() {
            match self.queue.head().map(P::frame_len) {
                Some(len) => self.schedule(at, true, len),
                None => self.next_step = Time::NEVER,
            }
            self.depart(packet, number, at, observer);
        }
    }

    /// Settles when the queue's head, of `len` bytes, is sent.
    #[inline]
    fn schedule(&mut self, now: Time, follows: bool, len: u32) {
        let sending = self.service.send(now, follows, len);
        self.end = sending.end;
        if sending.begin == now {
            self.queue.begin_sending();
            self.next_step = sending.end;
        } else {
            self.next_step = sending.begin;
        }
    }

    /// The last bit of `packet`, the `number`th that was offered, leaves the serialiser.
    #[inline]
    fn depart(&mut self, mut packet: P, number: u64, at: Time, observer: &mut impl Observer<P>) {
        let waiting = self.queue.packets();
        self.stats.serialised += 1;
        self.stats.bytes_serialised += u64::from(packet.frame_len());
        observer.on(Event::Depart, at, &packet, waiting);
        if self.loss.as_mut().is_some_and(|loss| !loss.before_queue() && loss.takes(number)) {
            return self.lose(packet, at, observer);
        }
        if self.corrupt.as_mut().is_some_and(|corrupt| corrupt.strikes(number)) {
            packet.corrupt();
            self.stats.corrupted += 1;
            observer.on(Event::Corrupt, at, &packet, waiting);
        }
        let is_doubled = self.duplicate.as_mut().is_some_and(|duplicate| duplicate.strikes(number));
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

    fn drop_packet(&mut self, packet: P, at: Time, observer: &mut impl Observer<P>) {
        self.stats.dropped += 1;
        observer.on(Event::Drop, at, &packet, self.queue.packets());
    }

    fn lose(&mut self, packet: P, at: Time, observer: &mut impl Observer<P>) {
        self.stats.lost += 1;
        observer.on(Event::Lose, at, &packet, self.queue.packets());
    }

    #[cold]
    fn apply_next_change(&mut self, observer: &mut impl Observer<P>) {
        let change = self.changes[self.changes_done].clone();
        self.changes_done += 1;
        self.next_change = self.changes.get(self.changes_done).map_or(Time::NEVER, |change| change.at);
        if let Some(rate) = change.rate {
            let sending = self.queue.is_sending();
            self.end = self.service.set_rate(rate, change.at, self.end, sending);
            if sending {
                self.next_step = self.end;
            }
            self.queue.set_rate(self.service.rate());
        }
        if let Some(limit) = change.limit {
            self.queue.set_limit(limit, self.service.rate());
        }
        if let Some(mark_above) = change.mark_above {
            self.queue.set_mark_above(mark_above, self.service.rate());
        }
        self.delay = change.delay.unwrap_or(self.delay);
        if let Some(loss) = &change.loss {
            self.loss.get_or_insert_with(|| Loss::new(loss, self.seed)).set(loss);
        }
        if let Some(chance) = change.corrupt {
            self.corrupt.get_or_insert_with(|| Strikes::new(chance, self.seed, "corrupt")).set(chance);
        }
        if let Some(chance) = change.duplicate {
            self.duplicate.get_or_insert_with(|| Strikes::new(chance, self.seed, "duplicate")).set(chance);
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
        self.next_step = Time::NEVER;
        self.service.reset();
        for packet in self.queue.take_all() {
            self.stats.dropped += 1;
            observer.on(Event::Drop, at, &packet, 0);
        }
    }
}
