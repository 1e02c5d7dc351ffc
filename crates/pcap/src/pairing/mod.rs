//! The captures of both ends of a path, matched packet by packet: one-way delays, and what was truly lost.
//!
//! A TCP segment is recognised by its addresses, ports, numbers, flags, window, length, timestamps and IPv4
//! identification: all that routers leave alone and a retransmission changes some of. Segments joined or cut on
//! the way (by offloads) are not recognised: capture on the wire, or with offloads off.

mod clock;
mod matching;

use tcplab_tables::{Dictionary, table};

use crate::flow::{Direction, Endpoint};
use crate::quantiles::Quantiles;
use crate::read::Reader;

pub use clock::Clock;

use matching::Observed;

/// Whether the two captures were timed by one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// They were, or by clocks that are synchronised: times are compared as they are.
    Same,
    /// They were not: offset and skew are estimated and removed.
    Different,
}

table! {
    /// Packets that left one end: one row per packet.
    Pairs, PairRow, "pairs";
    /// When it was captured where it was sent, by the first capture's clock (ns since 1970).
    time: i64,
    /// Its place in the capture of the end that sent it, from 1.
    packet: u64,
    /// Its place in the capture of the other end; null if it never came.
    arrived: Option<u64>,
    /// The flow's number in the first capture.
    flow: u64,
    /// Sent by whoever opened the flow.
    forward: bool,
    /// Sequence number, from the initial one.
    seq: i64,
    /// Payload (B).
    len: u64,
    /// What the sender's capture shows it to be; see [`Kind::name`](crate::flow::Kind::name).
    kind: tcplab_tables::Symbol,
    /// One-way delay (ns); null if it never came.
    delay: Option<i64>,
}

/// Both captures, matched.
#[derive(Debug)]
pub struct Pairing {
    /// The flows found in both, in the order of the first capture.
    pub flows: Vec<PairedFlow>,
    /// What was removed of the second capture's clock.
    pub clock: Clock,
    /// Every packet of these flows.
    pub pairs: Pairs,
    /// The strings `pairs` refers to.
    pub dictionary: Dictionary,
    /// Flows found in the first, in the second capture alone.
    pub unpaired: [u64; 2],
}

/// A connection seen at both ends.
#[derive(Clone, Debug)]
pub struct PairedFlow {
    /// Its numbers in the first, the second capture.
    pub numbers: [u64; 2],
    /// Who opened it, and whom it was opened to.
    pub endpoints: [Endpoint; 2],
    /// Who sent the packets that the first capture saw before the second.
    pub sent_at_first: Direction,
    /// Forward and backward.
    pub halves: [PairedHalf; 2],
}

/// One direction of a connection, from the end that sends to the end that receives.
#[derive(Clone, Debug, Default)]
pub struct PairedHalf {
    /// Packets sent while both captures ran.
    pub sent: u64,
    /// Packets of these that arrived.
    pub arrived: u64,
    /// Packets with payload, SYN or FIN that did not.
    pub lost: u64,
    /// Bare acknowledgments that did not.
    pub lost_acks: u64,
    /// Packets sent again.
    pub retransmissions: u64,
    /// Packets sent again although the same numbers had been sent before and arrived.
    pub needless: u64,
    /// Packets that arrived and were never seen to be sent.
    pub unsent: u64,
    /// One-way delay (ns).
    pub delay: Quantiles,
}

/// Matches two captures. Which end each was taken at is found out.
pub fn pair(first: &mut Reader, second: &mut Reader, clocks: Clocks) -> Pairing {
    let first = matching::observe(first);
    let second = matching::observe(second);
    let matched = matching::Matched::of(&first, &second);
    let clock = match clocks {
        Clocks::Same => Clock::default(),
        Clocks::Different => clock::estimate(&matched.differences(&first, &second)),
    };
    matched.report(&first, &second, clock)
}

/// What one capture shows of all connections.
#[derive(Debug)]
struct Capture {
    observed: Vec<Observed>,
    flows: Vec<crate::flow::FlowSummary>,
    first: i64,
    last: i64,
}
