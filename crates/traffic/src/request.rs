//! Requests and responses on one connection a stream.

use std::io;
use std::sync::atomic::Ordering;

use socket2::Socket;
use tcplab_plan::Request;

use crate::Exchange;
use crate::bulk::READ;
use crate::conversation::Conversation;
use crate::socket::ATTENTION;
use crate::tcp::{BLOCK, Stream, Task, waited};

impl Conversation for Request {
    fn send(&self, task: &Task<'_>, stream: &Stream, socket: &Socket) -> io::Result<bool> {
        task.ask(stream, socket, self)
    }

    fn receive(&self, task: &Task<'_>, stream: &Stream, socket: &Socket) -> io::Result<bool> {
        task.answer(stream, socket, self)
    }
}

impl Task<'_> {
    /// Asks, waits for the answer, thinks, and asks again, until the work is done (true) or the run is over
    /// (false).
    fn ask(&self, stream: &Stream, socket: &Socket, plan: &Request) -> io::Result<bool> {
        let &Request { request, response, think, count, .. } = plan;
        let think = think.as_ns();
        socket.set_read_timeout(Some(ATTENTION))?;
        let mut scratch: Vec<u8> = Vec::with_capacity(READ);
        let stop = self.stop();
        for iteration in 0..count.unwrap_or(u64::MAX) {
            let time = self.context.clock.now();
            if time >= stop || self.context.over() {
                return Ok(count.is_none() && self.has_its_time());
            }
            let answered =
                self.give(socket, request)? && self.take(stream, socket, response, &mut scratch)? == response;
            if !answered {
                return Ok(count.is_none() && self.context.over() && self.has_its_time());
            }
            let end = self.context.clock.now();
            let row = Exchange { client: stream.number, size: request, iteration, time, rtt: end - time };
            self.context.sink.exchange(&self.end.flow, &row);
            if think > 0 {
                self.context.sleep_until(end.saturating_add(think).min(stop));
            }
        }
        Ok(true)
    }

    /// Answers until the client says it is done (true) or the run is over (false).
    fn answer(&self, stream: &Stream, socket: &Socket, plan: &Request) -> io::Result<bool> {
        let &Request { request, response, .. } = plan;
        socket.set_read_timeout(Some(ATTENTION))?;
        let mut scratch: Vec<u8> = Vec::with_capacity(READ);
        loop {
            if self.take(stream, socket, request, &mut scratch)? < request {
                return Ok(!self.context.over());
            }
            if !self.give(socket, response)? {
                return Ok(false);
            }
        }
    }

    /// Writes `bytes`; false if the run is over first.
    fn give(&self, socket: &Socket, mut bytes: u64) -> io::Result<bool> {
        while bytes > 0 {
            let len = bytes.min(BLOCK.len() as u64) as usize;
            match socket.send(&BLOCK[..len]) {
                Ok(sent) => {
                    bytes -= sent as u64;
                    self.totals.sent.fetch_add(sent as u64, Ordering::Relaxed);
                }
                Err(error) if waited(&error) => {
                    if self.context.over() {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads and discards up to `bytes`; fewer when the other end or the run is over first.
    fn take(&self, stream: &Stream, socket: &Socket, bytes: u64, scratch: &mut Vec<u8>) -> io::Result<u64> {
        let mut got = 0;
        let discard = scratch.spare_capacity_mut();
        while got < bytes {
            let len = (bytes - got).min(READ as u64) as usize;
            match socket.recv_with_flags(&mut discard[..len], libc::MSG_TRUNC) {
                Ok(0) => break,
                Ok(more) if self.arrived(stream, more as u64) => got += more as u64,
                Ok(_) => break,
                Err(error) if waited(&error) => {
                    if self.context.over() {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(got)
    }
}
