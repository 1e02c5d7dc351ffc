//! Jitter as a process in time that keeps packets in order.
//!
//! The delay makes one excursion after another: evenly from the mode of its law to a height and back. At
//! a random time an excursion's present share of its height is uniform. So the delay follows the law if
//! the height follows that of `law.rs`, whatever the excursions' durations and however many packets look.
//!
//! Order is kept because the delay falls by no more than half of the time that passes. Of two packets the
//! later arrives at least half as long after the other as it left. An excursion too high for its duration
//! therefore lasts longer in proportion, and is so much rarer that it takes up no more of the time.

use tcplab_units::{Span, Time};

use crate::law::{Law, Variation};
use crate::random::Stream;

/// The mean duration of an excursion in correlation times, as a fraction. The autocorrelation of triangles
/// that last from half to three halves of D, heights and sides independent, is 1/e at 0.455·D.
const DURATION: (u64, u64) = (11, 5);

/// The minimum mean duration in amounts, below which nearly every excursion would have to last longer.
const MIN_MEAN_IN_AMOUNTS: u64 = 8;

/// The minimum mean duration, ns: a link that is idle for long catches up with its excursions one by one.
const MIN_MEAN: u64 = 100_000;

/// Binary digits behind the point of a slope.
const SLOPE_BITS: u32 = 32;

/// Above any height, ns, so that no time overflows: 36 years.
const MAX_HEIGHT: u64 = u64::MAX >> 4;

/// The delay's variation as a function of time.
#[derive(Clone, Debug)]
pub(crate) struct Excursions {
    law: Law,
    random: Stream,
    /// Mean duration of an excursion that is not too high for it, ns.
    mean: u64,
    /// When the present one ends.
    end: Time,
    /// Its time to the peak and from there, ns.
    half: u64,
    /// ns of delay per ns of time, times 2^32.
    slope: u64,
    shorter: bool,
}

impl Excursions {
    /// The process from `now` on, in its stationary state.
    pub(crate) fn new(law: Law, correlation_time: Span, seed: u64, now: Time) -> Excursions {
        let random = Stream::new(seed, "jitter in time");
        let mut new = Excursions { law, random, mean: 0, end: now, half: 0, slope: 0, shorter: false };
        new.set(law, correlation_time, now);
        new
    }

    /// Another process from `now` on, in its stationary state; the stream goes on.
    pub(crate) fn set(&mut self, law: Law, correlation_time: Span, now: Time) {
        self.law = law;
        self.mean = (correlation_time.as_ns() / DURATION.1)
            .saturating_mul(DURATION.0)
            .max(law.amount().saturating_mul(MIN_MEAN_IN_AMOUNTS))
            .clamp(MIN_MEAN, MAX_HEIGHT);
        // Some time finds an excursion in proportion to its duration, and of any height alike.
        let longest = self.mean + self.mean / 2;
        let duration = loop {
            let duration = self.duration();
            if self.random.below(longest) <= duration {
                break duration;
            }
        };
        let height = self.law.height(&mut self.random);
        self.begin(now, height, duration);
        self.end = self.end - Span::from_ns(self.random.below(2 * self.half));
    }

    /// The variation at `at`, which must not go back from call to call.
    #[inline]
    pub(crate) fn at(&mut self, at: Time) -> Variation {
        while at >= self.end {
            self.begin_next();
        }
        let to_end = self.end.since(at).as_ns();
        let from_mode = to_end.min((2 * self.half).saturating_sub(to_end));
        let size = (u128::from(from_mode) * u128::from(self.slope)) >> SLOPE_BITS;
        Variation { size: size as u64, shorter: self.shorter }
    }

    fn begin_next(&mut self) {
        let height = loop {
            let height = self.law.height(&mut self.random);
            let needed = needed(height);
            if needed <= self.mean || self.random.below(needed) < self.mean {
                break height;
            }
        };
        let duration = self.duration();
        self.begin(self.end, height, duration);
    }

    /// Begins an excursion of `duration`, or longer where `height` needs it.
    fn begin(&mut self, at: Time, height: Variation, duration: u64) {
        let size = height.size.min(MAX_HEIGHT / 8);
        let longer = u128::from(duration) * u128::from(needed(height).max(self.mean)) / u128::from(self.mean);
        self.half = u64::try_from(longer / 2).unwrap_or(u64::MAX).clamp(2 * size, MAX_HEIGHT).max(1);
        self.slope = ((u128::from(size) << SLOPE_BITS) / u128::from(self.half)) as u64;
        self.shorter = height.shorter;
        self.end = at + Span::from_ns(2 * self.half);
    }

