//! A server for any number of clients, safe to leave open to strangers.
//!
//! One thread watches the listening sockets and all connections that have not greeted yet, of which it keeps a
//! bounded number, a bounded time, and a greeting's bytes each. Only a greeting within the limits gets a thread,
//! and memory for its largest message.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use socket2::Socket;
use tcplab_probe::{clock, scheduling};

use super::framed_io::{Broken, FramedIo, Limit, Wait};
use super::options;
use super::wire::{Answer, Greeting, GreetingError};
use crate::socket::ATTENTION;

/// Limits on requests of strangers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients served at a time.
    pub clients: u32,
    /// Longest message, bytes.
    pub size: u32,
    /// Maximum number of messages of a client, all sizes together.
    pub messages: u64,
    /// Longest pause between two messages, ns.
    pub interval: u64,
    /// Connections that may be open without having greeted yet; the oldest makes room for a new one.
    pub pending: usize,
    /// How long a greeting may take, ns.
    pub greeting: u64,
    /// How long a message may take to come or go, ns.
    pub message: u64,
    /// How long the first message of a size may be awaited, ns: clients wait for each other before it.
    pub pause: u64,
    /// Clients may have the server poll, which takes a CPU each.
    pub busy_poll: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            clients: 64,
            size: 1 << 20,
            messages: 1_000_000_000,
            interval: 60_000_000_000,
            pending: 256,
            greeting: 5_000_000_000,
            message: 30_000_000_000,
            pause: 600_000_000_000,
            busy_poll: false,
        }
    }
}

/// Why a connection is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum Unserved {
    #[error("{0}")]
    Greeting(#[from] GreetingError),
    #[error("messages of {asked} bytes are too long: at most {max} here")]
    Size { asked: u32, max: u32 },
    #[error("{asked} messages are too many: at most {max} here")]
    Messages { asked: u64, max: u64 },
    #[error("a pause of {} s is too long: at most {} s here", asked / 1_000_000_000, max / 1_000_000_000)]
    Interval { asked: u64, max: u64 },
    #[error("the server is busy with {serving} clients, and takes no more at a time")]
    Full { serving: u32 },
    #[error("no greeting came in time")]
    Silent,
    #[error("it made room for a newer connection")]
    Displaced,
    #[error("it was closed before it had greeted")]
    Gone,
    #[error("no thread can be started for it")]
    Thread,
}

/// How serving a client ended.
#[derive(Debug)]
pub struct Served {
    /// Messages sent back.
    pub messages: u64,
    /// When the last of them had been sent, ns on CLOCK_MONOTONIC; none where there is none, or the run's end came first.
    pub last: Option<u64>,
    /// Why before its time, with the size and the iteration that were under way.
    pub broken: Option<(u32, u64, Broken)>,
}

/// Hears of connections. Calls may come from several threads.
pub trait ServerObserver: Sync {
    /// A client is served from now on, which is the `answer` to its greeting. `received` counts its payload, bytes.
    fn accepted(
        &self,
        peer: SocketAddr,
        greeting: &Greeting,
        answer: &Answer,
        socket: &Socket,
        received: &Arc<AtomicU64>,
    );
    /// Serving a client has ended; called on its thread.
    fn ended(&self, peer: SocketAddr, greeting: &Greeting, socket: &Socket, served: Served);
    /// A connection was not served.
    fn unserved(&self, peer: SocketAddr, why: &Unserved);
}

/// A server with open ports.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<Socket>,
    limits: Limits,
    cpus: Vec<usize>,
}

/// A connection that has not greeted yet.
struct Pending {
    socket: Socket,
    peer: SocketAddr,
    since: u64,
    bytes: Vec<u8>,
}

/// Room for the first bytes of a greeting; the list of sizes follows only where these are sound.
const ROOM: usize = 54;

impl Server {
    /// A server on listening, non-blocking sockets. Served clients run on `cpus` in turn; none: anywhere.
    pub fn new(listeners: Vec<Socket>, limits: Limits, cpus: Vec<usize>) -> Server {
        Server { listeners, limits, cpus }
    }

