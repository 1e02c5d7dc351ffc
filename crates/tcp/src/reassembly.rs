//! Data that arrived out of order, and the SACK blocks that report them (RFC 2018, RFC 2883).

use std::collections::VecDeque;

use crate::seq::{after, before};

/// Disjoint ranges above `rcv_nxt`, ascending, and the blocks to report, most recent first. Members that ACKs need, too, come
/// last (see `Connection`).
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Reassembly {
    blocks: [(u32, u32); 4],
    ranges: VecDeque<(u32, u32)>,
    /// Bytes held.
    bytes: u64,
    block_count: usize,
    /// A duplicate to report in the next ACK.
    dsack: Option<(u32, u32)>,
}

impl Reassembly {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// End of the last range.
    pub(crate) fn end(&self) -> Option<u32> {
        self.ranges.back().map(|range| range.1)
    }

    pub(crate) fn has_blocks(&self) -> bool {
        self.block_count > 0
    }

    /// Whether a range ends at `seq`.
    pub(crate) fn ends_at(&self, seq: u32) -> bool {
        let at = self.ranges.partition_point(|range| before(range.1, seq));
        self.ranges.get(at).is_some_and(|range| range.1 == seq)
    }

    /// Takes in `start..end`; returns how many bytes of it were new.
    #[cold]
    pub(crate) fn insert(&mut self, start: u32, end: u32) -> u32 {
        // The first range that ends at or after `start`, searched from the end, where most arrivals belong.
        let first = match self.ranges.back() {
            Some(last) if before(last.1, start) => self.ranges.len(),
            _ => self.ranges.partition_point(|range| before(range.1, start)),
        };
        let (mut low, mut high) = (start, end);
        let mut known = 0;
        let mut past = first;
        while let Some(&(range_start, range_end)) = self.ranges.get(past) {
            if after(range_start, end) {
                break;
            }
            let (from, to) = (later(range_start, start), crate::seq::earlier(range_end, end));
            if before(from, to) {
                if known == 0 {
                    self.dsack = Some((from, to));
                }
                known += to.wrapping_sub(from);
            }
            low = crate::seq::earlier(low, range_start);
            high = later(high, range_end);
            past += 1;
        }
        if past == first {
            self.ranges.insert(first, (low, high));
        } else {
            self.ranges[first] = (low, high);
            if past - first > 1 {
                self.ranges.drain(first + 1..past);
            }
        }
        let new = end.wrapping_sub(start) - known;
        self.bytes += u64::from(new);
        self.report(start, end);
        new
    }

    /// Whether taking in `start..end` would move a third block to the front: what a peer does not know
    /// of by then might never be reported (Linux `TCP_SACK_BLOCKS_EXPECTED`).
    pub(crate) fn displaces_blocks(&self, start: u32, end: u32) -> bool {
        let blocks = &self.blocks[..self.block_count];
        let touched = blocks.iter().position(|&(s, e)| !after(start, e) && !after(s, end));
        touched.unwrap_or(self.block_count) >= 2
    }

    /// Data that just arrived are reported first, together with the blocks that they touch. Of a range whose block has fallen out
    /// of the four, only this part is reported (Linux `tcp_sack_new_ofo_skb`, `tcp_sack_maybe_coalesce`).
    fn report(&mut self, start: u32, end: u32) {
        let touches = |a: (u32, u32), b: (u32, u32)| !after(a.0, b.1) && !after(b.0, a.1);
        let join = |a: (u32, u32), b: (u32, u32)| (crate::seq::earlier(a.0, b.0), later(a.1, b.1));
        let blocks = &self.blocks[..self.block_count];
        let touched = blocks.iter().position(|&block| touches(block, (start, end)));
        let mut first = touched.map_or((start, end), |i| join(blocks[i], (start, end)));
        let mut kept = [(start, end); 4];
        let mut count = 1;
        for (i, &block) in blocks.iter().enumerate() {
            if touched == Some(i) {
                continue;
            }
            if touches(block, first) {
                first = join(block, first);
            } else if count < 4 {
                kept[count] = block;
                count += 1;
            }
        }
        kept[0] = first;
        self.blocks = kept;
        self.block_count = count;
    }

