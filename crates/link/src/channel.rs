//! A channel: serves a port, and brings what it sends to the far end.

use tcplab_units::{Rate, Span, Time};

use crate::config::{self, Change, Direction, Overhead};
use crate::delay_line::DelayLine;
use crate::impairments::Impairments;
use crate::observer::{Event, Observer};
use crate::packet::Packet;
use crate::port::Port;
use crate::qdisc::{Gauge, Queued};
use crate::service::Service;
use crate::stats::Stats;
use crate::wake_up::WakeUp;
use crate::window::Window;

/// Service, impairments, delay line: in this order.
#[derive(Clone, Debug)]
pub(crate) struct Channel<P> {
    service: Service,
    overhead: Overhead,
    sending: Option<Queued<P>>,
    /// When what is being sent ends, or else the next packet may begin; `NEVER`: nothing to send.
    next_step: Time,
    /// When the serializer was last busy.
    served: Time,
    /// Where none is being sent: the one that may begin at `next_step` follows another without a gap.
    follows: bool,
    impairments: Impairments,
    delay_line: DelayLine<P>,
    /// Packets that a medium has taken from the port.
    window: Window<P>,
}

impl<P: Packet> Channel<P> {
    /// An idle channel with these settings, whose random streams derive from `seed`.
    pub(crate) fn new(config: &Direction, seed: u64) -> Channel<P> {
        Channel {
            service: Service::new(config),
            overhead: config.overhead,
            sending: None,
            next_step: Time::NEVER,
            served: Time::ZERO,
            follows: false,
            impairments: Impairments::new(config, seed),
            delay_line: DelayLine::new(),
            window: Window::new(),
        }
    }

    /// Packets that keep their order arrive when the host at the far end has woken up.
    pub(crate) fn wake_up(&mut self, seed: u64) {
        self.delay_line.set_wake_up(WakeUp::new(seed));
    }

    /// Whether it takes time.
    pub(crate) fn wakes_up(&self) -> bool {
        self.delay_line.wakes_up()
    }

    /// Packets on their way.
    #[inline]
    pub(crate) fn line(&mut self) -> &mut DelayLine<P> {
        &mut self.delay_line
    }

    /// From now on a medium says when it sends. It has a rate.
    pub(crate) fn share(&mut self) {
        if let Some(rate) = self.service.rate() {
            self.service = Service::Medium(rate);
        }
    }

