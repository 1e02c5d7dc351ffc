//! RED: random early detection (Floyd and Jacobson 1993), and adaptive RED (Floyd, Gummadi and Shenker 2001).

use tcplab_units::{Probability, Rate, Span, Time};

use super::fifo::Fifo;
use super::{Backlog, Cause, Gauge, Qdisc, Queued, Sink};
use crate::config::{self, Change, Limit};
use crate::packet::Packet;
use crate::random::Draws;
use crate::threshold::Threshold;

/// A queue that drops or marks arrivals at random, by its average length.
#[derive(Clone, Debug)]
pub(crate) struct Red<P> {
    queue: Fifo<P>,
    /// Packets and bytes that a shaper around it holds. They count as waiting, as Linux has it (`qdisc_peek_dequeued`).
    held: Backlog,
    limit: Threshold,
    config: config::Red,
    rate: Option<Rate>,
    min: u64,
    max: u64,
    /// Average queue, packets or bytes as `min` is given, in units of 2^−`FRACTION`.
    average: u64,
    /// Since when nothing is sent; none: something is.
    idle_since: Option<Time>,
    /// Arrivals let through since the last signal, less one; none: no such.
    count: Option<u64>,
    max_p: Probability,
    next_adaptation: Time,
    draws: Draws,
}

/// Binary places of the average: enough for one packet's 2^−31.
const FRACTION: u32 = 24;
/// How often adaptive RED looks (2001, section 3).
const ADAPTATION: Span = Span::from_ms(500);

impl<P: Packet> Red<P> {
    pub(crate) fn new(config: &config::Red, rate: Option<Rate>, seed: u64) -> Red<P> {
        let mut red = Red {
            queue: Fifo::new(),
            held: Backlog::default(),
            limit: Threshold::new(Some(config.limit), rate),
            config: config::Red { wlog: config.wlog.min(31), ..*config },
            rate,
            min: 0,
            max: 0,
            average: 0,
            idle_since: Some(Time::ZERO),
            count: None,
            max_p: config.probability,
            next_adaptation: Time::ZERO + ADAPTATION,
            draws: Draws::new(seed, "red"),
        };
        red.set_thresholds();
        red
    }

    fn set_thresholds(&mut self) {
        let amount = |limit| match limit {
            Limit::Packets(packets) => packets,
            limit => Threshold::new(Some(limit), self.rate).bytes.min(1 << 38),
        };
        (self.min, self.max) = (amount(self.config.min), amount(self.config.max));
    }

    /// The queue as the thresholds count it.
    fn length(&self) -> u64 {
        match self.config.min {
            Limit::Packets(_) => u64::from(self.queue.backlog().packets + self.held.packets),
            Limit::Bytes(_) | Limit::Time(_) => self.queue.bytes() + self.held.bytes,
        }
    }

    /// Moves the average towards the present queue; an idle time counts as so many arrivals that found nothing.
    fn measure(&mut self, now: Time) {
        if let Some(since) = self.idle_since.take() {
            let packet =
                self.rate.map_or(1, |rate| rate.time_to_send(u64::from(self.config.avpkt)).as_ns().max(1));
            let kept = power(ONE - (ONE >> self.config.wlog), now.since(since).as_ns() / packet);
            self.average = ((u128::from(self.average) * u128::from(kept)) >> 32) as u64;
        }
        let length = self.length() << FRACTION;
        let weight = self.config.wlog;
        self.average = self.average - (self.average >> weight) + (length >> weight);
    }

    fn adapt(&mut self, now: Time) {
        while self.config.adaptive && self.next_adaptation <= now {
            self.next_adaptation += ADAPTATION;
            let (average, span) = (self.average >> FRACTION, self.max.saturating_sub(self.min));
            let ppb = self.max_p.ppb();
            if average > self.min + span * 6 / 10 && ppb <= 500_000_000 {
                self.max_p = Probability::from_ppb(ppb + (ppb / 4).min(10_000_000));
            } else if average < self.min + span * 4 / 10 && ppb >= 10_000_000 {
                self.max_p = Probability::from_ppb(ppb / 10 * 9);
            } else {
                // Nothing changes the average until the next packet comes.
                let missed = now.since(self.next_adaptation).as_ns() / ADAPTATION.as_ns();
                self.next_adaptation += ADAPTATION * missed;
            }
        }
    }

