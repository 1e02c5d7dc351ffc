//! Ethernet and IP headers; those of IPv4.

use super::checksum;
use super::ipv6::{self, Ipv6};

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

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
    pub(super) fn write(&self, bytes: &mut Vec<u8>, ip: &Ip) {
        let ethertype = match ip {
            Ip::V4(_) => ETHERTYPE_IPV4,
            Ip::V6(_) => ipv6::ETHERTYPE,
        };
        bytes.extend_from_slice(&self.destination);
        bytes.extend_from_slice(&self.source);
        bytes.extend_from_slice(&ethertype.to_be_bytes());
    }
}

/// An IP header of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// Version 4.
    V4(Ipv4),
    /// Version 6.
    V6(Ipv6),
}

impl From<&Ipv4> for Ip {
    fn from(header: &Ipv4) -> Ip {
        Ip::V4(*header)
    }
}

impl From<&Ipv6> for Ip {
    fn from(header: &Ipv6) -> Ip {
        Ip::V6(*header)
    }
}

impl From<&Ip> for Ip {
    fn from(header: &Ip) -> Ip {
        *header
    }
}

impl Ip {
    /// The header without what depends on the length.
    pub(super) fn write_unfinished(&self, bytes: &mut Vec<u8>, protocol: u8) {
        match self {
            Ip::V4(header) => header.write_unfinished(bytes, protocol),
            Ip::V6(header) => header.write_unfinished(bytes, protocol),
        }
    }

    /// Writes what depends on the length into the header behind the Ethernet header.
    pub(super) fn finish(&self, bytes: &mut [u8], transport_len: u32) {
        match self {
            Ip::V4(header) => header.finish(bytes, transport_len),
            Ip::V6(header) => header.finish(bytes, ETHERNET_LEN, transport_len),
        }
    }

    /// The pseudo header's part of the checksum of `protocol`.
    pub(super) fn pseudo_header_sum(&self, protocol: u8, transport_len: u32) -> u32 {
        match self {
            // ICMP's checksum covers the message alone (RFC 792), ICMPv6's its pseudo header too (RFC 4443 2.3).
            Ip::V4(_) if protocol == ICMP => 0,
            Ip::V4(header) => header.pseudo_header_sum(protocol, transport_len),
            Ip::V6(header) => header.pseudo_header_sum(protocol, transport_len),
        }
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
    /// DSCP (RFC 2474), and in the last two bits ECN: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168).
    pub traffic_class: u8,
}

impl Ipv4 {
    /// The header without total length and checksum.
    pub(super) fn write_unfinished(&self, bytes: &mut Vec<u8>, protocol: u8) {
        bytes.extend_from_slice(&[0x45, self.traffic_class, 0, 0]);
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

    /// The part of a transport checksum that covers addresses, protocol and length (RFC 9293 section 3.1).
    pub(super) fn pseudo_header_sum(&self, protocol: u8, transport_len: u32) -> u32 {
        checksum::sum(&self.source)
            + checksum::sum(&self.destination)
            + u32::from(protocol)
            + (transport_len >> 16)
            + (transport_len & 0xffff)
    }
}
