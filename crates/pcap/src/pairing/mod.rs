//! The captures of both ends of a path, matched packet by packet: one-way delays, and what was truly lost.
//!
//! A TCP segment is recognised by its addresses, ports, numbers, flags, window, length, timestamps and IPv4
//! identification: all that routers leave alone and a retransmission changes some of. Packets that offloads cut
//! or merged between the two captures are recognised by their sequence numbers and timestamps.

mod clock;
mod matching;
mod parts;
mod received;

use tcplab_tables::{Dictionary, table};

use crate::flow::{Direction, Endpoint};
use crate::quantiles::Quantiles;
use crate::read::Reader;

pub use clock::Clock;

use matching::Observed;

/// Whether the two captures were timed by one clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clocks {
    /// They were, or by clocks that are synchronised: times are compared as they are.
    Same,
    /// They were not: offset and skew are estimated and removed.
    Different,
    /// They were not, and this is known of the second's lead from exchanges of the time. Packets may narrow it further.
    Known(Clock),
}

table! {
    /// Packets that left one end: one row per packet, or per part of it where offloads cut or merged it on its way.
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
    /// Its kind in the sender's capture; see [`Kind::name`](crate::flow::Kind::name).
    kind: tcplab_tables::Symbol,
    /// One-way delay (ns); null if it never came.
    delay: Option<i64>,
}

/// Both captures, matched.
#[derive(Debug)]
pub struct Pairing {
    /// The flows found in both, in the order of the first capture.
    pub flows: Vec<PairedFlow>,
    /// The correction of the second capture's clock.
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
    /// Packets sent while both captures ran. A super-packet counts as the segments it is cut into, here and below.
    pub sent: u64,
    /// Packets of these that were captured when they arrived.
    pub arrived: u64,
    /// Packets with payload, SYN or FIN that did not.
    pub lost: u64,
    /// Packets of these that arrived, as they were acknowledged, and that the capture there missed.
    pub missed: u64,
    /// Bare acknowledgments that did not.
    pub lost_acks: u64,
    /// Packets retransmitted.
    pub retransmissions: u64,
    /// Packets retransmitted although the same numbers had been sent before and arrived.
    pub needless: u64,
    /// Packets that arrived and were never seen to be sent.
    pub unsent: u64,
    /// One-way delay (ns).
    pub delay: Quantiles,
}

/// Matches two captures. Which end each was taken at is found out.
pub fn pair(first: &mut Reader, second: &mut Reader, clocks: Clocks) -> Pairing {
    let first = matching::observe(first);
    let mut second = matching::observe(second);
    let matched = matching::Matched::of(&first, &mut second);
    let clock = match clocks {
        Clocks::Same => Clock::default(),
        Clocks::Different => clock::estimate(&matched.differences(&first, &second), None),
        Clocks::Known(clock) => clock::estimate(&matched.differences(&first, &second), Some(clock)),
    };
    matched.report(&first, &second, clock)
}

/// All connections of one capture.
#[derive(Debug)]
struct Capture {
    observed: Vec<Observed>,
    flows: Vec<crate::flow::FlowSummary>,
    first: i64,
    last: i64,
}

impl Capture {
    /// Payload of a full segment of one direction (bytes), beyond all without a handshake. The MSS counts no
    /// options (RFC 9293 section 3.7.1); timestamps take 12 bytes of it.
    fn segment_len(&self, flow: u64, direction: Direction) -> u32 {
        let place = self.flows.binary_search_by_key(&flow, |flow| flow.number);
        let halves = place.ok().and_then(|place| Some(&self.flows[place].tcp.as_ref()?.halves));
        let announced = halves.and_then(|halves| halves[direction.reverse().index()].mss);
        let options = if halves.is_some_and(|halves| halves[direction.index()].timestamps) { 12 } else { 0 };
        announced.map_or(u32::MAX, |mss| u32::from(mss).saturating_sub(options).max(1))
    }
}
