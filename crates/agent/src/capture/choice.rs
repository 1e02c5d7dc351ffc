//! The packets of a real host's interface that belong to a capture: those between the host and its peers.
//!
//! The connection that the capture itself is sent over is left out. The capture would otherwise feed on itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ETHERNET_HEADER: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const TCP: u8 = 6;

/// Packets to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The hosts whose packets are kept.
    pub peers: Vec<IpAddr>,
    /// The ports of the connection that is left out, the caller's and ours.
    pub without: Option<(u16, u16)>,
}

impl Choice {
    /// Whether a frame is kept.
    pub fn keeps(&self, frame: &[u8]) -> bool {
        let Some(packet) = frame.get(ETHERNET_HEADER..) else { return false };
        let (ends, protocol, transport) = match *frame {
            [_, _, _, _, _, _, _, _, _, _, _, _, one, two, ..]
                if [one, two] == IPV4 && packet.len() >= 20 =>
            {
                let end = |at| IpAddr::from(Ipv4Addr::from(octets::<4>(packet, at)));
                ([end(12), end(16)], packet[9], usize::from(packet[0] & 15) * 4)
            }
            [_, _, _, _, _, _, _, _, _, _, _, _, one, two, ..]
                if [one, two] == IPV6 && packet.len() >= 40 =>
            {
                let end = |at| IpAddr::from(Ipv6Addr::from(octets::<16>(packet, at)));
                ([end(8), end(24)], packet[6], 40)
            }
            _ => return false,
        };
        ends.iter().any(|end| self.peers.contains(end))
            && !self.leaves_out(protocol, &packet[transport.min(packet.len())..])
    }

    fn leaves_out(&self, protocol: u8, transport: &[u8]) -> bool {
        let (Some(without), TCP, true) = (self.without, protocol, transport.len() >= 4) else { return false };
        let port = |at| u16::from_be_bytes(octets(transport, at));
        let ports = (port(0), port(2));
        ports == without || ports == (without.1, without.0)
    }
}

fn octets<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut found = [0; N];
    found.copy_from_slice(&bytes[at..at + N]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(from: [u8; 4], to: [u8; 4], protocol: u8, ports: (u16, u16)) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(IPV4);
        let mut ip = [0; 20];
        ip[0] = 0x45;
        ip[9] = protocol;
        ip[12..16].copy_from_slice(&from);
        ip[16..20].copy_from_slice(&to);
        frame.extend(ip);
        frame.extend(ports.0.to_be_bytes());
        frame.extend(ports.1.to_be_bytes());
        frame
    }

    #[test]
    fn packets_of_peers_are_kept_both_ways_and_others_are_not() {
        let choice = Choice { peers: vec![[192, 0, 2, 7].into()], without: None };
        assert!(choice.keeps(&frame([192, 0, 2, 1], [192, 0, 2, 7], 17, (1, 2))));
        assert!(choice.keeps(&frame([192, 0, 2, 7], [192, 0, 2, 1], TCP, (1, 2))));
        assert!(!choice.keeps(&frame([192, 0, 2, 1], [192, 0, 2, 8], TCP, (1, 2))));
    }

    #[test]
    fn the_connection_of_the_caller_is_left_out_both_ways() {
        let choice = Choice { peers: vec![[192, 0, 2, 7].into()], without: Some((40_000, 22)) };
        let (here, peer) = ([192, 0, 2, 1], [192, 0, 2, 7]);
        assert!(!choice.keeps(&frame(peer, here, TCP, (40_000, 22))));
        assert!(!choice.keeps(&frame(here, peer, TCP, (22, 40_000))));
        assert!(choice.keeps(&frame(here, peer, TCP, (22, 40_001))));
        assert!(choice.keeps(&frame(here, peer, 17, (22, 40_000))));
    }

    #[test]
    fn frames_that_are_cut_short_are_not_kept() {
        let choice = Choice { peers: vec![[192, 0, 2, 7].into()], without: Some((1, 2)) };
        let whole = frame([192, 0, 2, 7], [192, 0, 2, 1], TCP, (1, 2));
        for length in 0..ETHERNET_HEADER + 20 {
            assert!(!choice.keeps(&whole[..length]));
        }
        let mut odd = whole.clone();
        odd[ETHERNET_HEADER] = 0x4f;
        assert!(choice.keeps(&odd));
    }
}
