//! Ethernet and IPv4 headers.

use super::checksum;

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
const DONT_FRAGMENT: u16 = 0x4000;

/// The Ethernet header's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    /// Who sends the frame.
    pub source: [u8; 6],
    /// Who receives it.
    pub destination: [u8; 6],
}

impl Ethernet {
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.destination);
        bytes.extend_from_slice(&self.source);
        bytes.extend_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
    }
}

/// The IPv4 header's fields (RFC 791). It has no options, and forbids fragmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source address.
    pub source: [u8; 4],
    /// Destination address.
    pub destination: [u8; 4],
    /// Identification.
    pub identification: u16,
    /// Time to live, in hops.
    pub ttl: u8,
    /// ECN codepoint: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168).
    pub ecn: u8,
}

impl Ipv4 {
    /// The header without total length and checksum.
    pub(super) fn write_unfinished(&self, bytes: &mut Vec<u8>, protocol: u8) {
        bytes.extend_from_slice(&[0x45, self.ecn & 3, 0, 0]);
        bytes.extend_from_slice(&self.identification.to_be_bytes());
        bytes.extend_from_slice(&DONT_FRAGMENT.to_be_bytes());
        bytes.extend_from_slice(&[self.ttl, protocol, 0, 0]);
        bytes.extend_from_slice(&self.source);
        bytes.extend_from_slice(&self.destination);
    }

    /// Writes total length and checksum into the header behind the Ethernet header.
    ///
    /// A super-packet too long for the field has length 0, as Linux's BIG TCP marks it.
    pub(super) fn finish(&self, bytes: &mut [u8], transport_len: u32) {
        let header = &mut bytes[ETHERNET_LEN..ETHERNET_LEN + IPV4_LEN];
        let total_len = u16::try_from(IPV4_LEN as u32 + transport_len).unwrap_or(0);
        header[2..4].copy_from_slice(&total_len.to_be_bytes());
        let checksum = checksum::finish(checksum::sum(header));
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// What the addresses, the protocol and the length add to a transport checksum (RFC 9293 section 3.1).
    pub(super) fn pseudo_header_sum(&self, protocol: u8, transport_len: u32) -> u32 {
        checksum::sum(&self.source)
            + checksum::sum(&self.destination)
            + u32::from(protocol)
            + (transport_len >> 16)
            + (transport_len & 0xffff)
    }
}
