//! The common part of an accelerator and a cache: an entrance for connections, and a loop that serves and reviews them.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use socket2::Socket;
use tcplab_plan::{Leg, Load};

use crate::AcceleratorError;
use crate::divert::{Choice, Diversion, Names};
use crate::sample::Sample;
use crate::socket::{self, Place, plain};

/// How often limits are looked at, at least.
pub(crate) const REVIEW: Duration = Duration::from_millis(100);

/// Where connections come in: a listening socket, and what diverts to it those that pass the node.
#[derive(Debug)]
pub(crate) struct Entrance {
    // In this order: the kernel forwards what has no listener.
    listener: Socket,
    /// Shared by those that listen at one port.
    diversion: Arc<Mutex<Diversion>>,
    forwards: Vec<Forward>,
    user_timeout: Duration,
}

/// A port of the node itself, and where its connections go on to.
#[derive(Debug)]
struct Forward {
    listener: Socket,
    to: SocketAddr,
}

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) socket: Socket,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// In the name of its destination; else the client addressed the node itself.
    pub(crate) diverted: bool,
}

impl Entrance {
    /// Listen, and divert what is chosen from now on. The legs are the one towards the client and the one towards the server.
    /// `forwards` are ports of the node itself, and the addresses and ports that their connections go on to.
    pub(crate) fn open(
        names: Names,
        [towards_client, towards_server]: [&Leg; 2],
        choice: Choice,
        forwards: &BTreeMap<u16, String>,
        user_timeout: Duration,
    ) -> Result<Entrance, AcceleratorError> {
        let (listener, port) = socket::listen(towards_client, Place::New(0))?;
        let forwards = listen_at(forwards, towards_client, Place::New)?;
        // The plan's settings of the other leg are tried before the first connection needs them.
        drop(socket::listen(towards_server, Place::New(0))?);
        let diversion = Arc::new(Mutex::new(Diversion::new(names, port, choice)?));
        Ok(Entrance { listener, diversion, forwards, user_timeout })
    }

    /// Listen where an entrance with this diversion does. [`Entrance::choose`] says which of them gets new connections.
    pub(crate) fn beside(
        diversion: Arc<Mutex<Diversion>>,
        towards_client: &Leg,
        forwards: &BTreeMap<u16, String>,
        user_timeout: Duration,
    ) -> Result<Entrance, AcceleratorError> {
        let (listener, _) = socket::listen(towards_client, Place::Shared(lock(&diversion).port()))?;
        let forwards = listen_at(forwards, towards_client, Place::Shared)?;
        Ok(Entrance { listener, diversion, forwards, user_timeout })
    }

    pub(crate) fn diversion(&self) -> &Arc<Mutex<Diversion>> {
        &self.diversion
    }

    /// Times at which new connections began to pass.
    pub(crate) fn passed(&self) -> u64 {
        lock(&self.diversion).closed()
    }

    /// Gives new connections to the entrance that was the `number`th to listen, from 0.
    pub(crate) fn choose(&self, number: usize) -> io::Result<()> {
        self.listeners().try_for_each(|listener| socket::choose(listener, number))
    }

    /// Where diverted connections come.
    pub(crate) fn listener(&self) -> &Socket {
        &self.listener
    }

    pub(crate) fn listeners(&self) -> impl Iterator<Item = &Socket> {
        std::iter::once(&self.listener).chain(self.forwards.iter().map(|forward| &forward.listener))
    }

    pub(crate) fn user_timeout(&self) -> Duration {
        self.user_timeout
    }

    /// The next connection that waits. One that cannot be used is reset.
    pub(crate) fn accept(&self) -> Option<Incoming> {
        let forwarded = || self.forwards.iter().find_map(|one| self.accept_at(&one.listener, Some(one.to)));
        self.accept_at(&self.listener, None).or_else(forwarded)
    }

    fn accept_at(&self, listener: &Socket, forward: Option<SocketAddr>) -> Option<Incoming> {
        loop {
            // An error speaks of a client that has gone again, or of file descriptors, of which none is left (accept(2)).
            let (socket, from) = listener.accept().ok()?;
            let named = || socket.local_addr().ok().and_then(|to| to.as_socket());
            let ends = from.as_socket().zip(forward.or_else(named));
            if let Some((from, to)) = ends
                && socket::prepare(&socket, self.user_timeout).is_ok()
            {
                let diverted = forward.is_none();
                return Some(Incoming { socket, from: plain(from), to: plain(to), diverted });
            }
        }
    }

    /// Lets new connections pass while a limit is reached, and until it is well below.
    fn admit(&self, load: Load) -> Result<(), AcceleratorError> {
        match load {
            Load::Full => lock(&self.diversion).open(false),
            Load::Low => lock(&self.diversion).open(true),
            Load::High => Ok(()),
        }
    }
}

fn listen_at(
    forwards: &BTreeMap<u16, String>,
    leg: &Leg,
    place: impl Fn(u16) -> Place,
) -> Result<Vec<Forward>, AcceleratorError> {
    let listen = |(port, to): (&u16, &String)| {
        let to = to.parse().map_err(|_| AcceleratorError::Destination(to.clone()))?;
        Ok(Forward { listener: socket::listen_at(place(*port), leg)?.0, to })
    };
    forwards.iter().map(listen).collect()
}

fn lock(diversion: &Mutex<Diversion>) -> MutexGuard<'_, Diversion> {
    diversion.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server of the connections of an entrance.
pub(crate) trait Service {
    /// Its counts.
    type Counts;

    fn entrance(&self) -> &Entrance;

    /// Serves what there is to serve; waits for so long at most if there is nothing.
    fn serve(&mut self, wait: Duration) -> Result<(), AcceleratorError>;

    /// Takes the connections that have come.
    fn accept(&mut self);

    /// Looks at all connections, and ends those of ends that have vanished.
    fn review(&mut self, now: Instant);

    fn load(&self) -> Load;

    fn counts(&self) -> Self::Counts;

    fn samples(&self) -> impl Iterator<Item = Sample>;
}

/// Serve until `over`, which is asked every 100 ms or more often. Every `interval`, and at the end, `observe` is given each open
/// connection that has two legs.
pub(crate) fn run<S: Service>(
    mut service: S,
    interval: Duration,
    over: impl Fn() -> bool,
    mut observe: impl FnMut(&S::Counts, &mut dyn Iterator<Item = Sample>),
) -> Result<S::Counts, AcceleratorError> {
    let interval = interval.min(REVIEW);
    let mut due = Instant::now() + interval;
    while !over() {
        service.serve(due.saturating_duration_since(Instant::now()))?;
        let now = Instant::now();
        if now >= due {
            due = (due + interval).max(now);
            // No further event reports a connection that came when no file descriptor was left.
            service.accept();
            service.review(now);
            observe(&service.counts(), &mut service.samples());
        }
        let load = service.load();
        service.entrance().admit(load)?;
    }
    observe(&service.counts(), &mut service.samples());
    Ok(service.counts())
}
