//! The server of a flow: it answers whoever connects, and counts by the port that was reached.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use socket2::Socket;
use tcplab_probe::clock;

use super::head::{Framing, MAX_HEAD, Request};
use super::objects::{self, Answer, Objects, refusal};
use crate::socket::{self, ATTENTION};
use crate::tcp::{STACK, Stream, Task, waited};
use crate::{Summary, TrafficError};

/// Connections at a time at one port.
const MAX_CONNECTIONS: usize = 1024;
/// Maximum bytes of a request's body that are read and discarded, so that the next request can be read.
const MAX_BODY: u64 = 1 << 20;

impl Task<'_> {
    /// Serves the connections to one port until the run is over.
    pub fn host(
        &self,
        stream: &Stream,
        listener: &Socket,
        address: SocketAddr,
        objects: &Objects,
    ) -> Result<(), TrafficError> {
        let (open, cpu) = (AtomicUsize::new(0), AtomicU64::new(0));
        let served = std::thread::scope(|scope| {
            while !self.context.over() {
                if !socket::wait(listener, libc::POLLIN)? {
                    continue;
                }
                let socket = match listener.accept() {
                    Ok((socket, _)) => Arc::new(socket),
                    // The client has gone again, or no file descriptor is left (accept(2)).
                    Err(_) => continue,
                };
                if open.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
                    open.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let (open, cpu) = (&open, &cpu);
                let spawned = std::thread::Builder::new()
                    .name(format!("{}.{}", self.end.flow.name, stream.number))
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || {
                        self.converse(stream, &socket, address, objects);
                        cpu.fetch_add(clock::thread_cpu(), Ordering::Relaxed);
                        open.fetch_sub(1, Ordering::AcqRel);
                    });
                if spawned.is_err() {
                    open.fetch_sub(1, Ordering::AcqRel);
                }
            }
            io::Result::Ok(())
        });
        let (total, last) = stream.received();
        let summary = Summary {
            stream: stream.number,
            start: self.end.start(),
            end: last.unwrap_or(self.end.start()),
            bytes_received: Some(total),
            cpu_receiver: Some(cpu.load(Ordering::Relaxed) as f64 / 1e9),
            complete: served.is_ok(),
            ..stream.settle().summary()
        };
        self.context.sink.summary(&self.end.flow, &summary);
        served.map_err(|source| TrafficError::Listen { address, source })
    }

    fn converse(&self, stream: &Stream, socket: &Arc<Socket>, address: SocketAddr, objects: &Objects) {
        if socket.set_nonblocking(false).and_then(|()| socket.set_read_timeout(Some(ATTENTION))).is_err() {
            return;
        }
        let ports = self.watch(stream, socket, address);
        stream.open(socket.clone());
        // A connection that the client breaks is the client's to report.
        if let Ok(true) = self.answer_all(stream, socket, objects) {
            self.linger(socket);
        }
        self.context.unwatch(socket, ports);
        stream.close(socket);
    }

    /// Answers requests until the client has no more (false), one of them ends the connection (true), or the run is over.
    fn answer_all(&self, stream: &Stream, socket: &Socket, objects: &Objects) -> io::Result<bool> {
        let mut input = Vec::new();
        loop {
            let request = loop {
                match Request::parse(&input) {
                    Ok(Some((request, length))) => {
                        input.drain(..length);
                        break request;
                    }
                    Ok(None) => {}
                    Err(error) => {
                        let (status, reason) = error.status();
                        self.deliver(socket, &refusal(status, reason, "Connection: close\r\n", false))?;
                        return Ok(true);
                    }
                }
                if !self.read_more(stream, socket, &mut input)? {
                    return Ok(false);
                }
            };
            let mut body = match request.body {
                Framing::Length(bytes) if bytes <= MAX_BODY => bytes as usize,
                _ => {
                    let refused = refusal(413, "Content Too Large", "Connection: close\r\n", false);
                    self.deliver(socket, &refused)?;
                    return Ok(true);
                }
            };
            while body > 0 {
                let had = body.min(input.len());
                input.drain(..had);
                body -= had;
                if body > 0 && !self.read_more(stream, socket, &mut input)? {
                    return Ok(false);
                }
            }
            if !self.deliver(socket, &objects.answer(&request))? {
                return Ok(false);
            }
            if !request.keeps_open() {
                return Ok(true);
            }
        }
    }

    /// Reads what there is; false: the client has no more, or the run is over.
    fn read_more(&self, stream: &Stream, socket: &Socket, input: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            input.reserve(MAX_HEAD);
            let length = input.len();
            match socket.recv(&mut input.spare_capacity_mut()[..MAX_HEAD]) {
                Ok(0) => return Ok(false),
                Ok(got) => {
                    // SAFETY: the kernel has written so many bytes there.
                    unsafe { input.set_len(length + got) };
                    return Ok(self.arrived(stream, got as u64));
                }
                Err(error) if waited(&error) => {
                    if self.context.over() {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends an answer; false: the run is over.
    fn deliver(&self, socket: &Socket, answer: &Answer) -> io::Result<bool> {
        let (mut offset, mut left) = (answer.offset, answer.bytes);
        let mut head = answer.head.as_slice();
        while !head.is_empty() || left > 0 {
            let body = objects::matter(answer.object, offset, left);
            // Head and body in one write, so that they share a segment.
            if !self.pour(socket, head, body)? {
                return Ok(false);
            }
            head = &[];
            offset += body.len() as u64;
            left -= body.len() as u64;
        }
        Ok(true)
    }

    /// Ends a connection so that the client gets all of the answer: a close with unread input would reset it (RFC 9112,
    /// section 9.6).
    fn linger(&self, socket: &Socket) {
        let _ = socket.shutdown(Shutdown::Write);
        let mut scratch: Vec<u8> = Vec::with_capacity(MAX_HEAD);
        for _ in 0..64 {
            match socket.recv(scratch.spare_capacity_mut()) {
                Ok(1..) => {}
                _ => return,
            }
        }
    }

    /// Writes both, one after the other; false: the run is over.
    pub(super) fn pour(&self, socket: &Socket, mut first: &[u8], mut second: &[u8]) -> io::Result<bool> {
        while !first.is_empty() || !second.is_empty() {
            match socket.send_vectored(&[io::IoSlice::new(first), io::IoSlice::new(second)]) {
                Ok(sent) => {
                    self.totals.sent.fetch_add(sent as u64, Ordering::Relaxed);
                    let of_first = sent.min(first.len());
                    first = &first[of_first..];
                    second = &second[sent - of_first..];
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
}
