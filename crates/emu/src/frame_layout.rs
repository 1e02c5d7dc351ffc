//! Where the headers of a frame are.

use crate::virtio::{self, Header};

/// IP begins behind the Ethernet header.
pub(crate) const IP: usize = 14;

const ETHERTYPE_IP4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IP6: [u8; 2] = [0x86, 0xdd];
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_ICMP6: u8 = 58;

/// The golden ratio in 64 bits: odd, and without a pattern.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The network protocol of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Ip4,
    Ip6,
    Other,
}

/// The transport protocol of a frame, as far as the emulator tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    /// ICMP or ICMPv6: whole packets protected by a checksum.
    Icmp,
    /// Anything else, fragments included.
    Other,
}

impl Transport {
    /// Where the checksum is in the transport header.
    #[inline]
    pub(crate) fn checksum_offset(self) -> usize {
        match self {
            Transport::Tcp => 16,
            Transport::Udp => 6,
            Transport::Icmp | Transport::Other => 2,
        }
    }

    /// Its number in IP headers, for the two that have a pseudo-header.
    #[inline]
    pub(crate) fn protocol(self) -> u8 {
        if self == Transport::Tcp { PROTOCOL_TCP } else { PROTOCOL_UDP }
    }
}

/// Where the headers of a frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) network: Network,
    pub(crate) transport: Transport,
    /// Offset of the transport header; 0 where there is none.
    pub(crate) transport_at: u8,
    /// Bytes of all headers; 0 where they cannot be distinguished from the payload.
    pub(crate) header: u8,
}

/// Nothing is known of the frame.
pub(crate) const OPAQUE: Layout =
    Layout { network: Network::Other, transport: Transport::Other, transport_at: 0, header: 0 };

impl Layout {
    /// The layout of `frame`, to which the device has put `header`.
    #[inline]
    pub(crate) fn of(frame: &[u8], header: &Header) -> Layout {
        let (network, protocol, at) = match frame.get(12..IP) {
            Some(kind) if kind == ETHERTYPE_IP4 && frame.len() >= IP + 20 => {
                let fragment = u16::from_be_bytes([frame[IP + 6], frame[IP + 7]]) & 0x3fff;
                let protocol = if fragment == 0 { frame[IP + 9] } else { 0xff };
                (Network::Ip4, protocol, IP + usize::from(frame[IP] & 0xf) * 4)
            }
            Some(kind) if kind == ETHERTYPE_IP6 && frame.len() >= IP + 40 => {
                match frame[IP + 6] {
                    // Behind extension headers the device knows where the transport header is.
                    protocol if header.gso_type == virtio::GSO_NONE => (Network::Ip6, protocol, IP + 40),
                    _ => {
                        let protocol = if header.gso_type & !virtio::GSO_ECN == virtio::GSO_UDP {
                            PROTOCOL_UDP
                        } else {
                            PROTOCOL_TCP
                        };
                        (Network::Ip6, protocol, usize::from(header.checksum_start))
                    }
                }
            }
            _ => return OPAQUE,
        };
        let rest = frame.len().saturating_sub(at);
        let (transport, length) = match protocol {
            PROTOCOL_TCP if rest >= 20 => (Transport::Tcp, usize::from(frame[at + 12] >> 4) * 4),
            PROTOCOL_UDP if rest >= 8 => (Transport::Udp, 8),
            PROTOCOL_ICMP if rest >= 8 && network == Network::Ip4 => (Transport::Icmp, 8),
            PROTOCOL_ICMP6 if rest >= 8 && network == Network::Ip6 => (Transport::Icmp, 8),
            _ => return Layout { network, ..OPAQUE },
        };
        let minimum = if transport == Transport::Tcp { 20 } else { 8 };
        match u8::try_from(at + length) {
            Ok(header) if length >= minimum && length <= rest => {
                Layout { network, transport, transport_at: at as u8, header }
            }
            _ => Layout { network, ..OPAQUE },
        }
    }

    /// The DSCP and ECN fields of the IP header of `frame`, as the octet they make (RFC 2474, RFC 3168).
    #[inline]
    pub(crate) fn traffic_class(&self, frame: &[u8]) -> u8 {
        match self.network {
            Network::Ip4 => frame[IP + 1],
            Network::Ip6 => frame[IP] << 4 | frame[IP + 1] >> 4,
            Network::Other => 0,
        }
    }

    /// A hash of the addresses, and of the protocol and ports where they are known.
    #[inline]
    pub(crate) fn flow_hash(&self, frame: &[u8]) -> u32 {
        let addresses = match self.network {
            Network::Ip4 => &frame[IP + 12..IP + 20],
            Network::Ip6 => &frame[IP + 8..IP + 40],
            // Source and destination of the Ethernet header.
            Network::Other => &frame[..12],
        };
        let at = usize::from(self.transport_at);
        let ports: &[u8] = match self.transport {
            Transport::Tcp | Transport::Udp => &frame[at..at + 4],
            Transport::Icmp | Transport::Other => &[],
        };
        let fold = |hash: u64, word: &[u8]| {
            let word = word.iter().fold(self.transport as u64, |word, byte| word << 8 | u64::from(*byte));
            let product = u128::from(hash ^ word) * u128::from(MULTIPLIER);
            product as u64 ^ (product >> 64) as u64
        };
        let hash = addresses.chunks(4).chain(ports.chunks(4)).fold(MULTIPLIER, fold);
        (hash >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty TCP segment over IP version 4 or 6, with this last octet of the destination and this source port.
    fn frame(version: u8, class: u8, host: u8, port: u8) -> Vec<u8> {
        let header = if version == 4 { 20 } else { 40 };
        let mut frame = vec![0; IP + header + 20];
        let kind = if version == 4 { ETHERTYPE_IP4 } else { ETHERTYPE_IP6 };
        frame[12..14].copy_from_slice(&kind);
        if version == 4 {
            (frame[IP], frame[IP + 1], frame[IP + 9]) = (0x45, class, PROTOCOL_TCP);
        } else {
            (frame[IP], frame[IP + 1], frame[IP + 6]) = (0x60 | class >> 4, class << 4, PROTOCOL_TCP);
        }
        frame[IP + header - 1] = host;
        frame[IP + header + 1] = port;
        frame[IP + header + 12] = 0x50;
        frame
    }

    fn read(frame: &[u8]) -> (u8, u32) {
        let header = Header::read(&[0; virtio::LEN]);
        let layout = Layout::of(frame, &header);
        (layout.traffic_class(frame), layout.flow_hash(frame))
    }

    #[test]
    fn the_flow_hash_follows_addresses_and_ports_and_nothing_else() {
        for version in [4, 6] {
            let (class, hash) = read(&frame(version, 0xb9, 1, 1));
            assert_eq!(class, 0xb9);
            assert_eq!(read(&frame(version, 0, 1, 1)), (0, hash));
            assert_ne!(read(&frame(version, 0, 2, 1)).1, hash);
            assert_ne!(read(&frame(version, 0, 1, 2)).1, hash);
        }
    }
}
