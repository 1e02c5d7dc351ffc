//! A packet on a link: a description of bytes that stay where they were read.

use tcplab_link::{Ecn, Packet};

use crate::arena::Arena;
use crate::frame_layout::{self, Layout, Network, Transport};

/// It is one of the segments of a super-packet, whose headers it shares.
const CUT: u8 = 1;
/// It is the last one.
const LAST: u8 = 2;
/// Its transport checksum is left for the device to complete.
const PARTIAL: u8 = 4;
/// It has been marked.
const MARKED: u8 = 8;
/// Its bits are damaged.
const CORRUPT: u8 = 16;
/// CWR is a bit of the accurate ECN field, which all segments of its super-packet share (RFC 9768).
const SHARES_CWR: u8 = 32;

/// One packet of MTU size. Copying it copies the description; the arena counts how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) block: u32,
    /// Where the frame begins in the block.
    frame: u32,
    /// Where this packet's payload begins in the frame.
    payload: u32,
    payload_len: u32,
    /// Number of the segment in its super-packet.
    index: u16,
    pub(crate) layout: Layout,
    flags: u8,
    /// The traffic class of its IP header as it was read: DSCP and ECN.
    class: u8,
    flow: u32,
}

impl Wire {
    /// No packet.
    pub(crate) const NONE: Wire = Wire {
        block: 0,
        frame: 0,
        payload: 0,
        payload_len: 0,
        index: 0,
        layout: frame_layout::OPAQUE,
        flags: 0,
        class: 0,
        flow: 0,
    };

    /// This `frame`, which lies at `place`, travels as it is.
    #[inline]
    pub(crate) fn whole(place: (u32, u32), frame: &[u8], layout: Layout, partial: bool) -> Wire {
        let header = u32::from(layout.header);
        Wire {
            block: place.0,
            frame: place.1,
            payload: header,
            payload_len: frame.len() as u32 - header,
            index: 0,
            layout,
            flags: LAST | if partial { PARTIAL } else { 0 },
            class: layout.traffic_class(frame),
            flow: layout.flow_hash(frame),
        }
    }

    /// Segment number `index` of this super-packet, cut every `size` bytes of payload.
    #[inline]
    pub(crate) fn segment(&self, index: u16, size: u32) -> Wire {
        let skip = u32::from(index) * size;
        let left = self.payload_len - skip;
        let (len, last) = if left <= size { (left, LAST) } else { (size, 0) };
        Wire {
            payload: self.payload + skip,
            payload_len: len,
            index,
            flags: self.flags & !LAST | CUT | last,
            ..*self
        }
    }

    /// Bytes of its headers and payload, which lie apart where it is a segment.
    #[inline]
    pub(crate) fn parts<'a>(&self, arena: &'a Arena) -> (&'a [u8], &'a [u8]) {
        (self.shared_header(arena), self.payload(arena))
    }

    /// Its headers, or those of its super-packet.
    #[inline]
    pub(crate) fn shared_header<'a>(&self, arena: &'a Arena) -> &'a [u8] {
        arena.bytes(self.block, self.frame as usize, usize::from(self.layout.header))
    }

    #[inline]
    pub(crate) fn payload<'a>(&self, arena: &'a Arena) -> &'a [u8] {
        self.stretch(arena, self.payload_len())
    }

    /// `len` bytes from the begin of its payload on: that of the segments that follow it too.
    #[inline]
    pub(crate) fn stretch<'a>(&self, arena: &'a Arena, len: usize) -> &'a [u8] {
        arena.bytes(self.block, (self.frame + self.payload) as usize, len)
    }

    #[inline]
    pub(crate) fn payload_len(&self) -> usize {
        self.payload_len as usize
    }

    /// How far its payload is from the super-packet's first.
    #[inline]
    pub(crate) fn skipped(&self) -> u32 {
        self.payload - u32::from(self.layout.header)
    }

    #[inline]
    pub(crate) fn index(&self) -> u16 {
        self.index
    }

    #[inline]
    pub(crate) fn is_cut(&self) -> bool {
        self.flags & CUT != 0
    }

    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        self.flags & LAST != 0
    }

    #[inline]
    pub(crate) fn is_partial(&self) -> bool {
        self.flags & PARTIAL != 0
    }

    /// All segments of its super-packet have its CWR flag, and not only the first.
    #[inline]
    pub(crate) fn share_cwr(&mut self) {
        self.flags |= SHARES_CWR;
    }

    #[inline]
    pub(crate) fn shares_cwr(&self) -> bool {
        self.flags & SHARES_CWR != 0
    }

    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.flags & MARKED != 0
    }

    #[inline]
    pub(crate) fn is_corrupt(&self) -> bool {
        self.flags & CORRUPT != 0
    }

    /// Whether the next segment of the same super-packet, with the same mark, follows.
    #[inline]
    pub(crate) fn is_followed_by(&self, next: &Wire) -> bool {
        self.block == next.block
            && self.frame == next.frame
            && self.index.wrapping_add(1) == next.index
            && self.flags & !LAST == next.flags & !LAST
            && self.is_cut()
    }

    /// Whether it may become a segment of a super-packet.
    #[inline]
    pub(crate) fn is_joinable(&self) -> bool {
        self.flags & (PARTIAL | CORRUPT) == PARTIAL
            && self.payload_len > 0
            && self.layout.network != Network::Other
            && matches!(self.layout.transport, Transport::Tcp | Transport::Udp)
    }
}

impl Packet for Wire {
    #[inline]
    fn frame_len(&self) -> u32 {
        u32::from(self.layout.header) + self.payload_len
    }

    #[inline]
    fn flow_hash(&self) -> u32 {
        self.flow
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        // A packet whose headers are not known cannot be marked.
        match (self.is_marked(), self.layout.header) {
            (_, 0) => Ecn::NotEct,
            (true, _) => Ecn::Ce,
            (false, _) => Ecn::from_bits(self.class),
        }
    }

    #[inline]
    fn dscp(&self) -> u8 {
        self.class >> 2
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.flags |= MARKED;
    }

    #[inline]
    fn corrupt(&mut self) {
        self.flags |= CORRUPT;
    }

    #[inline]
    fn duplicate(&self) -> Wire {
        *self
    }
}
