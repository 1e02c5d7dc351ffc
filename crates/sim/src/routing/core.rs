//! Shared by all protocols: the clock, the links, the interfaces, the routing tables, the record.

use std::net::IpAddr;

use tcplab_link::mix;
use tcplab_units::{Span, Time};

use super::agenda::Agenda;
use super::medium::Medium;
use super::rib::{Rib, Row, Turn};
use super::wiring::{PortId, RouterId, Wiring};
use super::{bfd, bgp, ospf};

/// The events, and whom they concern.
#[derive(Debug)]
pub(super) enum Event {
    /// The daemons of a router start.
    Begin(RouterId),
    /// The next change of the links' settings.
    Change,
    /// The ends of a link, by its place in the plan, look at its carrier.
    Carrier(usize),
    /// A router's changes go into the kernel.
    Install(RouterId),
    Bfd(bfd::Event),
    /// Of OSPF version 2 or 3, by the family of addresses.
    Ospf(usize, ospf::Event),
    Bgp(bgp::Event),
}

/// A change in an adjacency or a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) time: Time,
    /// The link's place in the plan; none: a session between routers that are not neighbours.
    pub(super) link: Option<usize>,
    /// `adjacency` or `session`.
    pub(super) event: &'static str,
    pub(super) detail: String,
}

/// Everything but the protocols themselves. Time counts from when the first daemon could start.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) now: Time,
    pub(super) wiring: Wiring,
    pub(super) medium: Medium,
    pub(super) agenda: Agenda<Event>,
    /// By interface.
    pub(super) carrier: Vec<bool>,
    /// By router.
    pub(super) ribs: Vec<Rib>,
    /// Routers whose tables have changed in this event.
    pub(super) moved: Vec<RouterId>,
    /// Interfaces whose neighbours BFD has found to be gone in this event.
    pub(super) silent: Vec<PortId>,
    /// Events that have not been fetched yet.
    pub(super) notes: Vec<Note>,
    pub(super) rows: Vec<Row>,
    pub(super) turns: Vec<Turn>,
    /// When a kernel's table changed last.
    pub(super) last_move: Time,
}

impl Core {
    /// Sends from an interface to its peer: when the message arrives, unless it is lost.
    pub(super) fn send(&mut self, port: PortId) -> Option<Time> {
        self.medium.send(self.wiring.ports[port].out, self.now)
    }

    /// Sends to an address that need not be a neighbour's: when the message arrives, unless it is lost or nobody on the
    /// way knows one.
    pub(super) fn send_far(&mut self, from: RouterId, address: IpAddr) -> Option<Time> {
        let (mut here, mut takes) = (from, Span::ZERO);
        // A way without loops visits each router once.
        for _ in 0..self.wiring.routers.len() {
            let mut own =
                self.wiring.routers[here].ports.iter().flat_map(|&port| self.wiring.ports[port].addresses);
            if own.any(|own| own.is_some_and(|own| own.ip == address)) {
                return Some(self.now + takes);
            }
            let port = self.ribs[here].way_out(&self.wiring, here, address)?;
            let peer = self.wiring.ports[port].peer?;
            takes += self.send(port)?.since(self.now);
            here = self.wiring.ports[peer].router;
        }
        None
    }

    pub(super) fn note(&mut self, link: Option<usize>, event: &'static str, detail: String) {
        self.notes.push(Note { time: self.now, link, event, detail });
    }
}

/// A time from a random stream, evenly below `bound`.
pub(super) fn random_below(seed: u64, draw: u64, bound: Span) -> Span {
    let random = mix(mix(seed).wrapping_add(draw));
    Span::from_ns(((u128::from(random) * u128::from(bound.as_ns())) >> 64) as u64)
}
