//! Data rates in bits per second.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;

/// A data rate in bit/s; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(core::num::NonZeroU64);

impl Rate {
    /// A rate of `bits` bit/s, or none if that is zero.
    pub const fn from_bits_per_sec(bits: u64) -> Option<Rate> {
        match core::num::NonZeroU64::new(bits) {
            Some(bits) => Some(Rate(bits)),
            None => None,
        }
    }
    /// The rate in bit/s.
    pub const fn bits_per_sec(self) -> u64 {
        self.0.get()
    }
    /// Time to serialise `bytes` at this rate, rounded up to a nanosecond.
    pub const fn time_to_send(self, bytes: u64) -> Span {
        // 64 bits suffice below 2.3 GB, which is any packet; a window may be larger.
        if bytes < 1 << 31 {
            Span::from_ns((bytes * 8_000_000_000).div_ceil(self.0.get()))
        } else {
            let ns = (bytes as u128 * 8_000_000_000).div_ceil(self.0.get() as u128);
            Span::from_ns(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
        }
    }
    /// Whole bytes this rate carries in `span`.
    pub const fn bytes_in(self, span: Span) -> u64 {
        let bytes = self.0.get() as u128 * span.as_ns() as u128 / 8_000_000_000;
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.get();
        let (unit, scale) = match bits {
            1_000_000_000.. => ("Gbit/s", 1_000_000_000),
            1_000_000.. => ("Mbit/s", 1_000_000),
            1_000.. => ("kbit/s", 1_000),
            _ => ("bit/s", 1),
        };
        write_scaled(f, bits, scale, unit)
    }
}

/// `value / scale` with up to three decimals and no trailing zeros, then the unit.
pub fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, scale: u64, unit: &str) -> fmt::Result {
    let thousandths = (value % scale) as u128 * 1000 / scale as u128;
    let mut decimals = format!("{thousandths:03}");
    while decimals.ends_with('0') {
        decimals.pop();
    }
    let point = if decimals.is_empty() { "" } else { "." };
    write!(f, "{}{point}{decimals} {unit}", value / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_sec(bits).expect("not zero")
    }

    #[test]
    fn a_full_frame_at_100_mbit() {
        assert_eq!(rate(100_000_000).time_to_send(1514), Span::from_ns(121_120));
    }

    #[test]
    fn prints_in_the_largest_unit() {
        assert_eq!(rate(100_000_000).to_string(), "100 Mbit/s");
        assert_eq!(rate(1_500_000_000).to_string(), "1.5 Gbit/s");
    }

    proptest! {
        #[test]
        fn sending_takes_no_less_than_the_rate_allows(bits in 1u64..400_000_000_000, bytes in 0u64..10_000_000) {
            let rate = rate(bits);
            prop_assert!(rate.bytes_in(rate.time_to_send(bytes)) >= bytes);
        }
    }
}
