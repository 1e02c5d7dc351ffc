//! One client's connection: its requests one after the other, and the connection to the server that they need.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use nix::poll::PollFlags;
use socket2::Socket;
use tcplab_traffic::http::{Fields, Framing, Method, Request, Response, Wanted, wanted};

use super::blocking::{fill, send};
use super::chunks::Chunks;
use super::rules;
use super::shelf::{Body, Exchange, Found, Key, Stored};
use super::{Open, Shared};
use crate::socket;

mod passing;

/// Size of one read from a client: requests are small.
const REQUEST: usize = 16 << 10;
/// Size of one read from a server.
const RESPONSE: usize = 64 << 10;
/// A head that does not go on for so long is passed on: its sender may wait for an answer to something else than HTTP.
const HEAD: Duration = Duration::from_secs(3);
/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(30);
/// How long a client may take to close a connection that has been closed to it.
const LINGER: Duration = Duration::from_secs(2);
/// This cache in `Cache-Status` and `Via`.
const NAME: &str = "tcplab";

/// How a conversation ends.
enum End {
    /// The client has no more requests.
    Client,
    /// The last response was said to be the last.
    Cache,
    /// The rest is passed on as it is.
    PassedOn,
    /// The server has spoken first, and all is passed on as it is.
    Greeted,
}

/// A connection to the server.
struct Server {
    socket: Arc<Socket>,
    input: Vec<u8>,
}

/// An answer whose body has not been read yet.
struct Answer {
    response: Response,
    /// Bytes of its head.
    head: u64,
    exchange: Exchange,
}

/// A client's connection.
pub(super) struct Conversation {
    cache: Arc<Shared>,
    /// Its place among the open ones.
    place: usize,
    client: Arc<Socket>,
    from: SocketAddr,
    to: SocketAddr,
    input: Vec<u8>,
    server: Option<Server>,
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.cache.open().try_remove(self.place);
    }
}

impl Conversation {
    pub(super) fn new(
        cache: Arc<Shared>,
        place: usize,
        client: Arc<Socket>,
        from: SocketAddr,
        to: SocketAddr,
    ) -> Conversation {
        Conversation { cache, place, client, from, to, input: Vec::new(), server: None }
    }

    /// Serves the connection until it ends.
    pub(super) fn serve(mut self) {
        let ended = self.answer_all().and_then(|end| match end {
            End::Client => self.client.set_linger(None),
            End::Cache => self.close(),
            End::PassedOn => self.pass_on(),
            End::Greeted => self.pass_on_greeting(),
        });
        if ended.is_err() {
            self.cache.count(|counts| counts.broken += 1);
        }
    }

    fn answer_all(&mut self) -> io::Result<End> {
        if self.server_speaks_first()? {
            return Ok(End::Greeted);
        }
        loop {
            match Request::parse(&self.input) {
                Ok(Some((request, length))) => {
                    if !can_be_answered(&request) {
                        // Whatever it does to the object, it is not as it was (RFC 9111, section 4.4).
                        self.cache.shelf().remove(&self.key(&request));
                        return Ok(End::PassedOn);
                    }
                    self.input.drain(..length);
                    if !self.answer(&request)? {
                        return Ok(End::Cache);
                    }
                }
                Ok(None) => {
                    let begun = !self.input.is_empty();
                    if begun && !socket::wait(&self.client, PollFlags::POLLIN, HEAD)? {
                        return Ok(End::PassedOn);
                    }
                    if fill(&self.client, &mut self.input, REQUEST)? == 0 {
                        return Ok(if begun { End::PassedOn } else { End::Client });
                    }
                }
                Err(_) => return Ok(End::PassedOn),
            }
        }
    }

    fn key(&self, request: &Request) -> Key {
        let server = self.cache.servers.get(&self.to).copied().unwrap_or(self.to);
        let host = if request.host == self.to.to_string() {
            server.to_string()
        } else {
            request.host.to_ascii_lowercase()
        };
        Key { server, host, path: request.path.clone() }
    }

