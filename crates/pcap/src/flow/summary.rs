//! The summary of a flow.

use super::key::Endpoint;
use crate::parse::{Protocol, Segment, flag};
use crate::quantiles::Quantiles;

/// A direction of a flow: who sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the endpoint that opened the connection (sent the SYN, or else the first packet seen).
    #[default]
    Forward,
    /// The other.
    Backward,
}

impl Direction {
    /// 0 or 1, to index a flow's two halves.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The other direction.
    #[inline]
    pub fn reverse(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Both sides sent FIN and had it acknowledged.
    Closed,
    /// One side sent FIN, or both did and an acknowledgment is missing.
    HalfClosed,
    /// By RST.
    Reset,
    /// The capture ended first.
    Open,
    /// A new connection between the same endpoints began.
    Reused,
    /// It was idle for longest when there was no room for more flows.
    Evicted,
}

/// The reason why a sequence range was retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Duplicate ACKs or SACK blocks showed a loss (RFC 5681, RFC 6675, RFC 8985).
    Fast,
    /// The retransmission timer ran out (RFC 6298), or a timeout's recovery goes on.
    Timeout,
    /// A tail loss probe (RFC 8985 section 7).
    Probe,
    /// No sign seen that would have caused it.
    Unknown,
}

/// Packets retransmitted, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retransmissions {
    /// After duplicate ACKs or SACK blocks.
    pub fast: u64,
    /// After a timeout.
    pub timeout: u64,
    /// Tail loss probes.
    pub probe: u64,
    /// For a cause that was not seen.
    pub unknown: u64,
}

impl Retransmissions {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.fast + self.timeout + self.probe + self.unknown
    }

    pub(crate) fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::Fast => &mut self.fast,
            Cause::Timeout => &mut self.timeout,
            Cause::Probe => &mut self.probe,
            Cause::Unknown => &mut self.unknown,
        } += 1;
    }
}

/// ECN codepoints and flags of one direction (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ecn {
    /// Packets with ECT(0).
    pub ect0: u64,
    /// Packets with ECT(1).
    pub ect1: u64,
    /// Packets marked CE.
    pub ce: u64,
    /// Segments with ECE, without SYN; none with accurate ECN, where it is a bit of a counter (RFC 9768).
    pub ece: u64,
    /// Segments with CWR, likewise.
    pub cwr: u64,
}

impl Ecn {
    pub(super) fn count(&mut self, segment: &Segment, accurate: bool) {
        match segment.ecn {
            1 => self.ect1 += 1,
            2 => self.ect0 += 1,
            3 => self.ce += 1,
            _ => {}
        }
        // With SYN they negotiate (RFC 3168 section 6.1.1).
        if !segment.has(flag::SYN) && !accurate {
            self.ece += u64::from(segment.has(flag::ECE));
            self.cwr += u64::from(segment.has(flag::CWR));
        }
    }
}

/// Summary of one direction of a TCP connection. Sequence numbers count from the initial one, which is 0; of a
/// connection seen from its middle, the first byte seen is 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpHalf {
    /// Packets that carried payload.
    pub data_packets: u64,
    /// Payload bytes seen for the first time.
    pub unique_bytes: u64,
    /// Payload bytes that the other side acknowledged; none if it never acknowledged any.
    pub acked_bytes: Option<u64>,
    /// Payload bytes acknowledged that this capture never saw: it missed packets.
    pub missed_bytes: u64,
    /// When the last acknowledgment of new data came (ns since 1970).
    pub last_acked: Option<i64>,
    /// Packets with payload, SYN or FIN retransmitted.
    pub retransmissions: Retransmissions,
    /// Retransmission timeouts: how often the timer ran out, whatever was retransmitted for it.
    pub timeouts: u64,
    /// Segments retransmitted: a super-packet counts as the segments it is cut into.
    pub retransmitted_segments: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Retransmissions that a DSACK block (RFC 2883) showed to have been needless.
    pub spurious: u64,
    /// Packets that came after later ones and were sent once.
    pub out_of_order: u64,
    /// Copies the network made: the same packet again before any retransmission could come.
    pub duplicates: u64,
    /// Keep-alives and window probes: a byte or none at the last sequence number acknowledged.
    pub keep_alives: u64,
    /// Duplicate ACKs this side sent (RFC 5681 section 2).
    pub duplicate_acks: u64,
    /// Segments with SACK blocks this side sent.
    pub sacks: u64,
    /// DSACK blocks this side sent.
    pub dsacks: u64,
    /// Segments in which this side advertised a window of 0.
    pub zero_windows: u64,
    /// How long its window was 0 in all (ns).
    pub zero_window_time: i64,
    /// Segments that no window could have allowed; they change nothing.
    pub out_of_window: u64,
    /// ECN marks.
    pub ecn: Ecn,
    /// Longest payload (bytes).
    pub largest_payload: u32,
    /// Maximum segment size it announced; none if no SYN with the option was seen.
    pub mss: Option<u16>,
    /// Window scale it announced.
    pub window_scale: Option<u8>,
    /// It permitted SACK.
    pub sack_permitted: bool,
    /// It used timestamps.
    pub timestamps: bool,
    /// The SYN was seen.
    pub syn: bool,
    /// A FIN was seen.
    pub fin: bool,
    /// An RST was seen.
    pub rst: bool,
    /// The initial sequence number; of a connection seen from its middle, the number before the first seen.
    pub initial_seq: u32,
    /// Smallest, largest window advertised, scaled (bytes).
    pub window_min: Option<u64>,
    /// See `window_min`.
    pub window_max: Option<u64>,
    /// Maximum bytes sent and not acknowledged.
    pub outstanding_max: u64,
    /// From each data segment to its acknowledgment, by Karn's rule (ns).
    pub rtt: Quantiles,
    /// From the segment whose timestamp an acknowledgment echoes to that acknowledgment (RFC 7323; ns).
    pub rtt_timestamps: Quantiles,
    /// ICMP messages that a packet of this direction was too big for a link.
    pub too_big: u64,
    /// The smallest MTU that they announced.
    pub path_mtu: Option<u32>,
}

