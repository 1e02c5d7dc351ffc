//! Comparison of sequence numbers, modulo 2^32 (RFC 9293, section 3.4).

/// Whether `a` comes before `b`.
pub(crate) const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `a` comes after `b`.
pub(crate) const fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

/// The earlier of two.
pub(crate) const fn earlier(a: u32, b: u32) -> u32 {
    if before(a, b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        assert!(before(0xffff_fff0, 0x10) && after(0x10, 0xffff_fff0));
        assert!(!before(7, 7) && !after(7, 7));
        assert_eq!(earlier(0x10, 0xffff_fff0), 0xffff_fff0);
    }
}