    /// Whether the `number`th packet signals congestion: it is marked or dropped.
    fn signals_congestion(&mut self, number: u64) -> bool {
        let average = self.average >> FRACTION;
        if average < self.min {
            self.count = None;
            return false;
        }
        let end = if self.config.gentle { 2 * self.max } else { self.max };
        if average >= end {
            self.count = None;
            return true;
        }
        // p_b grows evenly from `min` to `max` (1993, section 4), and from there to 1 at twice `max`.
        let max_p = u64::from(self.max_p.ppb());
        let p_b = if average < self.max {
            u128::from(max_p) * u128::from(average - self.min) / u128::from(self.max - self.min)
        } else {
            u128::from(max_p)
                + u128::from(BILLION - max_p) * u128::from(average - self.max) / u128::from(self.max)
        };
        let p_b = p_b as u64;
        // p_a = p_b / (1 − count · p_b) makes each distance between signals, from 1 to 1/p_b, alike. So count is 0
        // for the packet after a signal (section 7), although the paper's listing begins with 1.
        let count = self.count.map_or(0, |count| count + 1);
        let rest = BILLION.saturating_sub(count.saturating_mul(p_b));
        let p_a = if rest <= p_b { BILLION } else { p_b * BILLION / rest };
        let signal = Probability::from_ppb(p_a as u32).hit(self.draws.at(number));
        self.count = (!signal).then_some(count);
        signal
    }
}

const BILLION: u64 = 1_000_000_000;
/// One with 32 binary places.
const ONE: u64 = 1 << 32;

/// `base` to the power of `exponent`, both `base` and the result with 32 binary places.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = ONE;
    while exponent > 0 && result > 0 {
        if exponent & 1 == 1 {
            result = ((u128::from(result) * u128::from(base)) >> 32) as u64;
        }
        base = ((u128::from(base) * u128::from(base)) >> 32) as u64;
        exponent >>= 1;
    }
    result
}

