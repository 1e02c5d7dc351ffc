//! Neighbours of OSPF (RFC 2328, section 10): Hello packets, the exchange of databases, and how they are lost.

use std::sync::Arc;

use tcplab_units::{Span, Time};

use super::super::core::Core;
use super::super::wiring::PortId;
use super::{Event, Key, LinkState, Ospf, PROCESSING, RETRANSMIT};

/// States of a neighbour, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Down,
    Init,
    ExStart,
    Exchange,
    Loading,
    Full,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Down => "Down",
            State::Init => "Init",
            State::ExStart => "ExStart",
            State::Exchange => "Exchange",
            State::Loading => "Loading",
            State::Full => "Full",
        }
    }
}

/// The messages between neighbours.
#[derive(Clone, Debug)]
pub(in super::super) enum Message {
    /// The sender is there, with these settings; whether its hello lists the receiver.
    Hello {
        sees: bool,
        area: u32,
        hello: Span,
        dead: Span,
    },
    /// The first Database Description: the sender begins anew.
    Start,
    /// A Database Description: what the sender has. Numbered: the slave's, the master's, the slave's last.
    Describe(u8, Vec<(Key, u32)>),
    /// Link states that the sender lacks.
    Request(Vec<Key>),
    Update(Vec<Arc<LinkState>>),
}

/// An interface with the neighbour behind it.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) area: u32,
    pub(super) cost: u32,
    pub(super) is_passive: bool,
    state: State,
    /// Since when databases have been exchanged.
    exchanging: Time,
    deadline: Time,
    is_watched: bool,
    /// Of the timer for Hello packets: an older one is void.
    turn: u32,
    /// The message that waits for an answer, and its number.
    question: Option<Message>,
    questions: u32,
    /// Link states that were asked for.
    lacking: Vec<Key>,
}

impl Interface {
    pub(super) fn new(area: u32, cost: u32, is_passive: bool) -> Interface {
        Interface {
            area,
            cost,
            is_passive,
            state: State::Down,
            exchanging: Time::ZERO,
            deadline: Time::NEVER,
            is_watched: false,
            turn: 0,
            question: None,
            questions: 0,
            lacking: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.state == State::Full
    }

    /// When ospfd looks for link states to retransmit, at `from` or later.
    pub(super) fn next_look(&self, from: Time) -> Time {
        let past = from.since(self.exchanging.min(from)).as_ns();
        self.exchanging + RETRANSMIT * past.div_ceil(RETRANSMIT.as_ns())
    }
}

impl Ospf {
    /// Link states are flooded to a neighbour from the exchange of databases on.
    pub(super) fn takes_updates(&self, port: PortId) -> bool {
        self.interfaces[port].as_ref().is_some_and(|interface| interface.state >= State::Exchange)
    }

    /// An interface comes up: the first Hello goes out at once.
    pub(super) fn rise(&mut self, core: &mut Core, port: PortId) {
        let Some(interface) = &mut self.interfaces[port] else { return };
        if interface.is_passive {
            return;
        }
        interface.turn += 1;
        let turn = interface.turn;
        self.hello(core, port, turn);
    }

    pub(super) fn hello(&mut self, core: &mut Core, port: PortId, turn: u32) {
        let router = core.wiring.ports[port].router;
        let (Some(interface), Some(process)) = (&self.interfaces[port], &self.processes[router]) else {
            return;
        };
        if interface.turn != turn || !core.carrier[port] {
            return;
        }
        let (hello, dead) = (process.settings.hello_interval, process.settings.dead_interval);
        let (sees, area) = (interface.state >= State::Init, interface.area);
        self.send(core, port, Message::Hello { sees, area, hello, dead });
        self.plan(core, core.now + hello, Event::Hello(port, turn));
    }

    /// Sends to the neighbour; whether the link did not lose it.
    pub(super) fn send(&mut self, core: &mut Core, port: PortId, message: Message) -> bool {
        let (Some(peer), Some(at)) = (core.wiring.ports[port].peer, core.send(port)) else { return false };
        self.plan(core, at + PROCESSING, Event::Arrive(peer, message));
        true
    }

