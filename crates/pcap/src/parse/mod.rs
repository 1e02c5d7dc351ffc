//! From a packet's bytes to the header fields that the analysis of a flow needs.
//!
//! [`parse`] goes through the link header, VLAN tags, MPLS labels and PPPoE. IPv4 or IPv6 with its extension headers
//! follows, then TCP or UDP with its options. All fields are copied into one [`Segment`]. It allocates nothing and
//! trusts no length.

mod four_tuple;
mod ip;
mod link;
mod tcp;

use std::net::{IpAddr, Ipv6Addr};

use crate::read::LinkType;

pub(crate) use four_tuple::FourTuple;
pub use tcp::{SackBlock, TcpOptions, flag};

/// An IPv4 address (as an IPv4-mapped one, RFC 4291 section 2.5.5.2) or an IPv6 address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u128);

impl Address {
    #[inline]
    pub(crate) fn v4(bytes: [u8; 4]) -> Address {
        Address(0xffff_0000_0000 | u128::from(u32::from_be_bytes(bytes)))
    }

    #[inline]
    pub(crate) fn v6(bytes: [u8; 16]) -> Address {
        Address(u128::from_be_bytes(bytes))
    }
}

impl From<Address> for IpAddr {
    fn from(address: Address) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from_bits(address.0)).to_canonical()
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Address {
        match address {
            IpAddr::V4(v4) => Address::v4(v4.octets()),
            IpAddr::V6(v6) => Address(v6.to_bits()),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        IpAddr::from(*self).fmt(f)
    }
}

/// The protocol that carries the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// A fragment's place in its datagram (RFC 791, RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Tells the fragments of one datagram from those of another.
    pub identification: u32,
    /// Where this fragment's payload begins in the datagram's (bytes).
    pub offset: u32,
    /// Length of this fragment's payload (bytes).
    pub len: u32,
    /// Whether more follow.
    pub more: bool,
}

/// The header fields of a TCP segment or UDP datagram.
///
/// Of a fragment that is not the first, ports, TCP fields and payload are unknown: zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// IP source.
    pub source: Address,
    /// IP destination.
    pub destination: Address,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// ECN codepoint: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168).
    pub ecn: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4's don't-fragment flag; always true of IPv6.
    pub dont_fragment: bool,
    /// IPv4's identification; 0 of IPv6.
    pub identification: u16,
    /// Where it belongs if it is a fragment.
    pub fragment: Option<Fragment>,
    /// Length of the frame on the link (bytes).
    pub frame_len: u32,
    /// Length of the IP packet, headers included, as its header says; from the frame's length if the header
    /// says 0, as in a super-packet for TSO (bytes).
    pub ip_len: u32,
    /// Length of the TCP or UDP payload, whether captured or not (bytes).
    pub payload_len: u32,
    /// Where the IP header begins in the captured bytes.
    pub ip_at: u16,
    /// Where the TCP or UDP header begins in the captured bytes.
    pub transport_at: u16,
    /// Where the payload begins in the captured bytes, if that much was captured.
    pub payload_at: u16,
    /// TCP flags: CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the highest bit to the lowest.
    pub flags: u8,
    /// The flag AE, above them (RFC 9768).
    pub ae: bool,
    /// The header was cut by the snap length before its options ended.
    pub options_cut: bool,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Options.
    pub options: TcpOptions,
}

impl Segment {
    /// Whether all of these flags are set.
    #[inline]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Sequence numbers it takes: its payload, and one each for SYN and FIN (RFC 9293 section 3.4).
    #[inline]
    pub fn sequence_len(&self) -> u32 {
        self.payload_len + u32::from(self.has(flag::SYN)) + u32::from(self.has(flag::FIN))
    }
}

/// An ICMP message that says a packet was too big for a link (RFC 1191, RFC 8201).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TooBig {
    /// The link's MTU; 0 from routers before RFC 1191.
    pub mtu: u32,
    /// Who sent the packet that was too big.
    pub source: Address,
    /// Where it was going.
    pub destination: Address,
    /// Its source port.
    pub source_port: u16,
    /// Its destination port.
    pub destination_port: u16,
    /// TCP or UDP.
    pub protocol: Protocol,
}

/// Why a packet is not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unparsed {
    /// The capture's link type is not known.
    LinkType,
    /// Neither IPv4 nor IPv6: ARP, say.
    NotIp,
    /// IP with another payload than TCP and UDP.
    OtherProtocol,
    /// Too few bytes were captured for the headers.
    HeaderCut,
    /// A header contradicts itself: a length below its smallest, the wrong version.
    Malformed,
    /// An ICMP message that a packet was too big.
    TooBig(TooBig),
}

/// The segment in `bytes`, the captured beginning of a frame of `original_len` bytes.
///
/// # Errors
/// Why there is none.
#[inline]
pub fn parse(link: LinkType, bytes: &[u8], original_len: u32) -> Result<Segment, Unparsed> {
    let mut segment = Segment { frame_len: original_len, ..Segment::default() };
    parse_into(link, bytes, &mut segment)?;
    Ok(segment)
}

/// Fills in `segment`, of which only the frame's length is set.
#[inline]
pub(crate) fn parse_into(link: LinkType, bytes: &[u8], segment: &mut Segment) -> Result<(), Unparsed> {
    let ip_at = link::ip_header(link, bytes)?;
    let transport = ip::parse(bytes, ip_at, segment)?;
    match transport {
        ip::Transport::Whole { at, len } => tcp::parse(bytes, at, len, segment),
        ip::Transport::Rest => Ok(()),
    }
}
