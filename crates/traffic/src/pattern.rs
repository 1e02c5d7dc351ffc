//! On-off patterns: when a source sends and when it is silent.

use tcplab_plan::Pauses;

/// The phases of one stream. It begins by sending.
#[derive(Debug)]
pub struct Phases {
    pauses: Option<Pauses>,
    sending: bool,
    until: u64,
}

impl Phases {
    /// The phases from `start` on; without pauses it sends for ever.
    pub fn new(mut pauses: Option<Pauses>, start: u64) -> Phases {
        let on = pauses.as_mut().map_or(u64::MAX, |pauses| pauses.on().as_ns());
        Phases { pauses, sending: true, until: start.saturating_add(on) }
    }

    /// Whether the source sends at `time`, and until when that holds. `time` never goes back.
    pub fn at(&mut self, time: u64) -> (bool, u64) {
        while let Some(pauses) = &mut self.pauses
            && time >= self.until
        {
            self.sending = !self.sending;
            let length = if self.sending { pauses.on() } else { pauses.off() };
            self.until = self.until.saturating_add(length.as_ns());
        }
        (self.sending, self.until)
    }

    /// How long the source is silent before it sends what was due at `time`, had it never paused since the last call; and
    /// until when it sends then. It keeps its interval in the time in which it sends. Takes the place of `at`.
    pub fn pause_before(&mut self, time: u64) -> (u64, u64) {
        let mut pause = 0;
        while let Some(pauses) = &mut self.pauses
            && time.saturating_add(pause) >= self.until
        {
            let off = pauses.off().as_ns();
            pause += off;
            self.until = self.until.saturating_add(off).saturating_add(pauses.on().as_ns());
        }
        (pause, self.until)
    }
}

#[cfg(test)]
mod tests {
    use tcplab_plan::{Pattern, PatternDistribution};
    use tcplab_units::Span;

    use super::*;

    const MS: u64 = 1_000_000;

    /// 10 ms of sending and 5 ms of silence, on average, of a stream with this seed.
    fn pauses(distribution: PatternDistribution, seed: u64) -> Option<Pauses> {
        let pattern = Pattern { on: Span::from_ms(10), off: Span::from_ms(5), distribution };
        Some(Pauses::new(pattern, seed))
    }

    #[test]
    fn a_constant_pattern_alternates_exactly() {
        let mut phases = Phases::new(pauses(PatternDistribution::Constant, 1), 100 * MS);
        assert_eq!(phases.at(100 * MS), (true, 110 * MS));
        assert_eq!(phases.at(110 * MS), (false, 115 * MS));
        assert_eq!(phases.at(131 * MS), (true, 140 * MS));
    }

    #[test]
    fn what_would_fall_into_a_pause_is_put_off_by_it() {
        let mut phases = Phases::new(pauses(PatternDistribution::Constant, 1), 0);
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
    fn both_ways_to_ask_take_the_same_times_in_turn() {
        let [mut one, mut other] =
            [0; 2].map(|start| Phases::new(pauses(PatternDistribution::Exponential, 7), start));
        for _ in 0..1000 {
            let (_, end) = other.pause_before(other.until);
            let (sending, begin) = one.at(one.until);
            assert!(!sending);
            assert_eq!(one.at(begin), (true, end));
        }
    }

    #[test]
    fn without_pauses_it_sends_for_ever() {
        let mut phases = Phases::new(None, 5);
        assert_eq!((phases.at(7), phases.pause_before(MS)), ((true, u64::MAX), (0, u64::MAX)));
    }
}
