//! Bulk TCP: a sender that keeps its socket full, a receiver that discards in the kernel.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::Socket;
use tcplab_plan::Tcp;
use tcplab_probe::clock;
use tcplab_probe::scheduling::RealTimePriority;

use crate::conversation::Conversation;
use crate::pattern::Phases;
use crate::socket::ATTENTION;
use crate::tcp::{BLOCK, Stream, Task, waited};

/// Bytes of one write.
pub(crate) const WRITE: usize = 128 << 10;
/// Shortest timeout a socket takes.
const MOMENT: Duration = Duration::from_micros(1);
/// Maximum bytes of one read. Nothing is stored, so the buffer's pages never come into being.
pub(crate) const READ: usize = 4 << 20;

/// A receiver that waits for a CPU holds back ACKs: once its window grows no more, Linux leaves them to the application's next read
/// (`__tcp_ack_snd_check`, `tcp_cleanup_rbuf`). One that needs more than this share of a CPU, percent, is not run before its
/// sender any more.
const MAX_CPU_SHARE: u64 = 50;

impl Conversation for Tcp {
    fn send(&self, task: &Task<'_>, stream: &Stream, socket: &Socket) -> io::Result<bool> {
        task.write(stream, socket, self)
    }

    fn bytes(&self) -> Option<u64> {
        self.bytes
    }
}

impl Task<'_> {
    /// Writes until the work is done (true) or the run is over (false).
    fn write(&self, stream: &Stream, socket: &Socket, plan: &Tcp) -> io::Result<bool> {
        let mut left = plan.bytes.unwrap_or(u64::MAX);
        let stop = self.stop();
        let mut phases = Phases::new(self.end.flow.pauses(stream.number, self.end.seed), self.end.start());
        while left > 0 {
            let now = self.context.clock.now();
            if now >= stop || self.context.stop.load(Ordering::Relaxed) {
                // Without a number of bytes to send, time is the work, and it is done.
                return Ok(plan.bytes.is_none() && now >= stop && self.has_its_time());
            }
            let (sending, until) = phases.at(now);
            if !sending {
                self.context.sleep_until(until.min(stop));
                continue;
            }
            // A write blocks until the next deadline at most, so nothing is sent after it. It has no shorter timeout:
            // a writer that tries again while its buffer is full fills what is free, where one that sleeps is woken
            // once a third is (`sk_stream_is_writeable`).
            socket.set_write_timeout(Some(Duration::from_nanos(stop.min(until) - now).max(MOMENT)))?;
            let len = left.min(WRITE as u64) as usize;
            match socket.send(&BLOCK[..len]) {
                Ok(sent) => {
                    left -= sent as u64;
                    self.totals.sent.fetch_add(sent as u64, Ordering::Relaxed);
                }
                Err(error) if waited(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads until the sender says it is done, or is to be stopped (true), or the run is over (false).
    pub fn read(&self, stream: &Stream, socket: &Socket) -> io::Result<bool> {
        socket.set_read_timeout(Some(ATTENTION))?;
        let mut scratch: Vec<u8> = Vec::with_capacity(READ);
        let discard = scratch.spare_capacity_mut();
        let mut priority = RealTimePriority::new(MAX_CPU_SHARE, self.end.prompt);
        let stop = self.end.flow.stop.filter(|_| self.end.endless);
        while !self.context.over() {
            if stop.is_some_and(|stop| self.context.clock.now() >= stop.as_ns()) {
                return Ok(true);
            }
            priority.review(clock::now());
            // MSG_TRUNC makes TCP discard the data instead of copying it (tcp(7)).
            match socket.recv_with_flags(discard, libc::MSG_TRUNC) {
                // As the run ends the other end closes as well.
                Ok(0) => return Ok(!self.context.over()),
                Ok(got) if self.arrived(stream, got as u64) => {}
                Ok(_) => break,
                Err(error) if waited(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}
