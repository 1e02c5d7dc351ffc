//! Interval rows of TCP streams: the sender's figures read from the kernel at each boundary, the receiver's
//! counted as they arrived.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use tcplab_probe::{clock, scheduling};

use crate::tcp::{Sent, Stream, Task};
use crate::{Context, Interval};

/// How often a collector looks whether all streams are over, ns.
const GLANCE: u64 = 20_000_000;
/// How often counts are collected where no interval rows are wanted, ns.
pub(crate) const DEFAULT: u64 = 1_000_000_000;

/// The intervals of a flow's rows, one after another.
pub(crate) struct Intervals<'a> {
    context: &'a Context,
    width: u64,
    /// Where the next one begins, and the first: with the flow.
    begin: u64,
}

/// An interval that has passed. It is longer than `width` where the collector woke late.
pub(crate) struct Passed {
    begin: u64,
    pub end: u64,
    width: u64,
    /// None follows.
    pub is_last: bool,
}

impl Intervals<'_> {
    /// Those of `width` ns of a flow that begins at `start`; they are cut at multiples of `width`.
    pub fn new(context: &Context, start: u64, width: u64) -> Intervals<'_> {
        Intervals { context, width, begin: start }
    }

    /// Waits for the end of the next one: its boundary, the run's end, or when the flow is `over`.
    pub fn wait(&mut self, over: impl Fn() -> bool) -> Passed {
        let clock = self.context.clock;
        let due = self.boundary(self.begin).min(clock.duration);
        let over = loop {
            let over = over();
            let next = due.min(clock.now() + GLANCE);
            if over || !clock::sleep_until(clock.instant(next), &self.context.stop) || next == due {
                break over;
            }
        };
        let now = clock.now();
        let stopped = !over && self.context.stop.load(Ordering::Relaxed);
        let end = if over {
            // Nothing more comes, so the last interval is whole.
            due.max(self.boundary(now)).min(clock.duration)
        } else if stopped {
            now.min(clock.duration)
        } else {
            due
        };
        let is_last = over || stopped || due == clock.duration;
        let passed = Passed { begin: self.begin, end, width: self.width, is_last };
        self.begin = end;
        passed
    }

    /// The first boundary after `time`.
    fn boundary(&self, time: u64) -> u64 {
        boundary(time, self.width)
    }
}

fn boundary(time: u64, width: u64) -> u64 {
    (time / width + 1) * width
}

impl Passed {
    /// Begin and end of each of its rows. Counts of the meantime belong in the first.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64)> {
        let cut = |from: u64| boundary(from, self.width).min(self.end);
        let first = (self.begin < self.end).then(|| (self.begin, cut(self.begin)));
        std::iter::successors(first, move |&(_, from)| (from < self.end).then(|| (from, cut(from))))
    }
}

impl Task<'_> {
    /// Reports the intervals of all streams at their boundaries, until every stream is over.
    pub fn collect(&self, streams: &[Stream], width: u64) {
        let mut before = vec![Sent::default(); streams.len()];
        scheduling::be_prompt();
        let mut intervals = Intervals::new(self.context, self.end.start(), width);
        loop {
            let passed = intervals.wait(|| streams.iter().all(|stream| stream.over.load(Ordering::Acquire)));
            if passed.is_last {
                for stream in streams {
                    stream.settle();
                    // Its thread may look up some time after the run's end.
                    stream
                        .connections()
                        .iter()
                        .for_each(|socket| self.context.unwatch(socket, self.ports(stream, socket)));
                }
            }
            if self.end.sample.is_some() {
                for (stream, before) in streams.iter().zip(&mut before) {
                    if self.sends || self.both_ways {
                        passed.rows().for_each(|(from, to)| self.sent(stream, before, from, to));
                    }
                    if !self.sends || self.both_ways {
                        self.received(stream, passed.end, width, passed.is_last);
                    }
                }
            }
            if passed.is_last {
                return;
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_that_wakes_late_reports_every_interval() {
        let rows =
            |begin, end| -> Vec<_> { Passed { begin, end, width: 100, is_last: true }.rows().collect() };
        assert_eq!(rows(250, 520), [(250, 300), (300, 400), (400, 500), (500, 520)]);
        assert_eq!(rows(300, 400), [(300, 400)]);
        // The run was ended before the flow began.
        assert_eq!(rows(300, 250), []);
    }
}
