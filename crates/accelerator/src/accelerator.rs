//! The thread that serves all connections, or as many as it has open files for.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::sys::resource::{Resource, getrlimit};
use slab::Slab;
use tcplab_plan::{Accelerator as Settings, Load, WhenFull};

use crate::AcceleratorError;
use crate::connection::{Connection, Turn};
use crate::divert::{self, Choice, Diversion};
use crate::sample::{Counts, Sample};
use crate::service::{self, Entrance, Incoming, Service};
use crate::socket;
use crate::splice::Pipes;
use crate::threads::{self, Share, Threads};

const LISTENER: Token = Token(usize::MAX - 1);
/// Events of one wait.
const EVENTS: usize = 1024;
/// Open files besides those of connections: listeners, pipes, output.
const OTHER_FILES: u64 = 64;

/// A split-TCP accelerator in the network namespace it was made in.
#[derive(Debug)]
pub struct Accelerator {
    /// This thread's, from 0.
    number: usize,
    common: Arc<Common>,
    /// They end before the diversion does, so that the kernel forwards nothing of theirs.
    connections: Slab<Connection>,
    entrance: Entrance,
    poll: Poll,
    events: Events,
    /// Connections that have more to do than one turn allows.
    ready: VecDeque<usize>,
    pipes: Pipes,
}

/// State that its threads share.
#[derive(Debug)]
struct Common {
    settings: Settings,
    user_timeout: Duration,
    threads: Threads,
    accepted: AtomicU64,
    broken: AtomicU64,
    refused: AtomicU64,
}

impl Accelerator {
    /// Listen, and divert what passes this namespace from now on.
    pub fn open(settings: Settings) -> Result<Accelerator, AcceleratorError> {
        let address = |host: &String| host.parse().map_err(|_| AcceleratorError::Host(host.clone()));
        let hosts = settings.hosts.iter().map(address).collect::<Result<_, _>>()?;
        let choice = Choice::Within { hosts, ports: settings.ports.clone() };
        let legs = [&settings.towards_client, &settings.towards_server];
        let user_timeout = Duration::from_nanos(settings.user_timeout.as_ns());
        let entrance = Entrance::open(divert::ACCELERATOR, legs, choice, &settings.forward, user_timeout)?;
        let (files, _) =
            getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| AcceleratorError::Events(error.into()))?;
        let threads =
            Threads::for_connections(settings.connections.into(), files.saturating_sub(OTHER_FILES) / 2);
        let [accepted, broken, refused] = Default::default();
        let common = Common { settings, user_timeout, threads, accepted, broken, refused };
        Accelerator::at(entrance, 0, Arc::new(common))
    }

    /// Another thread's.
    fn beside(
        diversion: Arc<Mutex<Diversion>>,
        number: usize,
        common: Arc<Common>,
    ) -> Result<Accelerator, AcceleratorError> {
        let settings = &common.settings;
        let (leg, forwards) = (&settings.towards_client, &settings.forward);
        let entrance = Entrance::beside(diversion, leg, forwards, common.user_timeout)?;
        Accelerator::at(entrance, number, common)
    }

    fn at(entrance: Entrance, number: usize, common: Arc<Common>) -> Result<Accelerator, AcceleratorError> {
        let poll = Poll::new().map_err(AcceleratorError::Events)?;
        for listener in entrance.listeners() {
            poll.registry()
                .register(&mut SourceFd(&listener.as_raw_fd()), LISTENER, Interest::READABLE)
                .map_err(AcceleratorError::Events)?;
        }
        Ok(Accelerator {
            number,
            connections: Slab::new(),
            entrance,
            poll,
            events: Events::with_capacity(EVENTS),
            ready: VecDeque::new(),
            // Of the tenth that connections leave, half.
            pipes: Pipes::at_most((common.threads.room() / 20) as usize),
            common,
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
                self.common.broken.fetch_add(1, Ordering::Relaxed);
                drop(self.remove(number));
            }
        }
    }

    fn remove(&mut self, number: usize) -> Connection {
        let connection = self.connections.remove(number);
        self.say_open();
        for socket in connection.sockets() {
            let _ = self.poll.registry().deregister(&mut SourceFd(&socket.as_raw_fd()));
        }
        connection
    }

    /// None if it came to nothing: the client is reset.
    fn split(&mut self, Incoming { socket: client, from, to, diverted }: Incoming) -> Option<()> {
        let settings = &self.common.settings;
        let name = (diverted && settings.transparent).then_some(from);
        let user_timeout = self.entrance.user_timeout();
        let server = socket::connect(name, to, &settings.towards_server, user_timeout).ok()?;
        let number = self.common.accepted.fetch_add(1, Ordering::Relaxed);
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
        self.say_open();
        Some(())
    }

    fn share(&self) -> &Share {
        self.common.threads.share(self.number)
    }

    fn say_open(&self) {
        self.share().open.store(self.connections.len() as u64, Ordering::Relaxed);
    }

    /// Lets another thread have the new connections when this one has no files for them, or an earlier one has again.
    fn direct(&self) {
        let begin = |number| {
            let (opening, working) = (self.common.clone(), self.common.clone());
            let diversion = self.entrance.diversion().clone();
            let open = move || Accelerator::beside(diversion, number, opening).map_err(io::Error::other);
            threads::begin("accelerator", open, move |other: Accelerator| {
                if let Err(error) = other.serve_beside(&working.threads) {
                    working.threads.fail(error);
                }
            })
        };
        self.common.threads.direct(begin, |number| self.entrance.choose(number));
    }

    fn serve_beside(self, threads: &Threads) -> Result<Counts, AcceleratorError> {
        let number = self.number;
        service::run(
            self,
            service::REVIEW,
            || threads.ended(),
            |_, samples| {
                threads.share(number).put(samples.collect());
            },
        )
    }

    fn fullness(&self) -> Load {
        let (open, held) = self.common.threads.sums();
        self.common.settings.load(open, held).max(self.common.threads.load())
    }
}

