//! COBALT: CoDel for flows that respond, BLUE for those that do not, side by side (J. Palmei and others, "Design and
//! evaluation of COBALT queue discipline", LANMAN 2019).
//!
//! CoDel is RFC 8289's with three differences. Its count of drops is not forgotten when the queue becomes short, but
//! goes down as it went up. A wait of up to four frames' time is short enough at any rate, where RFC 8289 leaves the
//! last frame alone. The first signal of all does not wait for an interval. The last two differences are as measured
//! on Linux (see docs/fidelity.md). BLUE (W. Feng, K. Shin, D. Kandlur, D. Saha, "The BLUE active queue management
//! algorithms", ToN 2002) raises a drop probability when the queue overflows and lowers it when the queue is empty.

use tcplab_units::{Span, Time};

/// Settings of COBALT in a tin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub(super) target: Span,
    pub(super) interval: Span,
    /// How long an Ethernet frame takes at the tin's rate.
    pub(super) frame_time: Span,
}

/// The fate of a packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// BLUE's d1 and d2, in 1/2^32: 1/256 up, 1/4096 down, as ns-3's manual has them for COBALT. The paper has d1
/// much greater than d2: a full queue always means that too little is dropped, an empty one not always that too much is.
const STEP_UP: u32 = 1 << 24;
const STEP_DOWN: u32 = 1 << 20;

/// Frames that may wait in a tin without being too many.
const SHORT: u64 = 4;

impl Law {
    /// When the next drop is due after one at `time` (RFC 8289, section 5.4).
    fn next(&self, time: Time, count: u32) -> Time {
        let interval = u128::from(self.interval.as_ns());
        time + Span::from_ns((interval * interval / u128::from(count.max(1))).isqrt() as u64)
    }

    fn is_too_long(&self, sojourn: Span) -> bool {
        sojourn > self.target.max(self.frame_time * SHORT)
    }
}

/// The state of COBALT for one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Cobalt {
    codel: Codel,
    blue: Blue,
}

impl Cobalt {
    /// The fate of a packet that has waited for `sojourn` and would leave at `now`; `draw` is random.
    pub(super) fn verdict(
        &mut self,
        (sojourn, is_ect): (Span, bool),
        law: &Law,
        draw: u32,
        now: Time,
    ) -> Verdict {
        // BLUE is for flows that do not respond to CoDel's signals: it never marks.
        let is_unlucky = draw < self.blue.probability;
        let is_signalled = if law.is_too_long(sojourn) {
            self.codel.is_long(law, now)
        } else {
            self.codel.is_short(law, now);
            false
        };
        let is_dropped = is_unlucky || is_signalled && !is_ect;
        if !is_dropped || self.codel.count == 0 {
            self.codel.forgive(law, now);
        }
        match (is_dropped, is_signalled) {
            (true, _) => Verdict::Drop,
            (false, true) => Verdict::Mark,
            (false, false) => Verdict::Pass,
        }
    }

    /// There was no room for the flow's packets at `now`.
    pub(super) fn overflow(&mut self, law: &Law, now: Time) {
        self.blue.raise(law, now);
        self.codel.signal_next(now);
    }

    /// The queue was found empty at `now`.
    pub(super) fn rest(&mut self, law: &Law, now: Time) {
        self.codel.is_short(law, now);
        self.blue.lower(law, now);
    }

    /// The flow sends again at `now` after its queue was empty: takes BLUE's steps of the time meanwhile. The count runs down
    /// with the next packet that has not waited too long.
    pub(super) fn resume(&mut self, law: &Law, now: Time) {
        self.blue.catch_up(law, now);
    }

    /// Nothing is remembered of the flow's last queue by `now`.
    pub(super) fn is_at_rest(&self, law: &Law, now: Time) -> bool {
        let mut then = self.clone();
        then.codel.run_down(law, now);
        then.blue.catch_up(law, now);
        then.codel.count == 0 && now >= then.codel.next && then.blue.probability == 0
    }

    /// BLUE's probability.
    pub(super) fn probability(&self) -> f64 {
        f64::from(self.blue.probability) / f64::from(u32::MAX)
    }
}

/// RFC 8289's control law, with a count that runs down at the pace at which it rose.
#[derive(Clone, Debug, Default)]
struct Codel {
    /// Signals so far, less what has run down.
    count: u32,
    /// Whether the queue has been too long since the last packet.
    signalling: bool,
    /// Whether it ever was.
    is_used: bool,
    /// When the next signal, or the next step down, is due; with a count of zero, until when the queue is remembered.
    next: Time,
}

impl Codel {
    fn is_due(&self, now: Time) -> bool {
        self.count > 0 && self.next <= now
    }

    /// A packet has waited too long; whether it is the one to be signalled.
    fn is_long(&mut self, law: &Law, now: Time) -> bool {
        let is_due = self.is_due(now);
        let has_begun = std::mem::replace(&mut self.signalling, true);
        if !has_begun {
            self.next = if self.is_used { law.next(now, self.count) } else { now };
            self.is_used = true;
        }
        if is_due {
            self.count = self.count.saturating_add(1);
            self.next = law.next(self.next, self.count);
        }
        self.count = self.count.max(1);
        is_due
    }

