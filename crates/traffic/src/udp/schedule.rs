//! When each datagram is due: an absolute schedule, exact to the nanosecond, that never drifts.

use std::collections::VecDeque;

use tcplab_plan::Poisson;

/// Departures of datagrams of one size at one rate.
#[derive(Debug)]
pub struct Schedule {
    /// ns times bit/s of one datagram.
    bits: u128,
    rate: u128,
    base: u64,
    next: u64,
    random: Option<Random>,
}

impl Schedule {
    /// Datagrams of `payload` bytes at `rate` bit/s, the first one at `start`.
    pub fn new(payload: u32, rate: u64, start: u64) -> Schedule {
        let bits = u128::from(payload) * 8 * 1_000_000_000;
        Schedule { bits, rate: u128::from(rate.max(1)), base: start, next: 0, random: None }
    }

    /// The same with the intervals of a Poisson process, of which the first precedes the first datagram.
    pub fn at_random(mut self, intervals: Poisson) -> Schedule {
        self.random = Some(Random { intervals, last: 0, drawn: VecDeque::new() });
        self
    }

    /// Whether the intervals are those of a Poisson process.
    pub fn is_random(&self) -> bool {
        self.random.is_some()
    }

    /// When the next one is due.
    pub fn due(&mut self) -> u64 {
        self.due_after(0)
    }

    /// When the one `ahead` after the next is due.
    pub fn due_after(&mut self, ahead: u64) -> u64 {
        let offset = match &mut self.random {
            Some(random) => u128::from(random.due_after(ahead)),
            None => u128::from(self.next + ahead) * self.bits / self.rate,
        };
        self.base.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    /// Mean time between two.
    pub fn gap(&self) -> u64 {
        u64::try_from(self.bits / self.rate).unwrap_or(u64::MAX)
    }

    /// `count` datagrams have left.
    pub fn advance(&mut self, count: u64) {
        self.next += count;
        if let Some(random) = &mut self.random {
            random.drawn.drain(..(count as usize).min(random.drawn.len()));
        }
    }

    /// How many are due at `time`, at max `max`.
    pub fn due_by(&mut self, time: u64, max: u64) -> u64 {
        (0..max).take_while(|&ahead| self.due_after(ahead) <= time).count() as u64
    }

    /// The next datagram and those that follow are due so much later.
    pub fn postpone(&mut self, by: u64) {
        self.base = self.base.saturating_add(by);
    }
}

/// The times of a Poisson process, as far as they were asked for.
#[derive(Debug)]
struct Random {
    intervals: Poisson,
    /// The last time drawn, ns since the start.
    last: u64,
    /// The times drawn of datagrams that have not left, ns since the start.
    drawn: VecDeque<u64>,
}

impl Random {
    /// When the one `ahead` after the next is due, ns since the start.
    fn due_after(&mut self, ahead: u64) -> u64 {
        while self.drawn.len() as u64 <= ahead {
            self.last = self.last.saturating_add(self.intervals.interval().as_ns());
            self.drawn.push_back(self.last);
        }
        self.drawn[ahead as usize]
    }
}

#[cfg(test)]
mod tests {
    use tcplab_units::Rate;

    use super::*;

    #[test]
    fn a_gap_that_is_not_a_whole_number_of_nanoseconds_does_not_drift() {
        let mut schedule = Schedule::new(1000, 7_000_000, 5);
        schedule.advance(7_000_000);
        assert_eq!(schedule.due(), 5 + 8_000_000_000_000);
    }

    #[test]
    fn late_wakeups_find_all_that_is_due_up_to_the_bound() {
        let mut schedule = Schedule::new(125, 1_000_000, 1_000_000);
        assert_eq!(schedule.due_by(999_999, 64), 0);
        assert_eq!(schedule.due_by(3_500_000, 64), 3);
        assert_eq!(schedule.due_by(90_000_000, 4), 4);
        schedule.advance(3);
        assert_eq!(schedule.due(), 4_000_000);
        schedule.postpone(10_000_000);
        assert_eq!((schedule.due(), schedule.due_after(1)), (14_000_000, 15_000_000));
    }

    /// Datagrams of 125 B at 1 Mbit/s on average, one in a millisecond.
    fn poisson(seed: u64) -> Schedule {
        let rate = Rate::from_bits_per_sec(1_000_000).expect("not zero");
        Schedule::new(125, 1_000_000, 1_000_000).at_random(Poisson::new(rate, 125, seed))
    }

    #[test]
    fn a_poisson_process_is_the_same_however_far_ahead_it_is_asked_for() {
        let (mut one, mut other) = (poisson(9), poisson(9));
        let far = other.due_after(100);
        let count = other.due_by(far - 1, 1000);
        assert_eq!(count, 100);
        one.advance(0);
        for _ in 0..100 {
            assert_eq!(one.due(), other.due());
            one.advance(1);
            other.advance(1);
        }
        assert_eq!(one.due(), far);
        one.postpone(7);
        assert_eq!(one.due(), far + 7);
        assert_ne!(poisson(10).due(), poisson(9).due());
    }
}
