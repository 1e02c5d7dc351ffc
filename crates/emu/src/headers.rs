//! The headers of a packet as they leave: those of its super-packet, made its own.
//!
//! Segments differ in the fields that Linux's `tcp_gso_segment`, `__udp_gso_segment` and `inet_gso_segment` let
//! differ. These are the lengths, the IPv4 identification, the sequence number, and the flags that belong to the
//! first (CWR of classic ECN) or the last segment (FIN, PSH).

use crate::checksum::Sum;
use crate::frame_layout::{IP, Network, Transport};
use crate::wire::Wire;

pub(crate) const FIN: u8 = 0x01;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;
pub(crate) const ECE: u8 = 0x40;
pub(crate) const CWR: u8 = 0x80;

/// The TCP flags of `packet`, whose shared headers are `header`; none where it is not TCP.
#[inline]
pub(crate) fn tcp_flags(packet: &Wire, header: &[u8]) -> u8 {
    if packet.layout.transport != Transport::Tcp {
        return 0;
    }
    let mut flags = header[usize::from(packet.layout.transport_at) + 13];
    if !packet.is_last() {
        flags &= !(FIN | PSH);
    }
    if packet.index() > 0 && !packet.shares_cwr() {
        flags &= !CWR;
    }
    flags
}

/// The sequence number of `packet`.
#[inline]
pub(crate) fn sequence(packet: &Wire, header: &[u8]) -> u32 {
    let at = usize::from(packet.layout.transport_at) + 4;
    read_u32(header, at).wrapping_add(packet.skipped())
}

/// The IPv4 identification of `packet`.
#[inline]
pub(crate) fn identification(packet: &Wire, header: &[u8]) -> u16 {
    read_u16(header, IP + 4).wrapping_add(packet.index())
}

/// Turns `header`, a copy of the shared headers of `packet`, into the headers of a packet that begins with `packet`.
///
/// The new packet has `payload_len` bytes of payload, and the `flags` where it is TCP. Its checksum is left for the
/// device.
#[inline]
pub(crate) fn adapt(packet: &Wire, header: &mut [u8], payload_len: usize, flags: u8) {
    let transport = usize::from(packet.layout.transport_at);
    let ip_len = header.len() - IP + payload_len;
    match packet.layout.network {
        Network::Ip4 => {
            let id = identification(packet, header);
            write_u16(header, IP + 2, ip_len as u16);
            write_u16(header, IP + 4, id);
        }
        Network::Ip6 => write_u16(header, IP + 4, (ip_len - 40) as u16),
        Network::Other => {}
    }
    let transport_len = header.len() - transport + payload_len;
    if packet.layout.transport == Transport::Tcp {
        let sequence = sequence(packet, header);
        header[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
        header[transport + 13] = flags;
    } else {
        write_u16(header, transport + 4, transport_len as u16);
    }
    let pseudo_header = pseudo_header(packet, header, transport_len).fold();
    write_u16(header, transport + packet.layout.transport.checksum_offset(), pseudo_header);
    finish_ip(packet, header);
}

/// Sets the mark if there is one, and completes the IPv4 header's checksum.
#[inline]
pub(crate) fn finish_ip(packet: &Wire, header: &mut [u8]) {
    if packet.is_marked() {
        match packet.layout.network {
            Network::Ip4 => header[IP + 1] |= 3,
            Network::Ip6 => header[IP + 1] |= 3 << 4,
            Network::Other => {}
        }
    }
    if packet.layout.network == Network::Ip4 {
        let end = IP + usize::from(header[IP] & 0xf) * 4;
        write_u16(header, IP + 10, 0);
        if let Some(ip) = header.get(IP..end) {
            let checksum = Sum::default().add(ip).checksum();
            write_u16(header, IP + 10, checksum);
        }
    }
}

/// RFC 9293 section 3.1, RFC 8200 section 8.1.
fn pseudo_header(packet: &Wire, header: &[u8], transport_len: usize) -> Sum {
    let addresses = match packet.layout.network {
        Network::Ip4 => &header[IP + 12..IP + 20],
        _ => &header[IP + 8..IP + 40],
    };
    let protocol = u16::from(packet.layout.transport.protocol());
    Sum::default().add(addresses).add_u16(protocol).add_u16(transport_len as u16)
}

#[inline]
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
pub(crate) fn write_u16(bytes: &mut [u8], at: usize, number: u16) {
    bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
}
