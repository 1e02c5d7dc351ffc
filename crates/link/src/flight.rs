//! Packets on their way, with the time each will arrive.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use tcplab_units::Time;

/// Everything between the serialiser and the far end.
///
/// Where order is kept this is a line whose head arrives next. Packets that may overtake are kept in a
/// heap by (time, sequence); reordering is never switched off again, so the line then only runs empty.
#[derive(Clone, Debug)]
pub(crate) struct Flight<P> {
    line: VecDeque<Flying<P>>,
    loose: BinaryHeap<Flying<P>>,
    /// Arrival of the last packet of the line.
    last: Time,
    sequence: u64,
}

#[derive(Clone, Debug)]
struct Flying<P> {
    at: Time,
    sequence: u64,
    packet: P,
}

impl<P> Flight<P> {
    pub(crate) fn new() -> Flight<P> {
        Flight { line: VecDeque::new(), loose: BinaryHeap::new(), last: Time::ZERO, sequence: 0 }
    }

    /// Sends `packet` off to arrive at `at`, or with its predecessor if that arrives later.
    #[inline]
    pub(crate) fn launch_in_order(&mut self, at: Time, packet: P) {
        self.last = self.last.max(at);
        self.line.push_back(Flying { at: self.last, sequence: self.sequence, packet });
        self.sequence += 1;
    }

    /// Sends `packet` off to arrive at `at`, whatever is before it.
    pub(crate) fn launch_loose(&mut self, at: Time, packet: P) {
        self.loose.push(Flying { at, sequence: self.sequence, packet });
        self.sequence += 1;
    }

    /// When the next packet arrives.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        let line = self.line.front().map_or(Time::NEVER, |flying| flying.at);
        match self.loose.peek() {
            None => line,
            Some(loose) => line.min(loose.at),
        }
    }

    /// Takes the next packet that arrives by `now`.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Time, P)> {
        let next = self.next();
        if next > now || next == Time::NEVER {
            return None;
        }
        let from_line = self.line.front().is_some_and(|flying| flying.at == next);
        let flying = if from_line { self.line.pop_front() } else { self.loose.pop() };
        flying.map(|flying| (flying.at, flying.packet))
    }

    /// How many are on their way.
    pub(crate) fn packets(&self) -> usize {
        self.line.len() + self.loose.len()
    }
}

impl<P> Ord for Flying<P> {
    /// The earlier is the greater, as `BinaryHeap` gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl<P> PartialOrd for Flying<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Flying<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Flying<P> {}
