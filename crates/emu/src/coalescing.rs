//! Packets that leave together, coalesced into one super-packet where their receiver would not know the difference.
//!
//! Segments are coalesced when segmenting the result gives the very same packets: neighbours of one flow with
//! the same headers, in sequence, all of one size but the last. It is what a receiving device does (generic
//! receive offload), and makes one system call of many.

use tcplab_units::Time;

use crate::arena::Arena;
use crate::frame_layout::{IP, Network, Transport};
use crate::headers::{self, ACK, CWR, ECE, FIN, PSH, adapt, finish_ip, identification, sequence, tcp_flags};
use crate::virtio::{self, Header};
use crate::wire::Wire;

/// The most that an IP packet holds.
const IP_MAX: usize = 65_535;
/// The most datagrams of one super-packet that every kernel takes (Linux, `UDP_MAX_SEGMENTS` before 6.9).
const DATAGRAMS_MAX: u16 = 64;

/// The most stretches of payload in one group.
pub(crate) const PIECES: usize = 64;

/// Packets that a receiver accepts merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coalescing {
    pub(crate) tcp: bool,
    pub(crate) udp: bool,
}

/// Packets that leave as one.
#[derive(Debug)]
pub(crate) struct Group {
    first: Wire,
    last: Wire,
    /// Zero: it is empty, and nothing else in it means anything.
    count: u16,
    payload: usize,
    /// TCP flags of the whole.
    flags: u8,
    /// Nothing can follow.
    closed: bool,
    /// When each was to arrive.
    times: Vec<Time>,
    pieces: Vec<Piece>,
}

/// Payload in one stretch of a block.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: Wire,
    len: usize,
    packets: u16,
}

impl Group {
    /// A group without packets.
    pub(crate) fn new() -> Group {
        Group {
            first: Wire::NONE,
            last: Wire::NONE,
            count: 0,
            payload: 0,
            flags: 0,
            closed: true,
            times: Vec::with_capacity(64),
            pieces: Vec::with_capacity(64),
        }
    }

    /// Whether there is nothing in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets what was in it, and begins anew with `packet`.
    #[inline]
    pub(crate) fn begin(&mut self, packet: Wire, at: Time, arena: &Arena, coalescing: Coalescing) {
        self.first = packet;
        self.last = packet;
        self.count = 1;
        self.payload = packet.payload_len();
        self.times.clear();
        self.times.push(at);
        self.pieces.clear();
        self.pieces.push(Piece { first: packet, len: packet.payload_len(), packets: 1 });
        self.flags = 0;
        self.closed = true;
        if !packet.is_joinable() {
            return;
        }
        let udp = packet.layout.transport == Transport::Udp;
        if udp {
            self.closed = !coalescing.udp;
        } else if coalescing.tcp {
            self.flags = tcp_flags(&packet, packet.shared_header(arena));
            self.closed = self.flags & !(CWR | ECE) != ACK;
        }
    }

    /// Takes `packet`, which arrives at `at`, in at the end; false: it does not belong.
    #[inline]
    pub(crate) fn take(&mut self, packet: Wire, at: Time, arena: &Arena) -> bool {
        if self.closed {
            return false;
        }
        let len = packet.payload_len();
        let size = self.first.payload_len();
        let headers = usize::from(self.first.layout.header) - IP;
        if headers + self.payload + len > IP_MAX {
            return false;
        }
        let udp = packet.layout.transport == Transport::Udp;
        if udp && self.count >= DATAGRAMS_MAX {
            return false;
        }
        if self.last.is_followed_by(&packet) {
            let last = self.pieces.len() - 1;
            self.pieces[last].len += len;
            self.pieces[last].packets += 1;
        } else if len <= size && self.pieces.len() < PIECES && self.continues(&packet, arena) {
            self.pieces.push(Piece { first: packet, len, packets: 1 });
        } else {
            return false;
        }
        if !udp && packet.is_last() {
            self.flags |= tcp_flags(&packet, packet.shared_header(arena)) & (FIN | PSH);
        }
        self.closed = len < size || self.flags & (FIN | PSH) != 0;
        self.last = packet;
        self.count += 1;
        self.payload += len;
        self.times.push(at);
        true
    }

