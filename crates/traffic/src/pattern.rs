//! On-off patterns: when a source sends and when it is silent.

use rand::RngExt;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tcplab_plan::{Pattern, PatternDistribution};
use tcplab_units::Span;

/// The random numbers of one stream.
pub fn random(seed: u64, stream: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The phases of one stream. It begins by sending.
#[derive(Debug)]
pub struct Phases {
    pattern: Option<Pattern>,
    random: Xoshiro256PlusPlus,
    sending: bool,
    until: u64,
}

impl Phases {
    /// The phases from `start` on; without a pattern it sends for ever. The same seed gives the same phases.
    pub fn new(pattern: Option<Pattern>, start: u64, seed: u64, stream: u64) -> Phases {
        let mut phases = Phases { pattern, random: random(seed, stream), sending: true, until: u64::MAX };
        if let Some(pattern) = pattern {
            phases.until = start.saturating_add(phases.draw(pattern.on));
        }
        phases
    }

    /// Whether the source sends at `time`, and until when that holds. `time` never goes back.
    pub fn at(&mut self, time: u64) -> (bool, u64) {
        while let Some(pattern) = self.pattern
            && time >= self.until
        {
            self.sending = !self.sending;
            let mean = if self.sending { pattern.on } else { pattern.off };
            self.until = self.until.saturating_add(self.draw(mean));
        }
        (self.sending, self.until)
    }

    /// How long the source is silent before it sends what was due at `time`, had it never paused since the last call; and
    /// until when it sends then. It keeps its interval in the time in which it sends. Takes the place of `at`.
    pub fn pause_before(&mut self, time: u64) -> (u64, u64) {
        let mut pause = 0;
        while let Some(pattern) = self.pattern
            && time.saturating_add(pause) >= self.until
        {
            let off = self.draw(pattern.off);
            pause += off;
            self.until = self.until.saturating_add(off).saturating_add(self.draw(pattern.on));
        }
        (pause, self.until)
    }

    /// At least a microsecond, so that time always advances.
    fn draw(&mut self, mean: Span) -> u64 {
        let exponential =
            matches!(self.pattern, Some(p) if p.distribution == PatternDistribution::Exponential);
        let length = if exponential {
            let uniform: f64 = self.random.random();
            -(1.0 - uniform).ln() * mean.as_ns() as f64
        } else {
            mean.as_ns() as f64
        };
        (length as u64).max(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_constant_pattern_alternates_exactly() {
        let pattern = Pattern {
            on: Span::from_ms(10),
            off: Span::from_ms(5),
            distribution: PatternDistribution::Constant,
        };
        let mut phases = Phases::new(Some(pattern), 100 * MS, 1, 0);
        assert_eq!(phases.at(100 * MS), (true, 110 * MS));
        assert_eq!(phases.at(110 * MS), (false, 115 * MS));
        assert_eq!(phases.at(131 * MS), (true, 140 * MS));
    }

    #[test]
    fn what_would_fall_into_a_pause_is_put_off_by_it() {
        let pattern = Pattern {
            on: Span::from_ms(10),
            off: Span::from_ms(5),
            distribution: PatternDistribution::Constant,
        };
        let mut phases = Phases::new(Some(pattern), 0, 1, 0);
        assert_eq!(phases.pause_before(9 * MS), (0, 10 * MS));
        assert_eq!(
            phases.pause_before(13 * MS),
            (5 * MS, 25 * MS),
            "due 3 ms into the second time of sending"
        );
        assert_eq!(phases.pause_before(18 * MS), (0, 25 * MS));
        assert_eq!(
            phases.pause_before(47 * MS),
            (15 * MS, 70 * MS),
            "after 22 ms more of sending: in the fifth"
        );
    }

    #[test]
    fn an_exponential_pattern_keeps_the_mean_share_of_time() {
        let pattern = Pattern {
            on: Span::from_ms(3),
            off: Span::from_ms(1),
            distribution: PatternDistribution::Exponential,
        };
        let mut phases = Phases::new(Some(pattern), 0, 7, 0);
        let (mut time, mut on) = (0, 0);
        for _ in 0..40_000 {
            let (sending, until) = phases.at(time);
            on += if sending { until - time } else { 0 };
            time = until;
        }
        let share = on as f64 / time as f64;
        // 20,000 pairs: the share's standard deviation is about 0.75 × 0.25 × √(2 / 20,000) = 0.0019.
        assert!((share - 0.75).abs() < 0.0075, "{share}");
    }

    #[test]
    fn streams_of_one_seed_differ_and_each_repeats() {
        let pattern = Pattern {
            on: Span::from_ms(1),
            off: Span::from_ms(1),
            distribution: PatternDistribution::Exponential,
        };
        let first = |seed, stream| Phases::new(Some(pattern), 0, seed, stream).at(0).1;
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
    }
}