    /// Answers one request; whether the connection stays open.
    fn answer(&mut self, request: &Request) -> io::Result<bool> {
        let key = self.key(request);
        let found = self.cache.shelf().look(&key, request, self.cache.now());
        match found {
            // These are for the server to decide (RFC 9111, section 4.3.2).
            _ if ["if-match", "if-unmodified-since"]
                .iter()
                .any(|name| request.fields.first(name).is_some()) =>
            {
                self.ask_and_deliver(request, &key, "bypass")
            }
            Found::Fresh(stored) => {
                self.cache.count(|counts| counts.hits += 1);
                self.deliver_stored(request, &stored, "hit")
            }
            _ if rules::directive(&request.fields, "only-if-cached").is_some() => {
                self.refuse(request, "504 Gateway Timeout", "fwd=miss", "not stored")
            }
            Found::ToConfirm(stored, why) => self.confirm(request, &key, &stored, why),
            Found::Nothing(why) => self.ask_and_deliver(request, &key, why),
        }
    }

    fn ask_and_deliver(&mut self, request: &Request, key: &Key, why: &str) -> io::Result<bool> {
        self.cache.count(|counts| counts.misses += 1);
        match self.ask(request, rules::end_to_end(&request.fields)) {
            Ok(answer) => self.deliver(request, key, answer, why),
            Err(problem) => self.refuse(request, "502 Bad Gateway", &format!("fwd={why}"), &problem),
        }
    }

    /// Asks the server whether what is stored still holds (RFC 9111, section 4.3).
    fn confirm(&mut self, request: &Request, key: &Key, stored: &Arc<Stored>, why: &str) -> io::Result<bool> {
        let mut fields = rules::end_to_end(&request.fields);
        for name in ["if-none-match", "if-modified-since", "if-range", "range"] {
            fields.remove(name);
        }
        for (condition, validator) in [("If-None-Match", "etag"), ("If-Modified-Since", "last-modified")] {
            if let Some(value) = stored.fields.first(validator) {
                fields.set(condition, value);
            }
        }
        let forwarded = format!("fwd={why}");
        let answer = match self.ask(request, fields) {
            Ok(answer) => answer,
            Err(problem) => {
                self.cache.count(|counts| counts.misses += 1);
                return self.refuse(request, "502 Bad Gateway", &forwarded, &problem);
            }
        };
        if answer.response.status == 304 {
            self.cache.count(|counts| counts.revalidated += 1);
            let confirmed = Arc::new(stored.confirmed(&answer.response, answer.exchange));
            self.cache.shelf().confirm(key, stored, &confirmed);
            self.keep_server(answer.response.keeps_open());
            return self.deliver_stored(request, &confirmed, &format!("{forwarded}; fwd-status=304"));
        }
        self.cache.count(|counts| counts.misses += 1);
        // An error of the server does not speak of the object.
        if answer.response.status < 500 {
            self.cache.shelf().remove(key);
        }
        self.deliver(request, key, answer, why)
    }

    /// Asks the server; a connection that it has closed since the last request is replaced once (RFC 9110, section 9.2.2).
    fn ask(&mut self, request: &Request, mut fields: Fields) -> Result<Answer, String> {
        if fields.first("host").is_none_or(|host| host != request.host) {
            let host = if request.host.is_empty() { self.to.to_string() } else { request.host.clone() };
            fields.set("Host", host);
        }
        fields.add("Via", via(request.is_1_1));
        let head = fields.after(&format!("{} {} HTTP/1.1", request.method.name(), request.path));
        if self.server.is_some()
            && let Ok(answer) = self.try_ask(request, &head)
        {
            return Ok(answer);
        }
        self.forget_server();
        self.server =
            Some(self.connect().map_err(|error| format!("cannot connect to {}: {error}", self.to))?);
        self.try_ask(request, &head).map_err(|error| {
            self.forget_server();
            format!("no response from {}: {error}", self.to)
        })
    }