    /// The rate, which turns a limit in time into bytes; none: nothing ever waits.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.service.rate()
    }

    /// When `step` wants calling; `NEVER`: nothing to send.
    #[inline]
    pub(crate) fn next_step(&self) -> Time {
        self.next_step
    }

    /// When the serializer was last busy.
    #[inline]
    pub(crate) fn served(&self) -> Time {
        self.served
    }

    /// When something can arrive at the far end at the earliest; `NEVER` if nothing is on its way.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Time {
        let next = self.delay_line.next();
        if self.next_step == Time::NEVER { next } else { self.next_arrival_after(next) }
    }

    /// The next arrival while a change is scheduled. `next` is that of the packets on their way.
    #[inline(never)]
    fn next_arrival_after(&self, next: Time) -> Time {
        if !self.impairments.keep_order() {
            next.min(self.next_step)
        } else if next == Time::NEVER {
            // While order is kept, nothing arrives before what is already on its way.
            self.next_step + self.impairments.min_delay()
        } else {
            next
        }
    }

    /// Packets being sent and on their way.
    pub(crate) fn held(&self) -> usize {
        usize::from(self.sending.is_some()) + self.window.len() + self.delay_line.packets()
    }

    /// Whether packet `number` is lost before the queue.
    #[inline]
    pub(crate) fn lose_before_queue(&mut self, number: u64) -> bool {
        self.impairments.lose_before_queue(number)
    }

    /// Whether a packet that comes now begins now.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        // The next opportunity of a trace is later than now; a medium takes what is in the queue.
        self.next_step == Time::NEVER && !matches!(self.service, Service::Trace(_) | Service::Medium(_))
    }

    /// Whether a packet is being sent.
    #[inline]
    pub(crate) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Sends a packet that comes while the channel is free.
    #[inline]
    pub(crate) fn send_at_once(
        &mut self,
        packet: Queued<P>,
        now: Time,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        stats.dequeued += 1;
        if matches!(self.service, Service::Instant) {
            return self.depart(packet, now, 0, stats, observer);
        }
        self.send(packet, now, false);
    }

    /// Ends the packet that is being sent, and begins the next one of `port`.
    #[inline(always)]
    pub(crate) fn step(&mut self, port: &mut Port<P>, stats: &mut Stats, observer: &mut impl Observer<P>) {
        let at = self.next_step;
        self.served = at;
        let sent = self.sending.take();
        self.follows |= sent.is_some();
        self.begin(port, at, stats, observer);
        if let Some(sent) = sent {
            self.depart(sent, at, port.waiting(), stats, observer);
        }
    }

    /// Begins the packet of `port` whose turn it is, or settles when that may be. None is being sent.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        port: &mut Port<P>,
        now: Time,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        let ready = port.next_ready(now);
        if ready > now {
            (self.next_step, self.follows) = (ready, false);
            return;
        }
        let begin = self.service.begin(now, self.follows);
        if begin > now {
            (self.next_step, self.follows) = (begin, true);
            return;
        }
        match port.dequeue(now, stats, observer) {
            Some(next) => self.send(next, now, self.follows),
            None => {
                (self.next_step, self.follows) = (port.next_ready(now), false);
                debug_assert!(self.next_step > now, "a queue that is ready gave no packet");
            }
        }
    }

    #[inline(always)]
    fn send(&mut self, packet: Queued<P>, now: Time, follows: bool) {
        let len = self.overhead.len_on_wire(packet.packet.frame_len());
        self.next_step = self.service.send(now, follows, len);
        self.sending = Some(packet);
    }

    /// The last bit of `sent` leaves the serializer.
    #[inline(always)]
    fn depart(
        &mut self,
        sent: Queued<P>,
        at: Time,
        waiting: u32,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        let is_lost = self.impairments.lose(sent.number);
        self.leave(sent, is_lost, at, waiting, stats, observer);
    }

    /// `sent` is lost or goes on to the far end.
    #[inline(always)]
    fn leave(
        &mut self,
        sent: Queued<P>,
        is_lost: bool,
        at: Time,
        waiting: u32,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        let Queued { mut packet, number, .. } = sent;
        stats.serialized += 1;
        stats.bytes_serialized += u64::from(packet.frame_len());
        let len = self.overhead.len_on_wire(packet.frame_len());
        stats.capacity_used += u64::from(self.service.capacity_of(len));
        observer.on(Event::Depart, at, &packet, waiting);
        if is_lost {
            stats.lost += 1;
            return observer.on(Event::Lose, at, &packet, waiting);
        }
        if self.impairments.corrupt(number) {
            packet.corrupt();
            stats.corrupted += 1;
            observer.on(Event::Corrupt, at, &packet, waiting);
        }
        let copy = self.impairments.duplicate(number).then(|| packet.duplicate());
        self.propagate(packet, number, false, at);
        if let Some(copy) = copy {
            stats.duplicated += 1;
            observer.on(Event::Duplicate, at, &copy, waiting);
            self.propagate(copy, number, true, at);
        }
    }

    /// Sends `packet` on its way to the far end. A copy goes ahead with its original or not at all.
    #[inline(always)]
    fn propagate(&mut self, packet: P, number: u64, copy: bool, at: Time) {
        if self.impairments.keep_order() {
            let delay = self.impairments.delay_in_order(at);
            self.delay_line.enqueue_in_order(at, delay, packet);
        } else {
            self.delay_line.enqueue_loose(at + self.impairments.own_delay(number, copy), packet);
        }
    }

    /// When it has something to send over its medium; `NEVER`: nothing waits.
    pub(crate) fn ready(&self, port: &Port<P>, now: Time) -> Time {
        if self.window.is_waiting() { now } else { port.next_ready(now) }
    }

    /// Begins a transmission over its medium; how long its frames take, none: nothing may leave now.
    pub(crate) fn begin_transmission(
        &mut self,
        port: &mut Port<P>,
        medium: &config::Medium,
        now: Time,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) -> Option<Span> {
        let rate = self.service.rate()?;
        let next = || port.dequeue(now, stats, observer);
        self.window.begin(&medium.aggregation, rate, self.overhead, next)
    }

    /// Ends it; whether anything of it arrived or was given up.
    pub(crate) fn end_transmission(
        &mut self,
        collided: bool,
        medium: &config::Medium,
        at: Time,
        waiting: u32,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) -> bool {
        self.served = at;
        let impairments = &mut self.impairments;
        let is_done = self.window.end(medium.retries, |number| impairments.lose(number) || collided);
        while let Some((sent, is_lost)) = self.window.pop() {
            self.leave(sent, is_lost, at, waiting, stats, observer);
        }
        is_done
    }

    /// Counts of the medium for it.
    pub(crate) fn gauges(&self) -> Vec<Gauge> {
        self.window.gauges()
    }

    /// The next packet that arrives by `now`, and exactly when it does.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Time, P)> {
        self.delay_line.take_due(now)
    }

    /// When the first of the packets that keep their order arrives, and the packet.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Time, &P)> {
        self.delay_line.get(0).map(|entry| (entry.at, &entry.packet))
    }

    /// One that is on its way already and arrives after `ahead` others.
    #[inline]
    pub(crate) fn upcoming(&self, ahead: usize) -> Option<&P> {
        self.delay_line.upcoming(ahead)
    }

    /// `upcoming` will be asked soon for the one that arrives after `ahead` others.
    #[inline]
    pub(crate) fn prefetch(&self, ahead: usize) {
        self.delay_line.prefetch(ahead);
    }

    /// New settings, from the change's time on; a new rate also for the rest of the packet being sent.
    pub(crate) fn change(&mut self, change: &Change) {
        if let Some(rate) = change.rate {
            if self.sending.is_some() {
                self.next_step = self.service.change_rate(rate, change.at, self.next_step);
            } else {
                self.service.set_rate(rate);
            }
        }
        self.impairments.change(change);
    }

    /// Stops sending: returns what was being sent; what is on its way arrives.
    pub(crate) fn cut(&mut self) -> impl Iterator<Item = P> {
        (self.next_step, self.follows) = (Time::NEVER, false);
        self.service.reset();
        self.sending.take().map(|sending| sending.packet).into_iter().chain(self.window.drain())
    }
}
