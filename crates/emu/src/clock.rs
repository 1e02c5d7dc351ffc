//! CLOCK_MONOTONIC, and waiting on it for devices and deadlines.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Before the first sleep nothing is known of how late they end.
const FIRST_MARGIN: f64 = 60_000.0;
/// Bounds of the margin, ns. Below, a sleep saves nothing; above, the machine is too busy for spinning to help.
const MARGIN: std::ops::RangeInclusive<f64> = 3_000.0..=120_000.0;
/// More devices than this become ready at once only to be found at the next look.
const EVENTS: usize = 64;

/// Now, ns.
#[inline]
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of this thread, ns.
pub(crate) fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Time since 1970, ns.
pub(crate) fn since_1970() -> u64 {
    read(libc::CLOCK_REALTIME)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is valid; these clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Waits for devices until a deadline: sleeps while that is precise, then spins.
#[derive(Debug)]
pub(crate) struct Waiter {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
    /// How late sleeps end, ns: smoothed mean and deviation, as RFC 6298 smooths an RTT.
    late: f64,
    deviation: f64,
}

impl Waiter {
    pub(crate) fn new() -> io::Result<Waiter> {
        // SAFETY: takes no pointers; a valid descriptor has no other owner.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        Ok(Waiter { epoll, events, ready: 0, late: FIRST_MARGIN, deviation: 0.0 })
    }

    /// Watches `fd` for input under the number `token`.
    pub(crate) fn watch(&mut self, fd: RawFd, token: usize) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token as u64 };
        // SAFETY: `event` is valid for the call.
        let result =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Looks for input; where there is none, sleeps until shortly before `until` (CLOCK_MONOTONIC, ns).
    ///
    /// It returns early, so that the caller looks again: the last stretch is spun.
    #[inline]
    pub(crate) fn wait(&mut self, now: u64, until: u64) {
        let margin = (self.late + 2.0 * self.deviation).clamp(*MARGIN.start(), *MARGIN.end()) as u64;
        let sleep = until.saturating_sub(now).saturating_sub(margin);
        self.poll(sleep);
        if sleep > 0 && self.ready == 0 {
            let late = (now_since(now) as f64 - sleep as f64).max(0.0);
            self.deviation += ((late - self.late).abs() - self.deviation) / 4.0;
            self.late += (late - self.late) / 8.0;
        }
    }

    /// The numbers of what has input.
    #[inline]
    pub(crate) fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        self.events[..self.ready].iter().map(|event| event.u64 as usize)
    }

    #[inline]
    fn poll(&mut self, ns: u64) {
        let timeout = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the events are valid for their whole length, the timeout for the call; no signal mask is given.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS as libc::c_int,
                &timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        self.ready = usize::try_from(ready).unwrap_or(0);
    }
}

fn now_since(then: u64) -> u64 {
    now().saturating_sub(then)
}
