//! Clients: each sends a message, waits for its echo, and times the two together.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsRawFd;

use socket2::Socket;
use tcplab_probe::{TcpInfo, clock, scheduling};
use tcplab_tables::EchoTally;

use super::barrier::Barrier;
use super::error::EchoError;
use super::framed_io::{Broken, FramedIo, Limit, Wait};
use super::record::{Keep, Live, Record, Round};
use super::wire::{Answer, Greeting};
use crate::socket::ATTENTION;
use crate::tcp::waited;

/// The task of all clients.
#[derive(Clone, Debug)]
pub struct Job {
    /// Where the server listens, for each client.
    pub addresses: Vec<SocketAddr>,
    /// Bytes of a message, size after size.
    pub sizes: Vec<u32>,
    /// Messages of each size.
    pub iterations: u64,
    /// Minimum time from one message to the next, ns.
    pub interval: u64,
    /// Nothing is sent from then on, ns on CLOCK_MONOTONIC.
    pub stop: u64,
    /// How long connecting, or one round trip, may take, ns.
    pub timeout: u64,
    /// The server shall switch Nagle's algorithm off.
    pub nodelay: bool,
    /// Both ends poll instead of sleeping.
    pub busy_poll: bool,
    /// Congestion control of the server's end; empty: its default.
    pub control: String,
    /// Client n runs on the n-th of these CPUs, and round again; none: where the kernel likes.
    pub cpus: Vec<usize>,
    /// The detail in which round trips are kept.
    pub keep: Keep,
    /// The run's zero, ns on CLOCK_MONOTONIC.
    pub zero: u64,
}

/// A client's connection, once it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Its own port.
    pub local_port: u16,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Congestion control of its end.
    pub control: String,
    /// The server polls too.
    pub server_polls: bool,
    /// The server's deviations from the request, in words.
    pub words: String,
}

/// Sees what clients do, on their threads and between their round trips.
pub trait Observer: Sync {
    /// A client has sent its SYN.
    fn connecting(&self, _client: u32, _socket: &Socket) {}
    /// A client is connected.
    fn established(&self, _client: u32, _socket: &Socket) {}
    /// A client has been accepted.
    fn connected(&self, client: u32, socket: &Socket, connected: &Connected);
    /// Round trips kept one by one, in order.
    fn rounds(&self, client: u32, size: u32, rounds: &[Round]);
    /// A client is through with a size, or cannot go on; `done` round trips were made at it.
    fn size_done(&self, client: u32, size: u32, done: u64, tally: &EchoTally);
    /// A client has ended. If it had connected, there is its socket, and when it was done, ns on CLOCK_MONOTONIC.
    fn ended(&self, client: u32, socket: Option<(&Socket, u64)>, outcome: Result<(), EchoError>);
}

impl Job {
    /// Has every socket (fresh, its options set) do its part; returns when all have ended. `lives` has one
    /// entry a client. A client that fails leaves the others going.
    pub fn run(
        &self,
        sockets: Vec<Socket>,
        lives: &[Live],
        limit: Limit,
        observer: &dyn Observer,
    ) -> io::Result<()> {
        let barrier = Barrier::new(sockets.len() as u32);
        std::thread::scope(|scope| {
            let mut refused = None;
            for ((number, socket), live) in sockets.into_iter().enumerate().zip(lives) {
                let (barrier, clients) = (&barrier, lives.len() as u32);
                let client = Client { job: self, number: number as u32, clients, limit };
                let spawned = std::thread::Builder::new()
                    .name(format!("client {number}"))
                    .stack_size(crate::tcp::STACK)
                    .spawn_scoped(scope, move || {
                        client.run(socket, barrier, live, observer);
                        barrier.leave();
                    });
                if let Err(error) = spawned {
                    barrier.leave();
                    refused = Some(error);
                }
            }
            refused.map_or(Ok(()), Err)
        })
    }
}

struct Client<'a> {
    job: &'a Job,
    number: u32,
    clients: u32,
    limit: Limit<'a>,
}

