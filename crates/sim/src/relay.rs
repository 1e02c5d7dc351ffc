//! An accelerator or a cache on the way of a connection: it ends the connection, and goes on with a second one.
//!
//! An accelerator carries payload on. As in `crates/accelerator`: it accepts in the server's name, connects once that is established, and splices: a pipe
//! takes what the one leg has received, and is filled again once the other leg's send buffer has taken all of it.

use std::sync::Arc;

use tcplab_control::Control;
use tcplab_tcp::{Config, Connection, Info, Notice, Segment};
use tcplab_units::{Span, Time};

use crate::application::Application;
use crate::cache::{Caching, Next};
use crate::network::NodeId;
use crate::packet::{Body, is_opening};
use crate::plan::REQUEST_BYTES;
use crate::recorder::Mode;
use crate::sim_context::{SimContext, Timer};
use crate::stream::FlowEndpoints;
use crate::tcp_stream::{CLIENT, SERVER};

/// Bytes the pipe holds.
const PIPE: u64 = 256 << 10;

/// State that a relay's ends of a flow's connections share.
pub(crate) struct Settings {
    /// Where it is.
    pub(crate) node: NodeId,
    /// The specification of each leg's control.
    pub(crate) controls: [Control; 2],
    /// Settings of the leg towards the client, and towards the server.
    pub(crate) configs: [Config; 2],
    /// Of a cache: how long what it stores is fresh.
    pub(crate) max_age: Option<Span>,
}

/// Two ends: the first faces the client, the second the server.
pub(crate) struct Relay {
    settings: Arc<Settings>,
    /// Of a cache: what it does.
    caching: Option<Caching>,
    initial_sequence: [u32; 2],
    legs: [Option<Box<Connection>>; 2],
    /// Payload read from each leg so far.
    read: [u64; 2],
    /// The far end of each leg has sent its last byte.
    ended: [bool; 2],
    /// No more is written to a leg.
    closed: [bool; 2],
}

/// Where in a connection a relay is, and what the connection is for.
pub(crate) struct Hop<'a> {
    /// Its number on the path.
    pub(crate) number: usize,
    pub(crate) endpoints: &'a FlowEndpoints,
    pub(crate) application: &'a mut dyn Application,
}

/// A leg's figures.
pub(crate) struct Leg {
    pub(crate) info: Info,
    pub(crate) bytes_received: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) retransmits: u64,
    /// Received from its far end, and not acknowledged by that of the other leg.
    pub(crate) exposed: u64,
}

impl Relay {
    pub(crate) fn new(settings: Arc<Settings>, initial_sequence: [u32; 2]) -> Relay {
        let caching = settings.max_age.map(Caching::new);
        Relay {
            settings,
            caching,
            initial_sequence,
            legs: [None, None],
            read: [0; 2],
            ended: [false; 2],
            closed: [false; 2],
        }
    }

    /// Where it is.
    pub(crate) fn node(&self) -> NodeId {
        self.settings.node
    }

    /// Whether it never needed a connection to the server.
    pub(crate) fn never_connected(&self) -> bool {
        self.legs[SERVER].is_none()
    }

    /// A segment arrived from the client (`forward`) or from the server.
    pub(crate) fn receive<M: Mode>(
        &mut self,
        segment: &Segment,
        forward: bool,
        hop: &mut Hop<'_>,
        sim: &mut SimContext,
    ) {
        let now = sim.now();
        let leg = if forward { CLIENT } else { SERVER };
        match &mut self.legs[leg] {
            Some(connection) => connection.handle_segment(segment, now),
            None if leg == CLIENT && is_opening(segment) => {
                let control = self.settings.controls[CLIENT].another();
                let isn = self.initial_sequence[CLIENT];
                let mut accepted =
                    Connection::accept(&self.settings.configs[CLIENT], control, isn, segment, now);
                accepted.read_at_once(false);
                self.legs[CLIENT] = Some(Box::new(accepted));
            }
            None => return,
        }
        self.drive::<M>(hop, sim);
    }

    /// A timer of one of the legs fires.
    pub(crate) fn wake<M: Mode>(&mut self, hop: &mut Hop<'_>, sim: &mut SimContext) {
        let now = sim.now();
        for connection in self.legs.iter_mut().flatten() {
            if connection.poll_timeout() <= now {
                connection.handle_timeout(now);
            }
        }
        self.drive::<M>(hop, sim);
    }