    /// Serves until all is over, or, if `expected` clients are, until that many have been served.
    pub fn run(&self, limit: Limit, expected: Option<u32>, observer: &dyn ServerObserver) -> io::Result<()> {
        let serving = AtomicU32::new(0);
        let ended = AtomicU32::new(0);
        let mut pending: Vec<Pending> = Vec::with_capacity(self.limits.pending);
        let mut polls: Vec<libc::pollfd> = Vec::new();
        std::thread::scope(|scope| {
            let mut started = 0;
            while !limit.over() && expected.is_none_or(|all| ended.load(Ordering::Acquire) < all) {
                self.poll(&pending, &mut polls)?;
                let (listening, greeting) = polls.split_at(self.listeners.len());
                let ready = greeting.iter().enumerate().rev().filter(|(_, poll)| poll.revents != 0);
                let ready: Vec<usize> = ready.map(|(at, _)| at).collect();
                for at in ready {
                    match pending[at].read() {
                        None => {}
                        Some(Err(why)) => self.refuse(pending.swap_remove(at), &why, observer),
                        Some(Ok(greeting)) => {
                            let one = pending.swap_remove(at);
                            let busy = serving.load(Ordering::Acquire);
                            if let Err(why) = self.acceptable(&greeting, busy) {
                                self.refuse(one, &why, observer);
                                continue;
                            }
                            serving.fetch_add(1, Ordering::AcqRel);
                            let (serving, ended) = (&serving, &ended);
                            let cpu = self.cpus.get(started % self.cpus.len().max(1)).copied();
                            started += 1;
                            let peer = one.peer;
                            let spawned = std::thread::Builder::new()
                                .name("echo".into())
                                .stack_size(crate::tcp::STACK)
                                .spawn_scoped(scope, move || {
                                    self.serve(one, &greeting, cpu, limit, observer);
                                    serving.fetch_sub(1, Ordering::AcqRel);
                                    ended.fetch_add(1, Ordering::AcqRel);
                                });
                            if spawned.is_err() {
                                serving.fetch_sub(1, Ordering::AcqRel);
                                observer.unserved(peer, &Unserved::Thread);
                            }
                        }
                    }
                }
                let now = clock::now();
                while let Some(at) = pending.iter().position(|one| one.since + self.limits.greeting <= now) {
                    self.refuse(pending.swap_remove(at), &Unserved::Silent, observer);
                }
                for (listener, poll) in self.listeners.iter().zip(listening) {
                    if poll.revents != 0 {
                        self.accept(listener, &mut pending, observer);
                    }
                }
            }
            Ok(())
        })
    }

