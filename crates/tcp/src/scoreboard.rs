//! The scoreboard: one record for each segment sent and not yet cumulatively acknowledged.
//!
//! Records live in a ring that grows by doubling, so a segment costs no allocation; a segment's number
//! (`Id`) never changes. There are two views beside the order of sequence: a list in order of sending for
//! RACK (Linux's `tsorted_sent_queue`), and a bit per segment that waits to be retransmitted. So neither
//! loss marking nor retransmission walks over what the peer already has, or over what is lost and not yet
//! retransmitted.

use tcplab_units::prefetch;

use crate::seq::{after, before};

/// Number of a segment since the connection began.
pub(crate) type Id = u64;

const NONE: Id = Id::MAX;

/// Slots of the first ring. Ten thousand flows on one link have few segments out each. All slots are written in turn: more would
/// only take more of the processor's cache.
const SLOTS_MIN: usize = 8;

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
/// It is the first of its buffer (one `sk_buff` in Linux): of its burst, or of SACKed neighbours.
pub(crate) const BURST_START: u16 = 0x400;
/// Less than a full segment was in flight when it left, itself included.
pub(crate) const LONE_RUNT: u16 = 0x800;
const LINKED: u16 = 0x1000;
/// It left the order of sending because a timeout took it for lost; it comes back if that is undone.
const PARKED: u16 = 0x2000;
/// The application pushed it, so that retransmissions of it carry PSH as well.
pub(crate) const PUSHED: u16 = 0x4000;

/// One segment that is out: a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
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
    /// Lower half of the numbers of its neighbours in the order of sending; its own where it has none.
    previous: u32,
    next: u32,
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
            previous: 0,
            next: 0,
            order: 0,
            flags,
        }
    }

    /// One that left in the same state of delivery.
    #[inline]
    pub(crate) fn with(&self, seq: u32, end_seq: u32, flags: u16) -> Sent {
        Sent { seq, end_seq, flags, ..*self }
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
    /// Last in the order of sending of those `sent_before` was last asked for; `NONE`: the search starts anew.
    cursor: Id,
    transmissions: u32,
}

impl Scoreboard {
    pub(crate) fn new() -> Scoreboard {
        Scoreboard {
            slots: Vec::new(),
            waiting: Vec::new(),
            waiting_from: 0,
            head: 0,
            tail: 0,
            oldest: NONE,
            newest: NONE,
            cursor: NONE,
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

    /// An ACK will arrive soon, which takes away the first segments and makes room for new ones.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if !self.slots.is_empty() {
            // As a rule an ACK takes away two, after which the next one is the first, and makes room for two.
            for id in [self.head, self.head + 1, self.head + 2, self.tail, self.tail + 1] {
                prefetch(self.get(id));
            }
        }
    }

    /// Adds a new segment after all others.
    #[inline(always)]
    pub(crate) fn push(&mut self, sent: Sent) -> Id {
        if (self.tail - self.head) as usize == self.slots.len() {
            self.grow();
        }
        let (id, newest) = (self.tail, self.newest);
        self.tail += 1;
        self.transmissions = self.transmissions.wrapping_add(1);
        let order = self.transmissions;
        let previous = if newest == NONE { id } else { newest } as u32;
        let flags = (sent.flags & !PARKED) | LINKED;
        *self.get_mut(id) = Sent { order, previous, next: id as u32, flags, ..sent };
        self.follow(newest, id);
        id
    }

    /// `id` is the last in the order of sending, after `newest`.
    #[inline]
    fn follow(&mut self, newest: Id, id: Id) {
        if newest == NONE {
            self.oldest = id;
        } else {
            self.get_mut(newest).next = id as u32;
        }
        self.newest = id;
    }

    /// Takes away the first segment.
    pub(crate) fn pop(&mut self) {
        let id = self.head;
        if self.oldest == id && self.cursor != id {
            self.unlink_oldest(id);
        } else {
            self.unlink(id);
        }
        if self.get(id).has(LOST) {
            self.set_waiting(id, false);
        }
        self.head += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let old = core::mem::take(&mut self.slots);
        let mask = old.len().wrapping_sub(1);
        self.slots = vec![Sent::new(0, 0, 0); (old.len() * 2).max(SLOTS_MIN)];
        self.waiting = vec![0; self.slots.len().div_ceil(64)];
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

    #[cold]
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
            // On to the next word, or round the end of the ring.
            id += (64 - slot % 64).min(self.slots.len() - slot) as u64;
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
        (next != id as u32).then(|| self.whole(next))
    }

    /// The number of a segment that is out by its lower half.
    fn whole(&self, lower: u32) -> Id {
        self.head + Id::from(lower.wrapping_sub(self.head as u32))
    }

