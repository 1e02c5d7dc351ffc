//! Where each conversation's sequence numbers began, so that they can be shown relative to 0.

use std::collections::HashMap;
use std::{fmt, mem};

use super::tree::Place;

/// Conversations kept at least. Beyond twice as many the longest silent ones are forgotten; if they go on, their
/// numbers are relative to it.
const KEPT: usize = 100_000;

/// A direction's two ends.
pub(super) type FourTuple = (Place, u16, Place, u16);

/// A sequence or acknowledgment number, and the same counted from the first of its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    absolute: u32,
    /// Below 0 for a number before the first captured one, in a capture that begins within a connection.
    relative: i64,
}

impl Counted {
    /// Behind the absolute number.
    pub(super) fn remark(self) -> String {
        match self.relative {
            0.. => format!("relative {}", self.relative),
            _ => "before the first captured".to_owned(),
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.relative {
            0.. => write!(f, "{}", self.relative),
            _ => write!(f, "{} (absolute)", self.absolute),
        }
    }
}

/// The numbers of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relative {
    /// Of its first byte.
    pub(super) seq: Counted,
    /// Of its acknowledgment, and what counts the edges of its SACK blocks.
    pub(super) ack: Option<(Counted, Side)>,
}

/// The numbers of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    first: u32,
    /// The highest number, counted from the first: beyond 4 GiB, too.
    top: i64,
}

impl Side {
    fn beginning_at(first: u32) -> Side {
        Side { first, top: 0 }
    }

    /// The count nearest to the highest.
    pub(super) fn count(self, absolute: u32) -> Counted {
        let highest = self.first.wrapping_add(self.top as u32);
        Counted { absolute, relative: self.top + i64::from(absolute.wrapping_sub(highest) as i32) }
    }

    fn take(&mut self, absolute: u32) -> Counted {
        let counted = self.count(absolute);
        self.top = self.top.max(counted.relative);
        counted
    }
}

/// The place of a segment in the conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) syn: bool,
    pub(super) has_ack: bool,
}

/// Those of the lower and of the higher end; none: nothing known yet.
type Sides = [Option<Side>; 2];

/// The conversations of a capture.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    recent: HashMap<FourTuple, Sides>,
    before: HashMap<FourTuple, Sides>,
}

impl Conversations {
    /// Numbers relative to the conversation's beginning: to the SYN, or, where that is missing, such that the
    /// first byte seen is number 1, as it would be behind a SYN.
    pub(super) fn relative(&mut self, ends: FourTuple, numbers: Numbers) -> Relative {
        let (source, source_port, destination, destination_port) = ends;
        let swapped = (source, source_port) > (destination, destination_port);
        let key = if swapped { (destination, destination_port, source, source_port) } else { ends };
        if self.recent.len() >= KEPT && !self.recent.contains_key(&key) {
            self.before = mem::take(&mut self.recent);
        }
        let before = &mut self.before;
        let sides = self.recent.entry(key).or_insert_with(|| before.remove(&key).unwrap_or_default());
        let (mine, theirs) = (usize::from(swapped), usize::from(!swapped));
        if numbers.syn && sides[mine].is_none_or(|side| side.first != numbers.seq) {
            if !numbers.has_ack {
                // A new connection between the same ports.
                *sides = [None, None];
            }
            sides[mine] = Some(Side::beginning_at(numbers.seq));
        }
        let before_first = |number: u32| Side::beginning_at(number.wrapping_sub(1));
        let seq = sides[mine].get_or_insert_with(|| before_first(numbers.seq)).take(numbers.seq);
        let ack = numbers.has_ack.then(|| {
            let side = sides[theirs].get_or_insert_with(|| before_first(numbers.ack));
            (side.take(numbers.ack), *side)
        });
        Relative { seq, ack }
    }
}