    /// From half to three halves of the mean, ns.
    fn duration(&mut self) -> u64 {
        self.mean / 2 + self.random.below(self.mean + 1)
    }
}

/// The mean duration at which even the shortest excursion to `height` falls no faster than 1/2.
fn needed(height: Variation) -> u64 {
    height.size.min(MAX_HEIGHT / 8) * 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Distribution};
    use proptest::prelude::*;

    const LAWS: [Distribution; 3] = [Distribution::Uniform, Distribution::Normal, Distribution::Pareto];
    const AMOUNT: u64 = 1_000_000;

    fn process(distribution: Distribution, amount: u64, correlation_time: u64) -> Excursions {
        let correlation_time = Span::from_ns(correlation_time);
        let config = config::Jitter { distribution, amount: Span::from_ns(amount), correlation_time };
        Excursions::new(Law::new(config), correlation_time, 1, Time::ZERO)
    }

    /// The variation in ns at each of `count` times, `gap` ns apart.
    fn walk(mut process: Excursions, gap: u64, count: u64) -> Vec<f64> {
        let signed = |now: Variation| if now.shorter { -(now.size as f64) } else { now.size as f64 };
        (0..count).map(|number| signed(process.at(Time::from_ns(number * gap)))).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// The autocorrelation at a lag in samples.
    fn autocorrelation(values: &[f64], lag: usize) -> f64 {
        let mean = mean(values);
        let product: f64 = values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum();
        product / values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    }

    #[test]
    fn the_autocorrelation_is_one_by_e_at_the_correlation_time() {
        for distribution in [Distribution::Uniform, Distribution::Normal] {
            let correlation_time = 20 * AMOUNT;
            let values =
                walk(process(distribution, AMOUNT, correlation_time), correlation_time / 20, 400_000);
            let at = autocorrelation(&values, 20);
            assert!((at - (-1f64).exp()).abs() < 0.04, "{distribution:?}: {at}");
        }
    }

    #[test]
    fn it_is_stationary_from_the_first_instant() {
        // The first value of many processes is distributed as the values of one.
        for distribution in LAWS {
            let config = config::Jitter {
                distribution,
                amount: Span::from_ns(AMOUNT),
                correlation_time: Span::from_ns(10 * AMOUNT),
            };
            let firsts: Vec<f64> = (0..100_000)
                .map(|seed| Excursions::new(Law::new(config), config.correlation_time, seed, Time::ZERO))
                .map(|process| walk(process, 0, 1)[0])
                .collect();
            let (expected, deviation) = match distribution {
                Distribution::Uniform => (0.0, 1.0 / 3f64.sqrt()),
                Distribution::Normal => (0.0, 1.0),
                Distribution::Pareto => (1.0, 3f64.sqrt()),
            };
            let mean = mean(&firsts) / AMOUNT as f64;
            assert!(
                (mean - expected).abs() <= 3.0 * deviation / 100_000f64.sqrt(),
                "{distribution:?}: {mean}"
            );
        }
    }

    proptest! {
        #[test]
        fn it_falls_no_faster_than_half_of_the_time_that_passes(
            which in 0..3usize,
            amount in prop_oneof![0u64..1000, 0u64..100_000_000, Just(u64::MAX)],
            correlation_time in 0u64..1_000_000_000,
            gaps in prop::collection::vec(prop_oneof![0u64..10, 0u64..100_000, 0u64..1_000_000_000], 1..500),
        ) {
            let mut process = process(LAWS[which], amount, correlation_time);
            let mut now = 0;
            let delay = |variation: Variation| {
                i128::from(variation.size) * if variation.shorter { -1 } else { 1 }
            };
            let mut before = delay(process.at(Time::ZERO));
            for gap in gaps {
                now += gap;
                let after = delay(process.at(Time::from_ns(now)));
                // Sizes are rounded to a nanosecond.
                prop_assert!(before - after <= i128::from(gap / 2 + 1), "{} to {} in {}", before, after, gap);
                before = after;
            }
        }
    }
}
