//! A link direction without surprises: when a packet comes, it is known when that one leaves and arrives.
//!
//! A queue that is first in, first out and drops only at its tail, at a rate that does not change, needs no event at the end of
//! a transmission. The simulator, which observes no departures, is served in this way where a link allows it: its
//! deliveries, drops, marks and samples are those of the step-by-step way (`tests/plain.rs`).

use tcplab_units::{Span, Time};

use crate::config::{Direction, Overhead, Queue};
use crate::delay_line::{DelayLine, Entry};
use crate::observer::{Event, Observer};
use crate::packet::Packet;
use crate::qdisc::Cause;
use crate::serializer::Serializer;
use crate::stats::{QueueSample, Stats};
use crate::threshold::Threshold;

/// Queue and serializer. Packets that have not left them are the last ones of the delay line already: the first of these is
/// being sent, the others wait. Calls come in the order of their times.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    limit: Threshold,
    mark_above: Threshold,
    /// Where it is not exceeded, neither of them is.
    lower: Threshold,
    /// Frame bytes that were dropped.
    bytes_dropped: u64,
    serializer: Serializer,
    overhead: Overhead,
    /// Bytes on the wire of all that was accepted.
    wire_bytes: u64,
    delay: Span,
    /// How long all that was accepted waits, added up.
    waited: Span,
    /// When the serializer is free.
    free: Time,
}

impl Plain {
    /// The queue and the serializer of `config`; none: they, or what follows them, are not so simple.
    pub(crate) fn new(config: &Direction) -> Option<Plain> {
        let Queue::Droptail(queue) = &config.queue else { return None };
        let Direction { rate: Some(rate), up: true, policer: None, trace: None, .. } = config else {
            return None;
        };
        let Direction { jitter: None, reorder: None, loss: None, corrupt: None, duplicate: None, .. } =
            config
        else {
            return None;
        };
        let limit = Threshold::new(queue.limit, Some(*rate));
        let mark_above = Threshold::new(queue.mark_above, Some(*rate));
        config.changes.is_empty().then(|| Plain {
            limit,
            mark_above,
            lower: limit.lower(&mark_above),
            bytes_dropped: 0,
            serializer: Serializer::new(*rate),
            overhead: config.overhead,
            wire_bytes: 0,
            delay: config.delay,
            waited: Span::ZERO,
            free: Time::ZERO,
        })
    }

    /// How much later than it is offered a packet arrives at least.
    pub(crate) fn delay(&self) -> Span {
        self.delay
    }

    /// Offers `packet`, and puts it on the delay line if it is not dropped.
    #[inline(always)]
    pub(crate) fn enqueue<P: Packet>(
        &mut self,
        mut packet: P,
        now: Time,
        line: &mut DelayLine<P>,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        let frame_len = packet.frame_len();
        stats.packets_in += 1;
        stats.bytes_in += u64::from(frame_len);
        if self.free > now && self.may_bind(0, 0, stats) {
            match self.judge(packet, now, line, stats, observer) {
                Some(accepted) => packet = accepted,
                None => return,
            }
        }
        let len = self.overhead.len_on_wire(frame_len);
        self.wire_bytes += u64::from(len);
        self.send(packet, len, now, line);
    }

    /// Enqueues `count` packets of one size, the n-th of which is `packet(n)`.
    #[inline]
    pub(crate) fn enqueue_run<P: Packet>(
        &mut self,
        count: u32,
        packet: impl Fn(u32) -> P,
        now: Time,
        line: &mut DelayLine<P>,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        let first = packet(0);
        let frame_len = first.frame_len();
        let (packets, bytes) = (u64::from(count), u64::from(count) * u64::from(frame_len));
        if self.may_bind(packets, bytes, stats) {
            for place in 0..count {
                self.enqueue(packet(place), now, line, stats, observer);
            }
            return;
        }
        stats.packets_in += packets;
        stats.bytes_in += bytes;
        let len = self.overhead.len_on_wire(frame_len);
        self.wire_bytes += packets * u64::from(len);
        for place in 0..count {
            self.send(packet(place), len, now, line);
        }
    }

    /// Appends a packet of `len` bytes on the wire.
    #[inline(always)]
    fn send<P>(&mut self, packet: P, len: u32, now: Time, line: &mut DelayLine<P>) {
        let is_busy = self.free > now;
        let begin = if is_busy { self.free } else { now };
        self.waited += begin.since(now);
        self.free = self.serializer.send(begin, is_busy, len);
        line.push(self.free + self.delay, self.waited, packet);
    }

    /// Whether the packet that was counted last may have to be dropped or marked. Where all that was accepted since departures
    /// were counted does not exceed the lower threshold, it need not. So most packets need no exact count.
    #[inline]
    fn may_bind(&self, more: u64, more_bytes: u64, stats: &Stats) -> bool {
        let left = stats.serialized.max(stats.delivered);
        let bytes_left = stats.bytes_serialized.max(stats.bytes_delivered);
        let packets = stats.packets_in + more - stats.dropped - left;
        let bytes = stats.bytes_in + more_bytes - self.bytes_dropped - bytes_left;
        self.lower.is_exceeded(packets, bytes)
    }

