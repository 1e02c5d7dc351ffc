//! Random variation of the propagation delay.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use tcplab_units::Span;

use crate::config::{self, Distribution};
use crate::normal;
use crate::random::stream;

/// Draws one variation a packet.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    rng: Xoshiro256PlusPlus,
    config: config::Jitter,
}

impl Jitter {
    pub(crate) fn new(config: config::Jitter, seed: u64) -> Jitter {
        Jitter { rng: stream(seed, "jitter"), config }
    }

    /// New settings from the next packet on; the stream goes on.
    pub(crate) fn set(&mut self, config: config::Jitter) {
        self.config = config;
    }

    /// `delay` with the next packet's variation, never below zero.
    pub(crate) fn vary(&mut self, delay: Span) -> Span {
        let random = self.rng.next_u64();
        let amount = self.config.amount.as_ns();
        match self.config.distribution {
            Distribution::Uniform => {
                let width = u128::from(amount) * 2 + 1;
                let above_lowest = Span::from_ns(((u128::from(random) * width) >> 64) as u64);
                (delay + above_lowest).saturating_sub(self.config.amount)
            }
            Distribution::Normal => {
                let (size, longer) = normal::deviate(random);
                let ns = (u128::from(amount) * u128::from(size)) >> normal::FRACTION_BITS;
                let variation = Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX));
                if longer { delay + variation } else { delay.saturating_sub(variation) }
            }
            Distribution::Pareto => delay + pareto_excess(random, amount),
        }
    }

    /// The least delay that a packet can get out of `delay`.
    pub(crate) fn least(&self, delay: Span) -> Span {
        match self.config.distribution {
            Distribution::Uniform => delay.saturating_sub(self.config.amount),
            Distribution::Normal => Span::ZERO,
            Distribution::Pareto => delay,
        }
    }
}

/// Binary digits behind the point of the Pareto variate; its cube still fits 128 bits.
const PARETO_BITS: u32 = 20;

