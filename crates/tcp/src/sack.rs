//! Selective acknowledgments as the sender reads them (RFC 2018, RFC 2883; Linux `tcp_sacktag_write_queue`).
//!
//! The blocks of the last ACK are remembered, so only what is newly covered is walked. So the cost of an
//! ACK does not grow with the number of segments or holes in flight.

use tcplab_control::CaState;

use crate::ack::AckState;
use crate::scoreboard::{BURST_START, Id, LOST, RETRANS, SACKED};
use crate::seq::{after, before};
use crate::{Connection, Segment};

/// Blocks of the last ACK, ascending.
#[derive(Debug, Default)]
pub(crate) struct SackCache {
    blocks: [(u32, u32); 4],
    count: usize,
    /// Where the last walk ended.
    hint: Id,
}

impl SackCache {
    pub(crate) fn forget(&mut self) {
        self.count = 0;
    }
}

impl Connection {
    pub(crate) fn process_sack(&mut self, segment: &Segment, prior_snd_una: u32, state: &mut AckState) {
        let wire = &segment.sack[..usize::from(segment.sack_count.min(4))];
        state.reorder = self.sk.snd_nxt;
        let duplicate = self.note_dsack(wire, segment.ack, prior_snd_una, state);
        if before(segment.ack, prior_snd_una.wrapping_sub(self.snd.max_window)) {
            return;
        }
        if self.sk.packets_out > 0 {
            self.walk_blocks(wire, duplicate, state);
        }
        if self.sk.icsk_ca_state != CaState::Loss as u32 || self.snd.undo.marker().is_some() {
            self.note_reordering(state.reorder);
        }
    }

    fn walk_blocks(&mut self, wire: &[(u32, u32)], duplicate: bool, state: &mut AckState) {
        let mut blocks = [(0, 0, false); 4];
        let mut count = 0;
        for (i, &(start, end)) in wire.iter().enumerate() {
            let duplicate = duplicate && i == 0;
            if self.is_valid_block(start, end, duplicate) && after(end, self.sk.snd_una) {
                blocks[count] = (start, end, duplicate);
                count += 1;
            }
        }
        let blocks = &mut blocks[..count];
        let una = self.sk.snd_una;
        blocks.sort_unstable_by_key(|b| b.0.wrapping_sub(una) as i32);
        for &(start, end, duplicate) in blocks.iter() {
            if duplicate {
                self.walk(start, (start, end), end, true, state);
            } else {
                self.walk_new_parts(start, end, state);
            }
        }
        let mut kept = 0;
        for &(start, end, duplicate) in blocks.iter() {
            if !duplicate {
                self.snd.sack_cache.blocks[kept] = (start, end);
                kept += 1;
            }
        }
        self.snd.sack_cache.count = kept;
    }

    /// Walks what the block covers and no block of the last ACK did.
    fn walk_new_parts(&mut self, start: u32, end: u32, state: &mut AckState) {
        let mut from = start;
        for i in 0..self.snd.sack_cache.count {
            let (known_start, known_end) = self.snd.sack_cache.blocks[i];
            if !after(known_end, from) {
                continue;
            }
            if !before(known_start, end) {
                break;
            }
            if after(known_start, from) {
                self.walk(from, (start, end), known_start, false, state);
            }
            from = known_end;
            if !before(from, end) {
                return;
            }
        }
        self.walk(from, (start, end), end, false, state);
    }

    fn walk(&mut self, from: u32, block: (u32, u32), to: u32, duplicate: bool, state: &mut AckState) {
        let mut id = self.snd.board.find(from, self.snd.sack_cache.hint);
        while id < self.snd.board.tail() {
            let sent = self.snd.board.get(id);
            if !before(sent.seq, to) {
                break;
            }
            if !before(sent.seq, block.0) && !after(sent.end_seq, block.1) {
                self.tag(id, duplicate, state);
            }
            id += 1;
        }
        self.snd.sack_cache.hint = id;
    }

