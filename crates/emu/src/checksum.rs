//! The Internet checksum (RFC 1071), fast enough for whole payloads.

/// A sum of 16-bit words in the machine's byte order, carries not yet folded in.
///
/// The order of bytes does not matter as long as it is the same throughout (RFC 1071 section 2 (B)).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds `bytes`, an odd last one padded with zero. Only the last addition may be odd.
    #[inline]
    pub(crate) fn add(self, bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<4>();
        // 2^32 words of 32 bits fit; a frame has 2^14.
        let mut sum = words.iter().fold(self.0, |sum, word| sum + u64::from(u32::from_ne_bytes(*word)));
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        sum += u64::from(u32::from_ne_bytes(last));
        Sum(sum)
    }

    /// Adds a 16-bit number.
    #[inline]
    pub(crate) fn add_u16(self, number: u16) -> Sum {
        Sum(self.0 + u64::from(u16::from_ne_bytes(number.to_be_bytes())))
    }

    /// The sum as it stands in a header, not complemented: what a device with checksum offload is given.
    #[inline]
    pub(crate) fn fold(self) -> u16 {
        let sum = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        u16::from_be_bytes((sum as u16).to_ne_bytes())
    }

    /// The checksum.
    #[inline]
    pub(crate) fn checksum(self) -> u16 {
        !self.fold()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().add(&bytes).checksum(), !0xddf2);
    }

    proptest! {
        #[test]
        fn it_is_the_sum_word_by_word(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            let mut sum = 0u64;
            for pair in bytes.chunks(2) {
                sum += (u64::from(pair[0]) << 8) | u64::from(*pair.get(1).unwrap_or(&0));
            }
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            prop_assert_eq!(Sum::default().add(&bytes).fold(), sum as u16);
        }

        #[test]
        fn parts_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..100), number in any::<u16>()) {
            let (head, tail) = bytes.split_at(bytes.len() / 4 * 2);
            let parts = Sum::default().add_u16(number).add(head).add(tail);
            let whole = Sum::default().add(&[&number.to_be_bytes()[..], &bytes].concat());
            prop_assert_eq!(parts.fold(), whole.fold());
        }
    }
}
