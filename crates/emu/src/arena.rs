//! Memory for frames: large blocks filled from the front, each free again when the last packet in it is gone.
//!
//! A frame is read straight into its block and stays there; packets only point at it. So nothing is
//! allocated or copied per packet, and a small frame takes no more than its own bytes.

/// The most that one read of a TAP device gives: 64 KiB of IP, its Ethernet header and the virtio header.
pub(crate) const ROOM: usize = 65_536 + 128;
/// Large enough that the room kept free at its end is a small share, small enough to stay in the cache.
const BLOCK: usize = 512 << 10;
/// Frames begin on cache lines.
const LINE: usize = 64;

/// Blocks with the number of packets that point into each.
#[derive(Debug)]
pub(crate) struct Arena {
    blocks: Vec<Block>,
    /// The one freed last is used first: it is likely to be in the cache still.
    free: Vec<u32>,
    current: u32,
    used: usize,
}

#[derive(Debug)]
struct Block {
    bytes: Box<[u8]>,
    packets: u32,
}

impl Arena {
    pub(crate) fn new() -> Arena {
        let mut arena = Arena { blocks: Vec::new(), free: Vec::new(), current: 0, used: 0 };
        arena.current = arena.add_block();
        arena
    }

    /// Where the next frame can be read to; at least `ROOM` bytes.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if BLOCK - self.used < ROOM {
            self.next_block();
        }
        &mut self.blocks[self.current as usize].bytes[self.used..]
    }

    /// Where `room` begins: block and offset.
    #[inline]
    pub(crate) fn position(&self) -> (u32, u32) {
        (self.current, self.used as u32)
    }

    /// Keeps the first `len` bytes of the room for `packets` packets.
    #[inline]
    pub(crate) fn keep(&mut self, len: usize, packets: u32) {
        self.blocks[self.current as usize].packets += packets;
        self.used = (self.used + len).next_multiple_of(LINE).min(BLOCK);
    }

    /// One more packet points into `block`.
    #[inline]
    pub(crate) fn hold(&mut self, block: u32) {
        self.blocks[block as usize].packets += 1;
    }

    /// One packet less points into `block`.
    #[inline]
    pub(crate) fn release(&mut self, block: u32) {
        self.release_many(block, 1);
    }

    /// So many packets less point into `block`.
    #[inline]
    pub(crate) fn release_many(&mut self, block: u32, count: u32) {
        let packets = &mut self.blocks[block as usize].packets;
        debug_assert!(*packets >= count);
        *packets -= count;
        if *packets == 0 && block != self.current {
            self.free.push(block);
        }
    }

    /// The bytes of `block` from `offset` on.
    #[inline]
    pub(crate) fn bytes(&self, block: u32, offset: usize, len: usize) -> &[u8] {
        &self.blocks[block as usize].bytes[offset..offset + len]
    }

    /// Bytes of all blocks, in use or not.
    pub(crate) fn size(&self) -> u64 {
        (self.blocks.len() * BLOCK) as u64
    }

    /// Packets that point into any block.
    #[cfg(test)]
    pub(crate) fn packets(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.packets)).sum()
    }

    #[cold]
    fn next_block(&mut self) {
        self.used = 0;
        if self.blocks[self.current as usize].packets > 0 {
            self.current = self.free.pop().unwrap_or_else(|| self.add_block());
        }
    }

    fn add_block(&mut self) -> u32 {
        self.blocks.push(Block { bytes: vec![0; BLOCK].into_boxed_slice(), packets: 0 });
        (self.blocks.len() - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps a full-size frame with one packet; its block.
    fn frame(arena: &mut Arena) -> u32 {
        arena.room();
        let (block, _) = arena.position();
        arena.keep(ROOM, 1);
        block
    }

    #[test]
    fn a_block_is_used_again_when_its_last_packet_is_gone() {
        let mut arena = Arena::new();
        let held: Vec<u32> = (0..100).map(|_| frame(&mut arena)).collect();
        let size = arena.size();
        for block in held {
            arena.release(block);
        }
        for _ in 0..10_000 {
            let block = frame(&mut arena);
            arena.release(block);
        }
        assert_eq!((arena.size(), arena.packets()), (size, 0));
    }

    #[test]
    fn what_a_packet_points_at_stays() {
        let mut arena = Arena::new();
        arena.room()[..3].copy_from_slice(b"abc");
        let (block, offset) = arena.position();
        arena.keep(3, 1);
        for _ in 0..1000 {
            let other = frame(&mut arena);
            arena.room()[..ROOM].fill(0xff);
            arena.release(other);
        }
        assert_eq!(arena.bytes(block, offset as usize, 3), b"abc");
    }

    #[test]
    fn small_frames_share_a_block() {
        let mut arena = Arena::new();
        let blocks: Vec<u32> = (0..1000)
            .map(|_| {
                arena.room();
                arena.keep(60, 1);
                arena.position().0
            })
            .collect();
        assert!(blocks.iter().all(|block| *block == blocks[0]));
    }
}