    fn poll(&self, pending: &[Pending], polls: &mut Vec<libc::pollfd>) -> io::Result<()> {
        polls.clear();
        let sockets = self.listeners.iter().chain(pending.iter().map(|one| &one.socket));
        polls.extend(sockets.map(|socket| libc::pollfd {
            fd: socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        }));
        // Long enough to cost nothing, short enough to notice the end.
        let patience = ATTENTION.as_millis() as libc::c_int / 2;
        // SAFETY: the array is valid in its whole length.
        let ready = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, patience) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
            polls.iter_mut().for_each(|poll| poll.revents = 0);
        }
        Ok(())
    }

    /// Takes what waits at a listener, but not more at a time than there is room for.
    fn accept(&self, listener: &Socket, pending: &mut Vec<Pending>, observer: &dyn ServerObserver) {
        for _ in 0..self.limits.pending.max(1) {
            match listener.accept() {
                Ok((socket, peer)) => {
                    let Some(peer) = peer.as_socket() else { continue };
                    if socket.set_nonblocking(true).is_err() {
                        continue;
                    }
                    if pending.len() >= self.limits.pending.max(1) {
                        displace(pending, observer);
                    }
                    let bytes = Vec::with_capacity(ROOM);
                    pending.push(Pending { socket, peer, since: clock::now(), bytes });
                }
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    // Without this the connection would be offered again and again.
                    if pending.is_empty() {
                        std::thread::sleep(Duration::from_millis(10));
                    } else {
                        displace(pending, observer);
                    }
                    return;
                }
                Err(_) => return,
            }
        }
    }

    fn acceptable(&self, greeting: &Greeting, serving: u32) -> Result<(), Unserved> {
        let limits = &self.limits;
        let messages = greeting.iterations.saturating_mul(greeting.sizes.len() as u64);
        if greeting.longest() > limits.size {
            return Err(Unserved::Size { asked: greeting.longest(), max: limits.size });
        }
        if messages > limits.messages {
            return Err(Unserved::Messages { asked: messages, max: limits.messages });
        }
        if greeting.interval > limits.interval {
            return Err(Unserved::Interval { asked: greeting.interval, max: limits.interval });
        }
        if serving >= limits.clients {
            return Err(Unserved::Full { serving });
        }
        Ok(())
    }

    /// Says why and closes. A stranger who speaks another protocol, or nothing, gets no answer.
    fn refuse(&self, mut one: Pending, why: &Unserved, observer: &dyn ServerObserver) {
        let speaks_ours = !matches!(
            why,
            Unserved::Greeting(GreetingError::Foreign)
                | Unserved::Silent
                | Unserved::Gone
                | Unserved::Displaced
        );
        if speaks_ours {
            // It fits into an empty send buffer; whom it does not reach has closed.
            let _ = one.socket.write(&Answer::refusal(why.to_string()).encode());
            let _ = one.socket.shutdown(std::net::Shutdown::Write);
            // Unread input would turn the close into a reset, which may overtake the words.
            let mut rest = [0; 1024];
            let _ = one.socket.read(&mut rest);
        }
        observer.unserved(one.peer, why);
    }

    fn serve(
        &self,
        one: Pending,
        greeting: &Greeting,
        cpu: Option<usize>,
        limit: Limit,
        observer: &dyn ServerObserver,
    ) {
        let received = Arc::new(AtomicU64::new(0));
        let polls = greeting.busy_poll && self.limits.busy_poll;
        let answer = Answer::ok(polls, self.prepare(&one.socket, greeting, cpu));
        observer.accepted(one.peer, greeting, &answer, &one.socket, &received);
        let (mut messages, mut last) = (0, None);
        let outcome = self.echo(&one.socket, greeting, &answer, limit, &received, (&mut messages, &mut last));
        let last = last.filter(|_| outcome.is_ok() || !limit.over());
        let served = Served { messages, last, broken: outcome.err() };
        observer.ended(one.peer, greeting, &one.socket, served);
    }

    fn echo(
        &self,
        socket: &Socket,
        greeting: &Greeting,
        answer: &Answer,
        limit: Limit,
        received: &AtomicU64,
        (messages, last): (&mut u64, &mut Option<u64>),
    ) -> Result<(), (u32, u64, Broken)> {
        let first = greeting.sizes.first().copied().unwrap_or(0);
        let timeout = self.limits.message.saturating_add(greeting.interval);
        let line = FramedIo::new(socket, Wait::of(answer.busy_poll, greeting.clients), timeout, limit)
            .map_err(|error| (first, 0, Broken::Io(error)))?;
        let patience = self.limits.pause.saturating_sub(self.limits.message);
        line.send(&answer.encode(), clock::now()).map_err(|broken| (first, 0, broken))?;
        let mut message = vec![0; greeting.longest() as usize];
        let mut bytes = 0;
        for &size in &greeting.sizes {
            let message = &mut message[..size as usize];
            let mut begun = clock::now() + patience;
            for iteration in 0..greeting.iterations {
                line.receive(message, begun).map_err(|broken| (size, iteration, broken))?;
                // Nothing between the two: what is done here, the client measures.
                line.send(message, begun).map_err(|broken| (size, iteration, broken))?;
                begun = clock::now();
                if begun >= limit.end {
                    return Err((size, iteration, Broken::Over));
                }
                *last = Some(begun);
                *messages += 1;
                bytes += u64::from(size);
                received.store(bytes, Ordering::Relaxed);
            }
        }
        // The client has all its answers when it closes; closing first would leave our port in TIME-WAIT.
        let mut rest = [0];
        let _ = line.receive(&mut rest, clock::now());
        Ok(())
    }

    /// Does what the greeting asks of this end's socket; what cannot be, in words.
    fn prepare(&self, socket: &Socket, greeting: &Greeting, cpu: Option<usize>) -> String {
        let mut words = Vec::new();
        if let Some(cpu) = cpu
            && let Err(error) = scheduling::pin(&[cpu])
        {
            words.push(format!("it cannot run on CPU {cpu}: {error}"));
        }
        if let Err(error) = socket.set_tcp_nodelay(greeting.nodelay) {
            words.push(format!("Nagle's algorithm stays as it is: {error}"));
        }
        if !greeting.control.is_empty()
            && options::control(socket) != greeting.control
            && let Err(error) = socket.set_tcp_congestion(greeting.control.as_bytes())
        {
            let own = options::control(socket);
            words.push(format!(
                "its congestion control is {own}, for {} is not allowed: {error}",
                greeting.control
            ));
        }
        if greeting.busy_poll && !self.limits.busy_poll {
            words.push("it sleeps between messages; start it with --busy-poll to have it poll".to_owned());
        }
        words.join("; ")
    }
}

fn displace(pending: &mut Vec<Pending>, observer: &dyn ServerObserver) {
    let oldest = pending.iter().enumerate().min_by_key(|(_, one)| one.since).map(|(at, _)| at);
    if let Some(at) = oldest {
        let one = pending.swap_remove(at);
        observer.unserved(one.peer, &Unserved::Displaced);
    }
}

impl Pending {
    /// Reads what has come, and no more than belongs to the greeting.
    fn read(&mut self) -> Option<Result<Greeting, Unserved>> {
        loop {
            let length = match Greeting::length(&self.bytes) {
                Ok(length) => length,
                Err(why) => return Some(Err(why.into())),
            };
            let had = self.bytes.len();
            if had == length {
                return Some(Greeting::parse(&self.bytes).map_err(Unserved::from));
            }
            self.bytes.resize(length, 0);
            let got = self.socket.read(&mut self.bytes[had..]);
            self.bytes.truncate(had + got.as_ref().map_or(0, |got| *got));
            match got {
                Ok(0) => return Some(Err(Unserved::Gone)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Some(Err(Unserved::Gone)),
            }
        }
    }
}
