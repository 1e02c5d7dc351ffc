//! When the timers of TCP endpoints fire, and when the schedule wakes an endpoint for them.
//!
//! A timer that is mostly put off with every segment is put off in the schedule when it would have fired, which is cheaper than
//! to move it each time. So most wake-ups find that the timer was put off, or stopped. They find it here, where the timers of
//! thousands of endpoints are close together, and need nothing of the endpoint.

use tcplab_units::{Time, prefetch};

/// The timers of the two endpoints of each stream, by its place.
#[derive(Debug)]
pub(crate) struct EndTimers(Vec<[EndTimer; 2]>);

#[derive(Clone, Copy, Debug)]
struct EndTimer {
    /// When the endpoint's first timer fires.
    due: Time,
    /// When the schedule wakes it.
    wake: Time,
}

const UNSET: EndTimer = EndTimer { due: Time::NEVER, wake: Time::NEVER };

impl EndTimers {
    /// Those of as many places, none of which is set.
    pub(crate) fn new(places: u32) -> EndTimers {
        EndTimers(vec![[UNSET; 2]; places as usize])
    }

    /// Room for more places.
    pub(crate) fn grow(&mut self, places: u32) {
        self.0.resize(places as usize, [UNSET; 2]);
    }

    /// Those of `place` are stopped, in the schedule too.
    pub(crate) fn cancel(&mut self, place: u32) {
        self.0[place as usize] = [UNSET; 2];
    }

    /// The first timer of an endpoint fires at `due`. Returns when the schedule has to wake the endpoint, if that is earlier
    /// than it knows.
    #[inline]
    pub(crate) fn set(&mut self, place: u32, end: usize, due: Time, now: Time) -> Option<Time> {
        let timer = &mut self.0[place as usize][end];
        timer.due = due;
        let wake = due.max(now);
        let is_earlier = wake < timer.wake;
        if is_earlier {
            timer.wake = wake;
        }
        is_earlier.then_some(wake)
    }

    /// The schedule wakes an endpoint. Returns until when the timer was put off; none: it fires now.
    #[inline]
    pub(crate) fn woken(&mut self, place: u32, end: usize, now: Time) -> Option<Time> {
        let timer = &mut self.0[place as usize][end];
        timer.wake = Time::NEVER;
        (timer.due > now).then_some(timer.due)
    }

    /// Those of `place` will be set soon.
    #[inline]
    pub(crate) fn prefetch(&self, place: u32) {
        prefetch(&self.0[place as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn a_timer_that_is_put_off_is_not_moved_in_the_schedule() {
        let mut timers = EndTimers::new(1);
        assert_eq!(timers.set(0, 1, at(40), at(0)), Some(at(40)));
        assert_eq!(timers.set(0, 1, at(60), at(20)), None);
        assert_eq!(timers.woken(0, 1, at(40)), Some(at(60)));
        assert_eq!(timers.set(0, 1, at(60), at(40)), Some(at(60)));
        assert_eq!(timers.woken(0, 1, at(60)), None);
    }

    #[test]
    fn one_that_is_brought_forward_is_moved_and_a_stopped_one_asks_for_no_wake_up() {
        let mut timers = EndTimers::new(1);
        timers.set(0, 0, at(40), at(0));
        assert_eq!(timers.set(0, 0, at(30), at(0)), Some(at(30)));
        assert_eq!(timers.set(0, 0, Time::NEVER, at(10)), None);
        assert_eq!(timers.woken(0, 0, at(30)), Some(Time::NEVER));
        assert_eq!(timers.set(0, 0, Time::NEVER, at(30)), None);
    }

    #[test]
    fn a_time_that_has_passed_is_now() {
        let mut timers = EndTimers::new(1);
        assert_eq!(timers.set(0, 0, at(5), at(7)), Some(at(7)));
        assert_eq!(timers.set(0, 0, at(5), at(7)), None);
        timers.cancel(0);
        assert_eq!(timers.set(0, 0, at(9), at(7)), Some(at(9)));
    }
}
