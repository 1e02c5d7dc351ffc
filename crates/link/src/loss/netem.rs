//! Correlated loss as Linux's netem draws it, for comparison with published work.

use tcplab_units::Probability;

use crate::config::Chance;
use crate::random::Stream;

/// The recursion x' = (1 − c)·u + c·x on a 32-bit uniform u; a packet is lost where x' is at most p.
///
/// Averaging with the past narrows x around one half, so small rates are hardly ever reached: the mean
/// is not the one asked for (`get_crandom` and `loss_event` in net/sched/sch_netem.c).
#[derive(Clone, Debug)]
pub(super) struct Netem {
    /// p·(2^32 − 1); zero: never.
    threshold: u32,
    /// c·(2^32 − 1); zero: no recursion.
    correlation: u32,
    last: u32,
}

impl Netem {
    pub(super) fn new(chance: Chance, random: &mut Stream) -> Netem {
        Netem {
            threshold: of_u32(chance.rate),
            correlation: of_u32(chance.correlation),
            last: uniform(random),
        }
    }

    pub(super) fn next(&mut self, random: &mut Stream) -> bool {
        let fresh = uniform(random);
        let x = if self.correlation == 0 {
            fresh
        } else {
            let weight = u64::from(self.correlation) + 1;
            let mixed = u64::from(fresh) * ((1 << 32) - weight) + u64::from(self.last) * weight;
            self.last = (mixed >> 32) as u32;
            self.last
        };
        self.threshold != 0 && x <= self.threshold
    }
}

fn of_u32(share: Probability) -> u32 {
    let one = u64::from(Probability::ONE.ppb());
    ((u64::from(share.ppb()) * u64::from(u32::MAX) + one / 2) / one) as u32
}

fn uniform(random: &mut Stream) -> u32 {
    (random.draw() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses of `packets` at `per_mille` with `correlation` in percent.
    fn losses(packets: u64, per_mille: u32, correlation: u32) -> f64 {
        let rate = Probability::from_ppb(per_mille * 1_000_000);
        let correlation = Probability::from_ppb(correlation * 10_000_000);
        let mut random = Stream::new(1, "test");
        let mut netem = Netem::new(Chance { rate, correlation }, &mut random);
        (0..packets).filter(|_| netem.next(&mut random)).count() as f64
    }

    #[test]
    fn half_a_percent_with_correlation_loses_less_than_one_in_a_million() {
        assert!(losses(10_000_000, 5, 25) < 10.0);
    }

    #[test]
    fn five_percent_with_correlation_loses_a_fifth_of_a_percent() {
        // 0.194 %, by the same formula in floating point over 2·10^8 packets. Losses come in bursts, which
        // at most doubles the variance.
        let (n, p) = (10_000_000.0, 0.00194);
        let lost = losses(10_000_000, 50, 25);
        assert!((lost - n * p).abs() <= 3.0 * (2.0 * n * p).sqrt(), "{lost}");
    }

    #[test]
    fn without_correlation_the_rate_is_the_one_asked_for() {
        let (n, p) = (2_000_000.0, 0.05);
        let deviation = f64::sqrt(n * p * (1.0 - p));
        assert!((losses(2_000_000, 50, 0) - n * p).abs() <= 3.0 * deviation);
    }

    #[test]
    fn zero_loses_nothing() {
        assert_eq!(losses(100_000, 0, 25), 0.0);
    }
}
