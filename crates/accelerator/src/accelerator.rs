//! The thread that serves all connections.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;
use socket2::Socket;
use tcplab_plan::{Accelerator as Settings, WhenFull};

use crate::AcceleratorError;
use crate::connection::{Connection, Turn};
use crate::divert::{self, Choice, Diversion};
use crate::sample::{Counts, Sample};
use crate::socket::{self, plain};
use crate::splice::Pipes;

const LISTENER: Token = Token(usize::MAX - 1);
/// Events of one wait.
const EVENTS: usize = 1024;
/// Of a reached limit this much must be free again, percent, before connections are split anew.
const FREE: u64 = 10;
/// How often the memory held is added up at least, and the end looked for.
const REVIEW: Duration = Duration::from_millis(100);

/// A split-TCP accelerator in the network namespace it was made in.
#[derive(Debug)]
pub struct Accelerator {
    settings: Settings,
    user_timeout: Duration,
    listener: Socket,
    diversion: Diversion,
    poll: Poll,
    connections: Slab<Connection>,
    /// Connections that have more to do than one turn allows.
    ready: VecDeque<usize>,
    pipes: Pipes,
    counts: Counts,
    /// Payload held, bytes, at the last review.
    held: u64,
    passing: bool,
}

impl Accelerator {
    /// Listen, and divert what passes this namespace from now on.
    pub fn open(settings: Settings) -> Result<Accelerator, AcceleratorError> {
        let (listener, port) = socket::listen(&settings.towards_client)?;
        // The plan's settings of the other leg are tried before the first connection needs them.
        drop(socket::listen(&settings.towards_server)?);
        let poll = Poll::new().map_err(AcceleratorError::Events)?;
        poll.registry()
            .register(&mut SourceFd(&listener.as_raw_fd()), LISTENER, Interest::READABLE)
            .map_err(AcceleratorError::Events)?;
        let address = |host: &String| host.parse().map_err(|_| AcceleratorError::Host(host.clone()));
        let hosts = settings.hosts.iter().map(address).collect::<Result<_, _>>()?;
        let choice = Choice::Within { hosts, ports: settings.ports.clone() };
        let diversion = Diversion::new(divert::ACCELERATOR, port, choice)?;
        Ok(Accelerator {
            user_timeout: Duration::from_nanos(settings.user_timeout.as_ns()),
            settings,
            listener,
            diversion,
            poll,
            connections: Slab::new(),
            ready: VecDeque::new(),
            pipes: Pipes::default(),
            counts: Counts::default(),
            held: 0,
            passing: false,
        })
    }

