//! PIE: proportional integral controller, enhanced (RFC 8033), and DOCSIS-PIE (RFC 8034).

use tcplab_units::{Rate, Span, Time};

use super::fifo::Fifo;
use super::{Backlog, Cause, Gauge, Qdisc, Queued, Sink};
use crate::config::{self, Change};
use crate::packet::Packet;
use crate::random::Draws;
use crate::threshold::Threshold;

/// A queue that drops or marks arrivals with a probability which a controller of the delay computes.
///
/// The delay is the time that the last packet taken out had waited (RFC 8033, section 5.2, allows time stamps).
#[derive(Clone, Debug)]
pub(crate) struct Pie<P> {
    queue: Fifo<P>,
    /// Bytes that a shaper around it holds. They count as waiting, as Linux has it (`qdisc_peek_dequeued`).
    held: u64,
    limit: Threshold,
    config: config::Pie,
    draws: Draws,
    /// The drop probability, in units of 1/`ONE`; more than `ONE` only for DOCSIS, where packets' sizes scale it.
    drop_prob: i64,
    /// Probability gathered since the last random drop, which keeps drops apart (section 5.4).
    accu_prob: i64,
    qdelay: Span,
    qdelay_old: Span,
    burst_allowance: Span,
    next_update: Time,
}

/// Certainty. 2^50 leaves room for DOCSIS' probabilities and for the sum of several.
const ONE: i64 = 1 << 50;

impl<P: Packet> Pie<P> {
    pub(crate) fn new(config: &config::Pie, rate: Option<Rate>, seed: u64) -> Pie<P> {
        Pie {
            queue: Fifo::new(),
            held: 0,
            limit: Threshold::new(Some(config.limit), rate),
            config: config::Pie { tupdate: config.tupdate.max(Span::from_us(1)), ..*config },
            draws: Draws::new(seed, "pie"),
            drop_prob: 0,
            accu_prob: 0,
            qdelay: Span::ZERO,
            qdelay_old: Span::ZERO,
            burst_allowance: config.max_burst,
            next_update: Time::ZERO + config.tupdate,
        }
    }

    /// Does the updates that were due by `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let rests = self.drop_prob == 0
                && self.qdelay == Span::ZERO
                && self.qdelay_old == Span::ZERO
                && self.burst_allowance == self.config.max_burst;
            if rests {
                let updates = now.since(self.next_update).as_ns() / self.config.tupdate.as_ns() + 1;
                self.next_update += self.config.tupdate * updates;
                return;
            }
            self.update();
            self.next_update += self.config.tupdate;
        }
    }

    /// Computes the drop probability (section 4.2).
    fn update(&mut self) {
        let (qdelay, old) = (self.qdelay, self.qdelay_old);
        if self.config.docsis && self.burst_allowance > Span::ZERO {
            self.drop_prob = 0;
        } else {
            self.drop_prob = self.controlled(qdelay, old);
        }
        self.qdelay_old = qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.config.tupdate);
        // Congestion has gone away (section 4.4).
        let half = self.config.target / 2;
        if self.drop_prob == 0 && qdelay < half && old < half {
            self.burst_allowance = self.config.max_burst;
        }
    }

    fn controlled(&self, qdelay: Span, old: Span) -> i64 {
        let ns = |span: Span| i128::from(span.as_ns());
        let error = i128::from(self.config.alpha) * (ns(qdelay) - ns(self.config.target));
        let trend = i128::from(self.config.beta) * (ns(qdelay) - ns(old));
        let mut delta = (error + trend) * i128::from(ONE) / (16 * 1_000_000_000);
        // Small probabilities take small steps.
        let (numerator, denominator) = match self.drop_prob {
            prob if prob < ONE / 1_000_000 => (1, 2048),
            prob if prob < ONE / 100_000 => (1, 512),
            prob if prob < ONE / 10_000 => (1, 128),
            prob if prob < ONE / 1000 => (1, 32),
            prob if prob < ONE / 100 => (1, 8),
            prob if prob < ONE / 10 => (1, 2),
            prob if prob < ONE => (1 + i128::from(self.config.docsis), 1),
            prob if prob < 10 * ONE => (8, 1),
            _ => (32, 1),
        };
        delta = delta * numerator / denominator;
        // And large ones no large steps up.
        if self.drop_prob >= ONE / 10 {
            delta = delta.min(i128::from(ONE / 50));
        }
        let mut prob = i128::from(self.drop_prob) + delta;
        let (low, high) = if self.config.docsis {
            (qdelay < Span::from_ms(5) && old < Span::from_ms(5), qdelay > Span::from_ms(200))
        } else {
            // A link on which a packet waits is not idle, even if no delay was measured: Linux keeps the probability then. It also
            // adds the latter: a delay this long means that the probability is far off.
            let idle = qdelay == Span::ZERO && old == Span::ZERO && self.waiting() == 0;
            (idle, qdelay > Span::from_ms(250))
        };
        if low {
            // Of RFC 8033's 0.98 the appendix says that 1 − 1/64 is sufficient, which is Linux's.
            prob = if self.config.docsis { prob * 98 / 100 } else { prob * 63 / 64 };
        } else if high {
            prob += i128::from(ONE / 50);
        }
        prob.clamp(0, i128::from(self.maximum())) as i64
    }

    /// The largest probability: one, or with DOCSIS as much as makes it 85 % for the smallest packet.
    fn maximum(&self) -> i64 {
        if self.config.docsis { ONE / 100 * 85 * i64::from(MEAN_PACKET / MIN_PACKET) } else { ONE }
    }

    /// Whether the `number`th packet, of `len` bytes, is dropped or marked although there is room (section 4.1).
    fn signals_congestion(&mut self, number: u64, len: u32) -> bool {
        if self.burst_allowance > Span::ZERO {
            return false;
        }
        // Never while the link could run dry.
        let is_short = self.qdelay_old < self.config.target / 2 && self.drop_prob < ONE / 5;
        if is_short || self.waiting() <= 2 * u64::from(self.mean_packet()) {
            return false;
        }
        let mut prob = self.drop_prob;
        if self.config.bytemode {
            prob = (i128::from(prob) * i128::from(len) / i128::from(self.mean_packet())) as i64;
            prob = prob.min(if self.config.docsis { ONE / 100 * 85 } else { ONE });
        }
        if self.drop_prob == 0 {
            self.accu_prob = 0;
        }
        self.accu_prob = self.accu_prob.saturating_add(prob);
        if self.accu_prob < ONE / 100 * 85 {
            return false;
        }
        let random = (self.draws.at(number) >> 14) as i64;
        let signal = self.accu_prob >= ONE / 10 * 85 || random < prob;
        if signal {
            self.accu_prob = 0;
        }
        signal
    }

    /// Bytes that wait.
    fn waiting(&self) -> u64 {
        self.queue.bytes() + self.held
    }

    fn mean_packet(&self) -> u32 {
        if self.config.docsis { MEAN_PACKET } else { ETHERNET }
    }
}