impl Drop for Accelerator {
    /// The connections of the others end before the diversion does, too.
    fn drop(&mut self) {
        if self.number == 0 {
            self.common.threads.end();
        }
    }
}

impl Service for Accelerator {
    type Counts = Counts;

    fn entrance(&self) -> &Entrance {
        &self.entrance
    }

    fn serve(&mut self, wait: Duration) -> Result<(), AcceleratorError> {
        let wait = if self.ready.is_empty() { wait } else { Duration::ZERO };
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(AcceleratorError::Events(error));
            }
            _ => {}
        }
        if self.number == 0 {
            self.common.threads.result()?;
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
            let no_file = self.connections.len() as u64 >= self.common.threads.room();
            // Dropped, it resets the client.
            if no_file || self.common.settings.when_full == WhenFull::Reset && self.fullness() == Load::Full {
                self.common.refused.fetch_add(1, Ordering::Relaxed);
            } else if self.split(incoming).is_none() {
                self.common.broken.fetch_add(1, Ordering::Relaxed);
            }
            self.direct();
        }
    }

    fn review(&mut self, now: Instant) {
        let mut gone = Vec::new();
        let mut held = 0;
        for (number, connection) in &mut self.connections {
            let Some(sample) = connection.sample() else { continue };
            held += sample.exposed_up() + sample.exposed_down();
            if connection.silence(&sample, now) > self.entrance.user_timeout() {
                gone.push(number);
            }
        }
        for number in gone {
            self.common.broken.fetch_add(1, Ordering::Relaxed);
            drop(self.remove(number));
        }
        self.share().held.store(held, Ordering::Relaxed);
        self.direct();
    }

    fn load(&self) -> Load {
        // Where those beyond a limit are reset, none passes.
        if self.common.settings.when_full == WhenFull::Reset { Load::Low } else { self.fullness() }
    }

    fn counts(&self) -> Counts {
        let [accepted, broken, refused] = [&self.common.accepted, &self.common.broken, &self.common.refused];
        Counts {
            open: self.common.threads.sums().0,
            accepted: accepted.load(Ordering::Relaxed),
            broken: broken.load(Ordering::Relaxed),
            refused: refused.load(Ordering::Relaxed),
            passed: self.entrance.passed(),
        }
    }

    fn samples(&self) -> impl Iterator<Item = Sample> {
        let others = if self.number == 0 { self.common.threads.samples() } else { Vec::new() };
        self.connections.iter().filter_map(|(_, connection)| connection.sample()).chain(others)
    }
}
