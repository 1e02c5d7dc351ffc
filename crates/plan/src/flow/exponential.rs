//! Exponentially distributed times, in integers: the same on every machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tcplab_units::{Rate, Span};

/// An exponentially distributed number of mean 1 in units of 2^-64: −ln(u) with u = (random + 1) / 2^64.
pub(super) fn exponential(random: u64) -> u128 {
    // ln 2 in units of 2^-32.
    const LN_2: u128 = 2_977_044_472;
    let Some(value) = random.checked_add(1) else { return 0 };
    // −log2(u) = 64 − log2(random + 1), in units of 2^-32.
    let bits = (64u64 << 32) - log2(value);
    u128::from(bits) * LN_2
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

/// The intervals of a Poisson process, from a random stream of its own.
#[derive(Clone, Debug)]
pub struct Poisson {
    /// In units of 2^-32 ns, so that the rate is exact where an interval is a few nanoseconds.
    mean: u128,
    /// Difference between the exact time and the times so far, in the same units.
    remainder: u128,
    random: Xoshiro256PlusPlus,
}

impl Poisson {
    /// Of datagrams of `payload` bytes at a mean `rate`, from the random stream `seed`.
    pub fn new(rate: Rate, payload: u32, seed: u64) -> Poisson {
        let mean = ((u128::from(payload) * 8_000_000_000) << 32) / u128::from(rate.bits_per_sec());
        Poisson { mean, remainder: 0, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// How long until the next datagram leaves.
    pub fn interval(&mut self) -> Span {
        let drawn = exponential(self.random.next_u64()) >> 32;
        let exact = ((self.mean * drawn) >> 32) + self.remainder;
        self.remainder = exact & 0xffff_ffff;
        Span::from_ns(u64::try_from(exact >> 32).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integer_logarithm_is_that_of_floating_point() {
        for value in [1u64, 2, 3, 10, 12345, 1 << 40, u64::MAX / 3, u64::MAX] {
            let exact = (value as f64).log2();
            assert!((log2(value) as f64 / 2f64.powi(32) - exact).abs() < 1e-9, "log2({value})");
        }
    }

    #[test]
    fn an_exponential_number_is_the_logarithm_of_a_uniform_one() {
        assert_eq!(exponential(u64::MAX), 0);
        for random in [0, 1, 12345, 1 << 40, 1 << 63, u64::MAX - (1 << 40)] {
            let exact = -((random as f64 + 1.0) / 2f64.powi(64)).ln();
            assert!((exponential(random) as f64 / 2f64.powi(64) - exact).abs() < 1e-8, "{random}");
        }
    }

    fn intervals(bits: u64, payload: u32, count: usize) -> Vec<f64> {
        let mut poisson = Poisson::new(Rate::from_bits_per_sec(bits).expect("not zero"), payload, 5);
        (0..count).map(|_| poisson.interval().as_ns() as f64).collect()
    }

    #[test]
    fn intervals_have_the_mean_variance_and_distribution_of_a_poisson_process() {
        let count = 100_000;
        // 8 ms, 12 µs, and 3.36 ns, of which most are rounded.
        for (bits, payload) in [(1_000_000, 1000), (1_000_000_000, 1500), (100_000_000_000, 42)] {
            let exact = f64::from(payload) * 8e9 / bits as f64;
            let all = intervals(bits, payload, count);
            let mean = all.iter().sum::<f64>() / count as f64;
            let variance = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count as f64;
            // Four standard errors: of the mean 1 / √n, of the coefficient of variation 1 / √n too.
            let error = 4.0 / (count as f64).sqrt();
            assert!((mean / exact - 1.0).abs() < error, "mean {mean} of {exact}");
            // Rounding adds to the variance: 1/6 ns² at most.
            let rounding = 1.0 / 6.0 / exact.powi(2);
            assert!((variance.sqrt() / mean - 1.0).abs() < error + rounding, "deviation of {mean}");
            let longer = all.iter().filter(|&&one| one > exact).count() as f64 / count as f64;
            let expected = (-1f64).exp();
            let granularity = 1.0 / exact;
            assert!(
                (longer - expected).abs() < 2.0 / (count as f64).sqrt() + granularity,
                "{longer} of {mean}"
            );
        }
    }

    #[test]
    fn one_interval_does_not_foretell_the_next() {
        let all = intervals(1_000_000, 1000, 100_000);
        let products: f64 = all.windows(2).map(|pair| (pair[0] / 8e6 - 1.0) * (pair[1] / 8e6 - 1.0)).sum();
        // The standard error of a correlation of zero is 1 / √n.
        let correlation = products / (all.len() - 1) as f64;
        assert!(correlation.abs() < 4.0 / (all.len() as f64).sqrt(), "{correlation}");
    }

    #[test]
    fn extreme_rates_neither_overflow_nor_divide_by_zero() {
        // A datagram in six days on average, and 48 in a nanosecond.
        assert!(intervals(1, 65_507, 1000).iter().all(|one| *one < 45.0 * 524_056e9));
        let fastest = intervals(400_000_000_000, 1, 10_000).iter().sum::<f64>();
        assert!((fastest / 10_000.0 / 0.02 - 1.0).abs() < 0.04, "{fastest}");
    }
}