    /// Sends what the neighbour must answer, again and again until it does.
    fn ask(&mut self, core: &mut Core, port: PortId, message: Message) {
        let Some(interface) = &mut self.interfaces[port] else { return };
        interface.questions += 1;
        interface.question = Some(message.clone());
        let question = interface.questions;
        self.send(core, port, message);
        self.plan(core, core.now + RETRANSMIT, Event::Unanswered(port, question));
    }

    pub(super) fn unanswered(&mut self, core: &mut Core, port: PortId, question: u32) {
        let Some(interface) = &self.interfaces[port] else { return };
        if interface.questions == question
            && let Some(message) = interface.question.clone()
        {
            self.ask(core, port, message);
        }
    }

    pub(super) fn inactivity(&mut self, core: &mut Core, port: PortId) {
        let Some(interface) = &mut self.interfaces[port] else { return };
        interface.is_watched = false;
        if core.now >= interface.deadline {
            self.forget(core, port, "InactivityTimer");
        } else {
            self.watch(core, port);
        }
    }

    fn watch(&mut self, core: &mut Core, port: PortId) {
        let Some(interface) = &mut self.interfaces[port] else { return };
        if interface.deadline != Time::NEVER && !std::mem::replace(&mut interface.is_watched, true) {
            let deadline = interface.deadline;
            self.plan(core, deadline, Event::Inactivity(port));
        }
    }

    /// The neighbour is gone.
    pub(super) fn forget(&mut self, core: &mut Core, port: PortId, reason: &str) {
        self.change(core, port, State::Down, reason);
        if let Some(interface) = &mut self.interfaces[port] {
            interface.deadline = Time::NEVER;
        }
    }

    fn change(&mut self, core: &mut Core, port: PortId, new: State, reason: &str) {
        let Some(interface) = &mut self.interfaces[port] else { return };
        let old = std::mem::replace(&mut interface.state, new);
        if old == new {
            return;
        }
        if new < State::Exchange || new == State::Full {
            interface.question = None;
        }
        if new == State::Exchange {
            interface.exchanging = core.now;
        }
        let own = &core.wiring.ports[port];
        let (router, link) = (own.router, own.link);
        let neighbour = own
            .peer
            .map_or(String::new(), |peer| core.wiring.router_id(core.wiring.ports[peer].router).to_string());
        let (name, daemon) = (&core.wiring.routers[router].name, ["OSPF", "OSPF6"][self.family]);
        let after = if new == State::Down { "Deleted" } else { new.name() };
        let detail = format!("{name} {daemon} neighbour {neighbour}: {} -> {after} ({reason})", old.name());
        core.note(Some(link), "adjacency", detail);
        if (old == State::Full) != (new == State::Full) {
            self.originate_all(core, router);
        }
    }

    pub(super) fn arrive(&mut self, core: &mut Core, port: PortId, message: Message) {
        let state = self.interfaces[port].as_ref().map_or(State::Down, |interface| interface.state);
        match message {
            Message::Hello { sees, area, hello, dead } => {
                self.receive_hello(core, port, sees, (area, hello, dead))
            }
            _ if state == State::Down => {}
            Message::Start => {
                if state == State::Init {
                    self.start(core, port, "2-WayReceived");
                } else if state > State::ExStart {
                    // It begins anew, as one does that has lost its neighbour while this side had not.
                    self.start(core, port, "SeqNumberMismatch");
                }
                if self.is_slave(core, port) {
                    self.change(core, port, State::Exchange, "NegotiationDone");
                    let have = self.described(core, port);
                    self.ask(core, port, Message::Describe(1, have));
                }
            }
            Message::Describe(number, have) => self.described_by(core, port, state, number, &have),
            Message::Request(keys) if state >= State::Exchange => {
                let router = core.wiring.ports[port].router;
                if let Some(process) = &self.processes[router] {
                    let states = keys.iter().filter_map(|key| process.database.get(key).cloned()).collect();
                    self.update(core, port, states);
                }
            }
            Message::Request(_) => {}
            Message::Update(states) => {
                if state < State::Exchange {
                    return;
                }
                let discarded = self.receive(core, port, &states);
                let Some(interface) = &mut self.interfaces[port] else { return };
                let is_here = |key: &Key| states.iter().any(|state| state.key == *key);
                interface.lacking.retain(|key| !is_here(key) || discarded.contains(key));
                if interface.lacking.is_empty() && interface.state == State::Loading {
                    self.change(core, port, State::Full, "LoadingDone");
                }
            }
        }
    }