impl TcpHalf {
    pub(super) fn add_zero_window(&mut self, since: i64, until: i64) {
        self.zero_window_time = self.zero_window_time.saturating_add(until.saturating_sub(since).max(0));
    }
}

/// Summary of one direction of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Half {
    /// Packets.
    pub packets: u64,
    /// Bytes on the link, as the capture's original lengths add up.
    pub frame_bytes: u64,
    /// Bytes of IP packets, by their headers.
    pub ip_bytes: u64,
    /// Payload bytes, those retransmitted included.
    pub payload_bytes: u64,
    /// IP fragments among the packets.
    pub fragments: u64,
    /// Packets without IPv4's don't-fragment flag.
    pub may_fragment: u64,
    /// Longest IP packet (bytes).
    pub largest_ip: u32,
    /// First packet (ns since 1970); none if there is none.
    pub first: Option<i64>,
    /// Last packet.
    pub last: Option<i64>,
    /// First packet that carried payload.
    pub data_first: Option<i64>,
    /// Last packet that carried payload not seen before.
    pub data_last: Option<i64>,
    /// Between one packet and the next (ns).
    pub interarrival: Quantiles,
}

/// A flow: a TCP connection, or the UDP datagrams between two endpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSummary {
    /// Its number, from 1 in the order of the flows' first packets.
    pub number: u64,
    /// The number of its first packet in the capture.
    pub first_packet: u64,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The interface it was captured on.
    pub interface: u32,
    /// Who opened it, and whom it was opened to.
    pub endpoints: [Endpoint; 2],
    /// The time of its earliest packet (ns since 1970).
    pub first: i64,
    /// The time of its latest packet.
    pub last: i64,
    /// How it ended.
    pub end: End,
    /// Forward and backward.
    pub halves: [Half; 2],
    /// Summary of TCP.
    pub tcp: Option<TcpSummary>,
}

/// Summary of a TCP connection.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSummary {
    /// Forward and backward.
    pub halves: [TcpHalf; 2],
    /// From the SYN to the ACK that completes the handshake, none of them sent twice (ns).
    pub handshake_rtt: Option<i64>,
    /// The part of it from SYN to SYN-ACK: between the capturing point and the server.
    pub handshake_server: Option<i64>,
    /// The part of it from SYN-ACK to ACK: between the capturing point and the client.
    pub handshake_client: Option<i64>,
    /// Both sides agreed on ECN, classic or accurate.
    pub ecn_negotiated: bool,
    /// They agreed on accurate ECN (RFC 9768).
    pub accecn_negotiated: bool,
}

impl FlowSummary {
    /// From its earliest to its latest packet (ns).
    pub fn duration(&self) -> i64 {
        self.last.saturating_sub(self.first)
    }

    /// Payload delivered per second, in bit/s; none if that took no time.
    ///
    /// TCP: the payload acknowledged, from the flow's first packet to the last acknowledgment of new data. If no
    /// acknowledgment was captured: the payload seen, each byte once, up to the last packet with new payload. UDP:
    /// the payload from the flow's first packet to the last of this direction.
    pub fn goodput(&self, direction: Direction) -> Option<f64> {
        let half = &self.halves[direction.index()];
        let (bytes, until) = match &self.tcp {
            None => (half.payload_bytes, half.last?),
            Some(tcp) => {
                let tcp = &tcp.halves[direction.index()];
                match (tcp.acked_bytes, tcp.last_acked) {
                    (Some(bytes), Some(until)) => (bytes, until),
                    _ => (tcp.unique_bytes, half.data_last?),
                }
            }
        };
        let time = until.saturating_sub(self.first);
        (time > 0).then(|| bytes as f64 * 8e9 / time as f64)
    }
}
