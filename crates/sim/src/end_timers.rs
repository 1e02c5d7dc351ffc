//! When the timers of TCP endpoints fire.
//!
//! A timer that is put off with every segment is not moved each time: it is filed anew when its old time comes. Timers are filed
//! by the slice of time in which they fire, in a timing wheel (G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels",
//! 1987), and only those of the present slice are put in order. So the timers of thousands of endpoints are served without a
//! search among all, and one that was put off or stopped needs nothing of its endpoint.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tcplab_units::{Time, prefetch};

use crate::schedule::{ABSENT, Key, Order, Schedule, Slot, key, next_order, slot_of, time_of};

/// Nanoseconds of a slice, as a power of two: about a millisecond.
const SLICE_BITS: u32 = 20;
/// Slices of a round: about a second.
const ROUND: u64 = 1024;
/// How many timers ahead of the one that is looked at the next one is asked for.
const AHEAD: usize = 8;

/// Slot of the first endpoint. Those of the others count down from it, and those of components count up from zero.
const LAST_SLOT: Slot = Schedule::SLOTS_MAX - 1;

/// An endpoint: twice its stream's place, one more for the end at the flow's `to`.
type Endpoint = u32;

/// The timers of the two endpoints of each stream, by its place.
#[derive(Debug)]
pub(crate) struct EndTimers {
    timers: Vec<[EndTimer; 2]>,
    /// The slots of endpoints by the slice in which they are filed, modulo a round, where that is after `slice`; each with the
    /// sequence number of a key. One that was filed again in an earlier slice stays here, too, and is passed over.
    slices: Vec<Vec<Order>>,
    /// Those that are filed in a later round.
    later: Vec<Order>,
    /// How many entries `slices` and `later` have.
    waiting: usize,
    /// The slice up to which all are in `soon`.
    slice: u64,
    soon: BinaryHeap<Reverse<Key>>,
}

#[derive(Clone, Copy, Debug)]
struct EndTimer {
    /// When the endpoint's first timer fires.
    due: Time,
    /// Where it is filed: at this time or before. `Time::NEVER`: nowhere.
    filed: Time,
}

const UNSET: EndTimer = EndTimer { due: Time::NEVER, filed: Time::NEVER };

impl Default for EndTimers {
    fn default() -> EndTimers {
        EndTimers {
            timers: Vec::new(),
            slices: vec![Vec::new(); ROUND as usize],
            later: Vec::new(),
            waiting: 0,
            slice: 0,
            soon: BinaryHeap::new(),
        }
    }
}

impl EndTimers {
    /// Room for so many places.
    pub(crate) fn grow(&mut self, places: u32) {
        self.timers.resize(places as usize, [UNSET; 2]);
    }

    /// Those of `place` are stopped.
    pub(crate) fn cancel(&mut self, place: u32) {
        self.timers[place as usize] = [UNSET; 2];
    }

    /// As `Schedule::set_end_timer`, which knows the present and counts what is asked for. Whether another timer may be the
    /// first now.
    #[inline]
    pub(crate) fn set(&mut self, place: u32, end: usize, due: Time, now: Time, sequence: &mut u64) -> bool {
        let timer = &mut self.timers[place as usize][end];
        timer.due = due;
        let at = due.max(now);
        let is_earlier = at < timer.filed;
        if is_earlier {
            self.set_earlier(place << 1 | end as u32, at, sequence);
        }
        is_earlier
    }

    #[inline(never)]
    fn set_earlier(&mut self, endpoint: Endpoint, at: Time, sequence: &mut u64) {
        self.file(endpoint, at, sequence);
        self.go_on(sequence);
    }

    /// The key of the timer that fires first, if it is not put off before.
    #[inline]
    pub(crate) fn first(&self) -> Key {
        self.soon.peek().map_or(ABSENT, |&Reverse(key)| key)
    }

    /// The endpoint whose timer fires at that time, by place and end; none: it was put off or stopped.
    pub(crate) fn fire(&mut self, sequence: &mut u64) -> Option<(u32, usize)> {
        let Reverse(key) = self.soon.pop()?;
        let (time, endpoint) = (time_of(key), endpoint_of(key as Order));
        let timer = self.timer(endpoint);
        let is_filed = timer.filed == time;
        let fires = is_filed && timer.due <= time;
        if fires {
            timer.filed = Time::NEVER;
        } else if is_filed {
            self.file_again(endpoint, sequence);
        }
        self.go_on(sequence);
        fires.then_some((endpoint >> 1, endpoint as usize & 1))
    }

    /// Those of `place` will be set soon.
    #[inline]
    pub(crate) fn prefetch(&self, place: u32) {
        prefetch(&self.timers[place as usize]);
    }

    #[inline]
    fn timer(&mut self, endpoint: Endpoint) -> &mut EndTimer {
        &mut self.timers[endpoint as usize >> 1][endpoint as usize & 1]
    }

    /// The endpoint is filed at this time. `go_on` has to follow.
    fn file(&mut self, endpoint: Endpoint, at: Time, sequence: &mut u64) {
        self.timer(endpoint).filed = at;
        self.put(at, next_order(LAST_SLOT - endpoint, sequence));
    }

    fn put(&mut self, at: Time, order: Order) {
        let slice = slice_of(at);
        if slice <= self.slice {
            return self.soon.push(Reverse(key(at, order)));
        }
        self.waiting += 1;
        if slice / ROUND == self.slice / ROUND {
            self.slices[(slice % ROUND) as usize].push(order);
        } else {
            self.later.push(order);
        }
    }

    /// The time has come at which the endpoint was filed: from now on it is where its timer fires.
    fn file_again(&mut self, endpoint: Endpoint, sequence: &mut u64) {
        let timer = self.timer(endpoint);
        timer.filed = Time::NEVER;
        let due = timer.due;
        if due != Time::NEVER {
            self.file(endpoint, due, sequence);
        }
    }