    /// Whether `packet`, of another frame, is just what would have come next in the frame of the first.
    fn continues(&self, packet: &Wire, arena: &Arena) -> bool {
        let first = &self.first;
        if !packet.is_joinable() || packet.layout != first.layout || packet.is_marked() != first.is_marked() {
            return false;
        }
        let (a, b) = (first.shared_header(arena), packet.shared_header(arena));
        let at = usize::from(first.layout.transport_at);
        let same = |from: usize, to: usize| a[from..to] == b[from..to];
        let network = match first.layout.network {
            Network::Ip4 => {
                let next = identification(first, a).wrapping_add(self.count);
                same(IP, IP + 2)
                    && same(IP + 6, IP + 10)
                    && same(IP + 12, at)
                    && identification(packet, b) == next
            }
            _ => same(IP, IP + 4) && same(IP + 6, at),
        };
        if !network || !same(0, IP) || !same(at, at + 4) {
            return false;
        }
        if first.layout.transport == Transport::Udp {
            return true;
        }
        let flags = tcp_flags(packet, b);
        flags & !(FIN | PSH) == self.later_flags()
            && sequence(packet, b) == sequence(first, a).wrapping_add(self.payload as u32)
            && same(at + 8, at + 13)
            && same(at + 14, at + 16)
            && same(at + 18, a.len())
    }

    /// Flags of the packets after the first. CWR is the first one's alone, or it is a bit of the accurate ECN field,
    /// and then the same in all.
    #[inline]
    fn later_flags(&self) -> u8 {
        if self.first.shares_cwr() { self.flags } else { self.flags & !CWR }
    }

    /// Whether it may grow.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        !self.closed
    }

    /// The first of its packets.
    #[inline]
    pub(crate) fn first(&self) -> &Wire {
        &self.first
    }

    /// When each of its packets was to arrive, in order.
    #[inline]
    pub(crate) fn times(&self) -> &[Time] {
        &self.times
    }

    /// Writes the headers of the whole into `out`, virtio header included; how many bytes of it there are.
    #[inline]
    pub(crate) fn write_headers(&self, arena: &Arena, out: &mut [u8; HEADERS]) -> usize {
        let shared = self.first.shared_header(arena);
        let layout = self.first.layout;
        let mut device = Header::default();
        if self.first.is_partial() {
            device.flags = virtio::NEEDS_CHECKSUM;
            device.header_len = u16::from(layout.header);
            device.checksum_start = u16::from(layout.transport_at);
            device.checksum_offset = layout.transport.checksum_offset() as u16;
        }
        if self.count > 1 {
            device.gso_size = self.first.payload_len() as u16;
            device.gso_type = match (layout.transport, layout.network) {
                (Transport::Udp, _) => virtio::GSO_UDP,
                (_, Network::Ip4) => virtio::GSO_TCP4,
                _ => virtio::GSO_TCP6,
            };
            if self.flags & CWR != 0 && !self.first.shares_cwr() {
                device.gso_type |= virtio::GSO_ECN;
            }
        }
        out[..virtio::LEN].copy_from_slice(&device.bytes());
        let header = &mut out[virtio::LEN..virtio::LEN + shared.len()];
        header.copy_from_slice(shared);
        if self.count > 1 {
            adapt(&self.first, header, self.payload, self.flags);
        } else if self.first.is_cut() {
            adapt(&self.first, header, self.payload, headers::tcp_flags(&self.first, shared));
        } else if self.first.is_marked() && !header.is_empty() {
            finish_ip(&self.first, header);
        }
        virtio::LEN + shared.len()
    }

    /// The payload of the whole, stretch by stretch.
    #[inline]
    pub(crate) fn payload<'a>(&'a self, arena: &'a Arena) -> impl Iterator<Item = &'a [u8]> {
        self.pieces.iter().map(|piece| piece.first.stretch(arena, piece.len))
    }

    /// Empties it, and gives its packets' places in the arena back.
    #[inline]
    pub(crate) fn clear(&mut self, arena: &mut Arena) {
        self.count = 0;
        self.closed = true;
        self.times.clear();
        for piece in &self.pieces {
            arena.release_many(piece.first.block, u32::from(piece.packets));
        }
    }
}

/// Room for the virtio header and all headers.
pub(crate) const HEADERS: usize = virtio::LEN + 255;
