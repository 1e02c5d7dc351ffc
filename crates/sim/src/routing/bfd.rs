//! Bidirectional Forwarding Detection (RFC 5880) between neighbours, in asynchronous mode.

use tcplab_link::component_seed;
use tcplab_units::{Span, Time};

use super::core::{Core, Event as Happening, random_below};
use super::wiring::{PortId, RouterId};

/// Between two packets of a session that is up: the profile FRR has without settings.
const INTERVAL: Span = Span::from_ms(300);
/// Between two packets of one that is not (RFC 5880, section 6.8.3).
const SLOW: Span = Span::from_ms(1_000);
/// Packets that must be missing.
const MULTIPLIER: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Down,
    Init,
    Up,
}

#[derive(Debug)]
pub(super) enum Event {
    /// Time to send.
    Send(PortId),
    /// Perhaps too long without a packet.
    Silence(PortId),
    /// A packet arrives: the sender's state.
    Arrive(PortId, bool, bool),
}

#[derive(Debug)]
struct Session {
    state: State,
    is_running: bool,
    is_watched: bool,
    deadline: Time,
    seed: u64,
    sent: u64,
}

/// The sessions of all interfaces that have one.
#[derive(Debug)]
pub(super) struct Bfd {
    sessions: Vec<Option<Session>>,
}

impl Bfd {
    pub(super) fn new(core: &Core, seed: u64) -> Bfd {
        let asks = |port: PortId| {
            let routing = &core.wiring.routers[core.wiring.ports[port].router].routing;
            let ospf = [&routing.ospf, &routing.ospf6].into_iter().flatten().any(|ospf| ospf.bfd);
            ospf || routing.bgp.as_ref().is_some_and(|bgp| bgp.bfd)
        };
        let session = |port: PortId| {
            let own = &core.wiring.ports[port];
            // A session needs both ends; one alone never comes up and detects nothing.
            (asks(port) && own.peer.is_some_and(asks)).then(|| Session {
                state: State::Down,
                is_running: false,
                is_watched: false,
                deadline: Time::NEVER,
                seed: component_seed(seed, &format!("routing.bfd.{}.{}", own.router, own.name)),
                sent: 0,
            })
        };
        Bfd { sessions: (0..core.wiring.ports.len()).map(session).collect() }
    }

    pub(super) fn begin(&mut self, core: &mut Core, router: RouterId) {
        for port in core.wiring.routers[router].ports.clone() {
            if let Some(session) = &mut self.sessions[port] {
                session.is_running = true;
                core.agenda.plan(core.now, Happening::Bfd(Event::Send(port)));
            }
        }
    }

    /// The protocols hear of a lost carrier themselves.
    pub(super) fn carrier(&mut self, port: PortId, is_there: bool) {
        if let Some(session) = &mut self.sessions[port]
            && !is_there
        {
            session.state = State::Down;
            session.deadline = Time::NEVER;
        }
    }

    pub(super) fn wake(&mut self, core: &mut Core, event: Event) {
        let (Event::Send(port) | Event::Silence(port) | Event::Arrive(port, ..)) = event;
        let Some(session) = &mut self.sessions[port] else { return };
        match event {
            Event::Send(_) => {
                session.sent += 1;
                let whole = if session.state == State::Up { INTERVAL } else { SLOW };
                // Up to a quarter earlier, or routers would fall into step (RFC 5880, section 6.8.7).
                let less = random_below(session.seed, session.sent, whole / 4);
                core.agenda.plan(core.now + whole.saturating_sub(less), Happening::Bfd(Event::Send(port)));
                let [is_init, is_up] = [State::Init, State::Up].map(|state| session.state == state);
                if core.carrier[port]
                    && let Some(peer) = core.wiring.ports[port].peer
                    && let Some(at) = core.send(port)
                {
                    core.agenda.plan(at, Happening::Bfd(Event::Arrive(peer, is_init, is_up)));
                }
            }
            Event::Silence(_) => {
                session.is_watched = false;
                if core.now >= session.deadline {
                    self.down(core, port);
                } else {
                    self.watch(core, port);
                }
            }
            Event::Arrive(_, is_init, is_up) => {
                if !session.is_running || !core.carrier[port] {
                    return;
                }
                let is_down = !is_init && !is_up;
                match session.state {
                    State::Down if is_down => session.state = State::Init,
                    State::Down if is_init => session.state = State::Up,
                    State::Init if !is_down => session.state = State::Up,
                    State::Up if is_down => return self.down(core, port),
                    _ => {}
                }
                let interval = if is_up { INTERVAL } else { SLOW };
                session.deadline = core.now + interval * MULTIPLIER;
                self.watch(core, port);
            }
        }
    }

    fn watch(&mut self, core: &mut Core, port: PortId) {
        let Some(session) = &mut self.sessions[port] else { return };
        if !session.is_watched && session.deadline != Time::NEVER {
            session.is_watched = true;
            core.agenda.plan(session.deadline, Happening::Bfd(Event::Silence(port)));
        }
    }

    fn down(&mut self, core: &mut Core, port: PortId) {
        let Some(session) = &mut self.sessions[port] else { return };
        session.deadline = Time::NEVER;
        if std::mem::replace(&mut session.state, State::Down) == State::Up {
            core.silent.push(port);
        }
    }
}
