//! State that all streams of a node share: the clock, the request to stop, the receiver of rows.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use socket2::Socket;
use tcplab_probe::clock;
use tcplab_probe::sockets::{Registry, Sample};

use crate::Sink;
use crate::echo::options::control;

/// The run's time on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The run's zero, ns.
    pub start: u64,
    /// How long the run takes at most, ns.
    pub duration: u64,
}

impl Clock {
    /// Now, ns since the run's start; zero before it.
    pub fn now(&self) -> u64 {
        clock::now().saturating_sub(self.start)
    }

    /// The instant of `time` on CLOCK_MONOTONIC.
    pub fn instant(&self, time: u64) -> u64 {
        self.start.saturating_add(time)
    }

    /// Sleeps until `time`; false if the run ends before, or `stop` is raised. On a busy machine a thread may wake up when the
    /// run is over: `time` has come then all the same.
    fn sleep_until(&self, time: u64, stop: &AtomicBool) -> bool {
        let due = time.min(self.duration);
        let has_come = clock::sleep_until(self.instant(due), stop) || self.now() >= due;
        has_come && time < self.duration
    }
}

/// Services of the node that a started flow needs.
#[derive(Clone)]
pub struct Context {
    /// The run's time.
    pub clock: Clock,
    /// Raised when everything shall stop.
    pub stop: Arc<AtomicBool>,
    /// Where rows go.
    pub sink: Arc<dyn Sink>,
    /// Where sending sockets make themselves known to the probe.
    pub registry: Arc<Registry>,
}

impl Context {
    /// Whether the run is over.
    pub fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.clock.now() >= self.clock.duration
    }

    /// Has a socket sampled no more, after its last figures: the samples before may be of long before its end.
    pub(crate) fn unwatch(&self, socket: &Socket, ports: (u16, u16)) {
        self.unwatch_with(socket, ports, |_| true);
    }

    /// The same for one that was not connected within the run: an answer to its SYN that came later is none.
    pub(crate) fn unwatch_unanswered(&self, socket: &Socket, ports: (u16, u16)) {
        self.unwatch_with(socket, ports, |last| !last.was_established());
    }

    fn unwatch_with(&self, socket: &Socket, ports: (u16, u16), counts: impl FnOnce(&Sample<'_>) -> bool) {
        let time = self.clock.now().min(self.clock.duration);
        let cc = control(socket);
        self.registry.remove(ports, socket.as_raw_fd(), &cc, |last| {
            if counts(last) {
                self.sink.socket(time, last);
            }
        });
    }

    /// Sleeps until `time` of the run; false if the run is over first.
    pub fn sleep_until(&self, time: u64) -> bool {
        self.clock.sleep_until(time, &self.stop)
    }
}

/// Payload so far, over all streams of one end.
#[derive(Debug, Default)]
pub struct Totals {
    /// Bytes received.
    pub received: AtomicU64,
    /// Bytes handed to the kernel.
    pub sent: AtomicU64,
}

/// A started end of a flow.
#[derive(Debug)]
pub struct Handle {
    /// The flow's name.
    pub name: String,
    /// Payload so far.
    pub totals: Arc<Totals>,
    /// Ends when all streams have.
    pub thread: JoinHandle<()>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_has_come_is_not_missed_where_the_run_is_over_by_now() {
        let clock = Clock { start: clock::now().saturating_sub(500), duration: 1 << 60 };
        let stopped = AtomicBool::new(true);
        assert!(clock.sleep_until(400, &stopped));
        assert!(!clock.sleep_until(1 << 59, &stopped));
        let short = Clock { duration: 450, ..clock };
        assert!(short.sleep_until(400, &stopped));
        assert!(!short.sleep_until(450, &AtomicBool::new(false)));
    }
}
