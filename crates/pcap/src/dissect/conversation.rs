//! Where each conversation's sequence numbers began, so that they can be shown relative to 0.

use std::collections::HashMap;
use std::mem;

use super::tree::Place;

/// Conversations kept at least. Beyond twice as many the longest silent ones are forgotten; if they go on, their
/// numbers are relative to it.
const KEPT: usize = 100_000;

/// A direction's two ends.
pub(super) type Ends = (Place, u16, Place, u16);

/// Sequence and acknowledgment number counted from the first of their conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relative {
    /// Of the segment's first byte.
    pub(super) seq: u32,
    /// Of the acknowledgment.
    pub(super) ack: u32,
    /// The number that acknowledgments are counted from.
    pub(super) ack_first: u32,
}

/// The place of a segment in the conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) syn: bool,
    pub(super) has_ack: bool,
}

/// The first sequence number of the lower and of the higher end; none: not known yet.
type Firsts = [Option<u32>; 2];

/// The conversations of a capture.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    recent: HashMap<Ends, Firsts>,
    before: HashMap<Ends, Firsts>,
}

impl Conversations {
    /// Numbers relative to the conversation's beginning: to the SYN, or, where that is missing, such that the
    /// first byte seen is number 1, as it would be behind a SYN.
    pub(super) fn relative(&mut self, ends: Ends, numbers: Numbers) -> Relative {
        let (source, source_port, destination, destination_port) = ends;
        let swapped = (source, source_port) > (destination, destination_port);
        let key = if swapped { (destination, destination_port, source, source_port) } else { ends };
        if self.recent.len() >= KEPT && !self.recent.contains_key(&key) {
            self.before = mem::take(&mut self.recent);
        }
        let before = &mut self.before;
        let firsts = self.recent.entry(key).or_insert_with(|| before.remove(&key).unwrap_or_default());
        let (mine, theirs) = (usize::from(swapped), usize::from(!swapped));
        if numbers.syn {
            if !numbers.has_ack && firsts[mine] != Some(numbers.seq) {
                // A new connection between the same ports.
                *firsts = [None, None];
            }
            firsts[mine] = Some(numbers.seq);
        }
        let first = *firsts[mine].get_or_insert(numbers.seq.wrapping_sub(1));
        let (ack, ack_first) = if numbers.has_ack {
            let first = *firsts[theirs].get_or_insert(numbers.ack.wrapping_sub(1));
            (numbers.ack.wrapping_sub(first), first)
        } else {
            (0, 0)
        };
        Relative { seq: numbers.seq.wrapping_sub(first), ack, ack_first }
    }
}