    fn receive_hello(&mut self, core: &mut Core, port: PortId, sees: bool, theirs: (u32, Span, Span)) {
        let router = core.wiring.ports[port].router;
        let (Some(interface), Some(process)) = (&mut self.interfaces[port], &self.processes[router]) else {
            return;
        };
        let settings = &process.settings;
        // Section 10.5: a packet with other intervals, or of another area, is dropped.
        if theirs != (interface.area, settings.hello_interval, settings.dead_interval) {
            return;
        }
        interface.deadline = core.now + settings.dead_interval;
        let state = interface.state;
        self.watch(core, port);
        if state == State::Down {
            self.change(core, port, State::Init, "HelloReceived");
        }
        if sees && state <= State::Init {
            self.start(core, port, "2-WayReceived");
        } else if !sees && state > State::Init {
            self.change(core, port, State::Init, "1-WayReceived");
        }
    }

    fn start(&mut self, core: &mut Core, port: PortId, reason: &str) {
        self.change(core, port, State::ExStart, reason);
        self.ask(core, port, Message::Start);
    }

    /// The router with the lower identifier is the slave.
    fn is_slave(&self, core: &Core, port: PortId) -> bool {
        let own = &core.wiring.ports[port];
        let key = |router| (core.wiring.router_id(router), router);
        own.peer.is_some_and(|peer| key(own.router) < key(core.wiring.ports[peer].router))
    }

    fn described(&self, core: &Core, port: PortId) -> Vec<(Key, u32)> {
        let area = self.interfaces[port].as_ref().map(|interface| interface.area);
        let process = self.processes[core.wiring.ports[port].router].as_ref();
        let database = process.into_iter().flat_map(|process| &process.database);
        database
            .filter(|(key, _)| Some(key.area) == area)
            .map(|(key, state)| (*key, state.sequence))
            .collect()
    }

    fn described_by(&mut self, core: &mut Core, port: PortId, state: State, number: u8, have: &[(Key, u32)]) {
        let process = self.processes[core.wiring.ports[port].router].as_ref();
        let Some(database) = process.map(|process| &process.database) else { return };
        let is_newer =
            |(key, sequence): &&(Key, u32)| database.get(key).map_or(0, |known| known.sequence) < *sequence;
        let lacking: Vec<Key> = have.iter().filter(is_newer).map(|(key, _)| *key).collect();
        match number {
            // The slave's, at the master.
            1 if state == State::ExStart => {
                self.lack(port, lacking);
                self.change(core, port, State::Exchange, "NegotiationDone");
                let own = self.described(core, port);
                self.ask(core, port, Message::Describe(2, own));
            }
            // The master's, at the slave; once more, where the answer was lost.
            2 if state >= State::Exchange => {
                self.send(core, port, Message::Describe(3, Vec::new()));
                if state == State::Exchange {
                    self.lack(port, lacking);
                    self.load(core, port);
                }
            }
            3 if state == State::Exchange => self.load(core, port),
            _ => {}
        }
    }

    fn lack(&mut self, port: PortId, keys: Vec<Key>) {
        if let Some(interface) = &mut self.interfaces[port] {
            interface.lacking = keys;
        }
    }

    fn load(&mut self, core: &mut Core, port: PortId) {
        let lacking =
            self.interfaces[port].as_ref().map_or(Vec::new(), |interface| interface.lacking.clone());
        if lacking.is_empty() {
            return self.change(core, port, State::Full, "ExchangeDone");
        }
        self.change(core, port, State::Loading, "ExchangeDone");
        self.ask(core, port, Message::Request(lacking));
    }
}
