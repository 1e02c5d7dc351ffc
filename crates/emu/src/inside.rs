//! The fields of a frame that a discipline looks at: its addresses, and what a TCP segment acknowledges.

use tcplab_link::{Acknowledgment, Inside};

use crate::frame_layout::{IP, Network, Transport};
use crate::headers::{ACK, CWR, ECE, FIN, PSH, read_u32, tcp_flags};
use crate::wire::Wire;

const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const URG: u8 = 0x20;

/// Kinds of TCP options (RFC 9293 section 3.1, RFC 7323, RFC 2018).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// The contents of `packet`, whose shared headers are `header`.
pub(crate) fn inside(packet: &Wire, header: &[u8]) -> Inside {
    let (source, destination) = match packet.layout.network {
        Network::Ip4 => (IP + 12..IP + 16, IP + 16..IP + 20),
        Network::Ip6 => (IP + 8..IP + 24, IP + 24..IP + 40),
        Network::Other => return Inside::default(),
    };
    let fold = |range| header.get(range).map_or(0, |bytes: &[u8]| fold(bytes));
    Inside { source: fold(source), destination: fold(destination), ack: acknowledgment(packet, header) }
}

/// Addresses of version 4 as they are, of version 6 as a hash.
fn fold(address: &[u8]) -> u32 {
    address.chunks(4).fold(0, |hash: u32, word| {
        let word = word.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        hash.wrapping_mul(0x9e37_79b1).rotate_left(5) ^ word
    })
}

fn acknowledgment(packet: &Wire, header: &[u8]) -> Option<Acknowledgment> {
    let flags = tcp_flags(packet, header);
    if packet.layout.transport != Transport::Tcp || flags & (SYN | FIN | RST | ACK) != ACK {
        return None;
    }
    let at = usize::from(packet.layout.transport_at);
    let mut sack = [(0, 0); 4];
    let is_known = read_options(header.get(at + 20..)?, &mut sack);
    let is_pure = packet.payload_len() == 0 && flags & (PSH | URG) == 0 && is_known;
    // The bit before CWR is AE of RFC 9768; it takes the place of SYN, which is not set.
    let accurate = (header[at + 12] & 1) << 1;
    let ecn_flags = flags & (ECE | CWR) | accurate;
    Some(Acknowledgment { number: read_u32(header, at + 8), is_pure, ecn_flags, sack })
}

/// Reads the SACK blocks among TCP `options`; whether there are no other options but timestamps.
fn read_options(mut options: &[u8], sack: &mut [(u32, u32); 4]) -> bool {
    loop {
        match *options {
            [] | [END, ..] => return true,
            [NO_OPERATION, ref rest @ ..] => options = rest,
            [kind, len, ..] if len >= 2 && usize::from(len) <= options.len() => {
                let (option, rest) = options.split_at(usize::from(len));
                match kind {
                    TIMESTAMPS => {}
                    SACK => {
                        for (block, bytes) in sack.iter_mut().zip(option[2..].chunks_exact(8)) {
                            *block = (read_u32(bytes, 0), read_u32(bytes, 4));
                        }
                    }
                    _ => return false,
                }
                options = rest;
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame_layout::Layout;
    use crate::virtio::{self, Header};

    /// A segment over IP version 4 with these flags and options.
    fn segment(flags: u8, options: &[u8]) -> Inside {
        let mut frame = vec![0; IP + 40];
        frame[12..14].copy_from_slice(&[8, 0]);
        (frame[IP], frame[IP + 9]) = (0x45, 6);
        frame[IP + 12..IP + 20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[IP + 28..IP + 32].copy_from_slice(&[0, 0, 3, 0xe8]);
        frame[IP + 32] = (5 + options.len() as u8 / 4) << 4;
        frame[IP + 33] = flags;
        frame.extend_from_slice(options);
        let layout = Layout::of(&frame, &Header::read(&[0; virtio::LEN]));
        inside(&Wire::whole((0, 0), &frame, layout, false), &frame)
    }

    #[test]
    fn a_pure_acknowledgment_is_read_with_its_blocks() {
        let sack = [1, 1, 5, 10, 0, 0, 7, 0xd0, 0, 0, 0x0b, 0xb8];
        let found = segment(ACK | ECE, &sack);
        assert_eq!((found.source, found.destination), (0x0a00_0001, 0x0a00_0002));
        let ack = found.ack.expect("it acknowledges");
        assert_eq!((ack.number, ack.is_pure, ack.ecn_flags), (1000, true, ECE));
        assert_eq!(ack.sack, [(2000, 3000), (0, 0), (0, 0), (0, 0)]);
    }

    #[test]
    fn options_not_known_and_urgent_data_make_it_worth_keeping() {
        let is_pure = |flags, options: &[u8]| segment(flags, options).ack.map(|ack| ack.is_pure);
        assert_eq!(is_pure(ACK, &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]), Some(true));
        assert_eq!(is_pure(ACK, &[30, 4, 0, 0]), Some(false));
        assert_eq!(is_pure(ACK, &[5, 200, 0, 0]), Some(false));
        assert_eq!(is_pure(ACK | PSH, &[]), Some(false));
        assert_eq!([SYN, FIN, RST].map(|flag| is_pure(ACK | flag, &[])), [None; 3]);
    }
}
