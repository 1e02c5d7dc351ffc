//! The packets of the simulated network.

use tcplab_link::{Acknowledgment, Ecn};
use tcplab_tcp::Segment;
use tcplab_tcp::segment::{ACK, CWR, ECE, FIN, RST, SYN};
use tcplab_units::Time;

use crate::bodies::BodyId;
use crate::plan::IpVersion;

/// Bytes of an Ethernet header.
pub const ETHERNET_HEADER: u32 = 14;
/// Bytes of a TCP header without options.
pub const TCP_HEADER: u32 = 20;
/// Bytes of a UDP header.
pub const UDP_HEADER: u32 = 8;
/// Bytes of an ICMP echo header.
pub const ICMP_HEADER: u32 = 8;

/// A packet on its way, as links and nodes need to know it: small, for it is moved at every step. Its
/// contents stay in one place meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Its contents.
    pub(crate) body: BodyId,
    /// Bytes of its Ethernet frame.
    pub(crate) frame_len: u32,
    /// The stream it belongs to, counted over all flows, times two; one more: it travels from the flow's `from` to
    /// its `to`, not back.
    pub(crate) conversation: u32,
    /// Node it goes to.
    pub(crate) destination: u16,
    /// The octet of its IP header that holds the differentiated services codepoint and, in the two low bits, the ECN
    /// codepoint.
    pub(crate) traffic_class: u8,
    /// Routers that may still forward it, in the low seven bits. The highest bit: its bits were damaged; the receiver
    /// discards it.
    life: u8,
}

/// The TTL that Linux gives to the packets that it sends (ip-sysctl, `ip_default_ttl`; IPv6's `hop_limit`).
const TIME_TO_LIVE: u8 = 64;
const CORRUPTED: u8 = 0x80;

impl Packet {
    /// A packet that is about to be sent.
    #[inline]
    pub(crate) fn new(
        body: BodyId,
        frame_len: u32,
        conversation: u32,
        destination: u16,
        traffic_class: u8,
    ) -> Packet {
        Packet { body, frame_len, conversation, destination, traffic_class, life: TIME_TO_LIVE }
    }

    /// Its bits were damaged.
    #[inline]
    pub(crate) fn is_corrupted(&self) -> bool {
        self.life & CORRUPTED != 0
    }

    /// A router forwards it; whether its time to live allows that.
    #[inline]
    pub(crate) fn count_down(&mut self) -> bool {
        // It is not forwarded at zero (RFC 1812, section 5.3.1).
        self.life -= 1;
        self.life & !CORRUPTED != 0
    }

    /// The stream it belongs to, counted over all flows.
    #[inline]
    pub(crate) fn stream(&self) -> u32 {
        self.conversation >> 1
    }

    /// It travels from the flow's `from` to its `to`, not back.
    #[inline]
    pub(crate) fn forward(&self) -> bool {
        self.conversation & 1 == 1
    }
}

/// The contents of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp {
        /// Its number within the stream, from 0.
        number: u64,
        /// When it was sent.
        sent: Time,
        /// Payload bytes.
        payload: u32,
    },
    /// An ICMP echo request or reply.
    Echo {
        /// Number of the probe within the stream, from 0.
        number: u64,
        /// Its row in the table of pings.
        row: u32,
        /// Payload bytes.
        payload: u32,
        /// A reply.
        reply: bool,
    },
}

impl Body {
    /// Bytes of the Ethernet frame that carries this over `ip`.
    #[inline]
    pub fn frame_len(&self, ip: IpVersion) -> u32 {
        ETHERNET_HEADER
            + ip.header_len()
            + match self {
                Body::Tcp(segment) => tcp_header_len(segment) + segment.len,
                Body::Udp { payload, .. } => UDP_HEADER + payload,
                Body::Echo { payload, .. } => ICMP_HEADER + payload,
            }
    }

    /// The acknowledgment of a TCP segment that neither opens nor ends a connection.
    pub(crate) fn acknowledgment(&self) -> Option<Acknowledgment> {
        let Body::Tcp(segment) = self else { return None };
        if segment.flags & (SYN | FIN | RST | ACK) != ACK {
            return None;
        }
        let mut sack = [(0, 0); 4];
        let blocks = usize::from(segment.sack_count).min(sack.len());
        sack[..blocks].copy_from_slice(&segment.sack[..blocks]);
        let (is_pure, ecn_flags) = (segment.len == 0, segment.flags & (ECE | CWR));
        Some(Acknowledgment { number: segment.ack, is_pure, ecn_flags, sack })
    }
}

