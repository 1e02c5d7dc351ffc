//! A transparent HTTP/1.1 cache (RFC 9111) on the real Linux stack.
//!
//! Connections are diverted to the cache as to an accelerator. The cache accepts each as if it were the server, and
//! answers GET and HEAD from what it has stored (`shelf`, by the rules in `rules`). It asks the server for the rest
//! over a connection of its own, in the client's name. Each connection has a thread (`conversation`), whose reads and
//! writes block: a response is taken from the server as fast as the client takes it. From the first request on that
//! is neither GET nor HEAD, or not HTTP, a connection goes on as with an accelerator.
//!
//! As there, sockets linger for zero seconds, so that a client gets a reset and not half an object if the cache dies.

mod blocking;
mod chunks;
mod conversation;
mod rules;
mod shelf;

use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use slab::Slab;
use socket2::Socket;
use tcplab_plan::{Leg, Load};
use tcplab_probe::TcpInfo;
use tcplab_units::Time;

use crate::AcceleratorError;
use crate::divert::{self, Choice};
use crate::sample::{LegSample, Sample, Silence};
use crate::service::{self, Entrance, Incoming, Service};
use crate::socket;
use conversation::Conversation;
use shelf::{Memory, Shelf};

/// Connections at a time; further ones pass.
const MAX_OPEN: u64 = 2048;
/// Stack of a connection's thread.
const STACK: usize = 128 << 10;

/// Requests and connections so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Connections at this moment.
    pub open: u64,
    /// Connections so far.
    pub accepted: u64,
    /// Connections ended by an error or a reset of either end.
    pub broken: u64,
    /// Connections that were passed on as TCP.
    pub passed: u64,
    /// Requests answered from what was stored.
    pub hits: u64,
    /// Requests answered so once the server had confirmed it.
    pub revalidated: u64,
    /// Requests answered by the server, or not at all.
    pub misses: u64,
    /// Bytes stored, heads and bodies.
    pub stored: u64,
    /// Bytes of bodies in memory: stored, coming, or on their way to clients although no longer stored.
    pub memory: u64,
}

/// State that the connections share.
#[derive(Debug)]
struct Shared {
    size: u64,
    user_timeout: Duration,
    towards_server: Leg,
    /// By each address of a server, the one under which its objects are kept.
    servers: BTreeMap<SocketAddr, SocketAddr>,
    shelf: Mutex<Shelf>,
    memory: Arc<Memory>,
    open: Mutex<Slab<Open>>,
    counts: Mutex<CacheCounts>,
    began: Instant,
}

/// A connection, for those who look at it from outside.
#[derive(Debug)]
struct Open {
    number: u64,
    client: (Arc<Socket>, SocketAddr),
    server: Option<(Arc<Socket>, SocketAddr)>,
    carries: bool,
    /// Of client and server.
    silences: [Silence; 2],
}

