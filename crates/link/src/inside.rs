//! Packet contents, for the few disciplines that look into them. Whoever keeps the contents answers
//! (`Observer::inside`), so that others do not carry it about.

/// The hosts of a packet, and what it acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// A number or hash of the source address.
    pub source: u32,
    /// A number or hash of the destination address.
    pub destination: u32,
    /// Of a TCP segment that acknowledges.
    pub ack: Option<Acknowledgment>,
}

/// The header of a TCP segment that acknowledges and opens or ends nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgment {
    /// Acknowledgment number.
    pub number: u32,
    /// It carries no payload, sets no flag but ACK and those of ECN, and has no options but timestamps and SACK.
    pub is_pure: bool,
    /// Its flags of ECN: ECE and CWR, and AE where that is known.
    pub ecn_flags: u8,
    /// SACK blocks, from left edge to right edge; unused ones are empty.
    pub sack: [(u32, u32); 4],
}

impl Acknowledgment {
    /// Whether a later acknowledgment of the same connection makes this one redundant. It acknowledges at least as much, its
    /// SACK blocks contain those of this one, and it is not a duplicate, which senders count. Linux's `cake` decides alike: its
    /// acknowledgment number does not stand for a block that it covers, and a D-SACK (RFC 2883) is kept.
    pub fn is_redundant_after(&self, later: &Acknowledgment) -> bool {
        let ahead = later.number.wrapping_sub(self.number) as i32;
        let is_duplicate = ahead == 0 && self.sack == later.sack;
        self.is_pure && ahead >= 0 && !is_duplicate && self.blocks().all(|block| self.is_within(block, later))
    }

    fn blocks(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.sack.iter().copied().filter(|(left, right)| left != right)
    }

    /// Whether `block` is beyond the acknowledgment number and contained in a block of `later`.
    fn is_within(&self, (left, right): (u32, u32), later: &Acknowledgment) -> bool {
        let reaches = |from: u32, to: u32| to.wrapping_sub(from) as i32 >= 0;
        reaches(self.number, left)
            && later.blocks().any(|(begin, end)| reaches(begin, left) && reaches(right, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: u32, sack: &[(u32, u32)]) -> Acknowledgment {
        let mut blocks = [(0, 0); 4];
        blocks[..sack.len()].copy_from_slice(sack);
        Acknowledgment { number, is_pure: true, ecn_flags: 0, sack: blocks }
    }

    #[test]
    fn a_later_acknowledgment_of_more_makes_one_redundant() {
        assert!(ack(1000, &[]).is_redundant_after(&ack(2000, &[])));
        assert!(!ack(2000, &[]).is_redundant_after(&ack(1000, &[])));
        // Numbers wrap.
        assert!(ack(u32::MAX - 10, &[]).is_redundant_after(&ack(10, &[])));
    }

    #[test]
    fn duplicates_are_counted_and_so_kept() {
        assert!(!ack(1000, &[]).is_redundant_after(&ack(1000, &[])));
        assert!(!ack(1000, &[(3000, 4000)]).is_redundant_after(&ack(1000, &[(3000, 4000)])));
        assert!(ack(1000, &[(3000, 4000)]).is_redundant_after(&ack(1000, &[(3000, 5000)])));
    }

    #[test]
    fn what_is_selectively_acknowledged_must_be_said_again() {
        let holed = ack(1000, &[(3000, 4000), (6000, 7000)]);
        assert!(!holed.is_redundant_after(&ack(2000, &[(6000, 7000)])));
        assert!(holed.is_redundant_after(&ack(2000, &[(6000, 8000), (3000, 5000)])));
        assert!(holed.is_redundant_after(&ack(1000, &[(3000, 7000)])));
        // The number does not stand for a block.
        assert!(!holed.is_redundant_after(&ack(4000, &[(6000, 8000)])));
        assert!(!holed.is_redundant_after(&ack(7000, &[])));
    }

    #[test]
    fn a_report_of_duplicate_data_is_kept() {
        assert!(!ack(5000, &[(3000, 4000)]).is_redundant_after(&ack(6000, &[(3000, 4000)])));
    }

    #[test]
    fn data_is_kept() {
        let data = Acknowledgment { is_pure: false, ..ack(1000, &[]) };
        assert!(!data.is_redundant_after(&ack(2000, &[])));
        // Data acknowledges too.
        assert!(ack(1000, &[]).is_redundant_after(&Acknowledgment { is_pure: false, ..ack(2000, &[]) }));
    }
}
