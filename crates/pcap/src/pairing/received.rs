//! Data that a receiver has by its own acknowledgments, and those that its capture shows: the capture missed the others.

use std::collections::HashMap;

use super::matching::Observed;
use super::parts::Ranges;
use crate::flow::Direction;

/// Data of one direction of a flow, in the sequence numbers of the sender's capture.
#[derive(Debug, Default)]
struct Half {
    seen: Ranges,
    acked: i64,
}

/// All flows, by number and by the direction of the data.
#[derive(Debug, Default)]
pub(super) struct Received(HashMap<(u64, Direction), Half>);

impl Received {
    /// Takes a packet of the receiver's capture: data of this direction, or an acknowledgment of them. The sender's
    /// numbers are greater by the shift.
    pub fn take(&mut self, flow: u64, data: Direction, observed: &Observed, shift: i64) {
        let half = self.0.entry((flow, data)).or_default();
        if observed.direction != data {
            half.acked = half.acked.max(observed.ack.map_or(i64::MIN, |ack| ack.saturating_add(shift)));
        } else if observed.len > 0 {
            half.seen.insert([observed.seq, observed.end()].map(|seq| seq.saturating_add(shift)));
        }
    }

    /// Whether a range arrived, as its receiver acknowledged it, though the capture there does not have it.
    pub fn missed(&self, flow: u64, data: Direction, range: [i64; 2]) -> bool {
        self.0.get(&(flow, data)).is_some_and(|half| range[1] <= half.acked && !half.seen.contain(range))
    }
}
