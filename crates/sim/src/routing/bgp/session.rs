//! Sessions: how they come up and end, and the TCP connection that carries them, in order and with retransmissions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use tcplab_link::component_seed;
use tcplab_units::{Span, Time};

use super::super::core::{Core, random_below};
use super::super::wiring::{PortId, Prefix, RouterId};
use super::decision::Received;
use super::{Bgp, Event, Path, SessionId};
use crate::plan::Bgp as Settings;

/// From the start of a router, or the end of a session, to the next attempt (FRR's start timer).
const START: Span = Span::from_secs(1);
/// A new session's first updates wait for so long, so that they can be collected (FRR's `coalesce-time`).
const COALESCE: Span = Span::from_ms(1_000);
/// Linux' minimum of the retransmission timeout, and its maximum.
const RTO: Span = Span::from_ms(200);
const RTO_MAX: Span = Span::from_secs(120);

/// One end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Side {
    pub(super) session: SessionId,
    pub(super) end: usize,
}

impl Side {
    pub(super) fn other(self) -> Side {
        Side { end: 1 - self.end, ..self }
    }
}

#[derive(Clone, Debug)]
pub(in super::super) enum Message {
    Keepalive,
    /// Networks and the new path to each; none: withdrawn.
    Update(Vec<(Prefix, Option<Path>)>),
    /// The session ends.
    Notification,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Connecting,
    Established,
}

#[derive(Debug)]
pub(super) struct End {
    pub(super) router: RouterId,
    pub(super) address: IpAddr,
    /// The interface towards a neighbour; none: the other end is further away.
    pub(super) port: Option<PortId>,
    state: State,
    /// Of the timer for connections: an older one is void.
    pub(super) attempt: u32,
    deadline: Time,
    is_watched: bool,
    /// Paths by network, as the other end has advertised them (Adj-RIB-In).
    pub(super) received: BTreeMap<Prefix, Received>,
    /// Paths advertised to the other end (Adj-RIB-Out).
    adj_rib_out: BTreeMap<Prefix, Path>,
    pending: BTreeSet<Prefix>,
    is_advertising: bool,
    advertised: Option<Time>,
    /// Messages that the link has lost, and that wait behind them.
    unsent: VecDeque<Message>,
    rto: Span,
    last_arrival: Time,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) family: usize,
    pub(super) is_internal: bool,
    /// Which connection this is.
    pub(super) epoch: u32,
    pub(super) ends: [End; 2],
    keepalive: [Span; 2],
    hold: Span,
    seed: u64,
    draws: u64,
}

impl Session {
    pub(super) fn new(
        seed: u64,
        number: SessionId,
        family: usize,
        ends: [(RouterId, IpAddr, Option<PortId>); 2],
        settings: [&Settings; 2],
    ) -> Session {
        // The lower hold time of both counts (section 4.2); keepalives are at most a third of it apart.
        let hold = settings[0].hold_time.min(settings[1].hold_time);
        Session {
            family,
            is_internal: settings[0].autonomous_system == settings[1].autonomous_system,
            epoch: 0,
            ends: ends.map(|(router, address, port)| End {
                router,
                address,
                port,
                state: State::Idle,
                attempt: 0,
                deadline: Time::NEVER,
                is_watched: false,
                received: BTreeMap::new(),
                adj_rib_out: BTreeMap::new(),
                pending: BTreeSet::new(),
                is_advertising: false,
                advertised: None,
                unsent: VecDeque::new(),
                rto: RTO,
                last_arrival: Time::ZERO,
            }),
            keepalive: settings.map(|one| one.keepalive.min(hold / 3)),
            hold,
            seed: component_seed(seed, &format!("routing.bgp.{number}")),
            draws: 0,
        }
    }

    /// A timer with the jitter of section 10: 75 % to 100 % of it.
    fn jittered(&mut self, whole: Span) -> Span {
        self.draws += 1;
        whole.saturating_sub(random_below(self.seed, self.draws, whole / 4))
    }
}

impl Bgp {
    /// The next attempt to connect, after the start timer.
    pub(super) fn start(&mut self, core: &mut Core, side: Side) {
        let wait = self.sessions[side.session].jittered(START);
        self.attempt_at(core, side, core.now + wait);
    }

