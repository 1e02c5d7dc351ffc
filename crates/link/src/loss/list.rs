//! Exactly the packets of a list.

/// Packet numbers that are lost, ascending.
#[derive(Clone, Debug)]
pub(super) struct List {
    packets: Vec<u64>,
    /// How many of them lie behind.
    passed: usize,
}

impl List {
    pub(super) fn new(packets: &[u64]) -> List {
        let mut packets = packets.to_vec();
        packets.sort_unstable();
        List { packets, passed: 0 }
    }

    /// Whether packet `number`, counted from 1 and asked about in order, is lost.
    pub(super) fn takes(&mut self, number: u64) -> bool {
        while self.packets.get(self.passed).is_some_and(|&listed| listed < number) {
            self.passed += 1;
        }
        self.packets.get(self.passed) == Some(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_listed_packets_in_whatever_order_they_are_given() {
        let mut list = List::new(&[5, 1, 2, 5]);
        let taken: Vec<u64> = (1..10).filter(|&number| list.takes(number)).collect();
        assert_eq!(taken, [1, 2, 5]);
    }

    #[test]
    fn numbers_before_the_first_question_are_passed_over() {
        let mut list = List::new(&[1, 2, 8]);
        assert!(!list.takes(7) && list.takes(8) && !list.takes(9));
    }
}