    /// One segment lies in a block (Linux `tcp_sacktag_one`).
    fn tag(&mut self, id: Id, duplicate: bool, state: &mut AckState) {
        let sent = *self.snd.board.get(id);
        if duplicate && sent.retransmitted() {
            if self.snd.undo.marker().is_some_and(|marker| after(sent.end_seq, marker)) {
                self.snd.undo.note_duplicates(1);
            }
            if sent.has(SACKED) && before(sent.seq, state.reorder) {
                state.reorder = sent.seq;
            }
        }
        if !sent.has(SACKED) {
            self.rack_advance(&sent);
            let mut clear = 0;
            if sent.has(RETRANS) {
                // Not taken for lost: the retransmission is believed to be still in flight.
                if sent.has(LOST) {
                    clear = LOST | RETRANS;
                    self.sk.lost_out -= 1;
                    self.sk.retrans_out -= 1;
                }
            } else {
                if !sent.retransmitted() {
                    if before(sent.seq, self.highest_sacked()) && before(sent.seq, state.reorder) {
                        state.reorder = sent.seq;
                    }
                    if !after(sent.end_seq, self.sk.high_seq) {
                        state.flags.original_delivered = true;
                    }
                    if state.first_sacked_us == 0 {
                        state.first_sacked_us = sent.sent_us;
                    }
                    state.last_sacked_us = sent.sent_us;
                }
                if sent.has(LOST) {
                    clear = LOST;
                    self.sk.lost_out -= 1;
                }
            }
            self.snd.board.change_flags(id, SACKED, clear);
            state.flags.data_sacked = true;
            if self.sk.sacked_out == 0 || after(sent.end_seq, self.snd.highest_sack) {
                self.snd.highest_sack = sent.end_seq;
            }
            self.sk.sacked_out += 1;
            state.sack_delivered += 1;
            self.rate_on_delivered(id, state);
            self.snd.board.unlink(id);
            self.merge_buffers(id);
        }
        if duplicate && self.snd.board.get(id).has(RETRANS) {
            self.snd.board.change_flags(id, 0, RETRANS);
            self.sk.retrans_out -= 1;
        }
    }

    /// Puts a segment that was just SACKed into one buffer with its SACKed neighbours, and apart from the others
    /// (`tcp_shift_skb_data`). So the send buffer has room again before the acknowledgment goes on.
    fn merge_buffers(&mut self, id: Id) {
        let board = &self.snd.board;
        let joins_previous = id > board.head() && board.get(id - 1).has(SACKED);
        let next = (id + 1 < board.tail()).then(|| board.get(id + 1).has(SACKED));
        self.set_burst_start(id, !joins_previous);
        if let Some(joins_next) = next {
            self.set_burst_start(id + 1, !joins_next);
        }
    }

    /// The rest of a buffer that was partly acknowledged is a buffer (`tcp_trim_head`).
    pub(crate) fn keep_rest_of_buffer(&mut self) {
        if !self.snd.board.is_empty() {
            self.set_burst_start(self.snd.board.head(), true);
        }
    }

    fn set_burst_start(&mut self, id: Id, is_start: bool) {
        if self.snd.board.get(id).has(BURST_START) == is_start {
            return;
        }
        if is_start {
            self.snd.board.change_flags(id, BURST_START, 0);
            self.snd.buffer.split_burst();
        } else {
            self.snd.board.change_flags(id, 0, BURST_START);
            self.snd.buffer.note_burst_acked();
        }
    }

    /// RFC 2883: the first block reports a duplicate if it lies below the ACK or inside the second block.
    fn note_dsack(
        &mut self,
        wire: &[(u32, u32)],
        ack: u32,
        prior_snd_una: u32,
        state: &mut AckState,
    ) -> bool {
        let (start, end) = wire[0];
        let below = before(start, ack);
        let inside = wire.len() > 1 && !after(end, wire[1].1) && !before(start, wire[1].0);
        if !below && !inside {
            return false;
        }
        let segments = self.count_dsack(start, end, state);
        if segments == 0 {
            return false;
        }
        if let Some(marker) = self.snd.undo.marker()
            && !after(end, prior_snd_una)
            && after(end, marker)
        {
            self.snd.undo.note_duplicates(segments);
        }
        true
    }

    /// How many segments a DSACK stands for; 0 if it cannot be true (`tcp_dsack_seen`).
    fn count_dsack(&mut self, start: u32, end: u32, state: &mut AckState) -> u32 {
        let bytes = end.wrapping_sub(start);
        if !before(start, end) || bytes > self.snd.max_window {
            return 0;
        }
        let mut segments = 1;
        if bytes > self.sk.mss_cache {
            segments = bytes.div_ceil(self.sk.mss_cache);
        } else if self.snd.tail_loss.ends_at(end) {
            state.flags.dsack_of_probe = true;
        }
        self.snd.dsack_segments += u64::from(segments);
        if self.snd.dsack_segments > self.snd.counters.retransmits {
            // More duplicates than retransmissions: the network duplicates.
            return 0;
        }
        if !state.flags.dsack_of_probe {
            self.snd.rack.note_dsack();
        }
        state.flags.dsack = true;
        state.sack_delivered += segments;
        segments
    }

    fn is_valid_block(&self, start: u32, end: u32, duplicate: bool) -> bool {
        if after(end, self.sk.snd_nxt) || !before(start, end) || !before(start, self.sk.snd_nxt) {
            return false;
        }
        if after(start, self.sk.snd_una) {
            return true;
        }
        let Some(marker) = self.snd.undo.marker() else { return false };
        if !duplicate || !after(end, self.sk.snd_una) {
            return false;
        }
        !before(start, marker)
            || (after(end, marker) && !before(start, end.wrapping_sub(self.snd.max_window)))
    }
}
