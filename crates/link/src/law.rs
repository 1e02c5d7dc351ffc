//! The laws of jitter, each drawn as a height and a share of it.
//!
//! A law with one mode is that of U·H, where U is uniform on (0, 1) and independent of H, the distance
//! from the mode (A. Khintchine, "On unimodal distributions", 1938). If the law has density f at distance
//! x from its mode, H has density −x·f'(x). So something that moves evenly between the mode and a height
//! drawn from H follows the law in time (`excursions.rs`), and U times such a height follows it by itself.

use tcplab_units::Span;

use crate::config::{self, Distribution};
use crate::normal;
use crate::random::Stream;

/// A law of the variation around the delay, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    distribution: Distribution,
    amount: u64,
}

/// How much longer or shorter than its mode the delay is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variation {
    pub(crate) size: u64,
    pub(crate) shorter: bool,
}

impl Variation {
    /// `delay` with this variation, never below zero.
    #[inline]
    pub(crate) fn vary(self, delay: Span) -> Span {
        let size = Span::from_ns(self.size);
        if self.shorter { delay.saturating_sub(size) } else { delay + size }
    }
}

impl Law {
    pub(crate) fn new(config: config::Jitter) -> Law {
        Law { distribution: config.distribution, amount: config.amount.as_ns() }
    }

    pub(crate) fn amount(self) -> u64 {
        self.amount
    }

    /// A height H, on either side of the mode where the law has two.
    pub(crate) fn height(self, random: &mut Stream) -> Variation {
        match self.distribution {
            Distribution::Uniform => Variation { size: self.amount, shorter: is_odd(random.draw()) },
            Distribution::Normal => self.normal_height(random),
            Distribution::Pareto => Variation { size: self.pareto_height(random), shorter: false },
        }
    }

    /// A variation by itself.
    pub(crate) fn variation(self, random: &mut Stream) -> Variation {
        let height = self.height(random);
        Variation { size: random.below(height.size.saturating_add(1)), ..height }
    }

    /// −x·f'(x) is x²·exp(−x²/2) up to a factor: the length of three normal deviates at right angles
    /// (Maxwell's law).
    fn normal_height(self, random: &mut Stream) -> Variation {
        let (one, shorter) = normal::deviate(random.draw());
        let (two, three) = (normal::deviate(random.draw()).0, normal::deviate(random.draw()).0);
        let squares: u64 = [one, two, three].iter().map(|&size| u64::from(size).pow(2)).sum();
        let ns = (u128::from(self.amount) * u128::from(squares.isqrt())) >> normal::FRACTION_BITS;
        Variation { size: u64::try_from(ns).unwrap_or(u64::MAX), shorter }
    }

    /// A Lomax law (Pareto from zero) of shape 3 and scale s has the mean s/2, hence s = 2·amount. With
    /// w = 1/(1 + x/s), −x·f'(x) makes w a Beta(3, 2) variate: the third smallest of four uniform ones.
    fn pareto_height(self, random: &mut Stream) -> u64 {
        let mut uniform = [0; 4].map(|_: u64| (random.draw() >> 32) + 1);
        uniform.sort_unstable();
        let (w, one) = (u128::from(uniform[2]), 1u128 << 32);
        let ns = u128::from(self.amount).saturating_mul(2 * (one - w)) / w;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

fn is_odd(random: u64) -> bool {
    random & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: u32 = 1_000_000;
    const AMOUNT: f64 = 5e6;

    /// Many variations of an amount of 5 ms, ns.
    fn variations(distribution: Distribution) -> Vec<f64> {
        let law = Law { distribution, amount: 5_000_000 };
        let mut random = Stream::new(1, "test");
        let signed = |variation: Variation| {
            if variation.shorter { -(variation.size as f64) } else { variation.size as f64 }
        };
        (0..PACKETS).map(|_| signed(law.variation(&mut random))).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt())
    }

    /// Whether the share of values beyond `limit` lies within three standard deviations of what is expected.
    fn is_beyond(values: &[f64], limit: f64, expected: f64) -> bool {
        let count = values.iter().filter(|&&value| if limit < 0.0 { value < limit } else { value > limit });
        let share = count.count() as f64 / values.len() as f64;
        (share - expected).abs() <= 3.0 * (expected * (1.0 - expected) / f64::from(PACKETS)).sqrt()
    }

    #[test]
    fn uniform_variations_fill_their_width_evenly() {
        let values = variations(Distribution::Uniform);
        let (mean, deviation) = mean_and_deviation(&values);
        assert!(mean.abs() <= 3.0 * AMOUNT / 3f64.sqrt() / 1000.0, "{mean}");
        assert!((deviation / (AMOUNT / 3f64.sqrt()) - 1.0).abs() < 0.002, "{deviation}");
        assert!(values.iter().all(|value| value.abs() <= AMOUNT));
        assert!(is_beyond(&values, -0.9 * AMOUNT, 0.05) && is_beyond(&values, 0.9 * AMOUNT, 0.05));
    }

    #[test]
    fn normal_variations_have_the_spread_and_the_tails_of_a_gaussian() {
        let values = variations(Distribution::Normal);
        let (mean, deviation) = mean_and_deviation(&values);
        assert!(mean.abs() <= 3.0 * AMOUNT / 1000.0, "{mean}");
        // The deviation of a sample deviation is sigma / sqrt(2n).
        assert!((deviation / AMOUNT - 1.0).abs() <= 3.0 / 2e6f64.sqrt(), "{deviation}");
        for (sigmas, share) in [(1.0, 0.158_655), (2.0, 0.022_750), (3.0, 0.001_349_9), (4.0, 0.000_031_67)] {
            assert!(is_beyond(&values, sigmas * AMOUNT, share), "{sigmas}");
            assert!(is_beyond(&values, -sigmas * AMOUNT, share), "-{sigmas}");
        }
    }

    #[test]
    fn pareto_variations_only_lengthen_and_have_a_cubic_tail() {
        let values = variations(Distribution::Pareto);
        let (mean, _) = mean_and_deviation(&values);
        // The deviation of the mean is sqrt(3) amounts over sqrt(n).
        assert!((mean - AMOUNT).abs() <= 3.0 * 3f64.sqrt() * AMOUNT / 1000.0, "{mean}");
        assert!(values.iter().all(|&value| value >= 0.0));
        for amounts in [0.1f64, 1.0, 4.0, 18.0] {
            // P(variation > x) = (1 + x / scale)^-3, and the scale is two amounts.
            let share = (1.0 + amounts / 2.0).powi(-3);
            assert!(is_beyond(&values, amounts * AMOUNT, share), "{amounts}");
        }
    }

    #[test]
    fn no_amount_overflows() {
        for distribution in [Distribution::Uniform, Distribution::Normal, Distribution::Pareto] {
            for amount in [0, 1000, u64::MAX] {
                let mut random = Stream::new(1, "test");
                let law = Law { distribution, amount };
                let sizes = (0..1000).map(|_| law.variation(&mut random).size);
                assert_eq!(sizes.max() > Some(0), amount > 0);
            }
        }
    }

    #[test]
    fn a_delay_is_never_below_zero() {
        let delay = Span::from_ms(1);
        assert_eq!(Variation { size: 2_000_000, shorter: true }.vary(delay), Span::ZERO);
        assert_eq!(Variation { size: 2_000_000, shorter: false }.vary(delay), Span::from_ms(3));
    }
}
