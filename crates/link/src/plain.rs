//! A link direction without surprises: when a packet comes, it is known when that one leaves and arrives.
//!
//! A queue that is first in, first out and drops only at its tail, at a rate that does not change, needs no event at the end of
//! a transmission. The simulator, which observes no departures, is served in this way where a link allows it: its
//! deliveries, drops, marks and samples are those of the step-by-step way (`tests/plain.rs`).

use std::collections::VecDeque;

use tcplab_units::{Span, Time};

use crate::config::{Direction, Overhead, Queue};
use crate::delay_line::DelayLine;
use crate::observer::{Event, Observer};
use crate::packet::Packet;
use crate::qdisc::Cause;
use crate::serializer::Serializer;
use crate::stats::{QueueSample, Stats};
use crate::threshold::Threshold;

/// Queue and serializer, with what has not left them.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    /// The first is being sent, the others wait.
    queued: VecDeque<Departure>,
    /// Frame bytes of all of them.
    bytes: u64,
    limit: Threshold,
    mark_above: Threshold,
    serializer: Serializer,
    overhead: Overhead,
    delay: Span,
    /// When the serializer is free.
    free: Time,
    /// When it last became so.
    served: Time,
}

/// A packet that will leave the serializer.
#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Time,
    since: Time,
    frame_len: u32,
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
        config.changes.is_empty().then(|| Plain {
            queued: VecDeque::new(),
            bytes: 0,
            limit: Threshold::new(queue.limit, Some(*rate)),
            mark_above: Threshold::new(queue.mark_above, Some(*rate)),
            serializer: Serializer::new(*rate),
            overhead: config.overhead,
            delay: config.delay,
            free: Time::ZERO,
            served: Time::ZERO,
        })
    }

    /// Offers `packet`, and puts it on the delay line if it is not dropped.
    #[inline]
    pub(crate) fn enqueue<P: Packet>(
        &mut self,
        mut packet: P,
        now: Time,
        line: &mut DelayLine<P>,
        stats: &mut Stats,
        observer: &mut impl Observer<P>,
    ) {
        self.settle(now, stats);
        let now = now.max(self.served);
        let frame_len = packet.frame_len();
        stats.packets_in += 1;
        stats.bytes_in += u64::from(frame_len);
        let is_busy = !self.queued.is_empty();
        if let Some(first) = self.queued.front() {
            let (waiting, bytes) = (self.queued.len() as u64 - 1, self.bytes - u64::from(first.frame_len));
            if self.limit.is_exceeded(waiting + 1, bytes + u64::from(frame_len)) {
                stats.count_drop(Cause::Overlimit);
                return observer.on(Event::Drop, now, &packet, waiting as u32);
            }
            // By the queue's instantaneous length when a packet arrives (RFC 8257, section 3.1).
            if self.mark_above.is_exceeded(waiting, bytes) && packet.is_ect() {
                packet.mark_ce();
                stats.marked += 1;
                observer.on(Event::Mark, now, &packet, waiting as u32 + 1);
            }
        }
        let begin = if is_busy { self.free } else { now };
        self.free = self.serializer.send(begin, is_busy, self.overhead.len_on_wire(frame_len));
        self.queued.push_back(Departure { at: self.free, since: now, frame_len });
        self.bytes += u64::from(frame_len);
        line.enqueue_in_order(self.free, self.delay, packet);
    }

    /// Counts the packets that have left the serializer by `now`.
    #[inline]
    pub(crate) fn settle(&mut self, now: Time, stats: &mut Stats) {
        while let Some(&Departure { at, frame_len, .. }) = self.queued.front()
            && at <= now
        {
            self.queued.pop_front();
            self.bytes -= u64::from(frame_len);
            self.served = at;
            stats.serialized += 1;
            stats.bytes_serialized += u64::from(frame_len);
        }
    }

    /// The packets and bytes that wait at `now`, when all has settled.
    pub(crate) fn sample(&self, now: Time) -> QueueSample {
        let Some(first) = self.queued.front() else { return QueueSample::default() };
        QueueSample {
            packets: self.queued.len() as u32 - 1,
            bytes: self.bytes - u64::from(first.frame_len),
            head_sojourn: self.queued.get(1).map_or(Span::ZERO, |head| now.since(head.since)),
        }
    }
}
