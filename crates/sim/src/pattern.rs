//! When a source with pauses sends.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use tcplab_units::Span;

use crate::plan::{Pattern, PatternDistribution};

/// Draws times of sending and of silence, from a random stream of its own.
#[derive(Clone, Debug)]
pub(crate) struct Pauses {
    pattern: Pattern,
    random: Xoshiro256PlusPlus,
}

impl Pauses {
    /// Pauses of `pattern`, from the random stream `seed`.
    pub(crate) fn new(pattern: Pattern, seed: u64) -> Pauses {
        Pauses { pattern, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }
    /// How long the source sends now.
    pub(crate) fn on(&mut self) -> Span {
        self.draw(self.pattern.on)
    }
    /// How long it is silent now.
    pub(crate) fn off(&mut self) -> Span {
        self.draw(self.pattern.off)
    }
    fn draw(&mut self, mean: Span) -> Span {
        match self.pattern.distribution {
            PatternDistribution::Constant => mean,
            PatternDistribution::Exponential => exponential(mean, self.random.next_u64()),
        }
    }
}

/// An exponentially distributed time: −mean · ln(u) with u = (random + 1) / 2^64, in integers.
fn exponential(mean: Span, random: u64) -> Span {
    // ln 2 in units of 2^-32.
    const LN_2: u128 = 2_977_044_472;
    let Some(value) = random.checked_add(1) else { return Span::ZERO };
    // −log2(u) = 64 − log2(random + 1), in units of 2^-32.
    let bits = (64u64 << 32) - log2(value);
    let ns = (u128::from(mean.as_ns()) * u128::from(bits) * LN_2) >> 64;
    Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Binary logarithm of `value` > 0 in units of 2^-32: the fraction comes bit by bit, by squaring the
/// mantissa and noting whether it passes 2.
fn log2(value: u64) -> u64 {
    let whole = 63 - value.leading_zeros();
    let mut mantissa = value << value.leading_zeros();
    let mut fraction = 0u64;
    for _ in 0..32 {
        let square = u128::from(mantissa) * u128::from(mantissa);
        fraction <<= 1;
        if square >> 127 == 1 {
            fraction |= 1;
            mantissa = (square >> 64) as u64;
        } else {
            mantissa = (square >> 63) as u64;
        }
    }
    (u64::from(whole) << 32) + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(distribution: PatternDistribution, seed: u64) -> Pauses {
        Pauses::new(Pattern { on: Span::from_ms(200), off: Span::from_ms(800), distribution }, seed)
    }

    #[test]
    fn constant_times_are_the_means() {
        let mut pauses = pauses(PatternDistribution::Constant, 1);
        assert_eq!((pauses.on(), pauses.off()), (Span::from_ms(200), Span::from_ms(800)));
    }

    #[test]
    fn the_integer_logarithm_is_that_of_floating_point() {
        for value in [1u64, 2, 3, 10, 12345, 1 << 40, u64::MAX / 3, u64::MAX] {
            let exact = (value as f64).log2();
            assert!((log2(value) as f64 / 2f64.powi(32) - exact).abs() < 1e-9, "log2({value})");
        }
    }

    #[test]
    fn exponential_times_have_the_mean_and_the_median_of_their_distribution() {
        let mut pauses = pauses(PatternDistribution::Exponential, 7);
        let mut draws: Vec<u64> = (0..100_000).map(|_| pauses.on().as_ns()).collect();
        draws.sort_unstable();
        let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        let median = draws[draws.len() / 2] as f64;
        // The mean's standard error is 1 / sqrt(100,000) of it; four of them.
        assert!((mean / 200e6 - 1.0).abs() < 4.0 / 316.0, "mean {mean}");
        assert!((median / (200e6 * std::f64::consts::LN_2) - 1.0).abs() < 4.0 / 316.0, "median {median}");
    }

    #[test]
    fn each_seed_has_its_own_times() {
        let draw = |seed| pauses(PatternDistribution::Exponential, seed).on();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
