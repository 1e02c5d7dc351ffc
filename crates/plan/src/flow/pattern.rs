//! Pauses in a flow.

use std::fmt;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use super::exponential::exponential;

/// Pauses in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// Mean time of sending.
    pub on: Span,
    /// Mean time of silence.
    pub off: Span,
    /// How both are distributed.
    pub distribution: PatternDistribution,
}

/// How on and off times are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternDistribution {
    /// Always the mean.
    Constant,
    /// Exponentially.
    Exponential,
}

impl Pattern {
    /// The share of the time in which it sends.
    pub(crate) fn share(&self) -> f64 {
        self.on.as_ns() as f64 / (self.on.as_ns() + self.off.as_ns()) as f64
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distribution = match self.distribution {
            PatternDistribution::Constant => "constant",
            PatternDistribution::Exponential => "exponential",
        };
        write!(f, "{} on and {} off ({distribution})", self.on, self.off)
    }
}

/// Draws times of sending and of silence, from a random stream of its own.
#[derive(Clone, Debug)]
pub struct Pauses {
    pattern: Pattern,
    random: Xoshiro256PlusPlus,
}

impl Pauses {
    /// Pauses of `pattern`, from the random stream `seed`.
    pub fn new(pattern: Pattern, seed: u64) -> Pauses {
        Pauses { pattern, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// How long the source sends now.
    pub fn on(&mut self) -> Span {
        self.draw(self.pattern.on)
    }

    /// How long it is silent now.
    pub fn off(&mut self) -> Span {
        self.draw(self.pattern.off)
    }

    /// At least a microsecond, so that time advances whatever the means are: a host may serve a stranger's flow.
    fn draw(&mut self, mean: Span) -> Span {
        let drawn = match self.pattern.distribution {
            PatternDistribution::Constant => mean,
            PatternDistribution::Exponential => {
                let ns = (u128::from(mean.as_ns()) * exponential(self.random.next_u64())) >> 64;
                Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
            }
        };
        drawn.max(Span::from_us(1))
    }
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
    fn time_advances_whatever_the_means_are() {
        for distribution in [PatternDistribution::Constant, PatternDistribution::Exponential] {
            let mut pauses = Pauses::new(Pattern { on: Span::ZERO, off: Span::ZERO, distribution }, 1);
            assert_eq!([pauses.on(), pauses.off()], [Span::from_us(1); 2]);
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