    fn try_ask(&mut self, request: &Request, head: &[u8]) -> io::Result<Answer> {
        let Some(server) = &mut self.server else { return Err(io::ErrorKind::NotConnected.into()) };
        let asked = Instant::now();
        server.socket.set_linger(Some(Duration::ZERO))?;
        send(&server.socket, &[head])?;
        loop {
            if let Some((response, length)) = Response::parse(&server.input).map_err(io::Error::other)? {
                server.input.drain(..length);
                if response.status == 101 {
                    return Err(io::Error::other("it changes the protocol unasked"));
                }
                if response.status >= 200 {
                    let (delay, received, at) = (asked.elapsed(), SystemTime::now(), self.cache.now());
                    let exchange = Exchange { delay, received, at };
                    return Ok(Answer { response, head: length as u64, exchange });
                }
                // Of these there may be any number before the response (RFC 9110, section 15.2).
                if request.is_1_1 {
                    send(&self.client, &[&response.to_bytes()])?;
                }
            } else if fill(&server.socket, &mut server.input, RESPONSE)? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
            }
        }
    }

    fn connect(&self) -> io::Result<Server> {
        // The client's address, but not its port: the server may still know a connection from there.
        let client = SocketAddr::new(self.from.ip(), 0);
        let connected =
            socket::connect(Some(client), self.to, &self.cache.towards_server, self.cache.user_timeout)
                .map_err(io::Error::other)?;
        if !socket::wait(&connected, PollFlags::POLLOUT, CONNECT)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if let Some(error) = connected.take_error()? {
            return Err(error);
        }
        connected.set_nonblocking(false)?;
        let socket = Arc::new(connected);
        self.seen(|open| open.server = Some((socket.clone(), self.to)));
        Ok(Server { socket, input: Vec::new() })
    }

    /// Changes what is seen from outside.
    fn seen(&self, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.cache.open().get_mut(self.place) {
            change(open);
        }
    }

    /// After a response: whether the connection to the server can have a further request.
    fn keep_server(&mut self, keeps_open: bool) {
        let Some(server) = &self.server else { return };
        // No response is pending: closing it normally loses no data.
        let _ = server.socket.set_linger(None);
        if !keeps_open || !server.input.is_empty() {
            self.forget_server();
        }
    }

    fn forget_server(&mut self) {
        self.server = None;
        self.seen(|open| open.server = None);
    }

    /// Passes on the server's answer, and stores it if it may be.
    fn deliver(&mut self, request: &Request, key: &Key, answer: Answer, why: &str) -> io::Result<bool> {
        let Answer { response, head, exchange } = answer;
        let framing = response.body(&request.method).map_err(io::Error::other)?;
        let lifetime = rules::lifetime(&response.fields, exchange.received);
        let fits = !matches!(framing, Framing::Length(length) if length > self.cache.size);
        let is_delimited = !matches!(framing, Framing::Close);
        let mut keeping = (fits && is_delimited && rules::may_store(request, &response, lifetime))
            .then(|| Body::new(&self.cache.memory));

        // Chunks are not for clients of HTTP/1.0.
        let decodes = !request.is_1_1 && framing == Framing::Chunked;
        let keeps_open = request.keeps_open() && is_delimited && !decodes;
        let mut passed = Response { fields: rules::end_to_end(&response.fields), ..response.clone() };
        if let Some(coding) = response.fields.first("transfer-encoding").filter(|_| !decodes) {
            passed.fields.set("Transfer-Encoding", coding);
            passed.fields.remove("content-length");
        }
        if passed.fields.first("date").is_none() {
            passed.fields.set("Date", httpdate::fmt_http_date(exchange.received));
        }
        passed.fields.add("Via", via(response.is_1_1));
        passed.fields.add("Cache-Status", format!("{NAME}; fwd={why}"));
        say_whether_open(&mut passed.fields, request, keeps_open);
        send(&self.client, &[&passed.to_bytes()])?;

        self.relay(framing, decodes, &mut keeping)?;
        self.keep_server(response.keeps_open() && is_delimited);
        if let Some(body) = keeping {
            let stored = Stored::new(request, &response, head, body, exchange);
            self.cache.shelf().put(key.clone(), stored);
        }
        Ok(keeps_open)
    }

    /// Passes on a body as fast as the client takes it.
    fn relay(&mut self, framing: Framing, decodes: bool, keeping: &mut Option<Body>) -> io::Result<()> {
        let Some(server) = &mut self.server else { return Ok(()) };
        let mut keep = |bytes: &[u8]| {
            if keeping.as_mut().is_some_and(|body| !body.append(bytes)) {
                *keeping = None;
            }
        };
        let mut left = if let Framing::Length(length) = framing { length } else { u64::MAX };
        let (mut chunks, mut data) = (Chunks::default(), Vec::new());
        while left > 0 && !chunks.ended() {
            if server.input.is_empty() && fill(&server.socket, &mut server.input, RESPONSE)? == 0 {
                if framing == Framing::Close {
                    return Ok(());
                }
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let length = left.min(server.input.len() as u64) as usize;
            let taken = if framing == Framing::Chunked {
                let taken = chunks.take(&server.input, &mut data)?;
                send(&self.client, &[if decodes { &data } else { &server.input[..taken] }])?;
                keep(&data);
                data.clear();
                taken
            } else {
                send(&self.client, &[&server.input[..length]])?;
                keep(&server.input[..length]);
                left -= length as u64;
                length
            };
            server.input.drain(..taken);
        }
        Ok(())
    }

    /// Answers from what is stored; `how` is for `Cache-Status`.
    fn deliver_stored(&mut self, request: &Request, stored: &Stored, how: &str) -> io::Result<bool> {
        let keeps_open = request.keeps_open();
        let body = stored.body.bytes();
        let size = body.len() as u64;
        let mut fields = stored.fields.clone();
        fields.set("Age", stored.age(self.cache.now()).as_secs().to_string());
        fields.add("Via", via(true));
        fields.add("Cache-Status", format!("{NAME}; {how}"));
        say_whether_open(&mut fields, request, keeps_open);
        let mut part: &[u8] = &[];
        let status = if rules::is_known(&request.fields, &stored.fields) {
            for name in ["content-type", "content-encoding", "content-language"] {
                fields.remove(name);
            }
            "304 Not Modified"
        } else {
            match wanted(request, size, stored.fields.first("etag")) {
                Wanted::Whole => {
                    fields.set("Content-Length", size.to_string());
                    part = body;
                    "200 OK"
                }
                Wanted::Part { offset, bytes } => {
                    fields.set("Content-Length", bytes.to_string());
                    fields.set("Content-Range", format!("bytes {offset}-{}/{size}", offset + bytes - 1));
                    part = &body[offset as usize..(offset + bytes) as usize];
                    "206 Partial Content"
                }
                Wanted::Unsatisfiable => {
                    fields.set("Content-Length", "0");
                    fields.set("Content-Range", format!("bytes */{size}"));
                    "416 Range Not Satisfiable"
                }
            }
        };
        if request.method == Method::Head {
            part = &[];
        }
        send(&self.client, &[&fields.after(&format!("HTTP/1.1 {status}")), part])?;
        Ok(keeps_open)
    }

    /// An answer of the cache's own.
    fn refuse(&mut self, request: &Request, status: &str, how: &str, problem: &str) -> io::Result<bool> {
        let keeps_open = request.keeps_open();
        let body = format!("{status}: {problem}\n");
        let mut fields = Fields::default();
        fields.set("Date", httpdate::fmt_http_date(SystemTime::now()));
        fields.set("Content-Type", "text/plain");
        fields.set("Content-Length", body.len().to_string());
        fields.set("Cache-Control", "no-store");
        fields.add("Cache-Status", format!("{NAME}; {how}"));
        say_whether_open(&mut fields, request, keeps_open);
        let body = if request.method == Method::Head { &[] } else { body.as_bytes() };
        send(&self.client, &[&fields.after(&format!("HTTP/1.1 {status}")), body])?;
        Ok(keeps_open)
    }

    /// Ends the connection so that the client gets all of the last response (RFC 9112, section 9.6).
    fn close(&self) -> io::Result<()> {
        self.client.set_linger(None)?;
        self.client.shutdown(Shutdown::Write)?;
        self.client.set_read_timeout(Some(LINGER))?;
        let mut rest = Vec::new();
        while let Ok(1..) = fill(&self.client, &mut rest, REQUEST) {
            rest.clear();
        }
        Ok(())
    }
}

/// Whether a cache has a part in it: a GET or HEAD of HTTP alone.
fn can_be_answered(request: &Request) -> bool {
    matches!(request.method, Method::Get | Method::Head)
        && request.body == Framing::Length(0)
        && request.fields.first("upgrade").is_none()
        && request.fields.first("expect").is_none()
}

fn via(is_1_1: bool) -> String {
    format!("{} {NAME}", if is_1_1 { "1.1" } else { "1.0" })
}

/// Properties of a response that a client cannot know from its own request (RFC 9112, section 9.3).
fn say_whether_open(fields: &mut Fields, request: &Request, keeps_open: bool) {
    if !keeps_open {
        fields.set("Connection", "close");
    } else if !request.is_1_1 {
        fields.set("Connection", "keep-alive");
    }
}
