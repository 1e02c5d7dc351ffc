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

/// A packet on its way, as links and nodes need to know it: two words, for it is moved at every step. Its contents stay in
/// one place meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// The number of its contents, from bit 32 the bytes of its Ethernet frame, and from `PLACE` its place in a run.
    load: u64,
    /// The conversation, and from `DESTINATION`, `TRAFFIC_CLASS` and `LIFE` on what they are named after.
    way: u64,
}

/// Bits 49 to 63: how many packets come before it in the run with which it shares its contents. Those below are enough for the
/// largest IP packet.
const PLACE: u32 = 49;
/// Bits 32 to 47: the node it goes to.
const DESTINATION: u32 = 32;
/// Bits 48 to 55: the octet of its IP header that holds the differentiated services codepoint and, in the two low bits, the
/// ECN codepoint.
const TRAFFIC_CLASS: u32 = 48;
/// Bits 56 to 62: routers that may still forward it.
const LIFE: u32 = 56;
/// Its bits were damaged; the receiver discards it.
const CORRUPTED: u64 = 1 << 63;
/// The TTL that Linux gives to the packets that it sends (ip-sysctl, `ip_default_ttl`; IPv6's `hop_limit`).
const TIME_TO_LIVE: u64 = 64;

impl Packet {
    /// A packet that is about to be sent. `conversation` is its stream's number, counted over all flows, times two; one more:
    /// it travels from the flow's `from` to its `to`, not back.
    #[inline]
    pub(crate) fn new(
        body: BodyId,
        frame_len: u32,
        conversation: u32,
        destination: u16,
        traffic_class: u8,
    ) -> Packet {
        Packet {
            load: u64::from(frame_len) << 32 | u64::from(body),
            way: TIME_TO_LIVE << LIFE
                | u64::from(traffic_class) << TRAFFIC_CLASS
                | u64::from(destination) << DESTINATION
                | u64::from(conversation),
        }
    }

    /// One with the same way and these contents, for one that has none and no ECN codepoint yet.
    #[inline]
    pub(crate) fn carrying(self, body: BodyId, frame_len: u32, ecn: u8) -> Packet {
        Packet {
            load: u64::from(frame_len) << 32 | u64::from(body),
            way: self.way | u64::from(ecn) << TRAFFIC_CLASS,
        }
    }

    /// The one that comes `after` so many others in a run, of which this is the first.
    #[inline]
    pub(crate) fn at_place(self, after: u32) -> Packet {
        Packet { load: self.load | u64::from(after) << PLACE, ..self }
    }

    /// How many packets come before it in its run.
    #[inline]
    pub(crate) fn place(&self) -> u32 {
        (self.load >> PLACE) as u32
    }

    /// Its contents, which those of its run share.
    #[inline]
    pub(crate) fn body(&self) -> BodyId {
        self.load as u32
    }

    /// Node it goes to.
    #[inline]
    pub(crate) fn destination(&self) -> u16 {
        (self.way >> DESTINATION) as u16
    }

    /// The octet of its IP header that holds DSCP and ECN.
    #[inline]
    pub(crate) fn traffic_class(&self) -> u8 {
        (self.way >> TRAFFIC_CLASS) as u8
    }

    /// The ECN field as on the wire.
    #[inline]
    pub(crate) fn ecn_bits(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// Its bits were damaged.
    #[inline]
    pub(crate) fn is_corrupted(&self) -> bool {
        self.way & CORRUPTED != 0
    }

    /// A router forwards it; whether its time to live allows that.
    #[inline]
    pub(crate) fn count_down(&mut self) -> bool {
        // It is not forwarded at zero (RFC 1812, section 5.3.1).
        self.way -= 1 << LIFE;
        (self.way & !CORRUPTED) >> LIFE != 0
    }

    /// The stream and the way it travels.
    #[inline]
    pub(crate) fn conversation(&self) -> u32 {
        self.way as u32
    }

    /// Whether it goes the same way: of the same stream to the same node, marked and damaged like this one.
    #[inline]
    pub(crate) fn goes_like(&self, other: &Packet) -> bool {
        self.way == other.way
    }

    /// The stream it belongs to, counted over all flows.
    #[inline]
    pub(crate) fn stream(&self) -> u32 {
        self.conversation() >> 1
    }

    /// It travels from the flow's `from` to its `to`, not back.
    #[inline]
    pub(crate) fn forward(&self) -> bool {
        self.way & 1 == 1
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
        match self {
            Body::Tcp(segment) => segment_frame_len(segment, ip),
            Body::Udp { payload, .. } => ETHERNET_HEADER + ip.header_len() + UDP_HEADER + payload,
            Body::Echo { payload, .. } => ETHERNET_HEADER + ip.header_len() + ICMP_HEADER + payload,
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

/// Bytes of the Ethernet frame that carries `segment` over `ip`.
#[inline]
pub(crate) fn segment_frame_len(segment: &Segment, ip: IpVersion) -> u32 {
    ETHERNET_HEADER + ip.header_len() + tcp_header_len(segment) + segment.len
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
        (self.load >> 32) as u32 & ((1 << (PLACE - 32)) - 1)
    }
    /// One number for each stream and direction, scrambled by Knuth's multiplicative method ("The Art of Computer
    /// Programming", volume 3, section 6.4) so that neighbouring streams share no bits.
    #[inline]
    fn flow_hash(&self) -> u32 {
        let flow = u64::from(self.conversation());
        (flow.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class())
    }
    #[inline]
    fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.way |= (Ecn::Ce as u64) << TRAFFIC_CLASS;
    }
    #[inline]
    fn corrupt(&mut self) {
        self.way |= CORRUPTED;
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
