//! Both ends of a packet at a glance, for those who only have to know whose it is.

use super::link::ip_header;
use super::{Address, Protocol, Segment, ip};
use crate::read::LinkType;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FourTuple {
    pub source: Address,
    pub destination: Address,
    pub source_port: u16,
    pub destination_port: u16,
}

impl FourTuple {
    pub(crate) fn of(segment: &Segment) -> FourTuple {
        let Segment { source, destination, source_port, destination_port, .. } = *segment;
        FourTuple { source, destination, source_port, destination_port }
    }

    /// The ends of the TCP or UDP packet in a frame; none where [`Ends::in_ip`] finds none. A packet that
    /// has ends may still turn out to be malformed.
    #[inline]
    pub(crate) fn from_fixed_headers(link: LinkType, bytes: &[u8]) -> Option<FourTuple> {
        let (ends, _) = FourTuple::in_ip(bytes.get(ip_header(link, bytes).ok()?..)?)?;
        Some(ends)
    }

    /// The ends of a TCP or UDP packet that begins with its IP header, and which of the two it is. None of fragments,
    /// of packets with extension headers, and where the ports were not captured.
    #[inline]
    pub(super) fn in_ip(packet: &[u8]) -> Option<(FourTuple, Protocol)> {
        let (source, destination, protocol, ports_at) = match packet.first()? >> 4 {
            4 => {
                let header = packet.first_chunk::<{ ip::IPV4_LEN }>()?;
                if u16::from_be_bytes([header[6], header[7]]) & ip::IPV4_FRAGMENT != 0 {
                    return None;
                }
                let source = Address::v4([header[12], header[13], header[14], header[15]]);
                let destination = Address::v4([header[16], header[17], header[18], header[19]]);
                (source, destination, header[9], usize::from(header[0] & 0xf) * 4)
            }
            6 => {
                let header = packet.first_chunk::<{ ip::IPV6_LEN }>()?;
                let source = Address::v6(*header[8..].first_chunk()?);
                (source, Address::v6(*header[24..].first_chunk()?), header[6], ip::IPV6_LEN)
            }
            _ => return None,
        };
        let protocol = ip::protocol(protocol)?;
        let &[a, b, c, d] = packet.get(ports_at..)?.first_chunk::<4>()?;
        let (source_port, destination_port) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Some((FourTuple { source, destination, source_port, destination_port }, protocol))
    }
}