    /// Does all that follows from what happened to a leg.
    fn drive<M: Mode>(&mut self, hop: &mut Hop<'_>, sim: &mut SimContext) {
        let now = sim.now();
        loop {
            let mut acted = false;
            for leg in [CLIENT, SERVER] {
                acted |= self.serve::<M>(leg, hop, sim);
            }
            acted |= if self.caching.is_some() {
                self.answer(hop, sim)
            } else {
                self.splice(CLIENT, now) | self.splice(SERVER, now)
            };
            if !acted {
                break;
            }
        }
        let timer = self.legs.iter().flatten().map(|connection| connection.poll_timeout()).min();
        sim.set_timer_no_later(hop.endpoints.stream, Timer::Relay, timer.unwrap_or(Time::NEVER));
    }

    /// Sends what a leg has to send, and takes its notices; whether there was any of them.
    fn serve<M: Mode>(&mut self, leg: usize, hop: &Hop<'_>, sim: &mut SimContext) -> bool {
        let now = sim.now();
        let Some(connection) = &mut self.legs[leg] else { return false };
        while let Some(segment) = connection.poll_transmit(now) {
            hop.endpoints.relay::<M>(hop.number, Body::Tcp(segment), leg == SERVER, sim);
        }
        let mut acted = false;
        while let Some(notice) = self.legs[leg].as_mut().and_then(|connection| connection.poll_notice()) {
            acted = true;
            match notice {
                Notice::Established if leg == CLIENT && self.caching.is_none() => self.connect(now),
                Notice::PeerClosed => self.ended[leg] = true,
                Notice::Aborted => return self.abort(1 - leg, now),
                _ => {}
            }
        }
        acted
    }

    fn connect(&mut self, now: Time) {
        let control = self.settings.controls[SERVER].another();
        let isn = self.initial_sequence[SERVER];
        let mut connected = Connection::connect(&self.settings.configs[SERVER], control, isn, now);
        connected.read_at_once(false);
        self.legs[SERVER] = Some(Box::new(connected));
    }

    /// Answers requests from the cache, or passes them on; whether anything was done.
    fn answer(&mut self, hop: &mut Hop<'_>, sim: &mut SimContext) -> bool {
        let now = sim.now();
        let (Some(caching), Some(stored)) =
            (&mut self.caching, sim.caches.get_mut(usize::from(self.settings.node)))
        else {
            return false;
        };
        let next = caching.asks(&mut self.legs, hop, stored, now);
        let asks = next == Next::AsksServer;
        if asks && self.legs[SERVER].is_none() {
            self.connect(now);
        }
        if asks && let Some(server) = &mut self.legs[SERVER] {
            server.write(REQUEST_BYTES, now);
        }
        let (Some(caching), Some(stored)) =
            (&mut self.caching, sim.caches.get_mut(usize::from(self.settings.node)))
        else {
            return next != Next::Waits;
        };
        let acted = (next != Next::Waits) | caching.go_on(&mut self.legs, hop, stored, now);
        if !self.ended[CLIENT] || !caching.is_idle() || std::mem::replace(&mut self.closed[CLIENT], true) {
            return acted;
        }
        for connection in self.legs.iter_mut().flatten() {
            connection.close(now);
        }
        true
    }

    /// Moves payload from one leg to the other, and its end; whether anything moved.
    fn splice(&mut self, from: usize, now: Time) -> bool {
        let to = 1 - from;
        let [Some(client), Some(server)] = &mut self.legs else { return false };
        let (source, sink) = if from == CLIENT { (client, server) } else { (server, client) };
        let mut moved = false;
        while sink.has_taken_all() {
            let bytes = source.read(PIPE, now);
            if bytes == 0 {
                break;
            }
            self.read[from] += bytes;
            sink.write(bytes, now);
            moved = true;
        }
        let drained = self.read[from] == source.bytes_received() && sink.has_taken_all();
        if self.ended[from] && drained && !std::mem::replace(&mut self.closed[to], true) {
            sink.close(now);
            moved = true;
        }
        moved
    }

    /// One leg was reset or given up: so is the other.
    fn abort(&mut self, leg: usize, now: Time) -> bool {
        if let Some(connection) = &mut self.legs[leg] {
            connection.reset(now);
        }
        false
    }

    /// Figures of both legs, once there are two.
    pub(crate) fn legs(&self, now: Time) -> Option<[Leg; 2]> {
        let [Some(client), Some(server)] = &self.legs else { return None };
        let leg = |own: &Connection, other: &Connection| Leg {
            info: own.info(now),
            bytes_received: own.bytes_received(),
            bytes_acked: own.bytes_acked(),
            retransmits: own.counters().retransmits,
            // A request that a cache has not answered is asked again: nothing is lost with it.
            exposed: match self.caching {
                Some(_) => 0,
                None => own.bytes_received().saturating_sub(other.bytes_acked()),
            },
        };
        Some([leg(client, server), leg(server, client)])
    }
}
