//! CoDel: controlled delay (RFC 8289).

use tcplab_units::{Rate, Span, Time};

use super::fifo::Fifo;
use super::{Backlog, Cause, Gauge, Qdisc, Queued, Sink};
use crate::config::{self, Change};
use crate::packet::Packet;
use crate::threshold::Threshold;

/// A queue that drops or marks at its head, so that no standing delay beyond the target builds up.
#[derive(Clone, Debug)]
pub(crate) struct Codel<P> {
    queue: Fifo<P>,
    limit: Threshold,
    law: Law,
    control: Control,
}

impl<P: Packet> Codel<P> {
    pub(crate) fn new(config: &config::Codel, rate: Option<Rate>, _seed: u64) -> Codel<P> {
        Codel {
            queue: Fifo::new(),
            limit: Threshold::new(Some(config.limit), rate),
            law: Law::new(config.target, config.interval, config.ecn, config.ce_threshold),
            control: Control::default(),
        }
    }
}

impl<P: Packet> Qdisc<P> for Codel<P> {
    #[inline]
    fn enqueue(&mut self, packet: Queued<P>, _now: Time, sink: &mut impl Sink<P>) {
        let after = self.queue.backlog().and(packet.packet.frame_len());
        if self.limit.is_exceeded(u64::from(after.packets), after.bytes) {
            return sink.rejected(&packet.packet, Cause::Overlimit);
        }
        sink.enqueued(&packet.packet);
        self.queue.push(packet);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        self.control.signal_at_head(&mut self.queue, 0, &mut self.law, now, sink);
        self.queue.pop()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn head_since(&self) -> Option<Time> {
        self.queue.head().map(|head| head.since)
    }

    fn gauges(&self, now: Time) -> Vec<Gauge> {
        self.control.gauges(now).to_vec()
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
    }
}

/// Settings of CoDel, shared by all queues of a discipline.
#[derive(Clone, Debug)]
pub(super) struct Law {
    target: Span,
    interval: Span,
    ecn: bool,
    ce_threshold: Option<Span>,
    /// The largest frame so far, an Ethernet frame at first: a queue that holds no more is short enough.
    max_packet: u32,
}

/// An Ethernet frame with 1500 bytes of IP.
const ETHERNET: u32 = 1514;

impl Law {
    pub(super) fn new(target: Span, interval: Span, ecn: bool, ce_threshold: Option<Span>) -> Law {
        Law { target, interval, ecn, ce_threshold, max_packet: ETHERNET }
    }

    /// Whether it signals congestion to the sender of `packet` by a mark.
    fn marks<P: Packet>(&self, packet: &Queued<P>) -> bool {
        self.ecn && packet.packet.is_ect()
    }

    /// When the next packet is dropped after one at `time`: `interval / √count` later (section 5.4).
    fn next_drop(&self, time: Time, root: InverseRoot) -> Time {
        time + root.of(self.interval)
    }
}

/// 1 / √count, in units of 2⁻¹⁶. As in Linux, each drop makes one step of Newton's method from the last value. So the
/// second of a row of drops follows after 0.5 intervals, not 0.71, and the first drops are closer where the count
/// has just been reduced.
#[derive(Clone, Copy, Debug)]
struct InverseRoot(u64);

impl InverseRoot {
    const ONE: InverseRoot = InverseRoot(1 << 16);

    /// The value for `count`, from the one for a count not far from it.
    fn step(self, count: u32) -> InverseRoot {
        let product = u64::from(count) * self.0 * self.0;
        if product > 2 << 32 {
            // From so far the step does not converge: many packets were dropped at once.
            return InverseRoot(((1 << 32) / u64::from(count)).isqrt());
        }
        InverseRoot((self.0 * ((3 << 32) - product)) >> 33)
    }

    fn of(self, interval: Span) -> Span {
        Span::from_ns(((u128::from(interval.as_ns()) * u128::from(self.0)) >> 16) as u64)
    }
}

impl Default for InverseRoot {
    fn default() -> InverseRoot {
        InverseRoot::ONE
    }
}

/// The state of CoDel for one queue (section 5.3), under the RFC's names.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// When packets will have waited too long for a whole interval; none: the last one has not.
    first_above: Option<Time>,
    /// When to drop the next packet while `dropping`.
    drop_next: Time,
    /// Packets dropped since `dropping` began.
    count: u32,
    /// `count` as `dropping` began.
    last_count: u32,
    /// Of `count`.
    root: InverseRoot,
    dropping: bool,
}

/// How many intervals after the last drop the rate of drops is still remembered (section 5.6).
const MEMORY: u64 = 16;

