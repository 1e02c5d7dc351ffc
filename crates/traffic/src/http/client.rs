//! The client of a flow: connections that share the work of loading pages.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use socket2::Socket;
use tcplab_plan::{Fetch as Asked, Next, Pages, REQUEST_BYTES, Requests, Web};
use tcplab_units::Time;

use super::head::{Fields, Framing, MAX_HEAD, Method, Response, filled};
use crate::Fetch;
use crate::bulk::READ;
use crate::config::Target;
use crate::socket::ATTENTION;
use crate::tcp::{Stream, Task, waited};

/// State that the connections of a flow share.
#[derive(Debug)]
pub(crate) struct Client {
    web: Web,
    pages: OnceLock<Mutex<Pages>>,
    changed: Condvar,
    target: Option<Target>,
}

impl Client {
    pub(crate) fn new(web: &Web, target: Option<Target>) -> Client {
        Client { web: web.clone(), pages: OnceLock::new(), changed: Condvar::new(), target }
    }

    /// Whether all it was asked to do is done.
    fn is_done(&self, task: &Task<'_>) -> bool {
        if self.web.count.is_some() { self.pages(task).are_complete() } else { task.has_its_time() }
    }

    fn pages(&self, task: &Task<'_>) -> MutexGuard<'_, Pages> {
        let pages = || {
            let requests = Requests::new(&self.web, task.end.seed, &task.end.flow.name);
            Mutex::new(Pages::new(&self.web, requests, Time::from_ns(task.stop())))
        };
        self.pages.get_or_init(pages).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task<'_> {
    /// Loads pages with the flow's other connections until the work is done (true) or the run is over (false).
    pub fn browse(&self, stream: &Stream, socket: &Socket, client: &Client) -> io::Result<bool> {
        socket.set_read_timeout(Some(ATTENTION))?;
        let host = match (&client.target, socket.peer_addr()?.as_socket()) {
            (Some(target), _) => target.host.clone(),
            (None, Some(address)) => address.to_string(),
            (None, None) => String::new(),
        };
        let mut buffer = Buffer::default();
        let number = stream.number as u32;
        while let Some(asked) = self.next(number, client) {
            match self.fetch(stream, socket, client, &host, asked, &mut buffer) {
                Ok(true) => {
                    client.pages(self).finish(number, Time::from_ns(self.context.clock.now()));
                    client.changed.notify_all();
                }
                Ok(false) => break,
                Err(error) => {
                    // Another connection asks for it again.
                    client.pages(self).retry(asked);
                    client.changed.notify_all();
                    return Err(error);
                }
            }
        }
        Ok(client.is_done(self))
    }

    /// The next request of the connection. None: the run is over, or there are no more.
    fn next(&self, connection: u32, client: &Client) -> Option<Asked> {
        let mut pages = client.pages(self);
        loop {
            if self.context.over() {
                return None;
            }
            let now = self.context.clock.now();
            match pages.next(connection, Time::from_ns(now)) {
                Next::Fetch(asked) => return Some(asked),
                Next::Close => {
                    client.changed.notify_all();
                    return None;
                }
                Next::Wait(until) => {
                    let left = Duration::from_nanos(until.as_ns().saturating_sub(now));
                    // A wake-up may also be for nothing.
                    let waited = client.changed.wait_timeout(pages, left.min(ATTENTION));
                    pages = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Asks for a range, or for the object of a foreign server, and reads all of it; false: the run is over.
    fn fetch(
        &self,
        stream: &Stream,
        socket: &Socket,
        client: &Client,
        host: &str,
        asked: Asked,
        buffer: &mut Buffer,
    ) -> io::Result<bool> {
        let time = self.context.clock.now();
        let path = match &client.target {
            Some(target) => target.path.clone(),
            None => format!("/{}", asked.object.number),
        };
        if !self.pour(socket, &request(&asked, &path, host), &[])? {
            return Ok(false);
        }
        buffer.head.clear();
        let mut first_byte = None;
        let (response, in_head) = loop {
            if let Some(parsed) = Response::parse(&buffer.head).map_err(io::Error::other)? {
                break parsed;
            }
            let Some(bytes) = self.some(stream, socket, buffer, Keep::Head)? else { return Ok(false) };
            first_byte.get_or_insert(self.context.clock.now());
            if bytes == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
            }
        };
        let bytes = length(&response, &asked, &path, client.target.is_some())?;
        let mut left = bytes.saturating_sub((buffer.head.len() - in_head) as u64);
        while left > 0 {
            let Some(got) = self.some(stream, socket, buffer, Keep::Nothing(left))? else {
                return Ok(false);
            };
            if got == 0 {
                let message = format!("the connection ended {left} bytes before the response");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
            left -= got;
        }
        let end = self.context.clock.now();
        self.context.sink.fetch(
            &self.end.flow,
            &Fetch {
                stream: stream.number,
                page: asked.page,
                object: u64::from(asked.object.number),
                size: if client.target.is_some() { bytes } else { asked.object.size },
                offset: asked.offset,
                bytes,
                time,
                first_byte: first_byte.unwrap_or(end) - time,
                duration: end - time,
                cache: by_cache(&response.fields),
            },
        );
        if response.keeps_open() {
            Ok(true)
        } else {
            Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server does not keep connections open"))
        }
    }

    /// Reads what there is; none: the run is over; 0: the server has closed.
    fn some(
        &self,
        stream: &Stream,
        socket: &Socket,
        buffer: &mut Buffer,
        keep: Keep,
    ) -> io::Result<Option<u64>> {
        loop {
            let got = match keep {
                Keep::Head => {
                    buffer.head.reserve(MAX_HEAD);
                    let length = buffer.head.len();
                    let got = socket.recv(&mut buffer.head.spare_capacity_mut()[..MAX_HEAD]);
                    if let Ok(got) = got {
                        // SAFETY: the kernel has written so many bytes there.
                        unsafe { buffer.head.set_len(length + got) };
                    }
                    got
                }
                Keep::Nothing(max) => {
                    buffer.rest.reserve(READ);
                    let max = max.min(READ as u64) as usize;
                    socket.recv_with_flags(&mut buffer.rest.spare_capacity_mut()[..max], libc::MSG_TRUNC)
                }
            };
            match got {
                Ok(bytes) => return Ok(self.arrived(stream, bytes as u64).then_some(bytes as u64)),
                Err(error) if waited(&error) => {
                    if self.context.over() {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Use of the bytes that are read.
#[derive(Clone, Copy)]
enum Keep {
    Head,
    /// At most so many are read, and discarded.
    Nothing(u64),
}

/// Memory that one request leaves to the next.
#[derive(Default)]
struct Buffer {
    head: Vec<u8>,
    /// Nothing is stored in it: its pages never come into being.
    rest: Vec<u8>,
}

/// The bytes of a request.
fn request(asked: &Asked, path: &str, host: &str) -> Vec<u8> {
    let range = match (asked.is_whole(), asked.offset, asked.offset + asked.bytes) {
        (true, ..) => String::new(),
        (false, first, end) => format!("Range: bytes={first}-{}\r\n", end - 1),
    };
    filled(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{range}"), "User-Agent", REQUEST_BYTES)
}

/// How a cache answered, as `Cache-Status` has it (RFC 9211): the nearest one that did not just pass the request on.
pub(super) fn by_cache(fields: &Fields) -> Option<&'static str> {
    let caches: Vec<&str> = fields.members("cache-status").collect();
    let answer = |cache: &&str| {
        let has = |parameter: &str| cache.split(';').skip(1).any(|one| one.trim() == parameter);
        if has("hit") {
            return Some("hit");
        }
        has("fwd-status=304").then_some("revalidated")
    };
    // The nearest one stands last.
    let nearest = caches.iter().rev().find_map(answer);
    nearest.or((!caches.is_empty()).then_some("miss"))
}

/// Bytes of the answer to what was asked; of a foreign server's object what it says, of ours what was asked for.
fn length(response: &Response, asked: &Asked, path: &str, is_foreign: bool) -> io::Result<u64> {
    let status = if asked.is_whole() { 200 } else { 206 };
    let length = response.body(&Method::Get).map_err(io::Error::other)?;
    if response.status != status {
        let Response { status, reason, .. } = response;
        return Err(io::Error::other(format!("the server answered {status} {reason} to GET {path}")));
    }
    match length {
        Framing::Length(bytes) if is_foreign || bytes == asked.bytes => Ok(bytes),
        _ if is_foreign => Err(io::Error::other("the response does not say how many bytes it has")),
        _ => Err(io::Error::other(format!("the response does not say that it has {} bytes", asked.bytes))),
    }
}