    /// `rcv_nxt` has advanced: returns where it gets to with what is held.
    pub(crate) fn advance(&mut self, mut rcv_nxt: u32) -> u32 {
        while let Some(&(start, end)) = self.ranges.front() {
            if after(start, rcv_nxt) {
                break;
            }
            self.ranges.pop_front();
            self.bytes -= u64::from(end.wrapping_sub(start));
            if before(start, rcv_nxt) {
                self.dsack = Some((start, crate::seq::earlier(end, rcv_nxt)));
            }
            rcv_nxt = later(rcv_nxt, end);
        }
        let mut count = 0;
        for i in 0..self.block_count {
            if after(self.blocks[i].0, rcv_nxt) {
                self.blocks[count] = self.blocks[i];
                count += 1;
            }
        }
        self.block_count = count;
        rcv_nxt
    }

    /// A duplicate arrived; one already waiting to be reported is extended (`tcp_dsack_extend`).
    pub(crate) fn report_duplicate(&mut self, start: u32, end: u32) {
        self.dsack = Some(match self.dsack {
            Some((s, e)) if !after(start, e) && !after(s, end) => {
                (crate::seq::earlier(s, start), later(e, end))
            }
            Some(first) => first,
            None => (start, end),
        });
    }

    /// Data arrives before the duplicate was reported: it never is (Linux `tcp_data_queue`).
    pub(crate) fn forget_duplicate(&mut self) {
        self.dsack = None;
    }

    /// Writes up to `room` blocks, a duplicate first, which is thereby reported.
    #[cold]
    pub(crate) fn write_blocks(&mut self, out: &mut [(u32, u32); 4], room: usize) -> u8 {
        let mut count = 0;
        if let Some(duplicate) = self.dsack.take() {
            out[0] = duplicate;
            count = 1;
        }
        for &block in &self.blocks[..self.block_count] {
            if count == room {
                break;
            }
            out[count] = block;
            count += 1;
        }
        count as u8
    }

    /// End of the rightmost block.
    pub(crate) fn last_block_end(&self) -> Option<u32> {
        self.blocks[..self.block_count].iter().map(|block| block.1).reduce(later)
    }

    pub(crate) fn anything_to_report(&self) -> bool {
        self.block_count > 0 || self.dsack.is_some()
    }
}

const fn later(a: u32, b: u32) -> u32 {
    if after(a, b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(held: &mut Reassembly) -> Vec<(u32, u32)> {
        let mut out = [(0, 0); 4];
        let n = held.write_blocks(&mut out, 4);
        out[..usize::from(n)].to_vec()
    }

    #[test]
    fn the_most_recent_range_is_reported_first() {
        let mut held = Reassembly::default();
        held.insert(200, 300);
        held.insert(400, 500);
        held.insert(600, 700);
        assert_eq!(blocks(&mut held), [(600, 700), (400, 500), (200, 300)]);
        held.insert(300, 400);
        assert_eq!(blocks(&mut held), [(200, 500), (600, 700)]);
    }

    #[test]
    fn of_a_range_whose_block_is_forgotten_only_what_arrives_is_reported() {
        let mut held = Reassembly::default();
        for start in [200, 400, 600, 800, 1000] {
            held.insert(start, start + 100);
        }
        held.insert(300, 350);
        assert_eq!(blocks(&mut held), [(300, 350), (1000, 1100), (800, 900), (600, 700)]);
        held.insert(900, 1000);
        assert_eq!(blocks(&mut held), [(800, 1100), (300, 350), (600, 700)]);
        assert_eq!(held.advance(200), 350);
    }

    #[test]
    fn filling_the_hole_releases_what_was_held() {
        let mut held = Reassembly::default();
        held.insert(200, 300);
        held.insert(300, 400);
        held.insert(600, 700);
        assert_eq!(held.advance(200), 400);
        assert_eq!(held.bytes, 100);
        assert_eq!(blocks(&mut held), [(600, 700)]);
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        let mut held = Reassembly::default();
        held.insert(200, 300);
        assert_eq!(held.insert(200, 300), 0);
        assert_eq!(blocks(&mut held), [(200, 300), (200, 300)]);
        assert_eq!(blocks(&mut held), [(200, 300)]);
        held.report_duplicate(50, 100);
        assert_eq!(blocks(&mut held), [(50, 100), (200, 300)]);
    }

    #[test]
    fn ranges_hold_across_the_wrap() {
        let mut held = Reassembly::default();
        held.insert(0xffff_ff00, 0xffff_fff0);
        held.insert(0xffff_fff0, 0x20);
        assert_eq!(blocks(&mut held), [(0xffff_ff00, 0x20)]);
        assert_eq!(held.advance(0xffff_ff00), 0x20);
        assert!(held.is_empty());
    }
}
