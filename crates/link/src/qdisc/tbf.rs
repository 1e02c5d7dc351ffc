//! A token bucket that shapes: packets of the queue within leave as fast as tokens come.

use tcplab_units::{Rate, Time};

use super::{Backlog, Cause, Class, Discipline, Gauge, Qdisc, Queued, Sink};
use crate::bucket::Bucket;
use crate::config::{self, Change};
use crate::packet::Packet;
use crate::serializer::Serializer;

/// A bucket, and the queue that waits for it.
#[derive(Clone, Debug)]
pub(crate) struct Tbf<P> {
    bucket: Bucket,
    peak: Option<Serializer>,
    queue: Discipline<P>,
    /// The packet that takes the next tokens, and when it may leave.
    head: Option<(Time, Queued<P>)>,
    /// At the peak rate, no packet leaves before.
    peak_free: Time,
}

impl<P: Packet> Tbf<P> {
    pub(crate) fn new(config: &config::Tbf, _rate: Option<Rate>, seed: u64) -> Tbf<P> {
        Tbf {
            bucket: Bucket::new(config.rate, config.burst),
            peak: config.peak.map(Serializer::new),
            queue: Discipline::new(&config.queue, Some(config.rate), seed),
            head: None,
            peak_free: Time::ZERO,
        }
    }
}

impl<P: Packet> Qdisc<P> for Tbf<P> {
    fn enqueue(&mut self, packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
        self.queue.enqueue(packet, now, sink);
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        if self.head.is_none() {
            let next = self.queue.dequeue(now, sink)?;
            let len = next.packet.frame_len();
            let leaves = self.bucket.admit(now, len).max(self.peak_free);
            if leaves > now {
                self.queue.hold(u64::from(len), now);
            }
            self.head = Some((leaves, next));
        }
        let (_, packet) = self.head.take_if(|(leaves, _)| *leaves <= now)?;
        self.queue.hold(0, now);
        if let Some(peak) = &mut self.peak {
            let follows = self.peak_free == now;
            self.peak_free = peak.send(now, follows, packet.packet.frame_len());
        }
        Some(packet)
    }

    fn next_ready(&self, now: Time) -> Time {
        self.head.as_ref().map_or_else(|| self.queue.next_ready(now), |(leaves, _)| *leaves)
    }

    fn backlog(&self) -> Backlog {
        let Backlog { packets, bytes } = self.queue.backlog();
        let head = self.head.as_ref().map_or(0, |(_, head)| head.packet.frame_len());
        Backlog { packets: packets + u32::from(self.head.is_some()), bytes: bytes + u64::from(head) }
    }

    fn head_since(&self) -> Option<Time> {
        self.head.as_ref().map(|(_, head)| head.since).or_else(|| self.queue.head_since())
    }

    fn classes(&self) -> Vec<Class> {
        self.queue.classes()
    }

    fn gauges(&self, now: Time) -> Vec<Gauge> {
        let mut gauges = self.queue.gauges(now);
        gauges.push(Gauge { name: "tokens".into(), value: self.bucket.balance(now), unit: "B" });
        gauges
    }

    /// Times that the queue within converts at a rate go by the rate of the bucket.
    fn change(&mut self, change: &Change, _rate: Option<Rate>) {
        self.queue.change(change, Some(self.bucket.rate()));
    }

    /// The link's rate is not the bucket's.
    fn set_rate(&mut self, _rate: Option<Rate>) {}

    fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        if let Some((_, head)) = self.head.take() {
            sink.dropped(&head.packet, cause);
        }
        self.queue.purge(cause, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Queue};
    use crate::qdisc::contract::Contract;
    use crate::qdisc::testing::{Unit, enqueue};
    use proptest::prelude::*;
    use tcplab_units::Span;

    impl Contract for Tbf<Unit> {
        fn settings(within: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            let rates = || (1_000_000u64..1_000_000_000).prop_map(rate);
            (rates(), 0u64..10_000, prop::option::of(rates()), within.clone())
                .prop_map(|(rate, burst, peak, queue)| {
                    Queue::Tbf(config::Tbf { rate, burst, peak, queue: Box::new(queue) })
                })
                .boxed()
        }
    }

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_sec(bits).expect("not zero")
    }

    /// 8 Mbit/s, 1000 bytes a millisecond.
    fn tbf(burst: u64, peak: Option<u64>, limit: Option<Limit>) -> Tbf<Unit> {
        let queue = Box::new(Queue::droptail(limit));
        Tbf::new(&config::Tbf { rate: rate(8_000_000), burst, peak: peak.map(rate), queue }, None, 1)
    }

    /// When each of `count` packets of 1000 bytes leaves that arrive together, µs.
    fn departures(mut queue: Tbf<Unit>, count: usize) -> Vec<u64> {
        for _ in 0..count {
            enqueue(&mut queue, Unit::new(1000), Time::ZERO);
        }
        let mut now = Time::ZERO;
        let mut departures = Vec::new();
        while queue.backlog().packets > 0 {
            now = now.max(queue.next_ready(now));
            departures.extend(queue.dequeue(now, &mut Vec::new()).map(|_| now.as_ns() / 1000));
        }
        departures
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        assert_eq!(departures(tbf(3000, None, None), 6), [0, 0, 0, 1000, 2000, 3000]);
        assert_eq!(departures(tbf(500, None, None), 3), [500, 1500, 2500]);
    }

    #[test]
    fn a_burst_leaves_no_faster_than_the_peak_rate() {
        assert_eq!(departures(tbf(3000, Some(80_000_000), None), 5), [0, 100, 200, 1000, 2000]);
    }

    #[test]
    fn its_gauge_is_the_bucket_which_a_packet_that_waits_may_owe() {
        let mut queue = tbf(3000, None, None);
        let mut tokens = Vec::new();
        for at in [0, 1, 5] {
            let now = Time::ZERO + Span::from_ms(at);
            if at == 0 {
                for _ in 0..4 {
                    enqueue(&mut queue, Unit::new(1000), now);
                }
            }
            while queue.dequeue(now, &mut Vec::new()).is_some() {}
            tokens.extend(queue.gauges(now).iter().map(|gauge| gauge.value));
        }
        assert_eq!(tokens, [-1000.0, 0.0, 3000.0]);
    }

    #[test]
    fn a_limit_in_time_goes_by_the_rate_of_the_bucket() {
        let mut queue = tbf(0, None, Some(Limit::Time(Span::from_ms(3))));
        for _ in 0..9 {
            enqueue(&mut queue, Unit::new(1000), Time::ZERO);
        }
        assert_eq!(queue.backlog().packets, 3);
    }

    #[test]
    fn the_packet_that_takes_the_next_tokens_still_waits() {
        let mut queue = tbf(0, None, Some(Limit::Packets(1)));
        enqueue(&mut queue, Unit::new(1000), Time::ZERO);
        assert!(queue.dequeue(Time::ZERO, &mut Vec::new()).is_none());
        assert_eq!(queue.backlog(), Backlog { packets: 1, bytes: 1000 });
        assert_eq!(queue.head_since(), Some(Time::ZERO));
        // It counts no more toward the limit.
        enqueue(&mut queue, Unit::new(1000), Time::ZERO);
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: 2000 });
    }
}
