//! One direction of a link: packets offered at one end leave at the other when the model says so.

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
const SLACK_LEAST: Span = Span::from_us(20);
const SLACK_MOST: Span = Span::from_us(200);
/// A direction that has delivered nothing for so long, or on a short path for this share of its RTT, is idle: what comes next
/// is delivered precisely, whatever it costs. It may be an answer that is waited for.
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

    /// The link's round-trip time is now this.
    pub(crate) fn set_rtt(&mut self, rtt: Span) {
        self.limits = Limits::new(rtt);
        self.idle = (rtt / IDLE_SHARE).min(IDLE);
        self.slack = (rtt / SLACK_SHARE).max(SLACK_LEAST).min(SLACK_MOST);
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
    pub(crate) fn offer(
        &mut self,
        packet: Wire,
        now: Time,
        watch: &mut impl Watch,
        tap: &Tap,
        port: &mut Port,
    ) {
        match &mut self.link {
            Some(link) => link.enqueue(packet, now, watch),
            None => self.leave(packet, now, watch, tap, port),
        }
    }

    /// Writes what is due at the time that `clock` tells, and so tells when it wants calling again.
    pub(crate) fn deliver(
        &mut self,
        clock: impl Fn() -> Time,
        watch: &mut impl Watch,
        tap: &Tap,
        port: &mut Port,
    ) -> Next {
        let now = clock();
        for _ in 0..AT_A_GO {
            let Some((at, packet)) = self.link.as_mut().and_then(|link| link.poll(now, watch)) else { break };
            if !self.group.take(packet, at, watch.arena()) {
                self.flush(&clock, watch, tap, port);
                self.group.begin(packet, at, watch.arena(), tap.coalescing);
            }
        }
        let next = self.link.as_ref().map_or(Time::NEVER, Link::next_event);
        if let Some(&since) = self.group.times().first() {
            let until = since + self.slack;
            if self.group.is_open() && next <= until && now < until {
                return Next { due: until, wake: until, precise: false };
            }
            self.flush(&clock, watch, tap, port);
        }
        if next.since(self.written) > self.idle {
            return Next { due: next, wake: next, precise: true };
        }
        Next { due: next, wake: next + self.slack / 2, precise: false }
    }

    /// A packet leaves.
    #[inline]
    fn leave(&mut self, packet: Wire, at: Time, watch: &mut impl Watch, tap: &Tap, port: &mut Port) {
        if !self.group.take(packet, at, watch.arena()) {
            self.flush(&|| at, watch, tap, port);
            self.group.begin(packet, at, watch.arena(), tap.coalescing);
        }
    }

    fn flush(&mut self, clock: &impl Fn() -> Time, watch: &mut impl Watch, tap: &Tap, port: &mut Port) {
        if self.group.is_empty() {
            return;
        }
        let arena = watch.arena();
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

/// Watches a link, and keeps the packets on it.
pub(crate) trait Watch: Observer<Wire> {
    /// Where the packets are.
    fn arena(&mut self) -> &mut Arena;
}
