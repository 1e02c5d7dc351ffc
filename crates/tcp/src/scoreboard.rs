//! What is out: one record for each segment sent and not yet cumulatively acknowledged.
//!
//! Records live in a ring that grows by doubling, so a segment costs no allocation; a segment's number
//! (`Id`) never changes. Two views beside the order of sequence: a list in order of sending for RACK
//! (Linux's `tsorted_sent_queue`), and a bit per segment that waits to be retransmitted, so that neither
//! loss marking nor retransmission walks over what the peer already has.

use crate::seq::after;

/// Number of a segment since the connection began.
pub(crate) type Id = u64;

const NONE: Id = Id::MAX;

/// The peer has it (SACK).
pub(crate) const SACKED: u16 = 0x01;
/// A retransmission of it is out.
pub(crate) const RETRANS: u16 = 0x02;
/// It is taken for lost.
pub(crate) const LOST: u16 = 0x04;
/// It was retransmitted at some time.
pub(crate) const EVER_RETRANS: u16 = 0x80;
/// It was sent while the application limited the rate.
pub(crate) const APP_LIMITED: u16 = 0x100;
/// It carries the FIN.
pub(crate) const HAS_FIN: u16 = 0x200;
/// It is the first of its burst (one `sk_buff` in Linux).
pub(crate) const BURST_START: u16 = 0x400;
/// Less than a full segment was in flight when it left, itself included.
pub(crate) const LONE_RUNT: u16 = 0x800;
const LINKED: u16 = 0x1000;

/// One segment that is out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub seq: u32,
    pub end_seq: u32,
    /// Latest (re)transmission, microseconds.
    pub sent_us: u64,
    /// `first_tx_mstamp` of the connection when it left.
    pub first_tx_us: u64,
    /// `delivered_mstamp` of the connection when it left; 0: already used for a sample.
    pub delivered_us: u64,
    /// `delivered` of the connection when it left.
    pub delivered: u32,
    /// `delivered_ce` of the connection when it left.
    pub delivered_ce: u32,
    /// `lost` of the connection when it left.
    pub lost: u32,
    previous: Id,
    next: Id,
    /// Place in the order of sending. Linux has the time, and breaks ties of its microsecond clock by sequence
    /// (`tcp_skb_sent_after`), which is right for the segments of one burst. In virtual time two ACKs also share a
    /// microsecond: a retransmission on the second would look older than the new data that left on the first.
    pub order: u32,
    pub flags: u16,
}

impl Sent {
    pub(crate) fn new(seq: u32, end_seq: u32, flags: u16) -> Sent {
        Sent {
            seq,
            end_seq,
            sent_us: 0,
            first_tx_us: 0,
            delivered_us: 0,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            previous: NONE,
            next: NONE,
            order: 0,
            flags,
        }
    }

    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Whether it was ever retransmitted (`TCPCB_RETRANS`).
    pub(crate) fn retransmitted(&self) -> bool {
        self.has(RETRANS | EVER_RETRANS)
    }

    /// Payload bytes.
    pub(crate) fn len(&self) -> u32 {
        self.end_seq.wrapping_sub(self.seq) - u32::from(self.has(HAS_FIN))
    }

    fn waits_for_retransmission(&self) -> bool {
        self.flags & (LOST | SACKED | RETRANS) == LOST
    }
}

/// The segments that are out.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    slots: Vec<Sent>,
    /// A bit per slot whose segment waits for retransmission.
    waiting: Vec<u64>,
    /// No segment below waits for retransmission.
    waiting_from: Id,
    head: Id,
    tail: Id,
    oldest: Id,
    newest: Id,
    transmissions: u32,
}

impl Scoreboard {
    pub(crate) fn new() -> Scoreboard {
        let slots = 64;
        Scoreboard {
            slots: vec![Sent::new(0, 0, 0); slots],
            waiting: vec![0; slots / 64],
            waiting_from: 0,
            head: 0,
            tail: 0,
            oldest: NONE,
            newest: NONE,
            transmissions: 0,
        }
    }

    /// Number of the first segment that is out, in order of sequence.
    pub(crate) fn head(&self) -> Id {
        self.head
    }

