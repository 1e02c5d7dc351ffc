//! One direction of a link: packets enter at one end and leave at the other when the model delivers them.

use tcplab_link::{Link, Observer};
use tcplab_units::{Span, Time};

use crate::arena::Arena;
use crate::coalescing::Group;
use crate::lateness::{Lateness, Limits};
use crate::port::Port;
use crate::tap::Tap;
use crate::wire::Wire;

/// The most packets delivered at one go, so that the other directions and the reading of new packets have their turn.
const AT_A_GO: usize = 512;
/// How long packets may wait for those that follow, so that they leave together: a five-hundredth of the RTT, within
/// these bounds. A network adapter's interrupt coalescing is of this order.
const SLACK_SHARE: u64 = 500;
const MIN_SLACK: Span = Span::from_us(20);
const MAX_SLACK: Span = Span::from_us(200);
/// A direction that has delivered nothing for so long, or on a short path for this share of its RTT, is idle. The
/// next packet is delivered precisely, whatever that costs. It may be an answer that is waited for.
const IDLE: Span = Span::from_ms(1);
const IDLE_SHARE: u64 = 4;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Direction {
    /// None: packets pass at once.
    link: Option<Link<Wire>>,
    group: Group,
    slack: Span,
    idle: Span,
    limits: Limits,
    lateness: Lateness,
    undeliverable: u64,
    /// When something was written last.
    written: Time,
}

/// When a direction wants calling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    /// Not before: nothing is due earlier.
    pub(crate) due: Time,
    /// Early enough.
    pub(crate) wake: Time,
    /// The wake-up is to be precise.
    pub(crate) precise: bool,
}

impl Direction {
    /// A direction without a link yet.
    pub(crate) fn new() -> Direction {
        Direction {
            link: None,
            group: Group::new(),
            slack: Span::ZERO,
            idle: IDLE,
            limits: Limits::default(),
            lateness: Lateness::new(),
            undeliverable: 0,
            written: Time::ZERO,
        }
    }

    /// From now on packets cross `link`.
    pub(crate) fn begin(&mut self, link: Link<Wire>) {
        self.link = Some(link);
        self.lateness = Lateness::new();
        self.undeliverable = 0;
    }

    /// From now on packets pass at once, as before it began.
    pub(crate) fn end(&mut self) {
        self.link = None;
    }

    /// The link's round-trip time is now this.
    pub(crate) fn set_rtt(&mut self, rtt: Span) {
        self.limits = Limits::new(rtt);
        self.idle = (rtt / IDLE_SHARE).min(IDLE);
        self.slack = (rtt / SLACK_SHARE).max(MIN_SLACK).min(MAX_SLACK);
    }

    /// The link, once the run has begun.
    pub(crate) fn link(&mut self) -> Option<&mut Link<Wire>> {
        self.link.as_mut()
    }

    /// How late its packets were.
    pub(crate) fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Packets that the receiving device did not take.
    pub(crate) fn undeliverable(&self) -> u64 {
        self.undeliverable
    }

    /// A packet enters at `now`.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        packet: Wire,
        now: Time,
        observer: &mut impl LinkObserver,
        tap: &Tap,
        port: &mut Port,
    ) {
        match &mut self.link {
            Some(link) => link.enqueue(packet, now, observer),
            None => self.leave(packet, now, observer, tap, port),
        }
    }

    /// Writes what is due at the time of `clock`, and returns when it wants calling again.
    pub(crate) fn deliver(
        &mut self,
        clock: impl Fn() -> Time,
        observer: &mut impl LinkObserver,
        tap: &Tap,
        port: &mut Port,
    ) -> Next {
        let now = clock();
        for _ in 0..AT_A_GO {
            let Some((at, packet)) = self.link.as_mut().and_then(|link| link.poll(now, observer)) else {
                break;
            };
            if !self.group.take(packet, at, observer.arena()) {
                self.flush(&clock, observer, tap, port);
                self.group.begin(packet, at, observer.arena(), tap.coalescing);
            }
        }
        let next = self.link.as_ref().map_or(Time::NEVER, Link::next_event);
        if let Some(&since) = self.group.times().first() {
            let until = since + self.slack;
            if self.group.is_open() && next <= until && now < until {
                return Next { due: until, wake: until, precise: false };
            }
            self.flush(&clock, observer, tap, port);
        }
        if next.since(self.written) > self.idle {
            return Next { due: next, wake: next, precise: true };
        }
        Next { due: next, wake: next + self.slack / 2, precise: false }
    }

    /// A packet leaves.
    #[inline]
    fn leave(
        &mut self,
        packet: Wire,
        at: Time,
        observer: &mut impl LinkObserver,
        tap: &Tap,
        port: &mut Port,
    ) {
        if !self.group.take(packet, at, observer.arena()) {
            self.flush(&|| at, observer, tap, port);
            self.group.begin(packet, at, observer.arena(), tap.coalescing);
        }
    }

    fn flush(
        &mut self,
        clock: &impl Fn() -> Time,
        observer: &mut impl LinkObserver,
        tap: &Tap,
        port: &mut Port,
    ) {
        if self.group.is_empty() {
            return;
        }
        let arena = observer.arena();
        if self.link.is_some() {
            let now = clock();
            self.written = now;
            for at in self.group.times() {
                self.lateness.record(now.since(*at), &self.limits);
            }
        }
        // A device that is down takes nothing, as a plug that is not in its socket.
        if port.write(tap, &self.group, arena).is_err() {
            self.undeliverable += self.group.times().len() as u64;
        }
        self.group.clear(arena);
    }
}

/// Observes a link, and owns the packets on it.
pub(crate) trait LinkObserver: Observer<Wire> {
    /// Where the packets are.
    fn arena(&mut self) -> &mut Arena;
}
