//! First in, first out; arrivals beyond the limit are dropped, and those beyond a threshold marked.

use std::collections::VecDeque;

use tcplab_units::{Rate, Time};

use super::{Backlog, Cause, Qdisc, Queued, Sink};
use crate::config::{self, Change};
use crate::packet::Packet;
use crate::threshold::Threshold;

/// A queue that drops at its tail.
#[derive(Clone, Debug)]
pub(crate) struct Droptail<P> {
    packets: VecDeque<Queued<P>>,
    bytes: u64,
    limit: Threshold,
    mark_above: Threshold,
}

impl<P: Packet> Droptail<P> {
    pub(crate) fn new(config: &config::Droptail, rate: Option<Rate>) -> Droptail<P> {
        Droptail {
            packets: VecDeque::new(),
            bytes: 0,
            limit: Threshold::new(config.limit, rate),
            mark_above: Threshold::new(config.mark_above, rate),
        }
    }
}

impl<P: Packet> Qdisc<P> for Droptail<P> {
    #[inline]
    fn enqueue(&mut self, mut packet: Queued<P>, _now: Time, sink: &mut impl Sink<P>) {
        let waiting = self.packets.len() as u64;
        let bytes = self.bytes + u64::from(packet.packet.frame_len());
        if self.limit.is_exceeded(waiting + 1, bytes) {
            return sink.rejected(&packet.packet, Cause::Overlimit);
        }
        // By the queue's instantaneous length when a packet arrives (RFC 8257, section 3.1).
        let marked = self.mark_above.is_exceeded(waiting, self.bytes) && packet.packet.is_ect();
        if marked {
            packet.packet.mark_ce();
        }
        sink.enqueued(&packet.packet);
        if marked {
            sink.marked(&packet.packet);
        }
        self.bytes = bytes;
        self.packets.push_back(packet);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        let head = self.packets.pop_front()?;
        self.bytes -= u64::from(head.packet.frame_len());
        Some(head)
    }