    fn attempt_at(&mut self, core: &mut Core, side: Side, time: Time) {
        let end = self.end_mut(side);
        end.attempt += 1;
        let attempt = end.attempt;
        Bgp::plan(core, time, Event::Connect(side, attempt));
    }

    /// The other end can be reached again: nobody waits for a timer (FRR's next-hop tracking).
    pub(super) fn connect_now(&mut self, core: &mut Core, side: Side) {
        if self.end(side).state == State::Idle {
            self.attempt_at(core, side, core.now);
        }
    }

    pub(super) fn connect(&mut self, core: &mut Core, side: Side) {
        let other = side.other();
        if self.end(side).state != State::Idle {
            return;
        }
        let is_listening = self.processes[self.end(other).router].as_ref().is_some_and(|far| far.is_running)
            && self.end(other).state == State::Idle;
        let forward = self.transmit(core, side);
        let reverse = forward.and_then(|_| self.transmit(core, other));
        let (true, Some(forward), Some(reverse)) = (is_listening, forward, reverse) else {
            let retry = self.processes[self.end(side).router].as_ref().map(|own| own.settings.connect_retry);
            let wait = self.sessions[side.session].jittered(retry.unwrap_or(START));
            return self.attempt_at(core, side, core.now + wait);
        };
        let session = &mut self.sessions[side.session];
        session.epoch += 1;
        let epoch = session.epoch;
        session.ends.iter_mut().for_each(|end| end.state = State::Connecting);
        // SYN, SYN/ACK, OPEN, then OPEN and KEEPALIVE; the KEEPALIVE to that completes the other side.
        let (forward, reverse) = (forward.since(core.now), reverse.since(core.now));
        let first = core.now + (forward + reverse) * 2;
        Bgp::plan(core, first, Event::Established(side, epoch));
        Bgp::plan(core, first + forward, Event::Established(other, epoch));
    }

    pub(super) fn established(&mut self, core: &mut Core, side: Side) {
        if self.end(side).state != State::Connecting {
            return;
        }
        if self.transmit(core, side).is_none() {
            return self.close(core, side, "");
        }
        let (epoch, hold) = (self.sessions[side.session].epoch, self.sessions[side.session].hold);
        let known: Vec<Prefix> = self.known(side);
        let end = self.end_mut(side);
        end.state = State::Established;
        end.deadline = core.now + hold;
        end.pending.extend(known);
        end.is_advertising = true;
        self.note(core, side, "Up");
        self.watch(core, side);
        self.keepalive(core, side);
        Bgp::plan(core, core.now + COALESCE, Event::Advertise(side, epoch));
    }

    pub(super) fn keepalive(&mut self, core: &mut Core, side: Side) {
        if self.end(side).state != State::Established {
            return;
        }
        self.send(core, side, Message::Keepalive);
        let session = &self.sessions[side.session];
        let (epoch, next) = (session.epoch, core.now + session.keepalive[side.end]);
        Bgp::plan(core, next, Event::Keepalive(side, epoch));
    }

    fn watch(&mut self, core: &mut Core, side: Side) {
        let epoch = self.sessions[side.session].epoch;
        let end = self.end_mut(side);
        if !std::mem::replace(&mut end.is_watched, true) {
            let deadline = end.deadline;
            Bgp::plan(core, deadline, Event::Silence(side, epoch));
        }
    }

    pub(super) fn silence(&mut self, core: &mut Core, side: Side) {
        let end = self.end_mut(side);
        end.is_watched = false;
        if core.now < end.deadline {
            self.watch(core, side);
        } else {
            self.close(core, side, "BGP Notification send");
        }
    }

    pub(super) fn arrive(&mut self, core: &mut Core, side: Side, message: Message) {
        if self.end(side).state != State::Established {
            return;
        }
        let hold = self.sessions[side.session].hold;
        self.end_mut(side).deadline = core.now + hold;
        match message {
            Message::Keepalive => {}
            Message::Update(changes) => self.updated(core, side, changes),
            Message::Notification => self.close(core, side, "BGP Notification received"),
        }
    }

