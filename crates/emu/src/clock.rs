//! CLOCK_MONOTONIC, and waiting on it for devices and deadlines.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// How late sleeps are taken to end before the first has, ns.
const FIRST: Quantiles = Quantiles { half: 30_000, maximum: 60_000 };
/// The most that a sleep is shortened by, ns, in a stream of packets and after a pause. On a machine so busy that sleeps end
/// later, spinning does not help.
const MARGIN: u64 = 60_000;
pub(crate) const PRECISE: u64 = 250_000;
/// How far one sleep moves what is known of them, ns.
const STEP: u64 = 250;
/// A look at the devices that took longer was a sleep, ns.
const GLANCE: u64 = 5_000;
/// A rest, ns. With what it takes to fall asleep and wake up, some 20 µs.
const REST: libc::c_long = 10_000;
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
    late: Quantiles,
    /// When the thread slept last.
    slept: u64,
}

/// How late half of all sleeps end at most, and 31 of 32, ns. Both follow the sleeps by steps, so that a few very
/// long ones, of which a busy machine has many, do not count for more than others.
#[derive(Clone, Copy, Debug)]
struct Quantiles {
    half: u64,
    maximum: u64,
}

impl Quantiles {
    fn record(&mut self, late: u64) {
        self.half = if late > self.half { self.half + STEP } else { self.half.saturating_sub(STEP) };
        self.maximum =
            if late > self.maximum { self.maximum + 31 * STEP } else { self.maximum.saturating_sub(STEP) };
        self.half = self.half.min(MARGIN);
        self.maximum = self.maximum.min(PRECISE);
    }
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
        Ok(Waiter { epoll, events, ready: 0, late: FIRST, slept: now() })
    }

    /// Watches `fd` for input under the number `token`.
    pub(crate) fn watch(&mut self, fd: RawFd, token: usize) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token as u64 };
        // SAFETY: `event` is valid for the call.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// How much before a deadline a sleep should end, ns: so much that few end later, or that half do.
    #[inline]
    pub(crate) fn margin(&self, precise: bool) -> u64 {
        if precise { self.late.maximum } else { self.late.half }
    }

    /// Looks for input; where there is none, sleeps until `until` (CLOCK_MONOTONIC, ns), in the past: not at all.
    #[inline]
    pub(crate) fn wait(&mut self, now: u64, until: u64) {
        let sleep = until.saturating_sub(now);
        self.poll(sleep);
        if sleep == 0 {
            return;
        }
        let woken = crate::clock::now();
        // Where there was input already it has not slept.
        if woken > now + GLANCE {
            self.slept = woken;
        }
        if self.ready == 0 {
            self.late.record(woken.saturating_sub(until));
        }
    }

    /// The time of the last wake-up.
    #[inline]
    pub(crate) fn woken_at(&self) -> u64 {
        self.slept
    }

    /// Sleeps for a short time, whatever comes.
    pub(crate) fn rest(&mut self) {
        let short = libc::timespec { tv_sec: 0, tv_nsec: REST };
        // SAFETY: the time is valid for the call; what would remain of it is of no interest.
        unsafe { libc::nanosleep(&short, std::ptr::null_mut()) };
        self.slept = now();
    }

    /// The number of the `index`th of what has input.
    #[inline]
    pub(crate) fn ready(&self, index: usize) -> Option<usize> {
        self.events[..self.ready].get(index).map(|event| event.u64 as usize)
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
