//! CLOCK_MONOTONIC, and sleeping until an instant on it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Longest sleep before a stop request is looked at, ns.
const ATTENTION: u64 = 100_000_000;

/// Now on CLOCK_MONOTONIC, ns.
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Now on CLOCK_REALTIME, ns: what the kernel stamps on packets.
pub fn realtime() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC, ns: of three readings the quickest.
pub fn realtime_lead() -> i64 {
    let reading = || {
        let (before, wall, after) = (now(), realtime(), now());
        (after - before, wall as i64 - (before + (after - before) / 2) as i64)
    };
    let [a, b, c] = [reading(), reading(), reading()];
    a.min(b).min(c).1
}

/// CPU time this thread has used, ns.
pub fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec; these clocks always exist, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Sleeps until `instant` (CLOCK_MONOTONIC, ns); false when `stop` was raised first.
///
/// The deadline is absolute, so lateness of one wake-up does not move the next.
pub fn sleep_until(instant: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let now = now();
        if now >= instant {
            return true;
        }
        let until = instant.min(now + ATTENTION);
        let ts = libc::timespec {
            tv_sec: (until / 1_000_000_000) as _,
            tv_nsec: (until % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `ts` is valid; an early return by a signal is handled by the loop.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &ts, std::ptr::null_mut())
        };
    }
}

/// Spins until `instant`, having slept to within `margin` of it; false when `stop` was raised first.
pub fn spin_until(instant: u64, margin: u64, stop: &AtomicBool) -> bool {
    if !sleep_until(instant.saturating_sub(margin), stop) {
        return false;
    }
    while now() < instant {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_at_its_deadline_not_before() {
        let stop = AtomicBool::new(false);
        let deadline = now() + 3_000_000;
        assert!(sleep_until(deadline, &stop));
        assert!(now() >= deadline);
    }

    #[test]
    fn the_lead_makes_one_clock_of_the_other() {
        let (before, shown, after) = (realtime() as i64, now() as i64 + realtime_lead(), realtime() as i64);
        // Readings of both clocks are not simultaneous, and NTP may slew between them.
        assert!(shown > before - 1_000_000 && shown < after + 1_000_000, "{before} {shown} {after}");
    }

    #[test]
    fn a_stop_ends_a_sleep_long_before_its_deadline() {
        let stop = AtomicBool::new(true);
        let begin = now();
        assert!(!sleep_until(begin + 60_000_000_000, &stop));
        assert!(now() - begin < 30_000_000_000);
    }
}