impl Open {
    /// Ends the connection if one of its ends has vanished: its thread finds it shut down, and resets it.
    fn end_if_vanished(&mut self, now: Instant, user_timeout: Duration) {
        let sockets = [Some(&self.client), self.server.as_ref()];
        let vanished = sockets.iter().flatten().zip(&mut self.silences).any(|((socket, _), silence)| {
            TcpInfo::of(socket.as_raw_fd()).is_ok_and(|info| silence.lasting(&info, now) > user_timeout)
        });
        if vanished {
            for (socket, _) in sockets.into_iter().flatten() {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Shared {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Slab<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut CacheCounts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn counts(&self) -> CacheCounts {
        CacheCounts {
            open: self.open().len() as u64,
            stored: self.shelf().bytes(),
            memory: self.memory.held(),
            ..*self.counts.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    fn samples(&self) -> Vec<Sample> {
        let sample = |open: &Open| {
            let (server, server_address) = open.server.as_ref()?;
            Some(Sample {
                connection: open.number,
                client: LegSample::of(&open.client.0, open.client.1)?,
                server: LegSample::of(server, *server_address)?,
                carries: open.carries,
            })
        };
        self.open().iter().filter_map(|(_, open)| sample(open)).collect()
    }

    fn now(&self) -> Time {
        Time::from_ns(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// An HTTP cache in the network namespace it was made in.
#[derive(Debug)]
pub struct Cache {
    shared: Arc<Shared>,
    entrance: Entrance,
}

impl Cache {
    /// Listen, and divert connections to `ports` of any host and to `servers` that pass this namespace from now on.
    ///
    /// `servers` has each address with the first of the same server: a flow's server has a port for each connection.
    /// The legs are the one towards the client and the one towards the server.
    pub fn open(
        settings: &tcplab_plan::Cache,
        [towards_client, towards_server]: [Leg; 2],
        ports: Vec<u16>,
        servers: BTreeMap<SocketAddr, SocketAddr>,
    ) -> Result<Cache, AcceleratorError> {
        let user_timeout = Duration::from_nanos(settings.user_timeout.as_ns());
        let legs = [&towards_client, &towards_server];
        let choice = Choice::To { ports, servers: servers.keys().copied().collect() };
        let entrance = Entrance::open(divert::CACHE, legs, choice, &BTreeMap::new(), user_timeout)?;
        let shared = Shared {
            size: settings.size,
            user_timeout,
            towards_server,
            servers,
            shelf: Mutex::new(Shelf::new(settings.size)),
            memory: Memory::new(settings.size.saturating_mul(2)),
            open: Mutex::default(),
            counts: Mutex::default(),
            began: Instant::now(),
        };
        Ok(Cache { shared: Arc::new(shared), entrance })
    }

    /// Serve until `over`, which is asked every 100 ms or more often. Every `interval`, and at the end, `observe` is given each
    /// open connection that has two legs.
    pub fn run(
        self,
        interval: Duration,
        over: impl Fn() -> bool,
        observe: impl FnMut(&CacheCounts, &mut dyn Iterator<Item = Sample>),
    ) -> Result<CacheCounts, AcceleratorError> {
        service::run(self, interval, over, observe)
    }
}

impl Service for Cache {
    type Counts = CacheCounts;

    fn entrance(&self) -> &Entrance {
        &self.entrance
    }

    fn serve(&mut self, wait: Duration) -> Result<(), AcceleratorError> {
        if socket::wait(self.entrance.listener(), nix::poll::PollFlags::POLLIN, wait)
            .map_err(AcceleratorError::Events)?
        {
            self.accept();
        }
        Ok(())
    }

    fn accept(&mut self) {
        while let Some(Incoming { socket: client, from, to, .. }) = self.entrance.accept() {
            if client.set_nonblocking(false).is_err() {
                continue;
            }
            let client = Arc::new(client);
            let mut number = 0;
            self.shared.count(|counts| {
                number = counts.accepted;
                counts.accepted += 1;
            });
            let open = Open {
                number,
                client: (client.clone(), from),
                server: None,
                carries: false,
                silences: Default::default(),
            };
            let key = self.shared.open().insert(open);
            let conversation = Conversation::new(self.shared.clone(), key, client, from, to);
            let thread = std::thread::Builder::new().name("cache".into()).stack_size(STACK);
            // Without a thread it is dropped, and the client reset.
            let _ = thread.spawn(move || conversation.serve());
        }
    }

    fn review(&mut self, now: Instant) {
        let user_timeout = self.shared.user_timeout;
        self.shared.open().iter_mut().for_each(|(_, open)| open.end_if_vanished(now, user_timeout));
    }

    fn load(&self) -> Load {
        Load::of(self.shared.open().len() as u64, MAX_OPEN)
    }

    fn counts(&self) -> CacheCounts {
        self.shared.counts()
    }

    fn samples(&self) -> impl Iterator<Item = Sample> {
        self.shared.samples().into_iter()
    }
}
