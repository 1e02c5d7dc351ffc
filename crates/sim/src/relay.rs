//! An accelerator or a cache on the way of a connection: it ends the connection, and goes on with a second one.
//!
//! An accelerator carries payload on, as in `crates/accelerator`. The accelerator accepts in the server's name,
//! connects once the accepted connection is established, and splices. A pipe takes what the one leg has received, and
//! is filled again once the other leg's send buffer has taken all of it.

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
use crate::samplers;
use crate::sim_context::{SimContext, Timer};
use crate::splitter::Admission;
use crate::stream::FlowEndpoints;
use crate::tcp_stream::{CLIENT, SERVER};

/// Bytes the pipe holds.
const PIPE: u64 = 256 << 10;

/// State that a relay's ends of a flow's connections share.
pub(crate) struct Settings {
    /// Where it is.
    pub(crate) node: NodeId,
    /// The name of that node.
    pub(crate) name: String,
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
    /// A leg is closed, or was reset.
    over: [bool; 2],
    /// The client is reset once its connection is established.
    refuses: bool,
    /// Payload held, bytes, as the accelerator counts it; none: it does not count this connection.
    held: Option<u64>,
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
    /// Received from the other leg's far end, and not sent to its own.
    pub(crate) unsent: u64,
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
            over: [false; 2],
            refuses: false,
            held: None,
        }
    }

    /// Whether it takes the connection that a client's segment opens, if it opens one.
    pub(crate) fn admits(&mut self, segment: &Segment, sim: &mut SimContext) -> bool {
        let now = sim.now();
        if self.caching.is_some() || self.legs[CLIENT].is_some() || !is_opening(segment) {
            return true;
        }
        let Some(splitter) = sim.splitter(self.settings.node) else { return true };
        match splitter.admit(now) {
            Admission::Split => self.held = Some(0),
            Admission::Reset => self.refuses = true,
            Admission::Pass => return false,
        }
        true
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
        let kill_at = match self.held {
            Some(_) => sim.splitter(self.settings.node).map_or(Time::NEVER, |splitter| splitter.kill_at()),
            None => Time::NEVER,
        };
        if now >= kill_at {
            self.die(hop, sim);
        }
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
        self.account(sim);
        let timer = self.legs.iter().flatten().map(|connection| connection.poll_timeout()).min();
        let timer = timer.unwrap_or(Time::NEVER).min(if self.held.is_some() { kill_at } else { Time::NEVER });
        sim.set_timer_no_later(hop.endpoints.place, Timer::Relay, timer);
    }

    /// The accelerator is killed: what it holds is lost, and its host resets both legs.
    fn die(&mut self, hop: &Hop<'_>, sim: &mut SimContext) {
        let now = sim.now();
        if let Some(legs) = self.legs(now) {
            samplers::legs(sim, now, hop.endpoints.stream, &self.settings.name, &legs);
        }
        for connection in self.legs.iter_mut().flatten() {
            connection.reset(now);
        }
    }

    /// Tells the accelerator what this connection holds, and its end.
    fn account(&mut self, sim: &mut SimContext) {
        let Some(before) = self.held else { return };
        let over = self.over[CLIENT] && (self.over[SERVER] || self.legs[SERVER].is_none());
        let held = match &self.legs {
            [Some(client), Some(server)] if !over => exposed(client, server) + exposed(server, client),
            _ => 0,
        };
        let Some(splitter) = sim.splitter(self.settings.node) else { return };
        splitter.hold(before, held);
        self.held = Some(held);
        if over {
            splitter.leave();
            self.held = None;
        }
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
                Notice::Established if leg == CLIENT && self.refuses => self.reset(leg, now),
                Notice::Established if leg == CLIENT && self.caching.is_none() => self.connect(now),
                Notice::PeerClosed => self.ended[leg] = true,
                Notice::Closed => self.over[leg] = true,
                Notice::Aborted => {
                    self.over[leg] = true;
                    // One leg was reset or given up: so is the other.
                    self.reset(1 - leg, now);
                }
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

    fn reset(&mut self, leg: usize, now: Time) {
        if let Some(connection) = &mut self.legs[leg] {
            connection.reset(now);
        }
    }

    /// Figures of both legs, once there are two, and while there are.
    pub(crate) fn legs(&self, now: Time) -> Option<[Leg; 2]> {
        let [Some(client), Some(server)] = &self.legs else { return None };
        if client.is_aborted() || server.is_aborted() {
            return None;
        }
        // A request that a cache has not answered is asked again: nothing is lost with it, and nothing waits.
        let carried = |bytes| if self.caching.is_some() { 0 } else { bytes };
        let leg = |own: &Connection, other: &Connection| Leg {
            info: own.info(now),
            bytes_received: own.bytes_received(),
            bytes_acked: own.bytes_acked(),
            retransmits: own.counters().retransmits,
            exposed: carried(exposed(own, other)),
            unsent: carried(other.bytes_received().saturating_sub(own.counters().bytes_sent)),
        };
        Some([leg(client, server), leg(server, client)])
    }
}

/// Payload that was acknowledged to one end, and not yet by the other.
fn exposed(from: &Connection, to: &Connection) -> u64 {
    from.bytes_received().saturating_sub(to.bytes_acked())
}
