//! Picks the packets that one impairment affects.

use tcplab_units::Probability;

use crate::config::Chance;
use crate::random::Draws;

/// Random events by packet number, correlated if asked, whose mean rate is kept.
///
/// With probability c a packet shares its predecessor's fate; otherwise it has its own, hit with
/// probability p. So P(hit | hit) = p + c(1 − p) and P(hit | none) = p(1 − c): the two-state
/// chain with stationary rate p. A fate depends on the seed, the settings and the packet's number
/// alone: which packets are asked about, and how often, changes none.
#[derive(Clone, Debug)]
pub(crate) struct CorrelatedChance {
    chance: Chance,
    own: Draws,
    shares: Draws,
    /// Number and fate of the packet asked about last, where settings have not changed since.
    last: (u64, bool),
}

/// The number of the first packet; it has no predecessor.
const FIRST: u64 = 1;

impl CorrelatedChance {
    pub(crate) fn new(chance: Chance, seed: u64, impairment: &str) -> CorrelatedChance {
        CorrelatedChance {
            chance,
            own: Draws::new(seed, impairment),
            shares: Draws::new(seed, &format!("{impairment} correlation")),
            last: (0, false),
        }
    }

    /// New settings from the next packet on.
    pub(crate) fn set(&mut self, chance: Chance) {
        self.chance = chance;
        self.last = (0, false);
    }

    /// Whether packet `number`, counted from 1, is hit.
    #[inline]
    pub(crate) fn hits(&mut self, number: u64) -> bool {
        if self.chance.correlation.is_zero() {
            return self.has_own(number);
        }
        self.last = (number, self.correlated(number));
        self.last.1
    }

    #[inline]
    fn has_own(&self, number: u64) -> bool {
        self.chance.rate.hit(self.own.at(number))
    }

    /// The fate of the nearest packet, back from `number`, that does not share its predecessor's.
    fn correlated(&self, number: u64) -> bool {
        let Chance { correlation, .. } = self.chance;
        if correlation == Probability::ONE {
            return self.has_own(FIRST);
        }
        let mut source = number;
        while source != self.last.0 {
            if source <= FIRST || !correlation.hit(self.shares.at(source)) {
                return self.has_own(source);
            }
            source -= 1;
        }
        self.last.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: u64 = 2_000_000;

    /// p and c in percent.
    fn chance(p: u32, c: u32) -> CorrelatedChance {
        let percent = |share: u32| Probability::from_ppb(share * 10_000_000);
        CorrelatedChance::new(Chance { rate: percent(p), correlation: percent(c) }, 1, "test")
    }

    /// Hits, and hits that directly follow one.
    fn count(p: u32, c: u32) -> (u64, u64) {
        let mut chance = chance(p, c);
        let (mut hits, mut repeats, mut before) = (0, 0, false);
        for number in 1..=PACKETS {
            let hit = chance.hits(number);
            hits += u64::from(hit);
            repeats += u64::from(hit && before);
            before = hit;
        }
        (hits, repeats)
    }

    #[test]
    fn the_mean_rate_is_kept_whatever_the_correlation() {
        for p in [0, 1, 5, 30, 100] {
            for c in [0, 25, 50, 90] {
                let (hits, _) = count(p, c);
                let (n, p, c) = (PACKETS as f64, f64::from(p) / 100.0, f64::from(c) / 100.0);
                // Successive fates correlate by c to the power of their distance, which inflates the
                // binomial variance by (1 + c) / (1 - c).
                let deviation = (n * p * (1.0 - p) * (1.0 + c) / (1.0 - c)).sqrt();
                assert!((hits as f64 - n * p).abs() <= 3.0 * deviation, "{hits} of {n} at {p}, {c}");
            }
        }
    }

    #[test]
    fn a_hit_follows_a_hit_as_the_correlation_says() {
        for (p, c) in [(1, 0), (1, 25), (5, 50), (30, 90)] {
            let (hits, repeats) = count(p, c);
            let (n, p, c) = (hits as f64, f64::from(p) / 100.0, f64::from(c) / 100.0);
            let again = p + c * (1.0 - p);
            let deviation = (n * again * (1.0 - again)).sqrt();
            assert!((repeats as f64 - n * again).abs() <= 3.0 * deviation, "{repeats} of {n} at {p}, {c}");
        }
    }

    #[test]
    fn full_correlation_stays_with_the_first_fate() {
        let (hits, _) = count(30, 100);
        assert!(hits == 0 || hits == PACKETS);
    }

    #[test]
    fn a_fate_does_not_depend_on_which_packets_are_asked_about() {
        for c in [0, 25, 90, 99, 100] {
            let (mut all, mut some) = (chance(30, c), chance(30, c));
            let every: Vec<bool> = (1..=10_000).map(|number| all.hits(number)).collect();
            for number in (1..=10_000).filter(|number| number % 7 < 2 || number % 1000 < 3) {
                assert_eq!(some.hits(number), every[number as usize - 1], "{number} at {c} %");
            }
        }
    }

    #[test]
    fn new_settings_change_no_draw() {
        let (mut constant, mut changed) = (chance(30, 50), chance(90, 0));
        changed.hits(1);
        changed.set(constant.chance);
        assert!((2..1000).all(|number| constant.hits(number) == changed.hits(number)));
    }
}
