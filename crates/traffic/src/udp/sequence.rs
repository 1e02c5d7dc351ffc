//! Sequence numbers: which datagrams are missing, late or come twice.

use std::collections::BTreeMap;

/// Gaps remembered; the oldest are then lost for good.
const GAPS: usize = 65_536;

/// The place of a datagram, from its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is later than all before; this many are missing in between.
    Later {
        /// Numbers skipped.
        missing: u64,
    },
    /// It was missing; the gap was noticed in this interval.
    OutOfOrder {
        /// The number that was given with the gap.
        noticed: u64,
    },
    /// It has come before.
    Duplicate,
}

/// The numbers seen so far.
#[derive(Debug, Default)]
pub struct Sequence {
    next: u64,
    /// Start of a gap: its end, and the interval in which it was noticed.
    gaps: BTreeMap<u64, (u64, u64)>,
}

impl Sequence {
    /// Datagram `number` came in interval `interval`.
    pub fn arrive(&mut self, number: u64, interval: u64) -> Arrival {
        if number >= self.next {
            let missing = number - self.next;
            if missing > 0 {
                self.gaps.insert(self.next, (number, interval));
                if self.gaps.len() > GAPS {
                    self.gaps.pop_first();
                }
            }
            self.next = number.saturating_add(1);
            return Arrival::Later { missing };
        }
        let gap =
            self.gaps.range(..=number).next_back().map(|(&start, &(end, noticed))| (start, end, noticed));
        match gap {
            Some((start, end, noticed)) if number < end => {
                self.gaps.remove(&start);
                if start < number {
                    self.gaps.insert(start, (number, noticed));
                }
                if number + 1 < end {
                    self.gaps.insert(number + 1, (end, noticed));
                }
                Arrival::OutOfOrder { noticed }
            }
            _ => Arrival::Duplicate,
        }
    }

    /// One more than the greatest number seen.
    #[cfg(test)]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Numbers missing among those remembered.
    #[cfg(test)]
    fn missing(&self) -> u64 {
        self.gaps.iter().map(|(start, (end, _))| end - start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_late_datagram_is_no_longer_missing_and_comes_twice_only_the_second_time() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.arrive(0, 0), Arrival::Later { missing: 0 });
        assert_eq!(sequence.arrive(5, 3), Arrival::Later { missing: 4 });
        assert_eq!(sequence.arrive(2, 4), Arrival::OutOfOrder { noticed: 3 });
        assert_eq!(sequence.arrive(2, 4), Arrival::Duplicate);
        assert_eq!(sequence.arrive(5, 4), Arrival::Duplicate);
        assert_eq!(sequence.missing(), 3);
    }

    #[test]
    fn it_counts_as_a_set_of_numbers_does() {
        let mut random = 12345u64;
        let mut sequence = Sequence::default();
        let mut seen = BTreeSet::new();
        for _ in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let number = sequence.next().saturating_sub(20) + (random >> 33) % 30;
            let greatest = seen.last().copied();
            let arrival = sequence.arrive(number, 0);
            let expected_duplicate = !seen.insert(number);
            assert_eq!(arrival == Arrival::Duplicate, expected_duplicate);
            let later = greatest.is_none_or(|g| number > g);
            assert_eq!(matches!(arrival, Arrival::Later { .. }), later);
        }
        assert_eq!(sequence.missing(), sequence.next() - seen.len() as u64);
    }
}
