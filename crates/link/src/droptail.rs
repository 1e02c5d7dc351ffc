//! First in, first out; arrivals beyond the limit are dropped, and those beyond a threshold marked.

use std::collections::VecDeque;

use tcplab_units::{Rate, Time};

use crate::config::Limit;
use crate::packet::Packet;
use crate::threshold::Threshold;

/// A queue that drops at its tail.
///
/// The packet that is being sent stays at the head until it has left, which spares moving it once more,
/// but counts no longer.
#[derive(Clone, Debug)]
pub(crate) struct Droptail<P> {
    packets: VecDeque<Waiting<P>>,
    sending: bool,
    bytes: u64,
    limit: Threshold,
    mark_above: Threshold,
}

#[derive(Clone, Debug)]
struct Waiting<P> {
    packet: P,
    number: u64,
    since: Time,
}

impl<P: Packet> Droptail<P> {
    pub(crate) fn new(limit: Option<Limit>, mark_above: Option<Limit>, rate: Option<Rate>) -> Droptail<P> {
        Droptail {
            packets: VecDeque::new(),
            sending: false,
            bytes: 0,
            limit: Threshold::new(limit, rate),
            mark_above: Threshold::new(mark_above, rate),
        }
    }

    /// A new limit for arrivals; what waits beyond it stays.
    pub(crate) fn set_limit(&mut self, limit: Limit, rate: Option<Rate>) {
        self.limit = Threshold::new(Some(limit), rate);
    }

    /// A new marking threshold for arrivals.
    pub(crate) fn set_mark_above(&mut self, mark_above: Limit, rate: Option<Rate>) {
        self.mark_above = Threshold::new(Some(mark_above), rate);
    }

    /// A new rate, at which what was given as time is converted.
    pub(crate) fn set_rate(&mut self, rate: Option<Rate>) {
        self.limit = self.limit.at_rate(rate);
        self.mark_above = self.mark_above.at_rate(rate);
    }

    /// Whether more than the marking threshold waits (RFC 8257, section 3.1: by the queue's instantaneous
    /// length when a packet arrives).
    #[inline]
    pub(crate) fn is_marking(&self) -> bool {
        self.mark_above.is_exceeded(u64::from(self.packets()), self.bytes)
    }

    /// Lets `packet`, the `number`th that was offered, wait, or gives it back where there is no room for it.
    #[inline]
    pub(crate) fn push(&mut self, packet: P, number: u64, now: Time) -> Result<(), P> {
        let bytes = self.bytes + u64::from(packet.frame_len());
        if self.limit.is_exceeded(u64::from(self.packets()) + 1, bytes) {
            return Err(packet);
        }
        self.bytes = bytes;
        self.packets.push_back(Waiting { packet, number, since: now });
        Ok(())
    }

    /// Takes `packet` into an empty queue to be sent at once, whatever the limit.
    #[inline]
    pub(crate) fn push_sending(&mut self, packet: P, number: u64, now: Time) {
        debug_assert!(self.packets.is_empty());
        self.packets.push_back(Waiting { packet, number, since: now });
        self.sending = true;
    }

    /// The packet that has waited longest is being sent from now on.
    #[inline]
    pub(crate) fn begin_sending(&mut self) {
        debug_assert!(!self.sending);
        if let Some(head) = self.packets.front() {
            self.bytes -= u64::from(head.packet.frame_len());
            self.sending = true;
        }
    }

    /// Whether a packet is being sent.
    #[inline]
    pub(crate) fn is_sending(&self) -> bool {
        self.sending
    }

    /// Takes the packet that has been sent, and its number.
    #[inline]
    pub(crate) fn end_sending(&mut self) -> Option<(P, u64)> {
        self.sending = false;
        self.packets.pop_front().map(|sent| (sent.packet, sent.number))
    }

    /// Takes everything out, what is being sent first.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = P> {
        self.sending = false;
        self.bytes = 0;
        std::mem::take(&mut self.packets).into_iter().map(|waiting| waiting.packet)
    }

    /// The packet that has waited longest.
    #[inline]
    pub(crate) fn head(&self) -> Option<&P> {
        self.packets.get(usize::from(self.sending)).map(|head| &head.packet)
    }

    /// The packet that came last.
    #[inline]
    pub(crate) fn tail(&self) -> Option<&P> {
        self.packets.back().map(|tail| &tail.packet)
    }

    /// Since when the head waits.
    pub(crate) fn head_since(&self) -> Option<Time> {
        self.packets.get(usize::from(self.sending)).map(|head| head.since)
    }

    /// Packets that wait.
    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        self.packets.len() as u32 - u32::from(self.sending)
    }

    /// Frame bytes that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_units::Span;

    struct Bytes(u32);

    impl Packet for Bytes {
        fn frame_len(&self) -> u32 {
            self.0
        }
        fn is_ect(&self) -> bool {
            false
        }
        fn mark_ce(&mut self) {}
        fn corrupt(&mut self) {}
        fn duplicate(&self) -> Bytes {
            Bytes(self.0)
        }
    }

    /// How many packets of 100 bytes find room.
    fn room(limit: Option<Limit>, bits_per_sec: u64) -> usize {
        let mut queue = Droptail::new(limit, None, Rate::from_bits_per_sec(bits_per_sec));
        (0..1000).filter(|_| queue.push(Bytes(100), 1, Time::ZERO).is_ok()).count()
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
        let mut queue = Droptail::new(Some(Limit::Bytes(250)), None, None);
        let fits = [200, 100, 50, 1].map(|bytes| queue.push(Bytes(bytes), 1, Time::ZERO).is_ok());
        assert_eq!(fits, [true, false, true, false]);
    }

    #[test]
    fn what_is_being_sent_makes_room() {
        let mut queue = Droptail::new(Some(Limit::Bytes(100)), None, None);
        assert!(queue.push(Bytes(100), 1, Time::ZERO).is_ok());
        queue.begin_sending();
        assert!(queue.push(Bytes(100), 1, Time::ZERO).is_ok());
    }

    #[test]
    fn a_lower_limit_keeps_what_already_waits() {
        let mut queue = Droptail::new(None, None, None);
        for _ in 0..5 {
            assert!(queue.push(Bytes(100), 1, Time::ZERO).is_ok());
        }
        queue.set_limit(Limit::Packets(3), None);
        assert!(queue.push(Bytes(100), 1, Time::ZERO).is_err());
        assert_eq!((queue.packets(), queue.bytes()), (5, 500));
    }

    /// How many packets of 100 bytes wait before the next would be marked.
    fn unmarked(mark_above: Option<Limit>, bits_per_sec: u64) -> usize {
        let mut queue = Droptail::new(None, mark_above, Rate::from_bits_per_sec(bits_per_sec));
        let marks = |queue: &mut Droptail<Bytes>| {
            let marks = queue.is_marking();
            assert!(queue.push(Bytes(100), 1, Time::ZERO).is_ok());
            marks
        };
        (0..1000).take_while(|_| !marks(&mut queue)).count()
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
