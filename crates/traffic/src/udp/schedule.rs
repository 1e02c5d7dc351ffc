//! When each datagram is due: an absolute schedule, exact to the nanosecond, that never drifts.

/// Departures of datagrams of one size at one rate.
#[derive(Debug)]
pub struct Schedule {
    /// ns times bit/s of one datagram.
    bits: u128,
    rate: u128,
    base: u64,
    next: u64,
}

impl Schedule {
    /// Datagrams of `payload` bytes at `rate` bit/s, the first one at `start`.
    pub fn new(payload: u32, rate: u64, start: u64) -> Schedule {
        let bits = u128::from(payload) * 8 * 1_000_000_000;
        Schedule { bits, rate: u128::from(rate.max(1)), base: start, next: 0 }
    }

    /// When the next one is due.
    pub fn due(&self) -> u64 {
        self.due_after(0)
    }

    /// When the one `ahead` after the next is due.
    pub fn due_after(&self, ahead: u64) -> u64 {
        let offset = u128::from(self.next + ahead) * self.bits / self.rate;
        self.base.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    /// Time between two.
    pub fn gap(&self) -> u64 {
        u64::try_from(self.bits / self.rate).unwrap_or(u64::MAX)
    }

    /// `count` datagrams have left.
    pub fn advance(&mut self, count: u64) {
        self.next += count;
    }

    /// How many are due at `time`, at max `max`.
    pub fn due_by(&self, time: u64, max: u64) -> u64 {
        (0..max).take_while(|&ahead| self.due_after(ahead) <= time).count() as u64
    }

    /// The next datagram and those that follow are due so much later.
    pub fn postpone(&mut self, by: u64) {
        self.base = self.base.saturating_add(by);
    }
}

#[cfg(test)]
mod tests {
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
}