    /// Drops `packet`, which was counted as offered, or marks it, if the thresholds say so. Returns it if it is not dropped.
    #[inline(never)]
    fn judge<P: Packet>(
        &mut self,
        packet: P,
        now: Time,
        line: &DelayLine<P>,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        let Some(sending) = self.settle(now, line, stats) else { return Some(packet) };
        let frame_len = packet.frame_len();
        let (behind, bytes_behind) = self.waiting(sending, stats);
        // The packet itself does not wait yet.
        let (waiting, bytes) = (behind - 1, bytes_behind - u64::from(frame_len));
        if self.limit.is_exceeded(behind, bytes_behind) {
            self.bytes_dropped += u64::from(frame_len);
            drop(packet, now, waiting, stats, observer);
            return None;
        }
        // By the queue's instantaneous length when a packet arrives (RFC 8257, section 3.1).
        let marks = self.mark_above.is_exceeded(waiting, bytes) && packet.is_ect();
        Some(if marks { mark(packet, now, waiting, stats, observer) } else { packet })
    }

    /// Counts the packets that have left the serializer by `now`. Returns the frame bytes of the one that is being sent.
    #[inline]
    pub(crate) fn settle<P: Packet>(&self, now: Time, line: &DelayLine<P>, stats: &mut Stats) -> Option<u32> {
        // Packets that have arrived had left before.
        if stats.serialized < stats.delivered {
            (stats.serialized, stats.bytes_serialized) = (stats.delivered, stats.bytes_delivered);
        }
        let arrives = now + self.delay;
        for entry in line.from((stats.serialized - stats.delivered) as usize) {
            let frame_len = entry.packet.frame_len();
            if entry.at > arrives {
                return Some(frame_len);
            }
            stats.serialized += 1;
            stats.bytes_serialized += u64::from(frame_len);
        }
        None
    }

    /// The packet that leaves after `ahead` others which have not left.
    #[inline]
    fn queued<'a, P>(&self, ahead: usize, line: &'a DelayLine<P>, stats: &Stats) -> Option<&'a Entry<P>> {
        line.get((stats.serialized - stats.delivered) as usize + ahead)
    }

    /// Packets and bytes that were offered and not dropped, behind the one that is being sent, which has `sending` bytes.
    #[inline]
    fn waiting(&self, sending: u32, stats: &Stats) -> (u64, u64) {
        let packets = stats.packets_in - stats.dropped - stats.serialized - 1;
        let bytes = stats.bytes_in - self.bytes_dropped - stats.bytes_serialized;
        (packets, bytes - u64::from(sending))
    }

    /// Bytes on the wire of the packets that have left, which have been counted.
    fn wire_bytes_left<P: Packet>(&self, line: &DelayLine<P>, stats: &Stats) -> u64 {
        if self.overhead.is_none() {
            return stats.bytes_serialized;
        }
        let inside = (0..).map_while(|ahead| self.queued(ahead, line, stats));
        let len = |entry: &Entry<P>| u64::from(self.overhead.len_on_wire(entry.packet.frame_len()));
        self.wire_bytes - inside.map(len).sum::<u64>()
    }

    /// The packets and bytes that wait at `now`.
    pub(crate) fn sample<P: Packet>(&self, now: Time, line: &DelayLine<P>, stats: &mut Stats) -> QueueSample {
        let sending = self.settle(now, line, stats);
        stats.capacity_used = self.wire_bytes_left(line, stats);
        let (Some(len), Some(sending)) = (sending, self.queued(0, line, stats)) else {
            (stats.dequeued, stats.waited) = (stats.serialized, self.waited);
            return QueueSample::default();
        };
        (stats.dequeued, stats.waited) = (stats.serialized + 1, sending.waited);
        let (packets, bytes) = self.waiting(len, stats);
        // It begins when the one before it has left, and will have waited for `whole` then.
        let head_sojourn = self.queued(1, line, stats).map_or(Span::ZERO, |head| {
            let whole = Span::from_ns(head.waited.as_ns() - sending.waited.as_ns());
            (now + self.delay + whole).since(sending.at)
        });
        QueueSample { packets: packets as u32, bytes, head_sojourn }
    }
}

/// The queue is full: `packet` is dropped behind `waiting` others.
#[cold]
fn drop<P: Packet>(packet: P, now: Time, waiting: u64, stats: &mut Stats, observer: &mut impl Observer<P>) {
    stats.count_drop(Cause::Overlimit);
    observer.on(Event::Drop, now, &packet, waiting as u32);
}

/// The queue is above its threshold: `packet` is marked.
#[cold]
fn mark<P: Packet>(
    mut packet: P,
    now: Time,
    waiting: u64,
    stats: &mut Stats,
    observer: &mut impl Observer<P>,
) -> P {
    packet.mark_ce();
    stats.marked += 1;
    observer.on(Event::Mark, now, &packet, waiting as u32 + 1);
    packet
}