impl Client<'_> {
    fn run(&self, socket: Socket, barrier: &Barrier, live: &Live, observer: &dyn Observer) {
        let connected = match self.connect(&socket, observer) {
            Ok(connected) => connected,
            Err(error) => return observer.ended(self.number, None, Err(error)),
        };
        observer.connected(self.number, &socket, &connected);
        let mut last = clock::now();
        let outcome = self.echo(&socket, barrier, live, &mut last, observer);
        // Where the run cuts it off, it lasts until then.
        let done = if outcome.is_err() && self.limit.over() { clock::now() } else { last };
        if outcome.as_ref().err().is_none_or(EchoError::is_over) {
            self.close(&socket);
        }
        observer.ended(self.number, Some((&socket, done)), outcome);
    }

    /// Says that no more comes, by which the server sees that all is well, and waits until it closes too.
    fn close(&self, socket: &Socket) {
        let begun = clock::now();
        let is_set = socket.set_nonblocking(false).and_then(|()| socket.set_read_timeout(Some(ATTENTION)));
        if is_set.and_then(|()| socket.shutdown(Shutdown::Write)).is_err() {
            return;
        }
        let mut byte = [MaybeUninit::uninit(); 1];
        while !self.limit.over() && clock::now() - begun < self.job.timeout {
            match socket.recv(&mut byte) {
                Ok(0) => return,
                Err(error) if !waited(&error) => return,
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn connect(&self, socket: &Socket, observer: &dyn Observer) -> Result<Connected, EchoError> {
        let (client, job) = (self.number, self.job);
        let address = job.addresses[client as usize % job.addresses.len()];
        if let Some(&cpu) = job.cpus.get(client as usize % job.cpus.len().max(1)) {
            scheduling::pin(&[cpu]).map_err(|source| EchoError::Pin { client, cpu, source })?;
        }
        let reached = self.reach(socket, address, observer);
        reached.map_err(|source| EchoError::Connect { client, address, source })?;
        observer.established(client, socket);
        let greeting = Greeting {
            nodelay: job.nodelay,
            busy_poll: job.busy_poll,
            client,
            clients: self.clients,
            iterations: job.iterations,
            interval: job.interval,
            control: job.control.clone(),
            sizes: job.sizes.clone(),
        };
        let answer = self.greet(socket, &greeting).map_err(|source| match source {
            None => EchoError::Foreign { client, address },
            Some(source) => EchoError::NoAnswer { client, address, source },
        })?;
        if !answer.accepted {
            let Answer { words, version, .. } = answer;
            return Err(EchoError::Refused { client, address, words, version });
        }
        Ok(Connected {
            local_port: crate::socket::local_port(socket).unwrap_or(0),
            mss: TcpInfo::of(socket.as_raw_fd()).map_or(0, |info| info.snd_mss),
            control: super::options::control(socket),
            server_polls: answer.busy_poll,
            words: answer.words,
        })
    }

    /// Connects within the time one operation may take.
    fn reach(&self, socket: &Socket, address: SocketAddr, observer: &dyn Observer) -> io::Result<()> {
        let begun = clock::now();
        socket.set_nonblocking(true)?;
        match socket.connect(&address.into()) {
            Ok(()) => observer.connecting(self.number, socket),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {
                observer.connecting(self.number, socket);
                let mut answered = false;
                while !answered {
                    answered = crate::socket::wait(socket, libc::POLLOUT)?;
                    // An answer that comes when all is over is none.
                    if self.limit.over() || !answered && clock::now() - begun >= self.job.timeout {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer"));
                    }
                }
                if let Some(error) = socket.take_error()? {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        socket.set_nonblocking(false)
    }

    /// Sends the greeting and reads the answer; an error without a cause: what came is not an answer.
    fn greet(&self, socket: &Socket, greeting: &Greeting) -> Result<Answer, Option<Broken>> {
        let begun = clock::now();
        let line = FramedIo::new(socket, Wait::Sleep, self.job.timeout, self.limit).map_err(Broken::Io)?;
        line.send(&greeting.encode(), begun)?;
        let mut bytes = Vec::new();
        loop {
            let length = Answer::length(&bytes).ok_or(None)?;
            if length == bytes.len() {
                return Answer::parse(&bytes).ok_or(None);
            }
            let had = bytes.len();
            bytes.resize(length, 0);
            if let Err(broken) = line.receive(&mut bytes[had..], begun) {
                // A short answer of something else may be all that comes.
                let Broken::Closed { moved, .. } = broken else { return Err(Some(broken)) };
                bytes.truncate(had + moved);
                return Err(Answer::length(&bytes).map(|_| broken));
            }
        }
    }

    /// Does its work; `last` becomes when the last answer came.
    fn echo(
        &self,
        socket: &Socket,
        barrier: &Barrier,
        live: &Live,
        last: &mut u64,
        observer: &dyn Observer,
    ) -> Result<(), EchoError> {
        let (client, job) = (self.number, self.job);
        let line = FramedIo::new(socket, Wait::of(job.busy_poll, self.clients), job.timeout, self.limit)
            .map_err(|source| EchoError::Option { client, source })?;
        let longest = job.sizes.iter().copied().max().unwrap_or(0) as usize;
        let mut message: Vec<u8> = (0..longest).map(|at| at as u8).collect();
        let mut answer = vec![0; longest];
        let mut record = Record::new(job.keep, job.iterations, live);
        for (place, &size) in job.sizes.iter().enumerate() {
            record.turn_to(place, size);
            let lost = |iteration, source| EchoError::Lost { client, size, iteration, source };
            if !barrier.wait(&self.limit) {
                return Err(lost(0, Broken::Over));
            }
            let length = size as usize;
            let (message, answer) = (&mut message[..length], &mut answer[..length]);
            let outcome = self.series(&line, size, (message, answer), &mut record, last, observer);
            // Measurements are kept, also of a series that broke off.
            if !record.rounds().is_empty() {
                observer.rounds(client, size, record.rounds());
            }
            observer.size_done(client, size, record.done(), record.tally());
            outcome?;
        }
        Ok(())
    }

    /// All round trips of one size. Nothing is allocated, locked or formatted on the way.
    fn series(
        &self,
        line: &FramedIo,
        size: u32,
        (message, answer): (&mut [u8], &mut [u8]),
        record: &mut Record,
        last: &mut u64,
        observer: &dyn Observer,
    ) -> Result<(), EchoError> {
        let (client, job) = (self.number, self.job);
        let mut due = 0;
        for iteration in 0..job.iterations {
            stamp(message, iteration);
            if job.interval > 0 {
                self.pause(due);
            }
            let lost = |source| EchoError::Lost { client, size, iteration, source };
            let begun = clock::now();
            if begun >= job.stop {
                return Err(lost(Broken::Over));
            }
            due = begun.saturating_add(job.interval);
            let done = line.send(message, begun).and_then(|()| line.receive(answer, begun));
            let ended = clock::now();
            done.map_err(lost)?;
            if ended >= self.limit.end {
                return Err(lost(Broken::Over));
            }
            if !same_stamp(message, answer) {
                return Err(EchoError::Wrong { client, size, iteration });
            }
            *last = ended;
            let time = begun.saturating_sub(job.zero);
            if record.take(Round { iteration, time, rtt: ended - begun }) {
                observer.rounds(client, size, record.rounds());
                record.forget();
            }
            if iteration % LOOK == LOOK - 1 && self.limit.over() {
                return Err(lost(Broken::Over));
            }
        }
        Ok(())
    }

    fn pause(&self, due: u64) {
        if self.job.busy_poll {
            clock::spin_until(due.min(self.job.stop), SPIN, self.limit.stop);
        } else {
            clock::sleep_until(due.min(self.job.stop), self.limit.stop);
        }
    }
}

/// Round trips between two looks at whether all is over.
const LOOK: u64 = 16;
/// How long before a message is due a polling client stops sleeping, ns.
const SPIN: u64 = 200_000;
/// Bytes of the number at each end of a message.
const STAMP: usize = 8;

/// Numbers a message, so that an answer to another one, or one cut and joined wrongly, is noticed.
#[inline]
fn stamp(message: &mut [u8], iteration: u64) {
    let number = iteration.to_le_bytes();
    let length = message.len().min(STAMP);
    message[..length].copy_from_slice(&number[..length]);
    if message.len() >= 2 * STAMP {
        let tail = message.len() - STAMP;
        message[tail..].copy_from_slice(&number);
    }
}

#[inline]
fn same_stamp(message: &[u8], answer: &[u8]) -> bool {
    let length = message.len().min(STAMP);
    let tail = message.len() - length;
    message[..length] == answer[..length] && message[tail..] == answer[tail..]
}
