//! The pending events of the control plane, in order of time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tcplab_units::Time;

#[derive(Debug)]
struct Entry<E> {
    time: Time,
    number: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    /// The heap's greatest is the first in time; at one time, the first that was planned.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

/// Events by time.
#[derive(Debug)]
pub(super) struct Agenda<E> {
    entries: BinaryHeap<Entry<E>>,
    planned: u64,
}

impl<E> Agenda<E> {
    pub(super) fn new() -> Agenda<E> {
        Agenda { entries: BinaryHeap::new(), planned: 0 }
    }

    pub(super) fn plan(&mut self, time: Time, event: E) {
        self.planned += 1;
        self.entries.push(Entry { time, number: self.planned, event });
    }

    /// When the next event is; `NEVER` if there is none.
    pub(super) fn next(&self) -> Time {
        self.entries.peek().map_or(Time::NEVER, |entry| entry.time)
    }

    pub(super) fn pop(&mut self) -> Option<(Time, E)> {
        self.entries.pop().map(|entry| (entry.time, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_come_in_the_order_in_which_they_were_planned() {
        let mut agenda = Agenda::new();
        for (ns, event) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            agenda.plan(Time::from_ns(ns), event);
        }
        let order: String = std::iter::from_fn(|| agenda.pop().map(|(_, event)| event)).collect();
        assert_eq!(order, "abcd");
        assert_eq!(agenda.next(), Time::NEVER);
    }
}
