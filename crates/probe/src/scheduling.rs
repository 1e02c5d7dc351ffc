//! How the kernel schedules a thread: how promptly, on which CPUs, before which others.

use std::io;

use crate::clock;

/// How often an urgent thread's work is looked at, ns.
const WINDOW: u64 = 50_000_000;
/// How far below its limit a thread's share must fall before it is urgent again, percent of the time.
const HYSTERESIS: u64 = 10;

/// Asks the kernel to wake this thread promptly, for those that keep a schedule and sleep most of the time.
///
/// Timers fire within a nanosecond of their deadline rather than the default 50 µs (`PR_SET_TIMERSLACK`). A short
/// time slice makes the thread's turn come early among busy ones (`sched_setattr(2)`, Linux 6.12). So does a higher
/// priority, where the process may take it. A refusal only makes samples less precise.
pub fn be_prompt() {
    const PRIORITY: libc::c_int = -15;
    let slice = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        nice: PRIORITY,
        runtime: 100_000,
        ..SchedAttr::default()
    };
    // SAFETY: prctl takes no pointer here; the attributes are valid in their whole size for this thread (0).
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        if libc::syscall(libc::SYS_sched_setattr, 0, &slice, 0) != 0 {
            let own = SchedAttr { nice: libc::getpriority(libc::PRIO_PROCESS, 0), ..slice };
            libc::syscall(libc::SYS_sched_setattr, 0, &own, 0);
        }
    }
}

/// Has this thread, and those it starts from now on, run on `cpus` alone.
///
/// # Errors
/// When there is none of these CPUs.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: a zeroed cpu_set_t is the empty set, and CPU_SET stays within it as checked.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            if cpu >= libc::CPU_SETSIZE as usize {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Real-time scheduling (`SCHED_FIFO`) of the thread that made it, where allowed, while the thread uses less than a share of its
/// CPU.
///
/// Linux throttles real-time threads for the rest of each second in which they have used 95 % of a CPU
/// (`sched_rt_runtime_us`). A thread that hardly sleeps would also starve all others on its CPU.
#[derive(Debug)]
pub struct RealTimePriority {
    possible: bool,
    urgent: bool,
    /// Percent of the time.
    limit: u64,
    since: u64,
    cpu: u64,
}

impl RealTimePriority {
    /// Real-time, if `wanted`, while this thread uses less than `limit` percent of its CPU.
    pub fn new(limit: u64, wanted: bool) -> RealTimePriority {
        let possible = wanted && set(libc::SCHED_FIFO);
        RealTimePriority { possible, urgent: possible, limit, since: clock::now(), cpu: clock::thread_cpu() }
    }

    /// Checks from time to time the share of CPU time that the thread has used; `now` is CLOCK_MONOTONIC, ns.
    #[inline]
    pub fn review(&mut self, now: u64) {
        if self.possible && now >= self.since + WINDOW {
            self.update(now);
        }
    }

    /// Whether the thread is real-time now.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        self.urgent
    }

    #[cold]
    fn update(&mut self, now: u64) {
        let cpu = clock::thread_cpu();
        let urgent = urgent(self.urgent, self.limit, cpu - self.cpu, now - self.since);
        if urgent != self.urgent {
            set(if urgent { libc::SCHED_FIFO } else { libc::SCHED_OTHER });
        }
        *self = RealTimePriority { urgent, since: now, cpu, ..*self };
    }
}

/// Whether a thread is to be `urgent` after using its CPU for `busy` ns of `time`.
fn urgent(urgent: bool, limit: u64, busy: u64, time: u64) -> bool {
    busy * 100 < time * if urgent { limit } else { limit - HYSTERESIS }
}

/// Niceness and time slice, once set, are kept from one policy to the other.
fn set(policy: libc::c_int) -> bool {
    // The lowest of the real-time priorities: above all ordinary threads, below every other of these.
    // `struct sched_param` is one int.
    let priority = libc::c_int::from(policy == libc::SCHED_FIFO);
    // By its number: musl's function refuses, for want of what POSIX asks of it beyond Linux.
    // SAFETY: the parameters are valid for the call, which is for this thread (0).
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

/// `struct sched_attr`, its first version.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// For SCHED_OTHER: the time slice, ns.
    runtime: u64,
    deadline: u64,
    period: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_hardly_sleeps_is_not_urgent_until_it_clearly_sleeps_more() {
        assert!(urgent(true, 90, 89, 100) && !urgent(true, 90, 90, 100));
        assert!(!urgent(false, 90, 80, 100) && urgent(false, 90, 79, 100));
    }

    #[test]
    fn a_cpu_that_cannot_exist_is_refused() {
        let far = libc::CPU_SETSIZE as usize;
        assert_eq!(pin(&[far]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(pin(&[far - 1]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