    /// A packet has not waited too long, or none waits.
    fn is_short(&mut self, law: &Law, now: Time) {
        self.signalling = false;
        self.run_down(law, now);
    }

    /// The count goes down by one each time that a signal would have been due.
    fn run_down(&mut self, law: &Law, now: Time) {
        while self.is_due(now) {
            self.count -= 1;
            self.next = law.next(self.next, self.count);
        }
    }

    /// Signals that are overdue are not made up for, and a queue that needs none is remembered for an interval.
    fn forgive(&mut self, law: &Law, now: Time) {
        self.next = if self.count == 0 { now + law.interval } else { self.next.max(now) };
    }

    /// The next packet that has waited too long is signalled.
    fn signal_next(&mut self, now: Time) {
        *self = Codel { count: self.count.max(1), signalling: true, is_used: true, next: now };
    }
}

/// BLUE: a probability that changes by a step, at most once in its freeze time. That is the target here: a change needs
/// as long to show in the queue.
#[derive(Clone, Debug, Default)]
struct Blue {
    /// In 1/2^32.
    probability: u32,
    changed: Time,
}

impl Blue {
    fn raise(&mut self, law: &Law, now: Time) {
        if now.since(self.changed) > law.target {
            *self = Blue { probability: self.probability.saturating_add(STEP_UP), changed: now };
        }
    }

    fn lower(&mut self, law: &Law, now: Time) {
        if self.probability > 0 && now.since(self.changed) > law.target {
            *self = Blue { probability: self.probability.saturating_sub(STEP_DOWN), changed: now };
        }
    }

    /// Takes the steps down of the time in which nobody looked.
    fn catch_up(&mut self, law: &Law, now: Time) {
        let steps = now.since(self.changed).as_ns() / law.target.as_ns().max(1);
        if steps > 0 && self.probability > 0 {
            let down = u64::from(STEP_DOWN).saturating_mul(steps);
            let left = u64::from(self.probability).saturating_sub(down);
            *self = Blue { probability: left as u32, changed: now };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Law = Law { target: Span::from_ms(5), interval: Span::from_ms(100), frame_time: Span::ZERO };

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// The times in ms at which packets that wait for `sojourn` are signalled, one leaving each ms.
    fn signals(cobalt: &mut Cobalt, sojourn: Span, is_ect: bool, times: std::ops::Range<u64>) -> Vec<u64> {
        let is_signalled =
            |at: &u64| cobalt.verdict((sojourn, is_ect), &LAW, u32::MAX, ms(*at)) != Verdict::Pass;
        times.filter(is_signalled).collect()
    }

    #[test]
    fn signals_begin_with_a_long_queue_and_come_ever_sooner() {
        let mut cobalt = Cobalt::default();
        let found = signals(&mut cobalt, Span::from_ms(6), false, 0..500);
        // After the first, 100 ms over the root of 2, 3, 4, 5.
        assert_eq!(found[..5], [1, 71, 129, 179, 224]);
        // Once the count has run down, 100 ms pass before the first, too.
        signals(&mut cobalt, Span::ZERO, false, 500..10_000);
        assert_eq!(signals(&mut cobalt, Span::from_ms(6), false, 10_000..10_180), [10_100, 10_171]);
        assert!(signals(&mut Cobalt::default(), Span::from_ms(5), false, 0..500).is_empty());
    }

    #[test]
    fn the_count_goes_down_as_it_went_up() {
        let mut cobalt = Cobalt::default();
        signals(&mut cobalt, Span::from_ms(6), false, 0..1000);
        let high = cobalt.codel.count;
        signals(&mut cobalt, Span::ZERO, false, 1000..1100);
        assert!(cobalt.codel.count < high && cobalt.codel.count > 0, "{} of {high}", cobalt.codel.count);
        signals(&mut cobalt, Span::ZERO, false, 1100..5000);
        assert_eq!(cobalt.codel.count, 0);
    }

    #[test]
    fn slow_links_may_have_a_few_frames_waiting() {
        let law = Law { frame_time: Span::from_ms(2), ..LAW };
        assert!(!law.is_too_long(Span::from_ms(8)) && law.is_too_long(Span::from_ms(9)));
    }

    #[test]
    fn blue_rises_with_overflows_and_falls_while_the_queue_is_empty() {
        let mut cobalt = Cobalt::default();
        for at in 1..100 {
            cobalt.overflow(&LAW, ms(at));
        }
        // At most one step in more than 5 ms.
        assert_eq!(cobalt.blue.probability, 16 * STEP_UP);
        let drops = (0..u32::MAX - 1)
            .step_by(1 << 24)
            .filter(|draw| cobalt.clone().verdict((Span::ZERO, true), &LAW, *draw, ms(100)) == Verdict::Drop);
        // Marks do not stop it.
        assert_eq!(drops.count(), 16);
        cobalt.resume(&LAW, ms(100 + 5 * 256));
        assert!(cobalt.blue.probability < STEP_UP, "{}", cobalt.blue.probability);
        cobalt.resume(&LAW, ms(10_000));
        assert!(cobalt.is_at_rest(&LAW, ms(20_000)));
    }
}