    /// The session ends on this side, and, as soon as it hears of it, on the other.
    pub(super) fn close(&mut self, core: &mut Core, side: Side, reason: &str) {
        let old = self.end(side).state;
        if old == State::Idle {
            return;
        }
        if old == State::Established && reason != "BGP Notification received" {
            self.send(core, side, Message::Notification);
        }
        let router = self.end(side).router;
        let end = self.end_mut(side);
        end.state = State::Idle;
        end.deadline = Time::NEVER;
        end.is_watched = false;
        end.adj_rib_out.clear();
        end.pending.clear();
        end.unsent.clear();
        end.rto = RTO;
        end.is_advertising = false;
        end.advertised = None;
        let lost: Vec<Prefix> = std::mem::take(&mut end.received).into_keys().collect();
        if old == State::Established {
            self.note(core, side, &format!("Down {reason}"));
        }
        self.reconsider(core, router, lost);
        self.start(core, side);
        let other = side.other();
        if old == State::Connecting && self.end(other).state == State::Connecting {
            self.close(core, other, "");
        }
    }

    fn note(&self, core: &mut Core, side: Side, change: &str) {
        let (own, other) = (self.end(side), self.end(side.other()));
        let name = &core.wiring.routers[own.router].name;
        let detail = format!("{name} BGP neighbour {}: {change}", other.address);
        let link = own.port.map(|port| core.wiring.ports[port].link);
        core.note(link, "session", detail);
    }

    /// A network's path has changed: neighbours hear of it, at the pace of their advertisements.
    pub(super) fn announce(&mut self, core: &mut Core, router: RouterId, prefix: Prefix) {
        let Some(process) = &self.processes[router] else { return };
        let interval = process.settings.advertisement_interval;
        for side in process.sides.clone() {
            let exported = self.exported(side, prefix);
            let epoch = self.sessions[side.session].epoch;
            let end = self.end_mut(side);
            if end.state != State::Established {
                continue;
            }
            if exported.is_none() {
                // A withdrawal does not wait (section 9.2.1.1).
                end.pending.remove(&prefix);
                if end.adj_rib_out.remove(&prefix).is_some() {
                    self.send(core, side, Message::Update(vec![(prefix, None)]));
                }
                continue;
            }
            end.pending.insert(prefix);
            if !std::mem::replace(&mut end.is_advertising, true) {
                let at = end.advertised.map_or(core.now, |last| core.now.max(last + interval));
                Bgp::plan(core, at, Event::Advertise(side, epoch));
            }
        }
    }

    pub(super) fn advertise(&mut self, core: &mut Core, side: Side) {
        let end = self.end_mut(side);
        end.is_advertising = false;
        let pending = std::mem::take(&mut end.pending);
        let mut changes = Vec::new();
        for prefix in pending {
            let path = self.exported(side, prefix);
            let adj_rib_out = &mut self.end_mut(side).adj_rib_out;
            if adj_rib_out.get(&prefix) == path.as_ref() {
                continue;
            }
            match &path {
                Some(path) => adj_rib_out.insert(prefix, path.clone()),
                None => adj_rib_out.remove(&prefix),
            };
            changes.push((prefix, path));
        }
        if !changes.is_empty() {
            self.end_mut(side).advertised = Some(core.now);
            self.send(core, side, Message::Update(changes));
        }
    }

    /// Sends in order; what is lost is retransmitted, with all that waits behind it.
    fn send(&mut self, core: &mut Core, side: Side, message: Message) {
        self.end_mut(side).unsent.push_back(message);
        if self.end(side).unsent.len() == 1 {
            self.resend(core, side);
        }
    }

    pub(super) fn resend(&mut self, core: &mut Core, side: Side) {
        let arrival = self.transmit(core, side);
        let epoch = self.sessions[side.session].epoch;
        let end = self.end_mut(side);
        let Some(arrival) = arrival else {
            let at = core.now + end.rto;
            end.rto = (end.rto * 2).min(RTO_MAX);
            return Bgp::plan(core, at, Event::Resend(side, epoch));
        };
        end.rto = RTO;
        end.last_arrival = end.last_arrival.max(arrival);
        let at = end.last_arrival;
        for message in std::mem::take(&mut end.unsent) {
            Bgp::plan(core, at, Event::Arrive(side.other(), epoch, message));
        }
    }

    /// When a segment that leaves now arrives at the other end; none: it is lost.
    fn transmit(&self, core: &mut Core, side: Side) -> Option<Time> {
        let own = self.end(side);
        match own.port {
            Some(port) => core.carrier[port].then(|| core.send(port)).flatten(),
            None => core.send_far(own.router, self.end(side.other()).address),
        }
    }
}
