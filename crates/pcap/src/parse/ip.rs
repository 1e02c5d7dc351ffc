//! IPv4 (RFC 791) and IPv6 with its extension headers (RFC 8200).

use super::{Address, FourTuple, Fragment, Protocol, Segment, TooBig, Unparsed};
use crate::read::LONGEST_PACKET;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

pub(super) const IPV4_LEN: usize = 20;
pub(super) const IPV6_LEN: usize = 40;
/// Of the flags and fragment offset: more fragments follow, or some came before.
pub(super) const IPV4_FRAGMENT: u16 = 0x3fff;
/// RFC 8200 section 4.1 recommends an order of seven; a chain this long is an attack or damage.
const MAX_EXTENSIONS: usize = 16;
/// Beyond this the offsets of a [`Segment`] end; headers of real packets never do.
const LONGEST_HEADERS: usize = 4096;

const DESTINATION_UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
const PACKET_TOO_BIG: u8 = 2;
const ICMP_LEN: usize = 8;

/// The packet behind the IP headers.
pub(super) enum Transport {
    /// A transport header at `at`; header and payload are `len` bytes by the IP header.
    Whole { at: usize, len: u32 },
    /// A fragment without the transport header.
    Rest,
}

#[inline]
pub(super) fn parse(bytes: &[u8], at: usize, segment: &mut Segment) -> Result<Transport, Unparsed> {
    let first = *bytes.get(at).ok_or(Unparsed::HeaderCut)?;
    segment.ip_at = at as u16;
    match first >> 4 {
        4 => ipv4(bytes, at, segment),
        6 => ipv6(bytes, at, segment),
        _ => Err(Unparsed::Malformed),
    }
}

#[inline]
fn ipv4(bytes: &[u8], at: usize, segment: &mut Segment) -> Result<Transport, Unparsed> {
    let header = bytes[at..].first_chunk::<IPV4_LEN>().ok_or(Unparsed::HeaderCut)?;
    let header_len = usize::from(header[0] & 0xf) * 4;
    if header_len < IPV4_LEN {
        return Err(Unparsed::Malformed);
    }
    let given = u32::from(u16::from_be_bytes([header[2], header[3]]));
    let ip_len = if given == 0 { by_frame(segment, at)? } else { given };
    if ip_len < header_len as u32 {
        return Err(Unparsed::Malformed);
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    segment.ecn = header[1] & 3;
    segment.ttl = header[8];
    segment.ip_len = ip_len;
    segment.identification = u16::from_be_bytes([header[4], header[5]]);
    segment.dont_fragment = fragment & 0x4000 != 0;
    segment.source = Address::v4([header[12], header[13], header[14], header[15]]);
    segment.destination = Address::v4([header[16], header[17], header[18], header[19]]);
    let len = ip_len - header_len as u32;
    if fragment & IPV4_FRAGMENT != 0 {
        segment.fragment = Some(Fragment {
            identification: u32::from(segment.identification),
            offset: u32::from(fragment & 0x1fff) * 8,
            len,
            more: fragment & 0x2000 != 0,
        });
    }
    transport(bytes, at + header_len, len, header[9], segment)
}

#[inline]
fn ipv6(bytes: &[u8], at: usize, segment: &mut Segment) -> Result<Transport, Unparsed> {
    let header = bytes[at..].first_chunk::<IPV6_LEN>().ok_or(Unparsed::HeaderCut)?;
    let given = u32::from(u16::from_be_bytes([header[4], header[5]]));
    // A jumbogram (RFC 2675), or a super-packet of Linux's BIG TCP.
    let ip_len = if given == 0 { by_frame(segment, at)? } else { given + IPV6_LEN as u32 };
    if ip_len < IPV6_LEN as u32 {
        return Err(Unparsed::Malformed);
    }
    segment.ecn = (header[1] >> 4) & 3;
    segment.ttl = header[7];
    segment.ip_len = ip_len;
    segment.dont_fragment = true;
    segment.source = header[8..].first_chunk().map_or(Address::default(), |&source| Address::v6(source));
    segment.destination = header[24..].first_chunk().map_or(Address::default(), |&to| Address::v6(to));
    let len = ip_len - IPV6_LEN as u32;
    match header[6] {
        next @ (TCP | UDP) => transport(bytes, at + IPV6_LEN, len, next, segment),
        next => extensions(bytes, at + IPV6_LEN, len, next, segment),
    }
}

/// The length of an IP packet whose header does not give it, by that of the frame: a super-packet's.
#[cold]
fn by_frame(segment: &Segment, at: usize) -> Result<u32, Unparsed> {
    if segment.frame_len > LONGEST_PACKET {
        return Err(Unparsed::Malformed);
    }
    Ok(segment.frame_len.saturating_sub(at as u32))
}

/// Goes through the extension headers to what they precede.
#[cold]
fn extensions(
    bytes: &[u8],
    mut at: usize,
    mut len: u32,
    mut next: u8,
    segment: &mut Segment,
) -> Result<Transport, Unparsed> {
    for _ in 0..MAX_EXTENSIONS {
        let header_len = match next {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HIP | SHIM6 | FRAGMENT | AUTHENTICATION => {
                let header = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>).ok_or(Unparsed::HeaderCut)?;
                let header_len = match next {
                    FRAGMENT => 8,
                    // RFC 4302 section 2.2 counts words of four bytes, less two.
                    AUTHENTICATION => (u32::from(header[1]) + 2) * 4,
                    _ => (u32::from(header[1]) + 1) * 8,
                };
                if header_len > len {
                    return Err(Unparsed::Malformed);
                }
                if next == FRAGMENT {
                    let place = u16::from_be_bytes([header[2], header[3]]);
                    let fragment = Fragment {
                        identification: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
                        offset: u32::from(place & !7),
                        len: len - header_len,
                        more: place & 1 != 0,
                    };
                    // A fragment that is the whole datagram (RFC 6946) needs no reassembly.
                    if fragment.offset != 0 || fragment.more {
                        segment.fragment = Some(fragment);
                    }
                }
                next = header[0];
                header_len
            }
            _ => return transport(bytes, at, len, next, segment),
        };
        at += header_len as usize;
        len -= header_len;
        if segment.fragment.is_some_and(|fragment| fragment.offset > 0) {
            return transport(bytes, at, len, next, segment);
        }
    }
    Err(Unparsed::Malformed)
}

