//! A packet as one piece of bytes, just as a wire would carry it: every checksum complete.

use crate::arena::Arena;
use crate::checksum::Sum;
use crate::frame_layout::Transport;
use crate::headers::{adapt, finish_ip, read_u16, tcp_flags, write_u16};
use crate::wire::Wire;

/// How much of a packet is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Ethernet, IP and transport headers, whose checksums are those of the whole packet.
    Headers,
    /// Everything.
    Full,
}

/// Bytes kept of a packet whose headers are not known.
const OPAQUE: usize = 96;

/// Replaces what is in `bytes` by `packet`. Damage is not done to it.
pub(crate) fn write(packet: &Wire, arena: &Arena, keep: Keep, bytes: &mut Vec<u8>) {
    let (header, payload) = packet.parts(arena);
    bytes.clear();
    bytes.extend_from_slice(header);
    if header.is_empty() {
        bytes.extend_from_slice(payload);
        bytes.truncate(if keep == Keep::Full { payload.len() } else { OPAQUE });
        return;
    }
    if packet.is_cut() {
        adapt(packet, bytes, payload.len(), tcp_flags(packet, header));
    } else if packet.is_marked() {
        finish_ip(packet, bytes);
    }
    if packet.is_partial() {
        let transport = usize::from(packet.layout.transport_at);
        let mut checksum = Sum::default().add(&bytes[transport..]);
        // Headers are of even length, so the payload begins with a new word.
        checksum = checksum.add(payload);
        let checksum = match (packet.layout.transport, checksum.checksum()) {
            // RFC 768: zero would mean that there is none.
            (Transport::Udp, 0) => 0xffff,
            (_, checksum) => checksum,
        };
        write_u16(bytes, transport + packet.layout.transport.checksum_offset(), checksum);
    }
    if keep == Keep::Full {
        bytes.extend_from_slice(payload);
    }
}

/// Flips one bit of a whole packet that its checksum protects. False where none does: the frame check sequence of
/// Ethernet would have discarded such a packet on the way.
pub(crate) fn damage(packet: &Wire, bytes: &mut [u8]) -> bool {
    let transport = usize::from(packet.layout.transport_at);
    let checksum = transport + packet.layout.transport.checksum_offset();
    let (payload, len) = (usize::from(packet.layout.header), packet.payload_len());
    match packet.layout.transport {
        Transport::Other => return false,
        Transport::Udp if read_u16(bytes, checksum) == 0 => return false,
        _ if len == 0 => bytes[checksum + 1] ^= 1,
        // Not always the same bit, and the same one in every run.
        _ => {
            let at = read_u16(bytes, checksum) as usize;
            bytes[payload + at % len] ^= 1 << (at % 8);
        }
    }
    true
}
