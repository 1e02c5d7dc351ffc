//! The thread that serves all connections.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::sys::resource::{Resource, getrlimit};
use slab::Slab;
use tcplab_plan::{Accelerator as Settings, Load, WhenFull};

use crate::AcceleratorError;
use crate::connection::{Connection, Turn};
use crate::divert::{self, Choice};
use crate::sample::{Counts, Sample};
use crate::service::{self, Entrance, Incoming, Service};
use crate::socket;
use crate::splice::Pipes;

const LISTENER: Token = Token(usize::MAX - 1);
/// Events of one wait.
const EVENTS: usize = 1024;
/// Open files besides those of connections: listeners, pipes, output.
const OTHER_FILES: u64 = 64;

/// A split-TCP accelerator in the network namespace it was made in.
#[derive(Debug)]
pub struct Accelerator {
    settings: Settings,
    /// Connections that there are open files for.
    room: u64,
    /// They end before the diversion does, so that the kernel forwards nothing of theirs.
    connections: Slab<Connection>,
    entrance: Entrance,
    poll: Poll,
    events: Events,
    /// Connections that have more to do than one turn allows.
    ready: VecDeque<usize>,
    pipes: Pipes,
    counts: Counts,
    /// Payload held, bytes, at the last review.
    held: u64,
}

impl Accelerator {
    /// Listen, and divert what passes this namespace from now on.
    pub fn open(settings: Settings) -> Result<Accelerator, AcceleratorError> {
        let address = |host: &String| host.parse().map_err(|_| AcceleratorError::Host(host.clone()));
        let hosts = settings.hosts.iter().map(address).collect::<Result<_, _>>()?;
        let choice = Choice::Within { hosts, ports: settings.ports.clone() };
        let legs = [&settings.towards_client, &settings.towards_server];
        let user_timeout = Duration::from_nanos(settings.user_timeout.as_ns());
        let mut entrance = Entrance::open(divert::ACCELERATOR, legs, choice, user_timeout)?;
        for (port, to) in &settings.forward {
            let to = to.parse().map_err(|_| AcceleratorError::Destination(to.clone()))?;
            entrance.forward(*port, to, &settings.towards_client)?;
        }
        let poll = Poll::new().map_err(AcceleratorError::Events)?;
        for listener in entrance.listeners() {
            poll.registry()
                .register(&mut SourceFd(&listener.as_raw_fd()), LISTENER, Interest::READABLE)
                .map_err(AcceleratorError::Events)?;
        }
        let (files, _) =
            getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| AcceleratorError::Events(error.into()))?;
        let room = files.saturating_sub(OTHER_FILES) / 2;
        Ok(Accelerator {
            settings,
            room,
            connections: Slab::new(),
            entrance,
            poll,
            events: Events::with_capacity(EVENTS),
            ready: VecDeque::new(),
            // Of the tenth that connections leave, half.
            pipes: Pipes::at_most((room / 20) as usize),
            counts: Counts::default(),
            held: 0,
        })
    }

    /// Serve until `over`, which is asked every 100 ms or more often. Every `interval`, and at the end, `observe` is given each
    /// open connection.
    pub fn run(
        self,
        interval: Duration,
        over: impl Fn() -> bool,
        observe: impl FnMut(&Counts, &mut dyn Iterator<Item = Sample>),
    ) -> Result<Counts, AcceleratorError> {
        service::run(self, interval, over, observe)
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
        connection
    }

    /// None if it came to nothing: the client is reset.
    fn split(&mut self, Incoming { socket: client, from, to, diverted }: Incoming) -> Option<()> {
        let name = (diverted && self.settings.transparent).then_some(from);
        let user_timeout = self.entrance.user_timeout();
        let server = socket::connect(name, to, &self.settings.towards_server, user_timeout).ok()?;
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
        Some(())
    }

    fn fullness(&self) -> Load {
        let open = self.connections.len() as u64;
        // A tenth is for those that come while the diversion is being closed.
        self.settings.load(open, self.held).max(Load::of(open, self.room - self.room / 10))
    }
}

impl Service for Accelerator {
    type Counts = Counts;

    fn entrance(&mut self) -> &mut Entrance {
        &mut self.entrance
    }

    fn serve(&mut self, wait: Duration) -> Result<(), AcceleratorError> {
        let wait = if self.ready.is_empty() { wait } else { Duration::ZERO };
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(AcceleratorError::Events(error));
            }
            _ => {}
        }
        let mut arrived = false;
        for event in &self.events {
            match event.token() {
                LISTENER => arrived = true,
                Token(number) => self.ready.push_back(number / 2),
            }
        }
        if arrived {
            self.accept();
        }
        // Each has one turn before the sockets are asked again.
        for _ in 0..self.ready.len() {
            if let Some(number) = self.ready.pop_front() {
                self.turn(number);
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        while let Some(incoming) = self.entrance.accept() {
            let no_file = self.connections.len() as u64 >= self.room;
            // Dropped, it resets the client.
            if no_file || self.settings.when_full == WhenFull::Reset && self.fullness() == Load::Full {
                self.counts.refused += 1;
            } else if self.split(incoming).is_none() {
                self.counts.broken += 1;
            }
        }
    }

    fn review(&mut self, now: Instant) {
        let mut gone = Vec::new();
        self.held = 0;
        for (number, connection) in &mut self.connections {
            let Some(sample) = connection.sample() else { continue };
            self.held += sample.exposed_up() + sample.exposed_down();
            if connection.silence(&sample, now) > self.entrance.user_timeout() {
                gone.push(number);
            }
        }
        for number in gone {
            self.counts.broken += 1;
            drop(self.remove(number));
        }
    }

    fn load(&self) -> Load {
        // Where those beyond a limit are reset, none passes.
        if self.settings.when_full == WhenFull::Reset { Load::Low } else { self.fullness() }
    }

    fn counts(&self) -> Counts {
        Counts { open: self.connections.len() as u64, passed: self.entrance.passed, ..self.counts }
    }

    fn samples(&self) -> impl Iterator<Item = Sample> {
        self.connections.iter().filter_map(|(_, connection)| connection.sample())
    }
}
