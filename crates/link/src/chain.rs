//! Correlated random events that keep their mean rate.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use tcplab_units::Probability;

use crate::config::Chance;

/// A two-state Markov chain: P(strike | strike) = p + c(1 − p), P(strike | none) = p(1 − c).
///
/// Its stationary rate is p whatever the correlation c, and it starts in the stationary state, so the
/// mean asked for is kept from the first packet.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    after_strike: Probability,
    after_none: Probability,
    /// Probability for the next packet.
    next: Probability,
}

impl Chain {
    pub(crate) fn new(chance: Chance) -> Chain {
        let one = u64::from(Probability::ONE.ppb());
        let (p, c) = (u64::from(chance.rate.ppb()), u64::from(chance.correlation.ppb()));
        let product = |a: u64, b: u64| ((a * b + one / 2) / one) as u32;
        Chain {
            after_strike: Probability::from_ppb(p as u32 + product(c, one - p)),
            after_none: Probability::from_ppb(product(p, one - c)),
            next: chance.rate,
        }
    }

    /// Whether the next packet is struck. One draw a packet, whatever the settings.
    #[inline]
    pub(crate) fn next(&mut self, rng: &mut Xoshiro256PlusPlus) -> bool {
        let struck = self.next.hit(rng.next_u64());
        self.next = if struck { self.after_strike } else { self.after_none };
        struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    const PACKETS: u64 = 2_000_000;

    /// Strikes, and strikes that directly follow one, of p and c in percent.
    fn strikes(p: u32, c: u32) -> (u64, u64) {
        let percent = |share: u32| Probability::from_ppb(share * 10_000_000);
        let mut chain = Chain::new(Chance { rate: percent(p), correlation: percent(c) });
        let mut rng = stream(1, "test");
        let (mut strikes, mut repeats, mut before) = (0, 0, false);
        for _ in 0..PACKETS {
            let struck = chain.next(&mut rng);
            strikes += u64::from(struck);
            repeats += u64::from(struck && before);
            before = struck;
        }
        (strikes, repeats)
    }

    #[test]
    fn the_mean_rate_is_kept_whatever_the_correlation() {
        for p in [0, 1, 5, 30, 100] {
            for c in [0, 25, 50, 90] {
                let (strikes, _) = strikes(p, c);
                let (n, p, c) = (PACKETS as f64, f64::from(p) / 100.0, f64::from(c) / 100.0);
                // Successive fates correlate by c to the power of their distance, which inflates the
                // binomial variance by (1 + c) / (1 - c).
                let deviation = (n * p * (1.0 - p) * (1.0 + c) / (1.0 - c)).sqrt();
                assert!((strikes as f64 - n * p).abs() <= 3.0 * deviation, "{strikes} of {n} at {p}, {c}");
            }
        }
    }

    #[test]
    fn a_strike_follows_a_strike_as_the_correlation_says() {
        for (p, c) in [(1, 0), (1, 25), (5, 50), (30, 90)] {
            let (strikes, repeats) = strikes(p, c);
            let (n, p, c) = (strikes as f64, f64::from(p) / 100.0, f64::from(c) / 100.0);
            let again = p + c * (1.0 - p);
            let deviation = (n * again * (1.0 - again)).sqrt();
            assert!((repeats as f64 - n * again).abs() <= 3.0 * deviation, "{repeats} of {n} at {p}, {c}");
        }
    }

    #[test]
    fn full_correlation_stays_with_the_first_fate() {
        let (strikes, _) = strikes(30, 100);
        assert!(strikes == 0 || strikes == PACKETS);
    }
}
