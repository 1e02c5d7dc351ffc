//! Bursts of loss: Gilbert's and Elliott's two-state channel.

use tcplab_units::Probability;

use crate::random::Stream;

/// A good and a bad state, each with its loss probability.
///
/// The mean loss is (p·bad + r·good) / (p + r), and a stay in the bad state lasts 1/r packets on
/// average (E. O. Elliott, "Estimates of error rates for codes on burst-noise channels", 1963). It
/// starts in the stationary state, so the mean holds from the first packet.
#[derive(Clone, Debug)]
pub(super) struct GilbertElliott {
    to_bad: Probability,
    to_good: Probability,
    loss_bad: Probability,
    loss_good: Probability,
    bad: bool,
}

impl GilbertElliott {
    pub(super) fn new(
        to_bad: Probability,
        to_good: Probability,
        loss_bad: Probability,
        loss_good: Probability,
        random: &mut Stream,
    ) -> GilbertElliott {
        let (p, r) = (u64::from(to_bad.ppb()), u64::from(to_good.ppb()));
        let draw = (u128::from(random.draw()) * u128::from(p + r)) >> 64;
        GilbertElliott { to_bad, to_good, loss_bad, loss_good, bad: draw < u128::from(p) }
    }

    /// Judges the next packet in the present state, then changes state. Two draws a packet.
    pub(super) fn next(&mut self, random: &mut Stream) -> bool {
        let (loss, leave) =
            if self.bad { (self.loss_bad, self.to_good) } else { (self.loss_good, self.to_bad) };
        let lost = loss.hit(random.draw());
        self.bad ^= leave.hit(random.draw());
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: u64 = 4_000_000;

    /// Lengths of the runs of losses, with shares in per mille.
    fn bursts(p: u32, r: u32, bad: u32, good: u32) -> Vec<u64> {
        let [p, r, bad, good] = [p, r, bad, good].map(|share| Probability::from_ppb(share * 1_000_000));
        let mut random = Stream::new(1, "test");
        let mut channel = GilbertElliott::new(p, r, bad, good, &mut random);
        let mut bursts = vec![0];
        for _ in 0..PACKETS {
            match (channel.next(&mut random), bursts.last_mut()) {
                (true, Some(burst)) => *burst += 1,
                (false, Some(0)) => {}
                _ => bursts.push(0),
            }
        }
        bursts.retain(|&burst| burst > 0);
        bursts
    }

    #[test]
    fn gilberts_bursts_are_geometric_with_mean_one_over_r() {
        let bursts = bursts(10, 250, 1000, 0);
        let n = bursts.len() as f64;
        let r: f64 = 0.25;
        let mean = bursts.iter().sum::<u64>() as f64 / n;
        let deviation = (1.0 - r).sqrt() / r;
        assert!((mean - 1.0 / r).abs() <= 3.0 * deviation / n.sqrt(), "{mean}");
        for length in 1..=8 {
            let share = r * (1.0 - r).powi(length - 1);
            let count = bursts.iter().filter(|&&burst| burst == length as u64).count() as f64;
            let deviation = (n * share * (1.0 - share)).sqrt();
            assert!((count - n * share).abs() <= 3.0 * deviation, "{count} of {n} are of length {length}");
        }
    }

    #[test]
    fn the_mean_is_that_of_the_stationary_states() {
        for (p, r, bad, good) in
            [(10, 250, 1000, 0), (20, 100, 500, 10), (5, 5, 300, 0), (1000, 1000, 900, 100)]
        {
            let losses = bursts(p, r, bad, good).iter().sum::<u64>() as f64;
            let [p, r, bad, good] = [p, r, bad, good].map(|share| f64::from(share) / 1000.0);
            let (n, in_bad) = (PACKETS as f64, p / (p + r));
            let mean = in_bad * bad + (1.0 - in_bad) * good;
            // Fates at distance k covary by in_bad (1 - in_bad) (bad - good)^2 (1 - p - r)^k.
            let memory = 1.0 - p - r;
            let covariance = in_bad * (1.0 - in_bad) * (bad - good).powi(2) * memory / (1.0 - memory);
            let deviation = (n * (mean * (1.0 - mean) + 2.0 * covariance)).sqrt();
            assert!((losses - n * mean).abs() <= 3.0 * deviation, "{losses} of {n} at {p} {r} {bad} {good}");
        }
    }

    #[test]
    fn a_channel_that_never_turns_bad_loses_as_the_good_state_does() {
        assert!(bursts(0, 0, 1000, 0).is_empty());
    }
}
