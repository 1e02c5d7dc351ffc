//! Bytes by interval, cut exactly at the run's interval boundaries.

/// Counts what arrives by intervals of the run's time.
#[derive(Debug)]
pub struct Counter {
    width: u64,
    index: u64,
    bytes: u64,
    total: u64,
    last: Option<u64>,
    closed: Vec<(u64, u64)>,
    is_closed: bool,
}

impl Counter {
    /// Intervals of `width` ns; the first one counted is that of `start`.
    pub fn new(width: u64, start: u64) -> Counter {
        Counter {
            width,
            index: start / width,
            bytes: 0,
            total: 0,
            last: None,
            closed: Vec::new(),
            is_closed: false,
        }
    }

    /// `bytes` arrived at `time`.
    pub fn add(&mut self, time: u64, bytes: u64) {
        self.advance(time);
        self.bytes += bytes;
        self.total += bytes;
        self.last = Some(time);
    }

    /// Closes the intervals that end at or before `time`.
    pub fn advance(&mut self, time: u64) {
        while (self.index + 1) * self.width <= time {
            self.closed.push((self.index, self.bytes));
            self.bytes = 0;
            self.index += 1;
        }
    }

    /// The last interval is reported: nothing more may be added.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether the last interval is reported.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Takes the closed intervals: the number of each, its bytes.
    pub fn take(&mut self) -> std::vec::Drain<'_, (u64, u64)> {
        self.closed.drain(..)
    }

    /// Bytes of the interval that is still open, and its number.
    pub fn open(&self) -> (u64, u64) {
        (self.index, self.bytes)
    }

    /// All bytes so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// When the last byte arrived.
    pub fn last(&self) -> Option<u64> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_in_the_interval_they_arrive_in_and_silence_is_zero() {
        let mut counter = Counter::new(100, 250);
        counter.add(299, 5);
        counter.add(300, 7);
        counter.add(650, 1);
        assert_eq!(counter.take().collect::<Vec<_>>(), [(2, 5), (3, 7), (4, 0), (5, 0)]);
        counter.advance(700);
        assert_eq!(counter.take().collect::<Vec<_>>(), [(6, 1)]);
        assert_eq!((counter.total(), counter.last()), (13, Some(650)));
    }
}