#[inline]
fn transport(
    bytes: &[u8],
    at: usize,
    len: u32,
    protocol: u8,
    segment: &mut Segment,
) -> Result<Transport, Unparsed> {
    segment.protocol = match self::protocol(protocol) {
        Some(protocol) => protocol,
        None => return Err(other(bytes, at, protocol)),
    };
    if at > LONGEST_HEADERS {
        return Err(Unparsed::Malformed);
    }
    segment.transport_at = at as u16;
    segment.payload_at = at as u16;
    if segment.fragment.is_some_and(|fragment| fragment.offset > 0) {
        return Ok(Transport::Rest);
    }
    Ok(Transport::Whole { at, len })
}

#[inline]
pub(super) fn protocol(number: u8) -> Option<Protocol> {
    match number {
        TCP => Some(Protocol::Tcp),
        UDP => Some(Protocol::Udp),
        _ => None,
    }
}

/// Of other protocols only ICMP's complaint that a packet was too big says something about a flow.
#[cold]
fn other(bytes: &[u8], at: usize, protocol: u8) -> Unparsed {
    let too_big = match bytes.get(at..).and_then(<[u8]>::first_chunk::<ICMP_LEN>) {
        Some(&[DESTINATION_UNREACHABLE, FRAGMENTATION_NEEDED, _, _, _, _, a, b]) if protocol == ICMP => {
            quoted(&bytes[at + ICMP_LEN..], u32::from(u16::from_be_bytes([a, b])))
        }
        Some(&[PACKET_TOO_BIG, _, _, _, a, b, c, d]) if protocol == ICMPV6 => {
            quoted(&bytes[at + ICMP_LEN..], u32::from_be_bytes([a, b, c, d]))
        }
        _ => None,
    };
    too_big.map_or(Unparsed::OtherProtocol, Unparsed::TooBig)
}

/// The beginning of the packet that an ICMP message quotes.
fn quoted(bytes: &[u8], mtu: u32) -> Option<TooBig> {
    let (FourTuple { source, destination, source_port, destination_port }, protocol) =
        FourTuple::in_ip(bytes)?;
    Some(TooBig { mtu, source, destination, source_port, destination_port, protocol })
}
