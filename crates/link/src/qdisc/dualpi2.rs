//! DualPI2: two queues with coupled PI controllers, for scalable and for classic flows (RFC 9332, appendix A).

use tcplab_units::{Probability, Rate, Span, Time};

use super::counting::{Counting, Counts};
use super::fifo::Fifo;
use super::{Backlog, Cause, Class, Gauge, Qdisc, Queued, Sink};
use crate::config::{self, Change};
use crate::packet::{Ecn, Packet};
use crate::random::Draws;
use crate::threshold::Threshold;

/// The low-latency queue L, the classic queue C, and the controller that couples them.
#[derive(Clone, Debug)]
pub(crate) struct Dualpi2<P> {
    low_latency: Queue<P>,
    classic: Queue<P>,
    limit: Threshold,
    config: config::Dualpi2,
    draws: Draws,
    /// The base probability p', in units of 1/`ONE`.
    base: i64,
    previous_delay: Span,
    next_update: Time,
    /// Bytes that L has sent beyond its share, in units of 10^−9; while it is more than nothing C goes first.
    credit: i128,
}

#[derive(Clone, Debug)]
struct Queue<P> {
    packets: Fifo<P>,
    counts: Counts,
}

impl<P: Packet> Queue<P> {
    fn new() -> Queue<P> {
        Queue { packets: Fifo::new(), counts: Counts::default() }
    }

    /// How long the head has waited at `now`.
    fn delay(&self, now: Time) -> Span {
        self.packets.head().map_or(Span::ZERO, |head| now.since(head.since))
    }
}

/// Certainty.
const ONE: i64 = 1 << 50;
/// So many bytes may always wait in L unmarked (`Th_len`): a queue of one packet is none. A jumbo frame is one, too.
const ONE_PACKET: u64 = 1514;

impl<P: Packet> Dualpi2<P> {
    pub(crate) fn new(config: &config::Dualpi2, rate: Option<Rate>, seed: u64) -> Dualpi2<P> {
        let tupdate = config.tupdate.max(Span::from_us(1));
        Dualpi2 {
            low_latency: Queue::new(),
            classic: Queue::new(),
            limit: Threshold::new(Some(config.limit), rate),
            config: config::Dualpi2 { tupdate, coupling_factor: config.coupling_factor.max(1), ..*config },
            draws: Draws::new(seed, "dualpi2"),
            base: 0,
            previous_delay: Span::ZERO,
            next_update: Time::ZERO + tupdate,
            credit: 0,
        }
    }

    /// Does the updates that were due by `now` (`dualpi2_update`).
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            if self.base == 0 && self.previous_delay == Span::ZERO && self.backlog().packets == 0 {
                let updates = now.since(self.next_update).as_ns() / self.config.tupdate.as_ns() + 1;
                self.next_update += self.config.tupdate * updates;
                return;
            }
            let ns = |span: Span| i128::from(span.as_ns());
            let delay = self.classic.delay(self.next_update).max(self.low_latency.delay(self.next_update));
            let error = i128::from(self.config.alpha) * (ns(delay) - ns(self.config.target));
            let trend = i128::from(self.config.beta) * (ns(delay) - ns(self.previous_delay));
            let delta = (error + trend) * i128::from(ONE) / (256 * 1_000_000_000);
            self.base = (i128::from(self.base) + delta).clamp(0, i128::from(ONE)) as i64;
            self.previous_delay = delay;
            self.next_update += self.config.tupdate;
        }
    }

    /// Whether L is next: a weighted round robin while both wait, so that neither starves (section 4.2.2).
    fn serves_low_latency(&self) -> bool {
        !self.low_latency.packets.is_empty() && (self.classic.packets.is_empty() || self.credit <= 0)
    }

    /// Notes what was sent for the round robin.
    fn account(&mut self, low_latency: bool, len: u32) {
        if self.low_latency.packets.is_empty() || self.classic.packets.is_empty() {
            self.credit = 0;
            return;
        }
        let classic = i128::from(self.config.classic_protection.ppb());
        let weight = if low_latency { classic } else { classic - i128::from(Probability::ONE.ppb()) };
        self.credit += weight * i128::from(len);
    }

    /// Probability with which the controller of C marks packets of L: `k` times p'.
    fn coupled(&self) -> i64 {
        self.base.saturating_mul(i64::from(self.config.coupling_factor))
    }

    /// Whether `packet`, the next of L, is to be marked: by the delay it had, or by the coupling.
    fn marks_low_latency(&self, packet: &Queued<P>, now: Time) -> bool {
        let len = u64::from(packet.packet.frame_len());
        let native = now.since(packet.since) > self.config.step_thresh
            && self.low_latency.packets.bytes() + len > ONE_PACKET.max(len);
        native || self.draw(packet.number, 0) < self.coupled()
    }

    /// Whether C's squared probability signals congestion: two draws have to be below its root.
    fn signals_congestion(&self, number: u64) -> bool {
        self.draw(number, 1).max(self.draw(number, 2)) < self.base
    }

    fn draw(&self, number: u64, which: u64) -> i64 {
        (self.draws.at(number.wrapping_mul(3).wrapping_add(which)) >> 14) as i64
    }
}