    /// It never waits for the time, and no packet changes what it does to the next.
    #[inline]
    fn can_bypass(&self) -> bool {
        true
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u32, bytes: self.bytes }
    }

    fn head_since(&self) -> Option<Time> {
        self.packets.front().map(|head| head.since)
    }

    fn change(&mut self, change: &Change, rate: Option<Rate>) {
        if change.limit.is_some() {
            self.limit = Threshold::new(change.limit, rate);
        }
        if change.mark_above.is_some() {
            self.mark_above = Threshold::new(change.mark_above, rate);
        }
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.limit = self.limit.at_rate(rate);
        self.mark_above = self.mark_above.at_rate(rate);
    }

    fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        self.bytes = 0;
        for waiting in self.packets.drain(..) {
            sink.dropped(&waiting.packet, cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Queue};
    use crate::packet::Ecn;
    use crate::qdisc::contract::{Contract, limits};
    use crate::qdisc::testing::{Notified, Unit, enqueue, no_change};
    use proptest::prelude::*;
    use tcplab_units::Span;

    impl Contract for Droptail<Unit> {
        fn settings(_: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            (prop::option::of(limits()), prop::option::of(limits()))
                .prop_map(|(limit, mark_above)| Queue::Droptail(config::Droptail { limit, mark_above }))
                .boxed()
        }
    }

    fn queue(limit: Option<Limit>, mark_above: Option<Limit>, rate: Option<Rate>) -> Droptail<Unit> {
        Droptail::new(&config::Droptail { limit, mark_above }, rate)
    }

    fn rate(bits_per_sec: u64) -> Option<Rate> {
        Rate::from_bits_per_sec(bits_per_sec)
    }

    /// How many packets of 100 bytes find room.
    fn room(limit: Option<Limit>, bits_per_sec: u64) -> usize {
        let mut queue = queue(limit, None, rate(bits_per_sec));
        (0..1000).filter(|_| enqueue(&mut queue, Unit::new(100), Time::ZERO) == [Notified::Enqueued]).count()
    }

    #[test]
    fn a_limit_is_in_packets_bytes_or_time() {
        assert_eq!(room(None, 1), 1000);
        assert_eq!(room(Some(Limit::Packets(7)), 1), 7);
        assert_eq!(room(Some(Limit::Bytes(700)), 1), 7);
        assert_eq!(room(Some(Limit::Bytes(799)), 1), 7);
        // 1 ms at 8 Mbit/s is 1000 bytes.
        assert_eq!(room(Some(Limit::Time(Span::from_ms(1))), 8_000_000), 10);
        assert_eq!(room(Some(Limit::Time(Span::from_ms(1))), 0), 1000);
    }

    #[test]
    fn a_smaller_packet_may_still_fit() {
        let mut queue = queue(Some(Limit::Bytes(250)), None, None);
        let notified =
            [200, 100, 50, 1].map(|bytes| enqueue(&mut queue, Unit::new(bytes), Time::ZERO).remove(0));
        let refused = Notified::Rejected(Cause::Overlimit);
        assert_eq!(notified, [Notified::Enqueued, refused, Notified::Enqueued, refused]);
    }

    #[test]
    fn what_was_taken_out_makes_room() {
        let mut queue = queue(Some(Limit::Bytes(100)), None, None);
        assert_eq!(enqueue(&mut queue, Unit::new(100), Time::ZERO), [Notified::Enqueued]);
        assert!(queue.dequeue(Time::ZERO, &mut Vec::new()).is_some());
        assert_eq!(enqueue(&mut queue, Unit::new(100), Time::ZERO), [Notified::Enqueued]);
    }

    #[test]
    fn a_lower_limit_keeps_what_already_waits() {
        let mut queue = queue(None, None, None);
        for _ in 0..5 {
            enqueue(&mut queue, Unit::new(100), Time::ZERO);
        }
        queue.change(&Change { limit: Some(Limit::Packets(3)), ..no_change() }, None);
        assert_eq!(enqueue(&mut queue, Unit::new(100), Time::ZERO), [Notified::Rejected(Cause::Overlimit)]);
        assert_eq!(queue.backlog(), Backlog { packets: 5, bytes: 500 });
    }

    #[test]
    fn packets_that_cannot_be_marked_are_not() {
        for (ecn, notified) in [
            (Ecn::NotEct, vec![Notified::Enqueued]),
            (Ecn::Ect0, vec![Notified::Enqueued, Notified::Marked]),
            (Ecn::Ect1, vec![Notified::Enqueued, Notified::Marked]),
        ] {
            let mut queue = queue(None, Some(Limit::Packets(0)), None);
            enqueue(&mut queue, Unit::new(100), Time::ZERO);
            assert_eq!(enqueue(&mut queue, Unit { ecn, ..Unit::new(100) }, Time::ZERO), notified);
        }
    }

    /// How many packets of 100 bytes wait before the next would be marked.
    fn unmarked(mark_above: Option<Limit>, bits_per_sec: u64) -> usize {
        let mut queue = queue(None, mark_above, rate(bits_per_sec));
        let packet = Unit { ecn: Ecn::Ect0, ..Unit::new(100) };
        (0..1000).take_while(|_| enqueue(&mut queue, packet, Time::ZERO) == [Notified::Enqueued]).count()
    }

    #[test]
    fn arrivals_are_marked_while_more_than_the_threshold_waits() {
        assert_eq!(unmarked(None, 1), 1000);
        assert_eq!(unmarked(Some(Limit::Packets(7)), 1), 8);
        assert_eq!(unmarked(Some(Limit::Bytes(700)), 1), 8);
        assert_eq!(unmarked(Some(Limit::Bytes(699)), 1), 7);
        // 1 ms at 8 Mbit/s is 1000 bytes.
        assert_eq!(unmarked(Some(Limit::Time(Span::from_ms(1))), 8_000_000), 11);
        assert_eq!(unmarked(Some(Limit::Time(Span::from_ms(1))), 0), 1000);
    }
}
