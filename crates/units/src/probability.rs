//! Probabilities in parts per billion.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A probability in parts per billion, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probability(u32);

/// Parts per billion.
const PERCENT: u32 = 10_000_000;

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(1_000_000_000);

    /// `ppb` parts per billion; more than a billion counts as always.
    pub const fn from_ppb(ppb: u32) -> Probability {
        Probability(if ppb > Self::ONE.0 { Self::ONE.0 } else { ppb })
    }
    /// Parts per billion.
    pub const fn ppb(self) -> u32 {
        self.0
    }
    /// Whether it can happen at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// Whether a uniform draw of 64 random bits falls inside this probability.
    ///
    /// The bias is below 2^-34 because the draw is scaled, not reduced modulo a billion.
    pub const fn hit(self, random: u64) -> bool {
        ((random as u128 * Self::ONE.0 as u128) >> 64) < self.0 as u128
    }
    /// As a fraction, for reports only.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE.0)
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not by floating point, in which 7 % is 7.000000000000001 %.
        let (whole, rest) = (self.0 / PERCENT, self.0 % PERCENT);
        let decimals = format!("{rest:07}");
        let decimals = decimals.trim_end_matches('0');
        let point = if decimals.is_empty() { "" } else { "." };
        write!(f, "{whole}{point}{decimals} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_is_certain() {
        assert!(Probability::ONE.hit(u64::MAX) && Probability::ONE.hit(0));
        assert!(!Probability::ZERO.hit(0));
    }

    #[test]
    fn prints_exactly() {
        let printed = |ppb| Probability::from_ppb(ppb).to_string();
        assert_eq!(printed(70_000_000), "7 %");
        assert_eq!(printed(1), "0.0000001 %");
        assert_eq!(printed(5_500_000), "0.55 %");
    }

    #[test]
    fn half_splits_the_range() {
        let half = Probability::from_ppb(500_000_000);
        assert!(half.hit(u64::MAX / 2) && !half.hit(u64::MAX / 2 + 1));
    }
}