/// Bytes of a segment's TCP header, options laid out as Linux does (`tcp_options_write`).
#[inline]
pub fn tcp_header_len(segment: &Segment) -> u32 {
    // Timestamps take 10 bytes, padded to 12 (RFC 7323 appendix A).
    let timestamps = if segment.has_timestamp { 12 } else { 0 };
    if segment.flags & SYN == 0 {
        let sack = if segment.sack_count > 0 { 4 + 8 * u32::from(segment.sack_count) } else { 0 };
        return TCP_HEADER + timestamps + sack + segment.accecn.padded_len();
    }
    // SACK-permitted fills the padding of the timestamps where both are there.
    let sack_permitted = if segment.sack_permitted && !segment.has_timestamp { 4 } else { 0 };
    let window_scale = if segment.window_scale == u8::MAX { 0 } else { 4 };
    TCP_HEADER + 4 + timestamps + sack_permitted + window_scale + segment.accecn.padded_len()
}

/// Whether a segment opens a connection.
pub(crate) fn is_opening(segment: &Segment) -> bool {
    segment.flags & (SYN | ACK) == SYN
}

impl tcplab_link::Packet for Packet {
    #[inline]
    fn frame_len(&self) -> u32 {
        self.frame_len
    }
    /// One number for each stream and direction, scrambled by Knuth's multiplicative method ("The Art of Computer
    /// Programming", volume 3, section 6.4) so that neighbouring streams share no bits.
    #[inline]
    fn flow_hash(&self) -> u32 {
        let flow = u64::from(self.conversation);
        (flow.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class)
    }
    #[inline]
    fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.traffic_class |= Ecn::Ce as u8;
    }
    #[inline]
    fn corrupt(&mut self) {
        self.life |= CORRUPTED;
    }
    #[inline]
    fn duplicate(&self) -> Packet {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_link::Packet as _;

    use crate::plan::IpVersion::{V4, V6};
    use tcplab_tcp::segment::AccEcnOption;

    fn segment() -> Segment {
        Segment {
            seq: 0,
            ack: 0,
            len: 0,
            ts_val: 0,
            ts_ecr: 0,
            sack: [(0, 0); 4],
            window: 0,
            flags: ACK,
            ae: false,
            accecn: AccEcnOption::default(),
            sack_count: 0,
            mss: 0,
            window_scale: u8::MAX,
            ecn: 0,
            sack_permitted: false,
            has_timestamp: true,
            more: false,
            retransmission: false,
        }
    }

    #[test]
    fn frames_are_as_long_as_linux_makes_them() {
        let ack = segment();
        assert_eq!(Body::Tcp(ack).frame_len(V4), 66);
        assert_eq!(Body::Tcp(Segment { len: 1448, ..ack }).frame_len(V4), 1514);
        assert_eq!(Body::Tcp(Segment { sack_count: 3, ..ack }).frame_len(V4), 94);
        assert_eq!(Body::Tcp(Segment { len: 1428, ..ack }).frame_len(V6), 1514);
        let syn = Segment { flags: SYN, mss: 1460, sack_permitted: true, window_scale: 7, ..ack };
        assert_eq!(Body::Tcp(syn).frame_len(V4), 74);
        assert_eq!(Body::Tcp(Segment { has_timestamp: false, ..syn }).frame_len(V4), 66);
        assert_eq!(Body::Udp { number: 0, sent: Time::ZERO, payload: 1472 }.frame_len(V4), 1514);
        assert_eq!(Body::Echo { number: 0, row: 0, payload: 56, reply: false }.frame_len(V4), 98);
    }

    #[test]
    fn the_flow_hash_tells_streams_and_directions_apart() {
        let packet = |stream: u32, forward| Packet::new(0, 66, stream << 1 | u32::from(forward), 0, 0);
        let hashes: std::collections::HashSet<u32> = (0..1000)
            .flat_map(|stream| [true, false].map(|forward| packet(stream, forward).flow_hash()))
            .collect();
        assert_eq!(hashes.len(), 2000);
    }

    #[test]
    fn a_packet_passes_63_routers_damaged_or_not() {
        for is_damaged in [false, true] {
            let mut packet = Packet::new(0, 66, 0, 0, 0);
            if is_damaged {
                packet.corrupt();
            }
            assert_eq!((0..100).take_while(|_| packet.count_down()).count(), 63);
            assert_eq!(packet.is_corrupted(), is_damaged);
        }
    }

    #[test]
    fn a_packet_is_moved_in_one_instruction() {
        assert_eq!(size_of::<Packet>(), 16);
    }
}