/// An Ethernet frame with 1500 bytes of IP, as Linux takes as the unit of packet sizes.
const ETHERNET: u32 = 1514;
/// MEAN_PKTSIZE and MIN_PKTSIZE of RFC 8034, appendix A.
const MEAN_PACKET: u32 = 1024;
const MIN_PACKET: u32 = 64;

impl<P: Packet> Qdisc<P> for Pie<P> {
    fn enqueue(&mut self, mut packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
        self.catch_up(now);
        let len = packet.packet.frame_len();
        let after = self.queue.backlog().and(len);
        if self.limit.is_exceeded(u64::from(after.packets), after.bytes) {
            return sink.rejected(&packet.packet, Cause::Overlimit);
        }
        let signal = self.signals_congestion(packet.number, len);
        let marks = signal && self.config.ecn && packet.packet.is_ect() && self.drop_prob < ONE / 10;
        if signal && !marks {
            return sink.rejected(&packet.packet, Cause::Early);
        }
        if marks {
            packet.packet.mark_ce();
        }
        sink.enqueued(&packet.packet);
        if marks {
            sink.marked(&packet.packet);
        }
        self.queue.push(packet);
    }

    fn hold(&mut self, bytes: u64, now: Time) {
        self.catch_up(now);
        self.held = bytes;
    }

    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        self.catch_up(now);
        let packet = self.queue.pop()?;
        self.qdelay = if self.queue.is_empty() { Span::ZERO } else { now.since(packet.since) };
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn head_since(&self) -> Option<Time> {
        self.queue.head().map(|head| head.since)
    }

    fn gauges(&self, _now: Time) -> Vec<Gauge> {
        vec![Gauge::plain("prob", self.drop_prob as f64 / ONE as f64), Gauge::time("delay", self.qdelay)]
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
        self.queue.purge(cause, sink);
        self.qdelay = Span::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Queue};
    use crate::packet::Ecn;
    use crate::qdisc::contract::{Contract, limits};
    use crate::qdisc::testing::{Notified, Unit, enqueue_number};
    use proptest::prelude::*;

    impl Contract for Pie<Unit> {
        fn settings(_: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            let ms = |range: std::ops::Range<u64>| range.prop_map(Span::from_ms);
            let times = (ms(0..5), ms(1..20), ms(0..20));
            (limits(), times, any::<[bool; 3]>())
                .prop_map(|(limit, (target, tupdate, max_burst), [ecn, bytemode, docsis])| {
                    // Sharp, so that it drops within a few packets.
                    let (alpha, beta) = (2000, 20_000);
                    Queue::Pie(config::Pie {
                        limit,
                        target,
                        tupdate,
                        alpha,
                        beta,
                        max_burst,
                        ecn,
                        bytemode,
                        docsis,
                    })
                })
                .boxed()
        }
    }

    fn pie(config: config::Pie) -> Pie<Unit> {
        Pie::new(&config, None, 1)
    }