/// A Lomax (Pareto from zero) excess of shape 3 whose mean is `amount`: 2·amount·(U^(−1/3) − 1).
///
/// The mean of a Lomax law of scale s and shape a is s/(a − 1), hence s = 2·amount. Its standard
/// deviation is √3 times its mean. 2^−20·2·amount is the resolution.
fn pareto_excess(random: u64, amount: u64) -> Span {
    let one = 1u64 << PARETO_BITS;
    // 2^(3·20) / U with U = random / 2^64, kept off zero.
    let cube = (1u128 << (3 * PARETO_BITS + 64)).div_ceil(u128::from(random) + 1);
    let root = cube_root(cube).max(one);
    let ns = (u128::from(root - one) * 2 * u128::from(amount)) >> PARETO_BITS;
    Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// The integer cube root of a number above zero, rounded down, by Newton's method from above.
fn cube_root(cube: u128) -> u64 {
    let bits = 128 - cube.leading_zeros();
    let mut root = 1u128 << bits.div_ceil(3);
    loop {
        let next = (2 * root + cube / (root * root)) / 3;
        if next >= root {
            return root as u64;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: u32 = 1_000_000;
    const DELAY: f64 = 100e6;
    const AMOUNT: f64 = 5e6;

    /// Delays in ns of many packets with 100 ms of delay and 5 ms of jitter.
    fn delays(distribution: Distribution) -> Vec<f64> {
        let config = config::Jitter { distribution, amount: Span::from_ms(5) };
        let mut jitter = Jitter::new(config, 1);
        (0..PACKETS).map(|_| jitter.vary(Span::from_ms(100)).as_ns() as f64).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt())
    }

    fn share(values: &[f64], counts: impl Fn(f64) -> bool) -> f64 {
        values.iter().filter(|&&value| counts(value)).count() as f64 / values.len() as f64
    }

    /// Whether a share of all packets lies within three standard deviations of what is expected.
    fn is_near(share: f64, expected: f64) -> bool {
        (share - expected).abs() <= 3.0 * (expected * (1.0 - expected) / f64::from(PACKETS)).sqrt()
    }

    #[test]
    fn uniform_jitter_fills_its_width_evenly() {
        let delays = delays(Distribution::Uniform);
        let (mean, deviation) = mean_and_deviation(&delays);
        assert!((mean - DELAY).abs() <= 3.0 * AMOUNT / 3f64.sqrt() / 1000.0, "{mean}");
        assert!((deviation / (AMOUNT / 3f64.sqrt()) - 1.0).abs() < 0.002, "{deviation}");
        assert!(delays.iter().all(|delay| (delay - DELAY).abs() <= AMOUNT));
        assert!(is_near(share(&delays, |delay| delay < DELAY - 0.9 * AMOUNT), 0.05));
        assert!(is_near(share(&delays, |delay| delay > DELAY + 0.9 * AMOUNT), 0.05));
    }

    #[test]
    fn normal_jitter_has_the_spread_and_the_tails_of_a_gaussian() {
        let delays = delays(Distribution::Normal);
        let (mean, deviation) = mean_and_deviation(&delays);
        assert!((mean - DELAY).abs() <= 3.0 * AMOUNT / 1000.0, "{mean}");
        // The deviation of a sample deviation is sigma / sqrt(2n).
        assert!((deviation / AMOUNT - 1.0).abs() <= 3.0 / 2e6f64.sqrt(), "{deviation}");
        for (sigmas, beyond) in [(1.0, 0.158_655), (2.0, 0.022_750), (3.0, 0.001_349_9), (4.0, 0.000_031_67)]
        {
            assert!(is_near(share(&delays, |delay| delay > DELAY + sigmas * AMOUNT), beyond), "{sigmas}");
            assert!(is_near(share(&delays, |delay| delay < DELAY - sigmas * AMOUNT), beyond), "-{sigmas}");
        }
    }

    #[test]
    fn pareto_jitter_only_lengthens_and_has_a_cubic_tail() {
        let delays = delays(Distribution::Pareto);
        let (mean, _) = mean_and_deviation(&delays);
        // The deviation of the mean excess is sqrt(3) amounts over sqrt(n).
        assert!((mean - DELAY - AMOUNT).abs() <= 3.0 * 3f64.sqrt() * AMOUNT / 1000.0, "{mean}");
        assert!(delays.iter().all(|&delay| delay >= DELAY));
        for amounts in [0.1f64, 1.0, 4.0, 18.0] {
            // P(excess > x) = (1 + x / scale)^-3, and the scale is two amounts.
            let beyond = (1.0 + amounts / 2.0).powi(-3);
            assert!(is_near(share(&delays, |delay| delay > DELAY + amounts * AMOUNT), beyond), "{amounts}");
        }
    }

    #[test]
    fn a_delay_is_never_below_zero() {
        for distribution in [Distribution::Uniform, Distribution::Normal] {
            let config = config::Jitter { distribution, amount: Span::from_ms(5) };
            let mut jitter = Jitter::new(config, 1);
            let delays: Vec<Span> = (0..1000).map(|_| jitter.vary(Span::from_ms(1))).collect();
            assert!(delays.contains(&Span::ZERO) && delays.iter().all(|&delay| delay < Span::from_ms(40)));
            assert_eq!(jitter.least(Span::from_ms(1)), Span::ZERO);
        }
    }

    #[test]
    fn no_random_bits_overflow() {
        for random in [0, 1, 2, u64::MAX] {
            assert!(pareto_excess(random, u64::MAX) <= Span::MAX);
            assert!(normal::deviate(random).0 <= 7 << normal::FRACTION_BITS);
        }
    }

    #[test]
    fn cube_roots_are_rounded_down() {
        for root in [2u64, 3, 10, 1 << 20, (1 << 42) - 1] {
            let cube = u128::from(root).pow(3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube - 1), root - 1);
            assert_eq!(cube_root(cube + 1), root);
        }
    }
}
