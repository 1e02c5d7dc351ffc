//! Moving whole messages over a connection: however the stream is cut, within a time, sleeping or polling.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::Socket;
use tcplab_probe::clock;

use crate::socket::{ATTENTION, set};

/// Empty polls between two looks at the clock.
const LOOKS: u32 = 64;
/// Empty polls before another thread is let run, where all who poll may have a CPU each, and where they have not. There
/// they would else wait for each other's time slices. Seldom is better: Linux has a thread that yields wait for whoever
/// shares its CPU until that one has run as long as a whole time slice (`yield_task_fair`).
const YIELDS: [u32; 2] = [256, 16];
/// How long the kernel polls a device's queue before it sleeps (SO_BUSY_POLL), µs.
const KERNEL_POLL: libc::c_int = 50;

/// When everything ends.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    /// Raised when everything shall stop.
    pub stop: &'a AtomicBool,
    /// It ends here at the latest, ns on CLOCK_MONOTONIC.
    pub end: u64,
}

impl Limit<'_> {
    /// Whether it is over.
    pub fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || clock::now() >= self.end
    }
}

/// Why a message did not come or go.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The other end has closed the connection.
    #[error("the other end closed the connection after {moved} of {of} bytes")]
    Closed {
        /// Bytes moved by then.
        moved: usize,
        /// Bytes of the message.
        of: usize,
    },
    /// It took too long.
    #[error("after {} only {moved} of {of} bytes had been {verb}", seconds(*after))]
    Stalled {
        /// How long was waited, ns.
        after: u64,
        /// Bytes moved by then.
        moved: usize,
        /// Bytes of the message.
        of: usize,
        /// sent or received.
        verb: &'static str,
    },
    /// All is over.
    #[error("it was stopped")]
    Over,
    /// The connection broke.
    #[error("{0}")]
    Io(io::Error),
}

fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

/// How an end waits for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Sleep,
    /// It asks again and again, and lets others run after so many times in vain.
    Poll {
        yields: u32,
    },
}

impl Wait {
    /// For one of `clients`, or their server. Both may be on one machine.
    pub fn of(polls: bool, clients: u32) -> Wait {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let crowded = clients as usize * 2 > cpus;
        if polls { Wait::Poll { yields: YIELDS[usize::from(crowded)] } } else { Wait::Sleep }
    }
}

/// A connection over which messages are moved.
#[derive(Debug)]
pub(crate) struct FramedIo<'a> {
    socket: RawFd,
    wait: Wait,
    timeout: u64,
    limit: Limit<'a>,
}

impl<'a> FramedIo<'a> {
    /// A message may take `timeout` ns.
    pub fn new(socket: &Socket, wait: Wait, timeout: u64, limit: Limit<'a>) -> io::Result<FramedIo<'a>> {
        socket.set_nonblocking(wait != Wait::Sleep)?;
        if wait != Wait::Sleep {
            // Beyond net.core.busy_read it needs CAP_NET_ADMIN, and most virtual devices have no queue to poll:
            // polling here does not depend on it.
            let _ = set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, KERNEL_POLL);
        } else {
            // A sleeping call wakes up now and then to see whether all is over.
            socket.set_read_timeout(Some(ATTENTION))?;
        }
        Ok(FramedIo { socket: socket.as_raw_fd(), wait, timeout, limit })
    }

    /// Sends all of `message`. `begun`: when the operation began, on CLOCK_MONOTONIC.
    #[inline]
    pub fn send(&self, message: &[u8], begun: u64) -> Result<(), Broken> {
        // Room is waited for in poll(2), which ends once a third of the buffer is free (`sk_stream_is_writeable`). A
        // blocking call with a timeout would fill whatever is free each time it is made again.
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let call = |moved| {
            let rest: &[u8] = &message[moved..];
            // SAFETY: `rest` is readable in its whole length.
            unsafe { libc::send(self.socket, rest.as_ptr().cast(), rest.len(), flags) }
        };
        self.carry(message.len(), "sent", begun, call, || self.sleep_until_writable())
    }

    /// Fills `message`.
    #[inline]
    pub fn receive(&self, message: &mut [u8], begun: u64) -> Result<(), Broken> {
        let (start, length) = (message.as_mut_ptr(), message.len());
        let call = |moved| {
            // SAFETY: `moved` never exceeds `length`, so what is left of `message` is writable.
            unsafe { libc::recv(self.socket, start.add(moved).cast(), length - moved, 0) }
        };
        self.carry(length, "received", begun, call, || {})
    }

    /// Returns after a while at the latest, or on a signal, with nothing written: the caller tries again.
    fn sleep_until_writable(&self) {
        if self.wait == Wait::Sleep {
            let mut poll = libc::pollfd { fd: self.socket, events: libc::POLLOUT, revents: 0 };
            // SAFETY: one valid pollfd.
            unsafe { libc::poll(&mut poll, 1, ATTENTION.as_millis() as libc::c_int) };
        }
    }

    /// Calls until `length` bytes are moved; `blocked` is called when none could be.
    #[inline]
    fn carry(
        &self,
        length: usize,
        verb: &'static str,
        begun: u64,
        mut call: impl FnMut(usize) -> isize,
        blocked: impl Fn(),
    ) -> Result<(), Broken> {
        let mut moved = 0;
        let mut empty = 0u32;
        while moved < length {
            let now = call(moved);
            if now > 0 {
                moved += now as usize;
                continue;
            }
            if now == 0 {
                return Err(Broken::Closed { moved, of: length });
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::WouldBlock => blocked(),
                io::ErrorKind::Interrupted => {}
                _ => return Err(Broken::Io(error)),
            }
            empty = empty.wrapping_add(1);
            if let Wait::Poll { yields } = self.wait {
                if empty.is_multiple_of(yields) {
                    std::thread::yield_now();
                }
                if !empty.is_multiple_of(LOOKS) {
                    continue;
                }
            }
            if self.limit.over() {
                return Err(Broken::Over);
            }
            let after = clock::now().saturating_sub(begun);
            if after >= self.timeout {
                return Err(Broken::Stalled { after, moved, of: length, verb });
            }
        }
        Ok(())
    }
}
