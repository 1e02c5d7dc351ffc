//! Periodic loss: one packet in every so many.

/// Takes packet `first` and every `period`th after it.
#[derive(Clone, Debug)]
pub(super) struct Every {
    period: u64,
    first: u64,
}

impl Every {
    pub(super) fn new(period: u64, first: u64) -> Every {
        Every { period, first }
    }

    /// Whether packet `number`, counted from 1, is lost. A period of zero takes `first` alone.
    pub(super) fn takes(&self, number: u64) -> bool {
        match number.checked_sub(self.first) {
            Some(0) => true,
            Some(later) => self.period != 0 && later % self.period == 0,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(period: u64, first: u64) -> Vec<u64> {
        let every = Every::new(period, first);
        (1..=30).filter(|&number| every.takes(number)).collect()
    }

    #[test]
    fn one_in_ten_starting_with_the_third() {
        assert_eq!(taken(10, 3), [3, 13, 23]);
    }

    #[test]
    fn a_period_of_zero_takes_the_first_alone() {
        assert_eq!(taken(0, 7), [7]);
    }
}