    /// Number the next segment will get.
    pub(crate) fn tail(&self) -> Id {
        self.tail
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    fn slot(&self, id: Id) -> usize {
        id as usize & (self.slots.len() - 1)
    }

    pub(crate) fn get(&self, id: Id) -> &Sent {
        &self.slots[self.slot(id)]
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> &mut Sent {
        let slot = self.slot(id);
        &mut self.slots[slot]
    }

    pub(crate) fn first(&self) -> Option<&Sent> {
        if self.is_empty() { None } else { Some(self.get(self.head)) }
    }

    /// Adds a new segment after all others.
    pub(crate) fn push(&mut self, sent: Sent) -> Id {
        if (self.tail - self.head) as usize == self.slots.len() {
            self.grow();
        }
        let id = self.tail;
        self.tail += 1;
        *self.get_mut(id) = sent;
        self.link_newest(id);
        id
    }

    /// Takes away the first segment.
    pub(crate) fn pop(&mut self) {
        let id = self.head;
        self.unlink(id);
        if self.get(id).has(LOST) {
            self.set_waiting(id, false);
        }
        self.head += 1;
    }

    fn grow(&mut self) {
        let old = core::mem::take(&mut self.slots);
        let mask = old.len() - 1;
        self.slots = vec![Sent::new(0, 0, 0); old.len() * 2];
        self.waiting = vec![0; self.slots.len() / 64];
        for id in self.head..self.tail {
            let sent = old[id as usize & mask];
            *self.get_mut(id) = sent;
            self.set_waiting(id, sent.waits_for_retransmission());
        }
    }

    /// The first segment that ends after `seq`; `tail` if there is none. `hint` is tried first.
    pub(crate) fn find(&self, seq: u32, hint: Id) -> Id {
        if hint >= self.head && hint < self.tail && self.get(hint).seq == seq {
            return hint;
        }
        let (mut low, mut high) = (self.head, self.tail);
        while low < high {
            let middle = low + (high - low) / 2;
            if after(self.get(middle).end_seq, seq) { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Sets and clears flags, keeping the view of what waits for retransmission.
    pub(crate) fn change_flags(&mut self, id: Id, set: u16, clear: u16) {
        let sent = self.get_mut(id);
        let was = sent.waits_for_retransmission();
        sent.flags = (sent.flags & !clear) | set;
        let is = sent.waits_for_retransmission();
        if was != is {
            self.set_waiting(id, is);
        }
    }

    fn set_waiting(&mut self, id: Id, waits: bool) {
        let slot = self.slot(id);
        let bit = 1 << (slot % 64);
        if waits {
            self.waiting[slot / 64] |= bit;
            self.waiting_from = self.waiting_from.min(id);
        } else {
            self.waiting[slot / 64] &= !bit;
        }
    }

    /// The first segment that waits for retransmission.
    pub(crate) fn next_waiting(&mut self) -> Option<Id> {
        let mut id = self.waiting_from.max(self.head);
        while id < self.tail {
            let slot = self.slot(id);
            let word = self.waiting[slot / 64] >> (slot % 64);
            if word != 0 {
                id += u64::from(word.trailing_zeros());
                break;
            }
            id += 64 - (slot as u64 % 64);
        }
        self.waiting_from = id.min(self.tail);
        (id < self.tail).then_some(id)
    }

    /// The segment sent longest ago, of those RACK still watches.
    pub(crate) fn oldest(&self) -> Option<Id> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The one sent after `id`.
    pub(crate) fn sent_next(&self, id: Id) -> Option<Id> {
        let next = self.get(id).next;
        (next != NONE).then_some(next)
    }

    /// Notes that `id` was sent later than all others.
    pub(crate) fn link_newest(&mut self, id: Id) {
        self.unlink(id);
        let newest = self.newest;
        self.transmissions = self.transmissions.wrapping_add(1);
        let order = self.transmissions;
        let sent = self.get_mut(id);
        sent.order = order;
        sent.previous = newest;
        sent.next = NONE;
        sent.flags |= LINKED;
        if newest == NONE {
            self.oldest = id;
        } else {
            self.get_mut(newest).next = id;
        }
        self.newest = id;
    }

    /// RACK need not watch `id` any more.
    pub(crate) fn unlink(&mut self, id: Id) {
        let sent = self.get_mut(id);
        if !sent.has(LINKED) {
            return;
        }
        sent.flags &= !LINKED;
        let (previous, next) = (sent.previous, sent.next);
        if previous == NONE {
            self.oldest = next;
        } else {
            self.get_mut(previous).next = next;
        }
        if next == NONE {
            self.newest = previous;
        } else {
            self.get_mut(next).previous = previous;
        }
    }

    /// All segments that are out, in order of sequence.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &Sent)> {
        (self.head..self.tail).map(|id| (id, self.get(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(n: u32) -> Scoreboard {
        let mut board = Scoreboard::new();
        for i in 0..n {
            board.push(Sent::new(i * 100, i * 100 + 100, 0));
        }
        board
    }

    #[test]
    fn growth_keeps_records_order_and_marks() {
        let mut board = filled(60);
        for _ in 0..50 {
            board.pop();
        }
        board.change_flags(55, LOST, 0);
        for i in 60..500 {
            board.push(Sent::new(i * 100, i * 100 + 100, 0));
        }
        assert_eq!(board.next_waiting(), Some(55));
        assert_eq!(
            board.iter().map(|(_, s)| s.seq).collect::<Vec<_>>(),
            (50..500).map(|i| i * 100).collect::<Vec<_>>()
        );
        let mut by_time = vec![];
        let mut at = board.oldest();
        while let Some(id) = at {
            by_time.push(id);
            at = board.sent_next(id);
        }
        assert_eq!(by_time, (50..500).collect::<Vec<_>>());
    }

    #[test]
    fn the_next_segment_to_retransmit_is_the_first_lost_one_not_yet_sent_again() {
        let mut board = filled(300);
        for id in [200, 7, 150] {
            board.change_flags(id, LOST, 0);
        }
        assert_eq!(board.next_waiting(), Some(7));
        board.change_flags(7, RETRANS, 0);
        assert_eq!(board.next_waiting(), Some(150));
        board.change_flags(150, SACKED, LOST);
        assert_eq!(board.next_waiting(), Some(200));
        board.change_flags(7, 0, RETRANS);
        assert_eq!(board.next_waiting(), Some(7));
    }

    #[test]
    fn a_segment_is_found_by_any_byte_in_it() {
        let board = filled(100);
        assert_eq!(board.find(0, 0), 0);
        assert_eq!(board.find(199, 50), 1);
        assert_eq!(board.find(200, 2), 2);
        assert_eq!(board.find(10_000, 0), 100);
    }
}
