//! Data sent and not yet acknowledged, piece by piece.

use std::collections::VecDeque;

use crate::parse::Segment;

/// Pieces beyond this are forgotten, the oldest first: more than any window holds in captures we know of.
const MAX_PIECES: usize = 1 << 16;
/// Without any acknowledgment (a capture of one direction) they serve only to recognize reordering.
const MAX_UNACKNOWLEDGED: usize = 256;

/// A range of sequence numbers, from the end of the piece before to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The extended sequence number behind it.
    pub end: u64,
    /// When it was first seen, or, unseen, when a later one showed that it is missing (ns).
    pub first: i64,
    /// When it was last seen (ns).
    pub last: i64,
    /// The timestamp option's value, first and last time.
    pub first_timestamp: u32,
    pub last_timestamp: u32,
    /// IPv4 identification, the last time; of what showed it missing, if it is.
    pub identification: u16,
    /// It has been skipped: sent before the capture could see it, or lost on the way here, or delayed.
    pub unseen: bool,
    pub retransmitted: bool,
}

/// The pieces between the highest acknowledgment and the highest sequence number sent, without gaps.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pieces: VecDeque<Piece>,
    /// Where the first piece begins.
    floor: u64,
}

/// The ranges that an acknowledgment newly covered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    /// The piece that holds the last byte acknowledged.
    pub newest: Piece,
    /// When the segment was sent whose timestamp the acknowledgment echoes.
    pub echoed: Option<i64>,
    /// When the latest sent of it was sent (ns).
    pub latest: i64,
    /// Something of it was sent more than once, or never seen.
    pub ambiguous: bool,
    /// Bytes of it that this capture never saw.
    pub unseen: u64,
}

/// The history of a range that is retransmitted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Again {
    /// Bytes of it seen before.
    pub seen: u64,
    /// Bytes of it that had been skipped.
    pub skipped: u64,
    /// The first seen piece it touches, as it was before.
    pub before: Option<Piece>,
    /// The first skipped piece it touches, as it was before.
    pub gap: Option<Piece>,
}

impl Sent {
    /// Forgets everything; what is sent next begins at `floor`.
    pub fn restart(&mut self, floor: u64) {
        self.pieces.clear();
        self.floor = floor;
    }

    /// The highest sequence number sent.
    pub fn top(&self) -> u64 {
        self.pieces.back().map_or(self.floor, |piece| piece.end)
    }

    /// Appends what lies beyond the top; what is skipped to reach `start` is a piece not seen.
    #[inline]
    pub fn push(&mut self, start: u64, end: u64, time: i64, segment: &Segment, acknowledged: bool) {
        let piece = Piece {
            end,
            first: time,
            last: time,
            first_timestamp: segment.options.timestamp,
            last_timestamp: segment.options.timestamp,
            identification: segment.identification,
            unseen: false,
            retransmitted: false,
        };
        if start > self.top() {
            self.pieces.push_back(Piece { end: start, unseen: true, ..piece });
        }
        self.pieces.push_back(piece);
        let maximum = if acknowledged { MAX_PIECES } else { MAX_UNACKNOWLEDGED };
        while self.pieces.len() > maximum {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) -> Option<Piece> {
        let first = self.pieces.pop_front()?;
        self.floor = first.end;
        Some(first)
    }

    /// Removes what lies below `ack`; none if that is nothing.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64, echo: Option<u32>) -> Option<Covered> {
        let mut covered: Option<Covered> = None;
        while let Some(&piece) = self.pieces.front() {
            if ack <= self.floor {
                break;
            }
            let so_far = covered.get_or_insert(Covered {
                newest: piece,
                echoed: None,
                latest: piece.last,
                ambiguous: false,
                unseen: 0,
            });
            so_far.newest = piece;
            so_far.latest = so_far.latest.max(piece.last);
            so_far.ambiguous |= piece.retransmitted || piece.unseen;
            if piece.unseen {
                so_far.unseen += piece.end.min(ack) - self.floor;
            }
            if so_far.echoed.is_none()
                && !piece.unseen
                && let Some(echo) = echo
            {
                so_far.echoed = piece.sent_with(echo);
            }
            if piece.end > ack {
                self.floor = ack;
                break;
            }
            self.forget_first();
        }
        self.floor = self.floor.max(ack);
        covered
    }

    /// Notes that `start` to `end`, all of it below the top, was seen at `time` after later data.
    #[cold]
    pub fn again(&mut self, start: u64, end: u64, time: i64, segment: &Segment) -> Again {
        let mut again = Again::default();
        if start < self.floor {
            // Acknowledged or forgotten: it had been sent.
            again.seen += end.min(self.floor) - start;
        }
        self.for_each_between(start, end, |piece, len| {
            if !piece.unseen {
                again.seen += len;
                again.before.get_or_insert(*piece);
                return;
            }
            again.skipped += len;
            again.gap.get_or_insert(*piece);
            *piece = Piece {
                first: time,
                last: time,
                first_timestamp: segment.options.timestamp,
                last_timestamp: segment.options.timestamp,
                identification: segment.identification,
                unseen: false,
                ..*piece
            };
        });
        again
    }

    /// Marks a range as retransmitted, so that Karn's rule can heed it.
    #[cold]
    pub fn mark_retransmitted(&mut self, start: u64, end: u64, time: i64, segment: &Segment) {
        self.for_each_between(start, end, |piece, _| {
            piece.retransmitted = true;
            piece.last = time;
            piece.last_timestamp = segment.options.timestamp;
            piece.identification = segment.identification;
        });
    }

    /// Visits the pieces from `start` to `end` with their lengths, cut so that none reaches beyond.
    fn for_each_between(&mut self, start: u64, end: u64, mut visit: impl FnMut(&mut Piece, u64)) {
        self.cut_at(start);
        self.cut_at(end);
        let first = self.pieces.partition_point(|piece| piece.end <= start);
        let mut begin = if first == 0 { self.floor } else { self.pieces[first - 1].end };
        for piece in self.pieces.range_mut(first..) {
            if piece.end > end {
                break;
            }
            visit(piece, piece.end - begin);
            begin = piece.end;
        }
    }

    /// Makes a piece that `number` lies in two, as long as there is room.
    fn cut_at(&mut self, number: u64) {
        if self.pieces.len() >= 2 * MAX_PIECES {
            return;
        }
        let index = self.pieces.partition_point(|piece| piece.end < number);
        let begin = if index == 0 { self.floor } else { self.pieces[index - 1].end };
        if let Some(&piece) = self.pieces.get(index)
            && begin < number
            && number < piece.end
        {
            self.pieces.insert(index, Piece { end: number, ..piece });
        }
    }
}

impl Piece {
    /// When it was sent with this timestamp; none if that is not known.
    fn sent_with(&self, timestamp: u32) -> Option<i64> {
        if !self.retransmitted {
            return (self.first_timestamp == timestamp).then_some(self.first);
        }
        // A timestamp tells its two transmissions apart if the clock ticked in between (RFC 7323 section 4).
        match (self.first_timestamp == timestamp, self.last_timestamp == timestamp) {
            (true, false) => Some(self.first),
            (false, true) => Some(self.last),
            _ => None,
        }
    }
}
