//! The clock of Linux's timers, which ticks: a timer fires with a tick, and a long one with some ticks only
//! (`kernel/time/timer.c`).

use core::num::NonZeroU32;

use tcplab_units::{Span, Time};

/// Time between two ticks (`CONFIG_HZ` = 250), microseconds.
const TICK_US: u64 = 4_000;
/// Up to so many ticks, a timer fires with any (`LVL_SIZE`, of which one is for those that fire now).
const EXACT: u64 = 63;
/// Each time the wait is eight times as long, it fires with every eighth tick of before (`LVL_CLK_SHIFT`).
const SHIFT: u32 = 3;
/// Coarsest level of the wheel.
const LEVELS: u32 = 8;

/// The ticks of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Microseconds from the first tick of all until time zero.
    since_first: NonZeroU32,
}

impl Ticks {
    /// Those of a host that has been up for any time, according to a `random` number.
    pub fn new(random: u64) -> Ticks {
        Ticks { since_first: NonZeroU32::MIN.saturating_add(random as u32 >> 1) }
    }

    /// When a timer fires that is set at `now` to `wait`.
    pub(crate) fn fire(self, now: Time, wait: Span) -> Time {
        let since_first = u64::from(self.since_first.get());
        let ticks = wait.as_ns().div_ceil(TICK_US * 1_000);
        let expires = (now.as_us() + since_first) / TICK_US + ticks;
        let level = (0..LEVELS).find(|level| ticks < EXACT << (SHIFT * level)).unwrap_or(LEVELS);
        let shift = SHIFT * level;
        // With the next tick of its level: never early.
        let tick = ((expires >> shift) + 1) << shift;
        Time::from_ns((tick * TICK_US).saturating_sub(since_first) * 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waits, in ms, of a timer that is set at many moments to `ms`.
    fn waits(ms: f64) -> Vec<f64> {
        let wait = Span::from_us((ms * 1e3) as u64);
        let wait = |us: u64| {
            Ticks::new(7).fire(Time::from_ns(1_000 * us), wait).since(Time::from_ns(1_000 * us)).as_us()
        };
        (0..1_000).map(|number| wait(number * 1_237) as f64 / 1e3).collect()
    }

    /// Measured on Linux 6.18 with 250 ticks in a second.
    #[test]
    fn a_timer_fires_with_a_tick_and_a_long_one_with_every_eighth() {
        for (ms, earliest, latest) in [
            (1.0, 4.0, 8.0),
            (40.0, 40.0, 44.0),
            (126.0, 128.0, 132.0),
            (248.0, 248.0, 252.0),
            (262.0, 264.0, 296.0),
            (1_000.0, 1_000.0, 1_032.0),
            (2_100.0, 2_100.0, 2_356.0),
        ] {
            let waits = waits(ms);
            let (least, most) =
                (waits.iter().copied().fold(f64::MAX, f64::min), waits.iter().copied().fold(0.0, f64::max));
            assert!(least >= earliest && least < earliest + 4.1, "{ms}: {least}");
            assert!(most <= latest && most > latest - 4.1, "{ms}: {most}");
        }
    }

    #[test]
    fn hosts_tick_at_moments_of_their_own() {
        let fire = |random| Ticks::new(random).fire(Time::from_ns(5_000_000), Span::from_ms(40)).as_us();
        assert!(fire(0) != fire(1 << 12) && fire(u64::MAX) > 45_000);
    }
}