/// Whether a packet belongs to a scalable flow (RFC 9331, section 5.1).
fn is_low_latency(packet: &impl Packet) -> bool {
    matches!(packet.ecn(), Ecn::Ect1 | Ecn::Ce)
}

impl<P: Packet> Qdisc<P> for Dualpi2<P> {
    fn enqueue(&mut self, packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
        self.catch_up(now);
        let after = self.backlog().and(packet.packet.frame_len());
        let is_full = self.limit.is_exceeded(u64::from(after.packets), after.bytes);
        let queue = if is_low_latency(&packet.packet) { &mut self.low_latency } else { &mut self.classic };
        if is_full {
            queue.counts.count_drop(Cause::Overlimit);
            return sink.rejected(&packet.packet, Cause::Overlimit);
        }
        sink.enqueued(&packet.packet);
        queue.packets.push(packet);
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        self.catch_up(now);
        // Beyond this marks say no more, and L is kept in bounds as C is (section 4.2.3).
        let is_overloaded = self.coupled() >= ONE;
        loop {
            let low_latency = self.serves_low_latency();
            let queue = if low_latency { &mut self.low_latency } else { &mut self.classic };
            let mut packet = queue.packets.pop()?;
            let signal = self.signals_congestion(packet.number);
            let can_mark = packet.packet.is_ect() && !is_overloaded;
            let queue = if low_latency { &mut self.low_latency } else { &mut self.classic };
            if signal && !can_mark && (!low_latency || is_overloaded) {
                queue.counts.count_drop(Cause::Early);
                sink.dropped(&packet.packet, Cause::Early);
                continue;
            }
            queue.counts.count_out(&packet.packet);
            let marks = if low_latency { self.marks_low_latency(&packet, now) } else { signal };
            if marks {
                packet.packet.mark_ce();
                sink.marked(&packet.packet);
                let queue = if low_latency { &mut self.low_latency } else { &mut self.classic };
                queue.counts.count_mark();
            }
            self.account(low_latency, packet.packet.frame_len());
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        let (low_latency, classic) = (self.low_latency.packets.backlog(), self.classic.packets.backlog());
        Backlog { packets: low_latency.packets + classic.packets, bytes: low_latency.bytes + classic.bytes }
    }

    fn head_since(&self) -> Option<Time> {
        let heads = [&self.low_latency, &self.classic].map(|queue| queue.packets.head());
        heads.into_iter().flatten().map(|head| head.since).min()
    }

    fn classes(&self) -> Vec<Class> {
        [("L", &self.low_latency), ("C", &self.classic)]
            .map(|(name, queue)| {
                let head = queue.packets.head().map(|head| head.since);
                queue.counts.class(name.to_owned(), queue.packets.backlog(), head)
            })
            .to_vec()
    }

    fn gauges(&self, now: Time) -> Vec<Gauge> {
        let share = |prob: i64| prob.min(ONE) as f64 / ONE as f64;
        vec![
            Gauge::plain("prob", share(self.base)),
            Gauge::plain("prob_c", share(self.base).powi(2)),
            Gauge::plain("prob_l", share(self.coupled())),
            Gauge::time("delay_c", self.classic.delay(now)),
            Gauge::time("delay_l", self.low_latency.delay(now)),
        ]
    }

    fn change(&mut self, change: &Change, rate: Option<Rate>) {
        if change.limit.is_some() {
            self.limit = Threshold::new(change.limit, rate);
        }
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.limit = self.limit.at_rate(rate);
    }

    fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        for Queue { packets, counts } in [&mut self.low_latency, &mut self.classic] {
            packets.purge(cause, &mut Counting { counts, sink });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Queue};
    use crate::qdisc::contract::{Contract, limits};
    use crate::qdisc::testing::{Notified, Unit, enqueue_number};
    use proptest::prelude::*;

    impl Contract for Dualpi2<Unit> {
        fn settings(_: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            let ms = |range: std::ops::Range<u64>| range.prop_map(Span::from_ms);
            (limits(), ms(0..5), ms(1..20), 0u32..1_000_000_000)
                .prop_map(|(limit, target, tupdate, share)| {
                    let classic_protection = Probability::from_ppb(share);
                    let sharp = config::Dualpi2 { alpha: 4000, beta: 80_000, ..config::Dualpi2::default() };
                    Queue::Dualpi2(config::Dualpi2 { limit, target, tupdate, classic_protection, ..sharp })
                })
                .boxed()
        }
    }

    fn dualpi2(config: config::Dualpi2) -> Dualpi2<Unit> {
        Dualpi2::new(&config, None, 1)
    }

    /// Offers a packet of each codepoint every millisecond, and takes one out, for `ms`: by codepoint, how many left,
    /// how many of them were marked, and how many were dropped.
    fn run(queue: &mut Dualpi2<Unit>, offered: &[Ecn], ms: u64) -> Vec<(u64, u64, u64)> {
        let mut counts = vec![(0, 0, 0); offered.len()];
        let mut number = 0;
        for at in 0..ms {
            let now = Time::ZERO + Span::from_ms(at);
            for (flow, &ecn) in (0..).zip(offered) {
                number += 1;
                let notified = enqueue_number(queue, Unit { ecn, flow, ..Unit::new(1500) }, number, now);
                assert_eq!(notified, [Notified::Enqueued]);
            }
            let mut notified = Vec::new();
            if let Some(packet) = queue.dequeue(now, &mut notified) {
                let count = &mut counts[packet.packet.flow as usize];
                count.0 += 1;
                count.1 += u64::from(notified.contains(&Notified::Marked));
            }
        }
        for (class, queue) in queue.classes().iter().zip(["L", "C"]) {
            assert_eq!(class.name, queue);
            let flow = offered.iter().position(|ecn| matches!(ecn, Ecn::Ect1 | Ecn::Ce) == (queue == "L"));
            if let Some(flow) = flow {
                counts[flow].2 = class.drops.total();
            }
        }
        counts
    }

    #[test]
    fn packets_that_can_be_marked_often_go_to_the_low_latency_queue() {
        let mut queue = dualpi2(config::Dualpi2::default());
        for (number, ecn) in (0..).zip([Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]) {
            enqueue_number(&mut queue, Unit { ecn, ..Unit::new(100) }, number, Time::ZERO);
        }
        let waiting: Vec<u32> = queue.classes().iter().map(|class| class.backlog.packets).collect();
        assert_eq!(waiting, [2, 2]);
    }

    #[test]
    fn a_delay_beyond_the_step_marks_every_scalable_packet_and_drops_none() {
        let mut queue = dualpi2(config::Dualpi2::default());
        for number in 0..4 {
            enqueue_number(&mut queue, Unit { ecn: Ecn::Ect1, ..Unit::new(1500) }, number, Time::ZERO);
        }
        let mut marks = Vec::new();
        for us in [500, 1000, 1001, 2000] {
            let mut notified = Vec::new();
            queue.dequeue(Time::ZERO + Span::from_us(us), &mut notified);
            marks.push(notified == [Notified::Marked]);
        }
        // The last one waits alone, without a queue.
        assert_eq!(marks, [false, false, true, false]);
    }

    #[test]
    fn a_jumbo_frame_alone_is_not_a_queue() {
        let mut queue = dualpi2(config::Dualpi2::default());
        for number in 0..2 {
            enqueue_number(&mut queue, Unit { ecn: Ecn::Ect1, ..Unit::new(9014) }, number, Time::ZERO);
        }
        let marks = [5, 10].map(|ms| {
            let mut notified = Vec::new();
            queue.dequeue(Time::ZERO + Span::from_ms(ms), &mut notified);
            notified == [Notified::Marked]
        });
        assert_eq!(marks, [true, false]);
    }

    #[test]
    fn classic_packets_are_signalled_with_the_square_of_the_base_probability() {
        let mut queue = dualpi2(config::Dualpi2::default());
        queue.base = ONE / 10;
        let signals = (0..100_000).filter(|&number| queue.signals_congestion(number)).count();
        assert!((900..1100).contains(&signals), "{signals}");
        let coupled = (0..100_000).filter(|&number| queue.draw(number, 0) < queue.coupled()).count();
        assert!((19_600..20_400).contains(&coupled), "{coupled}");
    }

    #[test]
    fn an_overload_of_classic_packets_comes_down_to_the_target() {
        for (ecn, most_marked) in [(Ecn::NotEct, 0), (Ecn::Ect0, 60_000)] {
            let mut queue = dualpi2(config::Dualpi2::default());
            // Four packets a millisecond for three: every fourth one has to go.
            let mut notified = Vec::new();
            for ms in 0..30_000 {
                let now = Time::ZERO + Span::from_ms(ms);
                for packet in 0..4 {
                    enqueue_number(&mut queue, Unit { ecn, ..Unit::new(1500) }, 4 * ms + packet, now);
                }
                for _ in 0..3 {
                    queue.dequeue(now, &mut notified);
                }
            }
            let delay = queue.classic.delay(Time::ZERO + Span::from_ms(30_000));
            assert!((8..25).contains(&(delay.as_us() / 1000)), "{delay}");
            // A quarter is the square of a half: p' = 1/2, beyond which marks give way to drops.
            assert!((ONE * 4 / 10..ONE * 6 / 10).contains(&queue.base), "{}", queue.base as f64 / ONE as f64);
            assert!(notified.iter().filter(|notified| **notified == Notified::Marked).count() <= most_marked);
        }
    }

    #[test]
    fn neither_queue_starves_the_other() {
        let counts = run(&mut dualpi2(config::Dualpi2::default()), &[Ecn::Ect1, Ecn::NotEct], 5000);
        assert!(counts[1].0 >= 450, "{counts:?}");
        assert!(counts[0].0 > counts[1].0, "{counts:?}");
    }

    #[test]
    fn an_unresponsive_scalable_flow_is_dropped_from_when_marks_are_not_heard() {
        let counts = run(&mut dualpi2(config::Dualpi2::default()), &[Ecn::Ect1, Ecn::Ect1], 20_000);
        assert!(counts[0].2 > 5000, "{counts:?}");
    }

    #[test]
    fn arrivals_beyond_the_limit_are_refused_in_either_queue() {
        let mut queue = dualpi2(config::Dualpi2 { limit: Limit::Packets(2), ..config::Dualpi2::default() });
        let notified: Vec<Notified> = (0..)
            .zip([Ecn::Ect1, Ecn::Ect0, Ecn::Ect1, Ecn::Ect0])
            .flat_map(|(number, ecn)| {
                enqueue_number(&mut queue, Unit { ecn, ..Unit::new(100) }, number, Time::ZERO)
            })
            .collect();
        let refused = Notified::Rejected(Cause::Overlimit);
        assert_eq!(notified, [Notified::Enqueued, Notified::Enqueued, refused, refused]);
    }
}