    /// Serve until `over`, which is asked every 100 ms. Every `interval` `observe` is given each open connection.
    pub fn run(
        mut self,
        interval: Duration,
        over: impl Fn() -> bool,
        mut observe: impl FnMut(&Counts, &mut dyn Iterator<Item = Sample>),
    ) -> Result<Counts, AcceleratorError> {
        let mut events = Events::with_capacity(EVENTS);
        let interval = interval.min(REVIEW);
        let mut due = Instant::now() + interval;
        while !over() {
            let wait = if self.ready.is_empty() {
                due.saturating_duration_since(Instant::now())
            } else {
                Duration::ZERO
            };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(AcceleratorError::Events(error));
                }
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    Token(number) => self.ready.push_back(number / 2),
                }
            }
            // Each has one turn before the sockets are asked again.
            for _ in 0..self.ready.len() {
                if let Some(number) = self.ready.pop_front() {
                    self.turn(number);
                }
            }
            if Instant::now() >= due {
                due = (due + interval).max(Instant::now());
                // No further event reports a connection that came when no file descriptor was left.
                self.accept()?;
                self.look();
                observe(&self.counts, &mut self.samples());
            }
            self.review()?;
        }
        Ok(self.counts)
    }

    /// Adds up what is held, and resets the connections of ends that have vanished.
    fn look(&mut self) {
        let (now, mut gone) = (Instant::now(), Vec::new());
        self.held = 0;
        for (number, connection) in &mut self.connections {
            let Some(sample) = connection.sample() else { continue };
            self.held += sample.exposed_up() + sample.exposed_down();
            if connection.silence(&sample, now) > self.user_timeout {
                gone.push(number);
            }
        }
        for number in gone {
            self.counts.broken += 1;
            drop(self.remove(number));
        }
    }

    fn samples(&self) -> impl Iterator<Item = Sample> {
        self.connections.iter().filter_map(|(_, connection)| connection.sample())
    }

    fn turn(&mut self, number: usize) {
        // It may have ended since its event, or in its turn before.
        let Some(connection) = self.connections.get_mut(number) else { return };
        match connection.advance(&mut self.pipes) {
            Ok(Turn::Waits) => {}
            Ok(Turn::Ready) => self.ready.push_back(number),
            Ok(Turn::Over) => self.remove(number).close(),
            Err(_) => {
                self.counts.broken += 1;
                drop(self.remove(number));
            }
        }
    }

    fn remove(&mut self, number: usize) -> Connection {
        let connection = self.connections.remove(number);
        for socket in connection.sockets() {
            let _ = self.poll.registry().deregister(&mut SourceFd(&socket.as_raw_fd()));
        }
        self.counts.open = self.connections.len() as u64;
        connection
    }

    fn accept(&mut self) -> Result<(), AcceleratorError> {
        loop {
            let (client, from) = match self.listener.accept() {
                Ok((client, from)) => (client, from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client has gone again, or no file descriptor is left for it (accept(2)).
                Err(_) => return Ok(()),
            };
            if self.is_full() && self.settings.when_full == WhenFull::Reset {
                self.counts.refused += 1;
                let _ = client.set_linger(Some(Duration::ZERO));
                continue;
            }
            if self.split(client, from.as_socket()).is_none() {
                self.counts.broken += 1;
            }
        }
    }

    /// None if it came to nothing: the client is reset.
    fn split(&mut self, client: Socket, from: Option<SocketAddr>) -> Option<()> {
        socket::prepare(&client, self.user_timeout).ok()?;
        let (from, to) = (plain(from?), plain(client.local_addr().ok()?.as_socket()?));
        let server = socket::connect(from, to, &self.settings.towards_server, self.user_timeout).ok()?;
        let number = self.counts.accepted;
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        let connection = entry.insert(Connection::new(number, (client.into(), from), (server.into(), to)));
        let registry = self.poll.registry();
        // Edge-triggered; an event for what is ready already comes with the registration.
        let both = Interest::READABLE | Interest::WRITABLE;
        let registered = connection.sockets().into_iter().enumerate().try_for_each(|(side, socket)| {
            registry.register(&mut SourceFd(&socket.as_raw_fd()), Token(2 * key + side), both)
        });
        if registered.is_err() {
            drop(self.remove(key));
            return None;
        }
        self.counts.accepted += 1;
        self.counts.open = self.connections.len() as u64;
        Some(())
    }

    fn is_full(&self) -> bool {
        self.connections.len() as u64 >= u64::from(self.settings.connections)
            || self.held >= self.settings.memory
    }

    /// Lets new connections pass while a limit is reached, and for a while after.
    fn review(&mut self) -> Result<(), AcceleratorError> {
        if self.settings.when_full == WhenFull::Reset {
            return Ok(());
        }
        let below = |value: u64, limit: u64| value <= limit - limit.div_ceil(100 / FREE);
        if !self.passing && self.is_full() {
            self.passing = true;
            self.counts.passed += 1;
            self.diversion.open(false)?;
        } else if self.passing
            && below(self.connections.len() as u64, u64::from(self.settings.connections))
            && below(self.held, self.settings.memory)
        {
            self.passing = false;
            self.diversion.open(true)?;
        }
        Ok(())
    }
}
