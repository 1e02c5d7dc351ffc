//! Interval rows of TCP streams: the sender's figures read from the kernel at each boundary, the receiver's
//! counted as they arrived.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use tcplab_probe::{clock, scheduling};

use crate::Interval;
use crate::tcp::{Sent, Stream, Task, ports};

/// How often the collector looks whether all streams are over, ns.
const GLANCE: u64 = 20_000_000;
/// How often counts are collected where no interval rows are wanted, ns.
pub(crate) const DEFAULT: u64 = 1_000_000_000;

impl Task<'_> {
    /// Reports the intervals of all streams at their boundaries, until every stream is over.
    pub fn collect(&self, streams: &[Stream], width: u64) {
        let mut before = vec![Sent::default(); streams.len()];
        scheduling::be_prompt();
        let clock = self.context.clock;
        let start = self.end.start();
        let mut boundary = (start / width + 1) * width;
        loop {
            let due = boundary.min(clock.duration);
            let over = loop {
                let over = streams.iter().all(|stream| stream.over.load(Ordering::Acquire));
                let next = due.min(clock.now() + GLANCE);
                if over || !clock::sleep_until(clock.instant(next), &self.context.stop) || next == due {
                    break over;
                }
            };
            let now = clock.now();
            let stopped = !over && self.context.stop.load(Ordering::Relaxed);
            let end = if over {
                // Nothing more comes, so the last interval is whole.
                due.max((now / width + 1) * width).min(clock.duration)
            } else if stopped {
                now.min(clock.duration)
            } else {
                due
            };
            let last = over || stopped || due == clock.duration;
            if last {
                for stream in streams {
                    stream.settle();
                    // Its thread may look up some time after the run's end.
                    stream
                        .connections()
                        .iter()
                        .for_each(|socket| self.context.unwatch(socket, ports(socket)));
                }
            }
            // The first one begins with the flow.
            let begin = start.max(boundary - width);
            if self.end.sample.is_some() && end > begin {
                for (stream, before) in streams.iter().zip(&mut before) {
                    // One that wakes late has several to report; what was sent meanwhile counts in the first.
                    let mut from = begin;
                    while (self.sends || self.both_ways) && from < end {
                        let to = ((from / width + 1) * width).min(end);
                        self.sent(stream, before, from, to);
                        from = to;
                    }
                    if !self.sends || self.both_ways {
                        self.received(stream, end, width, last);
                    }
                }
            }
            if last {
                return;
            }
            boundary += width;
        }
    }

    fn sent(&self, stream: &Stream, before: &mut Sent, from: u64, end: u64) {
        let now = stream.sent();
        let row = Interval {
            time: end,
            duration: end - from,
            stream: stream.number,
            bytes_sent: Some(now.bytes.saturating_sub(before.bytes)),
            retransmits: Some(now.retransmits.saturating_sub(before.retransmits)),
            ..Interval::default()
        };
        *before = now;
        self.context.sink.interval(&self.end.flow, &row);
    }

    fn received(&self, stream: &Stream, end: u64, width: u64, last: bool) {
        let mut counter = stream.counter.lock().unwrap_or_else(PoisonError::into_inner);
        counter.advance(end);
        let start = self.end.start();
        let row = |index: u64, end: u64, bytes| Interval {
            time: end,
            duration: end - start.max(index * width),
            stream: stream.number,
            bytes_received: Some(bytes),
            ..Interval::default()
        };
        for (index, bytes) in counter.take() {
            self.context.sink.interval(&self.end.flow, &row(index, (index + 1) * width, bytes));
        }
        if last {
            counter.close();
        }
        let (index, bytes) = counter.open();
        if index == end / width && end > start.max(index * width) {
            self.context.sink.interval(&self.end.flow, &row(index, end, bytes));
        }
    }
}
