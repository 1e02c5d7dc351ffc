//! When each datagram is due: an absolute schedule, exact to the nanosecond, that never drifts.

use std::collections::VecDeque;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Departures of datagrams of one size at one rate.
#[derive(Debug)]
pub struct Schedule {
    /// ns times bit/s of one datagram.
    bits: u128,
    rate: u128,
    base: u64,
    next: u64,
    poisson: Option<Poisson>,
}

impl Schedule {
    /// Datagrams of `payload` bytes at `rate` bit/s, the first one at `start`.
    pub fn new(payload: u32, rate: u64, start: u64) -> Schedule {
        let bits = u128::from(payload) * 8 * 1_000_000_000;
        Schedule { bits, rate: u128::from(rate.max(1)), base: start, next: 0, poisson: None }
    }

    /// The same as a Poisson process of this mean rate, whose first datagram is an interval after the start.
    pub fn at_random(mut self, random: Xoshiro256PlusPlus) -> Schedule {
        let mean = self.bits as f64 / self.rate as f64;
        self.poisson = Some(Poisson { mean, random, last: 0.0, drawn: VecDeque::new() });
        self
    }

    /// Whether the intervals are those of a Poisson process.
    pub fn is_random(&self) -> bool {
        self.poisson.is_some()
    }

    /// When the next one is due.
    pub fn due(&mut self) -> u64 {
        self.due_after(0)
    }

    /// When the one `ahead` after the next is due.
    pub fn due_after(&mut self, ahead: u64) -> u64 {
        let offset = match &mut self.poisson {
            Some(poisson) => u128::from(poisson.due_after(ahead)),
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
        if let Some(poisson) = &mut self.poisson {
            poisson.drawn.drain(..(count as usize).min(poisson.drawn.len()));
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
struct Poisson {
    /// Mean interval, ns.
    mean: f64,
    random: Xoshiro256PlusPlus,
    /// The last time drawn, ns since the start.
    last: f64,
    /// The times drawn of datagrams that have not left, ns since the start.
    drawn: VecDeque<u64>,
}

impl Poisson {
    /// When the one `ahead` after the next is due, ns since the start.
    fn due_after(&mut self, ahead: u64) -> u64 {
        while self.drawn.len() as u64 <= ahead {
            let uniform: f64 = self.random.random();
            self.last -= (1.0 - uniform).ln() * self.mean;
            self.drawn.push_back(self.last as u64);
        }
        self.drawn[ahead as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

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
        Schedule::new(125, 1_000_000, 1_000_000).at_random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    #[test]
    fn a_poisson_process_has_the_mean_and_the_deviation_of_exponential_intervals() {
        let (mut schedule, count) = (poisson(3), 100_000);
        let (mut before, mut sum, mut squares) = (1_000_000, 0.0, 0.0);
        for _ in 0..count {
            let due = schedule.due();
            let interval = (due - before) as f64 / 1e6;
            (before, sum, squares) = (due, sum + interval, squares + interval * interval);
            schedule.advance(1);
        }
        let mean = sum / f64::from(count);
        let deviation = (squares / f64::from(count) - mean * mean).sqrt();
        // Four standard errors, of both 1 / √n.
        let error = 4.0 / f64::from(count).sqrt();
        assert!((mean - 1.0).abs() < error && (deviation / mean - 1.0).abs() < error, "{mean}, {deviation}");
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