    /// Offers full packets for `ms`, as many in each millisecond as `packets` says in turn, takes one out each, and
    /// returns what became of them.
    fn overload(queue: &mut Pie<Unit>, ms: u64, packets: &[u64], ecn: Ecn) -> Vec<(u64, Notified)> {
        let mut notified = Vec::new();
        let mut number = 0;
        for (at, &packets) in (0..ms).zip(packets.iter().cycle()) {
            let now = Time::ZERO + Span::from_ms(at);
            for _ in 0..packets {
                number += 1;
                let unit = Unit { ecn, ..Unit::new(1514) };
                notified.extend(
                    enqueue_number(queue, unit, number, now).into_iter().map(|notified| (at, notified)),
                );
            }
            queue.dequeue(now, &mut Vec::new());
        }
        notified
    }

    fn count(notified: &[(u64, Notified)], wanted: Notified) -> usize {
        notified.iter().filter(|(_, notified)| *notified == wanted).count()
    }

    const EARLY: Notified = Notified::Rejected(Cause::Early);

    #[test]
    fn nothing_is_dropped_within_the_burst_allowance() {
        let notified = overload(&mut pie(config::Pie::default()), 1000, &[2], Ecn::NotEct);
        let first = notified.iter().find(|(_, notified)| *notified == EARLY).expect("drops follow").0;
        assert!((150..400).contains(&first), "{first} ms");
    }

    #[test]
    fn the_delay_of_an_overload_comes_down_to_the_target() {
        let mut queue = pie(config::Pie::default());
        let notified = overload(&mut queue, 60_000, &[2, 1, 1, 1], Ecn::NotEct);
        let late: Vec<_> = notified.into_iter().filter(|(at, _)| *at >= 30_000).collect();
        // Five packets come where four can leave.
        let share = count(&late, EARLY) as f64 / late.len() as f64;
        assert!((share - 0.2).abs() < 0.005, "{share}");
        assert!((5..25).contains(&(queue.qdelay.as_us() / 1000)), "{}", queue.qdelay);
    }

    #[test]
    fn marks_give_way_to_drops_where_the_probability_passes_a_tenth() {
        let mut queue = pie(config::Pie { ecn: true, ..config::Pie::default() });
        let notified = overload(&mut queue, 60_000, &[2], Ecn::Ect0);
        assert!(count(&notified, Notified::Marked) > 0 && count(&notified, EARLY) > 1000);
        let mut queue = pie(config::Pie::default());
        assert_eq!(count(&overload(&mut queue, 1000, &[2], Ecn::Ect0), Notified::Marked), 0);
    }

    #[test]
    fn the_probability_decays_while_the_queue_is_empty() {
        // Without `alpha` the distance from the target does not lower it besides.
        let mut queue = pie(config::Pie { alpha: 0, ..config::Pie::default() });
        overload(&mut queue, 5000, &[2], Ecn::NotEct);
        while queue.dequeue(Time::ZERO + Span::from_secs(6), &mut Vec::new()).is_some() {}
        queue.catch_up(Time::ZERO + Span::from_ms(6100));
        let before = queue.drop_prob;
        queue.catch_up(Time::ZERO + Span::from_ms(7100));
        // By 1/64 in each of 66 or 67 updates, as in Linux.
        let kept = queue.drop_prob as f64 / before as f64;
        assert!((kept - (63.0_f64 / 64.0).powi(67)).abs() < 0.01, "{kept}");
        // And a year of nothing takes no time to catch up with.
        queue.catch_up(Time::ZERO + Span::from_secs(365 * 86_400));
        assert_eq!((queue.drop_prob, queue.burst_allowance), (0, Span::from_ms(150)));
    }

    #[test]
    fn arrivals_beyond_the_limit_are_refused() {
        let mut queue = pie(config::Pie { limit: Limit::Packets(10), ..config::Pie::default() });
        let notified = overload(&mut queue, 100, &[2], Ecn::Ect0);
        assert_eq!(
            (count(&notified, Notified::Rejected(Cause::Overlimit)), count(&notified, EARLY)),
            (91, 0)
        );
    }

    #[test]
    fn docsis_spares_small_packets() {
        let mut queue = pie(config::Pie::docsis());
        let mut drops = [0; 2];
        for at in 0..60_000u64 {
            let now = Time::ZERO + Span::from_ms(at);
            for (packet, len) in
                [(0, 1514), (1, 64), (2, 1514)].into_iter().take(if at % 4 == 0 { 3 } else { 1 })
            {
                let notified = enqueue_number(&mut queue, Unit::new(len), 3 * at + packet, now);
                drops[usize::from(len == 1514)] += usize::from(notified == [EARLY]);
            }
            queue.dequeue(now, &mut Vec::new());
        }
        // For each small packet there are five large ones, each of them 24 times as likely to be dropped.
        assert!(drops[1] > 60 * drops[0] && drops[1] > 10_000, "{drops:?}");
        assert!((5..20).contains(&(queue.qdelay.as_us() / 1000)), "{}", queue.qdelay);
    }
}
