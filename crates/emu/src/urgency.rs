//! How urgently the kernel runs the thread that serves the links.

use crate::clock;

/// How often the thread's work is looked at, ns.
const WINDOW: u64 = 50_000_000;
/// A thread that is awake for more than this share of the time, in percent, working or spinning, is not run before all others
/// any more. Linux takes the CPU away from real-time threads for the rest of each second in which they have used 95 % of it
/// (`sched_rt_runtime_us`): 50 ms in which no packet would move.
const MOST: u64 = 90;
/// Below this share it is again.
const LEAST: u64 = 80;
/// How long an urgent thread stays awake, ns: then it rests for the shortest time there is (some 20 µs). So it uses no more than
/// nine tenths of its CPU even if it spins whenever it does not work, and a node's thread that waits for the same CPU gets it soon.
const STINT: u64 = 100_000;

/// The thread that made it runs before any ordinary thread as long as it sleeps enough for that, where it is allowed and of use.
#[derive(Debug)]
pub(crate) struct Urgency {
    /// Real-time scheduling is allowed, and there is another CPU for the nodes.
    possible: bool,
    urgent: bool,
    since: u64,
    cpu: u64,
}

impl Urgency {
    pub(crate) fn new() -> Urgency {
        let many = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
        let possible = many && set(libc::SCHED_FIFO);
        Urgency { possible, urgent: possible, since: clock::now(), cpu: clock::thread_cpu() }
    }

    /// Looks, from time to time, at the share of the time that the thread was awake.
    #[inline]
    pub(crate) fn review(&mut self, now: u64) {
        if self.possible && now >= self.since + WINDOW {
            self.judge(now);
        }
    }

    /// Whether it must rest, having been awake since `awake`.
    #[inline]
    pub(crate) fn must_rest(&self, now: u64, awake: u64) -> bool {
        self.urgent && now > awake + STINT
    }

    #[cold]
    fn judge(&mut self, now: u64) {
        let cpu = clock::thread_cpu();
        let urgent = urgent(self.urgent, cpu - self.cpu, now - self.since);
        if urgent != self.urgent {
            set(if urgent { libc::SCHED_FIFO } else { libc::SCHED_OTHER });
        }
        *self = Urgency { urgent, since: now, cpu, ..*self };
    }
}

/// Whether a thread that was `urgent` or not remains so, having been awake for `awake` ns of `time`.
fn urgent(urgent: bool, awake: u64, time: u64) -> bool {
    awake * 100 < time * if urgent { MOST } else { LEAST }
}

/// Niceness and time slice, once set, are kept from one policy to the other.
fn set(policy: libc::c_int) -> bool {
    // The lowest of the real-time priorities: above all ordinary threads, below every other of these.
    let parameters = libc::sched_param { sched_priority: libc::c_int::from(policy == libc::SCHED_FIFO) };
    // SAFETY: the parameters are valid for the call, which is for this thread (0).
    unsafe { libc::sched_setscheduler(0, policy, &parameters) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_hardly_sleeps_is_not_urgent_until_it_clearly_sleeps_more() {
        assert!(urgent(true, 89, 100) && !urgent(true, 90, 100));
        assert!(!urgent(false, 80, 100) && urgent(false, 79, 100));
    }
}
