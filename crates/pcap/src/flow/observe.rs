//! The analysis of each packet, for those who want more than a summary.

use super::summary::{Cause, Direction};
use crate::parse::Segment;

/// The role of a TCP segment in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Takes no sequence numbers.
    Control,
    /// Data, SYN or FIN not seen before, in order.
    New,
    /// New, and something before it was never seen.
    AfterGap,
    /// Retransmitted.
    Retransmission(Cause),
    /// Sent once, and overtaken.
    OutOfOrder,
    /// A copy that the network made.
    Duplicate,
    /// A keep-alive or window probe.
    KeepAlive,
    /// Far outside of any window; ignored.
    OutOfWindow,
}

impl Kind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Control => "control",
            Kind::New => "new",
            Kind::AfterGap => "after_gap",
            Kind::Retransmission(Cause::Fast) => "retransmission_fast",
            Kind::Retransmission(Cause::Timeout) => "retransmission_timeout",
            Kind::Retransmission(Cause::Probe) => "retransmission_probe",
            Kind::Retransmission(Cause::Unknown) => "retransmission_unknown",
            Kind::OutOfOrder => "out_of_order",
            Kind::Duplicate => "duplicate",
            Kind::KeepAlive => "keep_alive",
            Kind::OutOfWindow => "out_of_window",
        }
    }
}

/// A TCP segment, or UDP datagram, in its flow.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its place in the capture, from 1.
    pub packet: u64,
    /// When it was captured (ns since 1970).
    pub time: i64,
    /// The flow's number.
    pub flow: u64,
    /// Who sent it.
    pub direction: Direction,
    /// Its fields.
    pub segment: &'a Segment,
    /// Its kind; `New` for a datagram.
    pub kind: Kind,
    /// Its sequence number counted from the initial one. 0 for a datagram.
    pub seq: i64,
    /// Its acknowledgment number counted from the initial one; none without ACK.
    pub ack: Option<i64>,
    /// The window it advertises, scaled (bytes).
    pub window: u64,
    /// A duplicate ACK.
    pub duplicate_ack: bool,
    /// Payload not seen before (bytes).
    pub new_bytes: u32,
    /// Bytes that this side has sent and that are not acknowledged, after this packet.
    pub outstanding: u64,
    /// Bytes that the other side has sent and that are not acknowledged, after this packet.
    pub outstanding_peer: u64,
    /// RTT of the peer's data that this segment acknowledges (ns).
    pub rtt: Option<i64>,
    /// RTT of the segment of the peer whose timestamp this one echoes (ns).
    pub rtt_timestamps: Option<i64>,
}

/// Is shown every segment that belongs to a flow.
pub trait Observer {
    /// Whether it wants to see anything: without, nothing is put together for it.
    const ACTIVE: bool = true;
    /// A segment was seen.
    fn seen(&mut self, seen: &Seen<'_>);
}

/// Wants to see nothing.
impl Observer for () {
    const ACTIVE: bool = false;
    fn seen(&mut self, _: &Seen<'_>) {}
}