    /// Goes on to the next slice that has a timer, once all before have been served.
    #[inline]
    fn go_on(&mut self, sequence: &mut u64) {
        while self.soon.is_empty() && self.waiting > 0 {
            self.next_slice(sequence);
        }
    }

    fn next_slice(&mut self, sequence: &mut u64) {
        self.slice += 1;
        if self.slice.is_multiple_of(ROUND) {
            self.next_round();
        }
        let place = (self.slice % ROUND) as usize;
        let mut orders = std::mem::take(&mut self.slices[place]);
        self.waiting -= orders.len();
        for (number, &order) in orders.iter().enumerate() {
            if let Some(&ahead) = orders.get(number + AHEAD) {
                self.prefetch(endpoint_of(ahead) >> 1);
            }
            let endpoint = endpoint_of(order);
            let EndTimer { due, filed } = *self.timer(endpoint);
            if slice_of(filed) != self.slice {
                continue;
            }
            if due <= filed {
                self.put(filed, order);
            } else {
                self.file_again(endpoint, sequence);
            }
        }
        // Its room is used again a round later.
        orders.clear();
        self.slices[place] = orders;
    }

    #[cold]
    fn next_round(&mut self) {
        let later = std::mem::take(&mut self.later);
        self.waiting -= later.len();
        for order in later {
            let filed = self.timer(endpoint_of(order)).filed;
            if filed != Time::NEVER && slice_of(filed) >= self.slice {
                self.put(filed, order);
            }
        }
    }
}

fn slice_of(time: Time) -> u64 {
    time.as_ns() >> SLICE_BITS
}

fn endpoint_of(order: Order) -> Endpoint {
    LAST_SLOT - slot_of(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The wheel beside a list of when each timer is due.
    struct Both {
        wheel: EndTimers,
        due: Vec<Option<u64>>,
        sequence: u64,
    }

    impl Both {
        fn new(places: u32) -> Both {
            let mut wheel = EndTimers::default();
            wheel.grow(places);
            Both { wheel, due: vec![None; 2 * places as usize], sequence: 0 }
        }

        fn set(&mut self, endpoint: usize, due: Option<u64>, now: u64) {
            self.due[endpoint] = due;
            let time = due.map_or(Time::NEVER, Time::from_ns);
            self.wheel.set(endpoint as u32 / 2, endpoint % 2, time, Time::from_ns(now), &mut self.sequence);
        }

        /// The next timer that fires: when, and whose it is.
        fn fire(&mut self) -> Option<(u64, usize)> {
            loop {
                let first = self.wheel.first();
                if first == ABSENT {
                    return None;
                }
                if let Some((place, end)) = self.wheel.fire(&mut self.sequence) {
                    let endpoint = 2 * place as usize + end;
                    self.due[endpoint] = None;
                    return Some((time_of(first).as_ns(), endpoint));
                }
            }
        }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn a_timer_that_is_put_off_brought_forward_or_stopped_fires_when_it_is_due() {
        let mut both = Both::new(2);
        both.set(0, Some(40 * MS), 0);
        both.set(1, Some(200 * MS), 0);
        both.set(2, Some(50 * MS), 0);
        both.set(0, Some(60 * MS), 20 * MS);
        both.set(1, Some(30 * MS), 20 * MS);
        both.set(2, None, 20 * MS);
        let fired: Vec<_> = std::iter::from_fn(|| both.fire()).collect();
        assert_eq!(fired, [(30 * MS, 1), (60 * MS, 0)]);
    }

    #[test]
    fn a_time_that_has_passed_is_now() {
        let mut both = Both::new(1);
        both.set(1, Some(5 * MS), 7 * MS);
        assert_eq!(both.fire(), Some((7 * MS, 1)));
        both.set(1, Some(3 * MS), 7 * MS);
        assert_eq!((both.fire(), both.fire()), (Some((7 * MS, 1)), None));
    }

    #[test]
    fn one_of_another_round_waits_for_it() {
        let mut both = Both::new(2);
        both.set(3, Some(131_000 * MS), 0);
        both.set(0, Some(7_000 * MS), 0);
        both.set(1, Some(2_000 * MS), 0);
        both.set(1, Some(9_000 * MS), 1_500 * MS);
        let fired: Vec<_> = std::iter::from_fn(|| both.fire()).collect();
        assert_eq!(fired, [(7_000 * MS, 0), (9_000 * MS, 1), (131_000 * MS, 3)]);
    }

    #[test]
    fn those_of_a_stream_that_is_gone_never_fire() {
        let mut both = Both::new(2);
        both.set(2, Some(40 * MS), 0);
        both.set(3, Some(1_500 * MS), 0);
        both.wheel.cancel(1);
        assert_eq!(both.fire(), None);
        both.set(2, Some(40 * MS), 10 * MS);
        assert_eq!(both.fire(), Some((40 * MS, 2)));
    }

    proptest! {
        #[test]
        fn each_fires_when_it_is_due(
            operations in proptest::collection::vec((0usize..8, 0u64..3_000, any::<bool>(), 0u8..4), 1..300),
        ) {
            let mut both = Both::new(4);
            let mut now = 0;
            for (endpoint, ms, is_whole, what) in operations {
                if what == 0 {
                    let first = both.due.iter().flatten().map(|&due| due.max(now)).min();
                    let fired = both.fire();
                    prop_assert_eq!(fired.map(|(time, _)| time), first);
                    now = first.unwrap_or(now);
                } else {
                    // Not all in different slices.
                    let after = if is_whole { ms * MS } else { ms * 997 };
                    both.set(endpoint, (what < 3).then_some(now + after), now);
                }
            }
        }
    }
}
