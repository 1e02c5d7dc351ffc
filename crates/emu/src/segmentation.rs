//! Segments frames from a TAP device into packets of the wire.

use crate::arena::Arena;
use crate::checksum::Sum;
use crate::frame_layout::{Layout, Transport};
use crate::virtio::{self, Header};
use crate::wire::Wire;

/// A frame that no link can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The packets of one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets {
    frame: Wire,
    size: u32,
    count: u16,
}

/// Takes the `read` bytes at the front of the arena's room, virtio header and frame, for the packets in them.
#[inline]
pub(crate) fn segments(arena: &mut Arena, read: usize) -> Result<Packets, Malformed> {
    let (block, offset) = arena.position();
    let (header, frame) = arena.room()[..read].split_first_chunk_mut().ok_or(Malformed)?;
    let header = Header::read(header);
    let layout = Layout::of(frame, &header);
    let ported = matches!(layout.transport, Transport::Tcp | Transport::Udp);
    let mut partial = header.flags & virtio::NEEDS_CHECKSUM != 0;
    if partial && !ported {
        complete(frame, &header)?;
        partial = false;
    }
    if frame.len() < 14 {
        return Err(Malformed);
    }
    let mut whole = Wire::whole((block, offset + virtio::LEN as u32), frame, layout, partial);
    // Linux says of a super-packet with classic ECN that CWR is for its first segment only.
    if header.gso_type != virtio::GSO_NONE && header.gso_type & virtio::GSO_ECN == 0 {
        whole.share_cwr();
    }
    let packets = if header.gso_type == virtio::GSO_NONE {
        Packets { frame: whole, size: 0, count: 1 }
    } else {
        let size = usize::from(header.gso_size);
        if size == 0 || !ported || !partial || whole.payload_len() == 0 {
            return Err(Malformed);
        }
        Packets { frame: whole, size: size as u32, count: whole.payload_len().div_ceil(size) as u16 }
    };
    arena.keep(read, u32::from(packets.count));
    Ok(packets)
}

/// Completes a checksum the emulator will not carry on as partial.
#[cold]
fn complete(frame: &mut [u8], header: &Header) -> Result<(), Malformed> {
    let start = usize::from(header.checksum_start);
    let at = start + usize::from(header.checksum_offset);
    let sum = Sum::default().add(frame.get(start..).ok_or(Malformed)?).checksum();
    frame.get_mut(at..at + 2).ok_or(Malformed)?.copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

impl Packets {
    /// The packets in order.
    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = Wire> {
        let Packets { frame, size, count } = self;
        (0..count).map(move |index| if size == 0 { frame } else { frame.segment(index, size) })
    }
}