impl Control {
    /// Drops and marks at the head of `queue` (section 5.6). The packet that is the head then is sent at `now`. `others` are
    /// the bytes that wait in other queues for the same link.
    #[inline(always)]
    pub(super) fn signal_at_head<P: Packet>(
        &mut self,
        queue: &mut Fifo<P>,
        others: u64,
        law: &mut Law,
        now: Time,
        sink: &mut impl Sink<P>,
    ) {
        if queue.is_empty() {
            // As Linux does, and unlike RFC 8289, it remembers since when packets have waited too long.
            self.dropping = false;
            return;
        }
        let ok_to_drop = self.should_drop(queue, others, law, now);
        if self.dropping || ok_to_drop {
            self.signal(ok_to_drop, queue, others, law, now, sink);
        }
        if let Some(threshold) = law.ce_threshold
            && let Some(head) = queue.head_mut()
            && now.since(head.since) > threshold
            && head.packet.is_ect()
        {
            mark(head, sink);
        }
    }

    /// The packets that it has dropped since it began to, while it does.
    pub(super) fn drops_in_a_row(&self) -> Option<u32> {
        self.dropping.then_some(self.count)
    }

    /// The queue is empty.
    pub(super) fn rest(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// So many packets were dropped without asking it, which strengthens its signal too.
    pub(super) fn add_drops(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Tells senders to slow down, where it is time to.
    #[cold]
    fn signal<P: Packet>(
        &mut self,
        mut ok_to_drop: bool,
        queue: &mut Fifo<P>,
        others: u64,
        law: &mut Law,
        now: Time,
        sink: &mut impl Sink<P>,
    ) {
        if !self.dropping {
            self.mark_or_drop(queue, others, law, now, sink);
            self.dropping = true;
            // Where the queue was too long only recently, the rate of drops that controlled it is a good start.
            let delta = self.count.saturating_sub(self.last_count);
            let recently = now.since(self.drop_next) < law.interval * MEMORY;
            (self.count, self.root) =
                if delta > 1 && recently { (delta, self.root.step(delta)) } else { (1, InverseRoot::ONE) };
            self.last_count = self.count;
            self.drop_next = law.next_drop(now, self.root);
            return;
        }
        if !ok_to_drop {
            self.dropping = false;
        }
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            self.root = self.root.step(self.count);
            let marks = queue.head().is_some_and(|head| law.marks(head));
            ok_to_drop = self.mark_or_drop(queue, others, law, now, sink);
            if marks {
                // A marked packet is sent: one signal for each packet that leaves.
                self.drop_next = law.next_drop(self.drop_next, self.root);
                break;
            }
            if ok_to_drop {
                self.drop_next = law.next_drop(self.drop_next, self.root);
            } else {
                self.dropping = false;
            }
        }
    }

    /// Marks the head of `queue`, or drops it and looks at the next.
    fn mark_or_drop<P: Packet>(
        &mut self,
        queue: &mut Fifo<P>,
        others: u64,
        law: &mut Law,
        now: Time,
        sink: &mut impl Sink<P>,
    ) -> bool {
        if let Some(head) = queue.head_mut()
            && law.marks(head)
        {
            mark(head, sink);
            return true;
        }
        if let Some(dropped) = queue.pop() {
            sink.dropped(&dropped.packet, Cause::Early);
        }
        self.should_drop(queue, others, law, now)
    }

    /// Whether packets have waited too long for a whole interval (`dodequeue`, but the packet stays).
    #[inline]
    fn should_drop<P: Packet>(&mut self, queue: &Fifo<P>, others: u64, law: &mut Law, now: Time) -> bool {
        let Some(head) = queue.head() else {
            self.first_above = None;
            return false;
        };
        let len = head.packet.frame_len();
        law.max_packet = law.max_packet.max(len);
        let left = others + queue.bytes() - u64::from(len);
        if now.since(head.since) < law.target || left <= u64::from(law.max_packet) {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            Some(first_above) => now >= first_above,
            None => {
                self.first_above = Some(now + law.interval);
                false
            }
        }
    }

    /// Its state under the names of `tc -s qdisc`.
    pub(super) fn gauges(&self, now: Time) -> [Gauge; 3] {
        let until_drop = if self.dropping { self.drop_next.since(now) } else { Span::ZERO };
        [
            Gauge::plain("count", f64::from(self.count)),
            Gauge::plain("dropping", f64::from(u8::from(self.dropping))),
            Gauge::time("drop_next", until_drop),
        ]
    }
}

fn mark<P: Packet>(packet: &mut Queued<P>, sink: &mut impl Sink<P>) {
    packet.packet.mark_ce();
    sink.marked(&packet.packet);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Queue};
    use crate::packet::Ecn;
    use crate::qdisc::contract::{Contract, limits};
    use crate::qdisc::testing::{Notified, Unit, enqueue};
    use proptest::prelude::*;

    impl Contract for Codel<Unit> {
        fn settings(_: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            let ms = |range: std::ops::Range<u64>| range.prop_map(Span::from_ms);
            (limits(), ms(0..5), ms(0..20), any::<bool>(), prop::option::of(ms(0..5)))
                .prop_map(|(limit, target, interval, ecn, ce_threshold)| {
                    Queue::Codel(config::Codel { limit, target, interval, ecn, ce_threshold })
                })
                .boxed()
        }
    }