impl<P: Packet> Qdisc<P> for Red<P> {
    fn enqueue(&mut self, mut packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
        self.adapt(now);
        self.measure(now);
        let signal = self.signals_congestion(packet.number);
        let marks = signal && self.config.ecn && packet.packet.is_ect();
        if signal && !marks {
            return sink.rejected(&packet.packet, Cause::Early);
        }
        let after = self.queue.backlog().and(packet.packet.frame_len());
        if self.limit.is_exceeded(u64::from(after.packets), after.bytes) {
            return sink.rejected(&packet.packet, Cause::Overlimit);
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

    fn hold(&mut self, bytes: u64, _now: Time) {
        self.held = Backlog { packets: u32::from(bytes > 0), bytes };
    }

    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        let packet = self.queue.pop()?;
        if self.queue.is_empty() {
            let len = u64::from(packet.packet.frame_len());
            self.idle_since = Some(now + self.rate.map_or(Span::ZERO, |rate| rate.time_to_send(len)));
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn head_since(&self) -> Option<Time> {
        self.queue.head().map(|head| head.since)
    }

    fn gauges(&self, _now: Time) -> Vec<Gauge> {
        let average = self.average as f64 / f64::from(1 << FRACTION);
        let in_packets = matches!(self.config.min, Limit::Packets(_));
        let unit = if in_packets { "packets" } else { "B" };
        vec![
            Gauge { name: "average".into(), value: average, unit },
            Gauge::plain("max_p", self.max_p.as_f64()),
        ]
    }

    fn change(&mut self, change: &Change, rate: Option<Rate>) {
        if change.limit.is_some() {
            self.limit = Threshold::new(change.limit, rate);
        }
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.limit = self.limit.at_rate(rate);
        self.rate = rate;
        self.set_thresholds();
    }

    fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        self.queue.purge(cause, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Queue;
    use crate::packet::Ecn;
    use crate::qdisc::contract::{Contract, limits};
    use crate::qdisc::testing::{Notified, Unit, enqueue_number};
    use proptest::prelude::*;

    impl Contract for Red<Unit> {
        fn settings(_: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            (limits(), limits(), limits(), 0u8..4, any::<[bool; 3]>())
                .prop_map(|(limit, min, max, wlog, [gentle, adaptive, ecn])| {
                    let probability = Probability::from_ppb(100_000_000);
                    Queue::Red(config::Red {
                        limit,
                        min,
                        max,
                        probability,
                        wlog,
                        avpkt: 1000,
                        gentle,
                        adaptive,
                        ecn,
                    })
                })
                .boxed()
        }
    }

    fn red(config: config::Red) -> Red<Unit> {
        Red::new(&config, Rate::from_bits_per_sec(8_000_000), 1)
    }

    /// Holds the queue at `waiting` packets of 1000 bytes for 20,000 arrivals: the share that was dropped or marked
    /// in the second half.
    fn signal_rate(queue: &mut Red<Unit>, waiting: u32, ecn: Ecn) -> f64 {
        let mut signals = 0;
        for number in 1..=20_000 {
            let now = Time::ZERO + Span::from_ms(number);
            let notified = enqueue_number(queue, Unit { ecn, ..Unit::new(1000) }, number, now);
            signals += u32::from(number > 10_000 && notified != [Notified::Enqueued]);
            if queue.backlog().packets > waiting {
                queue.dequeue(now, &mut Vec::new());
            }
        }
        f64::from(signals) / 10_000.0
    }

    #[test]
    fn nothing_is_dropped_below_min_and_everything_beyond_max() {
        assert_eq!(signal_rate(&mut red(config::Red::default()), 19, Ecn::NotEct), 0.0);
        let mut queue = red(config::Red::default());
        assert_eq!(signal_rate(&mut queue, 100, Ecn::NotEct), 1.0);
    }

    #[test]
    fn between_the_thresholds_the_share_grows_to_that_at_max() {
        // Signals are 1 to 1/p_b arrivals apart, each distance alike: 1/p_b halves on average (1993, section 7).
        let half = signal_rate(&mut red(config::Red { ecn: true, ..config::Red::default() }), 40, Ecn::Ect0);
        assert!((half - 2.0 * 0.01).abs() < 0.004, "{half}");
        let maximum =
            signal_rate(&mut red(config::Red { ecn: true, ..config::Red::default() }), 58, Ecn::Ect0);
        assert!((maximum - 2.0 * 0.019).abs() < 0.006, "{maximum}");
    }

    #[test]
    fn a_packet_that_a_shaper_holds_counts_in_the_average() {
        let mut queue = red(config::Red { wlog: 0, ..config::Red::default() });
        queue.hold(1514, Time::ZERO);
        queue.measure(Time::ZERO);
        assert_eq!(queue.average >> FRACTION, 1514);
        queue.hold(0, Time::ZERO);
        queue.measure(Time::ZERO);
        assert_eq!(queue.average, 0);
    }

    #[test]
    fn gentle_red_still_lets_packets_through_beyond_max() {
        let gentle = config::Red { gentle: true, ecn: true, ..config::Red::default() };
        let share = signal_rate(&mut red(gentle), 90, Ecn::Ect0);
        assert!((0.4..0.95).contains(&share), "{share}");
    }

    #[test]
    fn a_sender_that_can_be_notified_keeps_its_packets() {
        let mut queue = red(config::Red { ecn: true, ..config::Red::default() });
        let mut notified = Vec::new();
        for number in 0..2000 {
            notified.extend(enqueue_number(
                &mut queue,
                Unit { ecn: Ecn::Ect0, ..Unit::new(1000) },
                number,
                Time::ZERO,
            ));
            if queue.backlog().packets > 50 {
                queue.dequeue(Time::ZERO, &mut Vec::new());
            }
        }
        assert!(
            notified.contains(&Notified::Marked)
                && !notified.iter().any(|notified| matches!(notified, Notified::Rejected(_)))
        );
    }

    #[test]
    fn the_average_forgets_while_the_link_is_idle() {
        let mut queue = red(config::Red::default());
        signal_rate(&mut queue, 40, Ecn::NotEct);
        let before = queue.average;
        while queue.dequeue(Time::ZERO + Span::from_secs(20), &mut Vec::new()).is_some() {}
        // 355 packets of 1000 bytes take 355 ms, in which (1 − 1/512)^355 = 1/2 is kept.
        queue.measure(Time::ZERO + Span::from_ms(20_356));
        let ratio = queue.average as f64 / before as f64;
        assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn adaptive_red_finds_the_probability_that_a_load_needs() {
        let adaptive = config::Red { adaptive: true, ecn: true, ..config::Red::default() };
        let mut queue = red(adaptive);
        signal_rate(&mut queue, 55, Ecn::Ect0);
        assert!(queue.max_p.ppb() > 100_000_000, "{}", queue.max_p);
        signal_rate(&mut queue, 22, Ecn::Ect0);
        let mut idle = red(adaptive);
        signal_rate(&mut idle, 22, Ecn::Ect0);
        assert!(idle.max_p.ppb() < 10_000_000, "{}", idle.max_p);
    }
}