    /// The one sent last of those that were sent before `order`, which never goes back from call to call.
    pub(crate) fn sent_before(&mut self, order: u32) -> Option<Id> {
        if self.cursor == NONE {
            self.cursor = self.oldest().filter(|&oldest| before(self.get(oldest).order, order))?;
        }
        while let Some(next) = self.sent_next(self.cursor)
            && before(self.get(next).order, order)
        {
            self.cursor = next;
        }
        Some(self.cursor)
    }

    /// Notes that `id` was sent later than all others.
    pub(crate) fn link_newest(&mut self, id: Id) {
        self.unlink(id);
        self.transmissions = self.transmissions.wrapping_add(1);
        let order = self.transmissions;
        self.get_mut(id).order = order;
        self.append(id);
    }

    /// Puts `id` at the end of the order of sending.
    fn append(&mut self, id: Id) {
        let newest = self.newest;
        let sent = self.get_mut(id);
        sent.previous = if newest == NONE { id } else { newest } as u32;
        sent.next = id as u32;
        sent.flags = (sent.flags & !PARKED) | LINKED;
        self.follow(newest, id);
    }

    /// A timeout took `id` for lost: RACK need not watch it before it is retransmitted, or `unpark_all`.
    pub(crate) fn park(&mut self, id: Id) {
        if self.get(id).has(LINKED) {
            self.unlink(id);
            self.get_mut(id).flags |= PARKED;
        }
    }

    /// A timeout is undone: what it took off the order of sending takes its place there again.
    pub(crate) fn unpark_all(&mut self) {
        let parked = |id: &Id| self.get(*id).has(PARKED);
        if !(self.head..self.tail).any(|id| parked(&id)) {
            return;
        }
        let mut ids: Vec<Id> =
            (self.head..self.tail).filter(|id| self.get(*id).has(LINKED | PARKED)).collect();
        let latest = self.transmissions;
        ids.sort_by_key(|id| std::cmp::Reverse(latest.wrapping_sub(self.get(*id).order)));
        (self.oldest, self.newest, self.cursor) = (NONE, NONE, NONE);
        for id in ids {
            self.append(id);
        }
    }

    /// RACK need not watch `id` any more, which was sent longest ago.
    #[inline]
    fn unlink_oldest(&mut self, id: Id) {
        let sent = self.get_mut(id);
        sent.flags &= !(PARKED | LINKED);
        let next = sent.next;
        if next == id as u32 {
            (self.oldest, self.newest) = (NONE, NONE);
        } else {
            self.oldest = self.whole(next);
            self.get_mut(self.oldest).previous = next;
        }
    }

    /// RACK need not watch `id` any more.
    pub(crate) fn unlink(&mut self, id: Id) {
        let sent = self.get_mut(id);
        sent.flags &= !PARKED;
        if !sent.has(LINKED) {
            return;
        }
        sent.flags &= !LINKED;
        let (previous, next) = (sent.previous, sent.next);
        let own = id as u32;
        let previous = if previous == own { NONE } else { self.whole(previous) };
        let next = if next == own { NONE } else { self.whole(next) };
        if previous == NONE {
            self.oldest = next;
        } else {
            self.get_mut(previous).next = if next == NONE { previous } else { next } as u32;
        }
        if next == NONE {
            self.newest = previous;
        } else {
            self.get_mut(next).previous = if previous == NONE { next } else { previous } as u32;
        }
        if self.cursor == id {
            self.cursor = previous;
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
    fn the_next_segment_to_retransmit_is_the_first_lost_one_not_yet_retransmitted() {
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

    fn in_order_of_sending(board: &Scoreboard) -> Vec<Id> {
        std::iter::successors(board.oldest(), |&id| board.sent_next(id)).collect()
    }

    #[test]
    fn what_a_timeout_took_off_comes_back_in_its_place() {
        let mut board = filled(6);
        board.link_newest(1);
        for id in [0, 1, 3, 4, 5] {
            board.park(id);
        }
        assert_eq!(in_order_of_sending(&board), [2]);
        board.link_newest(0);
        board.unlink(4);
        board.unpark_all();
        assert_eq!(in_order_of_sending(&board), [2, 3, 5, 1, 0]);
    }

    #[test]
    fn the_last_one_sent_before_another_is_found_while_neighbours_come_and_go() {
        let mut board = filled(8);
        let order = |board: &Scoreboard, id| board.get(id).order;
        assert_eq!(board.sent_before(order(&board, 0)), None);
        assert_eq!(board.sent_before(order(&board, 4)), Some(3));
        board.unlink(3);
        assert_eq!(board.sent_before(order(&board, 4)), Some(2));
        board.link_newest(0);
        assert_eq!(board.sent_before(order(&board, 6)), Some(5));
        for id in [1, 2, 4, 5] {
            board.unlink(id);
        }
        assert_eq!(board.sent_before(order(&board, 6)), None);
        assert_eq!(board.sent_before(order(&board, 0)), Some(7));
    }

    #[test]
    fn a_record_is_a_cache_line() {
        assert_eq!(size_of::<Sent>(), 64);
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
