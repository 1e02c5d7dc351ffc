//! The IPv6 header (RFC 8200 section 3).

use super::checksum;

pub(super) const ETHERTYPE: u16 = 0x86dd;
const LEN: usize = 40;

/// The IPv6 header's fields. It has no extension headers and no flow label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Hop limit.
    pub ttl: u8,
    /// DSCP (RFC 2474), and in the last two bits ECN: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168).
    pub traffic_class: u8,
}

impl Ipv6 {
    /// The header without payload length.
    pub(super) fn write_unfinished(&self, bytes: &mut Vec<u8>, next_header: u8) {
        let [first, second] = (0x6000 | u16::from(self.traffic_class) << 4).to_be_bytes();
        bytes.extend_from_slice(&[first, second, 0, 0, 0, 0, next_header, self.ttl]);
        bytes.extend_from_slice(&self.source);
        bytes.extend_from_slice(&self.destination);
    }

    /// Writes the payload length into the header at `start`.
    ///
    /// A super-packet too long for the field has length 0, as Linux's BIG TCP marks it.
    pub(super) fn finish(&self, bytes: &mut [u8], start: usize, transport_len: u32) {
        let header = &mut bytes[start..start + LEN];
        let payload_len = u16::try_from(transport_len).unwrap_or(0);
        header[4..6].copy_from_slice(&payload_len.to_be_bytes());
    }

    /// The part of a transport checksum that covers addresses, protocol and length (RFC 8200 section 8.1).
    pub(super) fn pseudo_header_sum(&self, next_header: u8, transport_len: u32) -> u32 {
        checksum::sum(&self.source)
            + checksum::sum(&self.destination)
            + u32::from(next_header)
            + (transport_len >> 16)
            + (transport_len & 0xffff)
    }
}
