//! The Internet checksum (RFC 1071).

/// Sum of `bytes` as 16-bit words in network order, an odd last byte padded with zero.
///
/// Zero bytes add nothing, so a zero payload needs no pass over it.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let (words, odd) = bytes.as_chunks::<2>();
    let sum: u32 = words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum();
    sum + odd.first().map_or(0, |&byte| u32::from(byte) << 8)
}

/// Folds the carries in and complements.
pub(super) fn finish(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        let sum = sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(finish(sum), !0xddf2);
    }

    #[test]
    fn an_odd_byte_is_padded_behind() {
        assert_eq!(sum(&[0x12, 0x34, 0x56]), 0x1234 + 0x5600);
    }
}
