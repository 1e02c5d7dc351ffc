//! A delay line: packets on their way, with the time each will arrive.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use tcplab_units::{Span, Time, prefetch_start};

use crate::wake_up::WakeUp;

/// How many times faster than they departed packets that keep order arrive at most. Were it one, a busy link
/// whose delay falls would never come down to the new delay.
const CATCH_UP: u64 = 2;

/// Everything between the impairments and the far end.
///
/// Where order is kept this is a line whose head arrives next. Packets that may overtake are kept in a
/// heap by (time, sequence); reordering is never switched off again, so the line then only runs empty.
#[derive(Clone, Debug)]
pub(crate) struct DelayLine<P> {
    line: VecDeque<Entry<P>>,
    /// When the first of the line arrives, which is asked for more often than it changes; `NEVER` if there is none.
    first_at: Time,
    loose: BinaryHeap<Flying<P>>,
    /// Departure and arrival of the last packet of the line.
    departed: Time,
    arrived: Time,
    sequence: u64,
    /// Of the host at the far end, if it takes time.
    wake_up: Option<WakeUp>,
}

/// A packet of the line.
#[derive(Clone, Debug)]
pub(crate) struct Entry<P> {
    /// When it arrives.
    pub(crate) at: Time,
    /// How long it and all before it have waited for the serializer, added up; zero where that is counted elsewhere.
    pub(crate) waited: Span,
    pub(crate) packet: P,
}

#[derive(Clone, Debug)]
struct Flying<P> {
    at: Time,
    sequence: u64,
    packet: P,
}

impl<P> DelayLine<P> {
    pub(crate) fn new() -> DelayLine<P> {
        DelayLine {
            line: VecDeque::new(),
            first_at: Time::NEVER,
            loose: BinaryHeap::new(),
            departed: Time::ZERO,
            arrived: Time::ZERO,
            sequence: 0,
            wake_up: None,
        }
    }

    /// Packets arrive when the host at the far end has woken up.
    pub(crate) fn set_wake_up(&mut self, wake_up: WakeUp) {
        self.wake_up = Some(wake_up);
    }

    pub(crate) fn wakes_up(&self) -> bool {
        self.wake_up.is_some()
    }

    /// Sends `packet` off at `departed` to arrive after `delay`, or as soon after its predecessor as it may.
    ///
    /// Where the delay has fallen, packets are held back so that none overtakes, and let go at no more than
    /// `CATCH_UP` times the rate at which they departed.
    #[inline]
    pub(crate) fn enqueue_in_order(&mut self, departed: Time, delay: Span, packet: P) {
        let earliest = self.arrived + departed.since(self.departed) / CATCH_UP;
        self.departed = departed;
        self.arrived = earliest.max(departed + delay);
        let at = match &mut self.wake_up {
            None => self.arrived,
            Some(wake_up) => wake_up.after(self.arrived),
        };
        self.push(at, Span::ZERO, packet);
    }

    /// Sends `packet` off to arrive at `at`, which is not before its predecessor. `waited` is its entry's.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, waited: Span, packet: P) {
        if self.line.is_empty() {
            self.first_at = at;
        }
        self.line.push_back(Entry { at, waited, packet });
    }

    /// The packets that keep their order, from the one on that arrives after `ahead` others of them.
    #[inline]
    pub(crate) fn from(&self, ahead: usize) -> impl Iterator<Item = &Entry<P>> {
        self.line.range(ahead.min(self.line.len())..)
    }

    /// The one of those in order that arrives after `ahead` others.
    #[inline]
    pub(crate) fn get(&self, ahead: usize) -> Option<&Entry<P>> {
        self.line.get(ahead)
    }

    /// Sends `packet` off to arrive at `at`, whatever is before it.
    pub(crate) fn enqueue_loose(&mut self, at: Time, packet: P) {
        self.loose.push(Flying { at, sequence: self.sequence, packet });
        self.sequence += 1;
    }

    /// When the next packet arrives.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        match self.loose.peek() {
            None => self.first_at,
            Some(loose) => self.first_at.min(loose.at),
        }
    }

    /// Takes the next packet that arrives by `now`.
    #[inline(always)]
    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Time, P)> {
        if self.loose.is_empty() {
            return if self.first_at <= now && self.first_at != Time::NEVER { self.pop() } else { None };
        }
        self.take_due_of_both(now)
    }

    #[inline]
    fn pop(&mut self) -> Option<(Time, P)> {
        let entry = self.line.pop_front()?;
        self.first_at = self.line.front().map_or(Time::NEVER, |next| next.at);
        Some((entry.at, entry.packet))
    }

    /// Takes the first of those that keep their order.
    #[inline]
    pub(crate) fn take_first(&mut self) -> Option<P> {
        self.pop().map(|(_, packet)| packet)
    }

    fn take_due_of_both(&mut self, now: Time) -> Option<(Time, P)> {
        let next = self.next();
        if next > now || next == Time::NEVER {
            return None;
        }
        if self.first_at == next {
            return self.pop();
        }
        self.loose.pop().map(|flying| (flying.at, flying.packet))
    }

    /// Its packet.
    #[inline]
    pub(crate) fn upcoming(&self, ahead: usize) -> Option<&P> {
        self.get(ahead).map(|entry| &entry.packet)
    }

    /// `upcoming` will be asked soon for the one that arrives after `ahead` others.
    #[inline]
    pub(crate) fn prefetch(&self, ahead: usize) {
        if let Some(entry) = self.line.get(ahead) {
            prefetch_start(entry);
        }
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