    fn codel(config: config::Codel) -> Codel<Unit> {
        Codel::new(&config, None, 1)
    }

    /// Fills a queue with `packets` at once and takes one out every `gap_ms`: the times in ms of what it did.
    fn signals(config: config::Codel, packets: u32, ecn: Ecn, gap_ms: u64) -> Vec<(u64, Notified)> {
        let mut queue = codel(config::Codel { limit: Limit::Packets(u64::from(packets)), ..config });
        for _ in 0..packets {
            enqueue(&mut queue, Unit { ecn, ..Unit::new(1514) }, Time::ZERO);
        }
        let mut signals = Vec::new();
        for ms in (1..).step_by(gap_ms as usize) {
            let mut notified = Vec::new();
            let packet = queue.dequeue(Time::ZERO + Span::from_ms(ms), &mut notified);
            signals.extend(notified.into_iter().map(|notified| (ms, notified)));
            if packet.is_none() {
                break;
            }
        }
        signals
    }

    #[test]
    fn drops_begin_after_an_interval_and_come_closer_with_the_root_of_their_count() {
        let drops = signals(config::Codel::default(), 700, Ecn::NotEct, 1);
        assert!(drops.iter().all(|drop| drop.1 == Notified::Dropped(Cause::Early)));
        // The packet at 5 ms has waited for the target; the next drops follow after 100 ms / √1, √2, √3 … to one step of Newton's method
        let times: Vec<u64> = drops.iter().map(|drop| drop.0).take(8).collect();
        assert_eq!(times, [105, 205, 255, 312, 361, 405, 445, 483]);
    }

    #[test]
    fn a_sender_that_can_be_notified_keeps_its_packets() {
        let ecn = config::Codel { ecn: true, ..config::Codel::default() };
        let marks = signals(ecn, 500, Ecn::Ect0, 1);
        assert_eq!(marks[..3], [(105, Notified::Marked), (205, Notified::Marked), (255, Notified::Marked)]);
        assert!(marks.iter().all(|mark| mark.1 == Notified::Marked));
        let drops = signals(ecn, 500, Ecn::NotEct, 1);
        assert!(!drops.is_empty() && drops.iter().all(|drop| drop.1 == Notified::Dropped(Cause::Early)));
        let off = signals(config::Codel::default(), 500, Ecn::Ect0, 1);
        assert_eq!(off[0], (105, Notified::Dropped(Cause::Early)));
    }

    #[test]
    fn a_threshold_marks_whatever_waited_longer() {
        let config = config::Codel {
            ce_threshold: Some(Span::from_ms(2)),
            interval: Span::from_secs(10),
            ..config::Codel::default()
        };
        let marks = signals(config, 5, Ecn::Ect1, 1);
        assert_eq!(marks, [(3, Notified::Marked), (4, Notified::Marked), (5, Notified::Marked)]);
        assert_eq!(signals(config, 5, Ecn::NotEct, 1), []);
    }

    #[test]
    fn a_queue_of_one_packet_is_short_enough() {
        let mut queue = codel(config::Codel::default());
        for ms in (0..5000).step_by(50) {
            let mut notified = enqueue(&mut queue, Unit::new(1514), Time::ZERO + Span::from_ms(ms));
            if queue.backlog().packets > 1 {
                queue.dequeue(Time::ZERO + Span::from_ms(ms), &mut notified);
            }
            assert_eq!(notified, [Notified::Enqueued]);
        }
    }

    #[test]
    fn a_burst_that_passes_within_the_interval_loses_nothing() {
        assert_eq!(signals(config::Codel::default(), 100, Ecn::NotEct, 1), []);
    }

    #[test]
    fn a_queue_that_grows_again_soon_starts_with_the_rate_of_drops_it_had() {
        let mut queue = codel(config::Codel::default());
        let mut drops_in_a_burst = |begin: u64| {
            for _ in 0..600 {
                enqueue(&mut queue, Unit::new(1514), Time::ZERO + Span::from_ms(begin));
            }
            let mut notified = Vec::new();
            let mut ms = begin;
            while queue.backlog().packets > 0 {
                ms += 1;
                queue.dequeue(Time::ZERO + Span::from_ms(ms), &mut notified);
            }
            notified.len()
        };
        let (first, soon, late) = (drops_in_a_burst(0), drops_in_a_burst(700), drops_in_a_burst(10_000));
        assert_eq!(first, late);
        assert!(soon > first, "{soon} and {first}");
    }

    #[test]
    fn arrivals_beyond_the_limit_are_refused() {
        let mut queue = codel(config::Codel { limit: Limit::Bytes(3000), ..config::Codel::default() });
        assert_eq!(enqueue(&mut queue, Unit::new(1514), Time::ZERO), [Notified::Enqueued]);
        assert_eq!(enqueue(&mut queue, Unit::new(1514), Time::ZERO), [Notified::Rejected(Cause::Overlimit)]);
        assert_eq!(enqueue(&mut queue, Unit::new(1000), Time::ZERO), [Notified::Enqueued]);
    }
}
