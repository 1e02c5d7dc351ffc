//! Packets of streams that were lost, counted by interval.

use crate::{LossRow, Losses, Symbol};

/// Counts losses as they become known, which need not be in the order of their times.
#[derive(Clone, Debug, Default)]
pub struct LossTally {
    /// ns; 0: nothing is counted.
    interval: u64,
    /// The interval in which streams lost packets last. Many streams share a place.
    latest: Vec<(usize, Count)>,
    /// Losses counted before that.
    earlier: Vec<(usize, Count)>,
}

/// Losses in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// The interval's end.
    time: u64,
    /// By direction.
    packets: [u64; 2],
}

/// So many streams have a place each.
const PLACES: usize = 1 << 16;

impl LossTally {
    /// For so many streams, in intervals of so many ns; none: nothing is counted.
    pub fn new(streams: usize, interval: Option<u64>) -> LossTally {
        LossTally {
            interval: interval.unwrap_or(0),
            latest: vec![(0, Count::default()); streams.min(PLACES)],
            earlier: Vec::new(),
        }
    }

    /// A packet of `stream` was lost at `at`, ns.
    #[inline]
    pub fn count(&mut self, stream: usize, reverse: bool, at: u64) {
        if self.interval == 0 {
            return;
        }
        // Losses by a change at the end of an interval belong to the next one.
        let time = (at / self.interval + 1) * self.interval;
        let latest = &mut self.latest[stream % PLACES];
        if (latest.0, latest.1.time) != (stream, time) {
            if latest.1.time > 0 {
                self.earlier.push(*latest);
            }
            *latest = (stream, Count { time, packets: [0; 2] });
        }
        latest.1.packets[usize::from(reverse)] += 1;
    }

    /// Appends the rows of intervals that ended at `until` or before, and forgets them. `named` is the flow and the
    /// number of a stream. The last interval ends with the run, at `end`.
    pub fn drain(&mut self, until: u64, end: u64, named: impl Fn(usize) -> (Symbol, u64), rows: &mut Losses) {
        for latest in &mut self.latest {
            if (1..=until).contains(&latest.1.time) {
                self.earlier.push(std::mem::take(latest));
            }
        }
        let (mut ended, later) = self.earlier.drain(..).partition::<Vec<_>, _>(|(_, one)| one.time <= until);
        self.earlier = later;
        ended.sort_by_key(|&(stream, Count { time, .. })| (time, stream));
        for same in ended.chunk_by(|one, other| (one.0, one.1.time) == (other.0, other.1.time)) {
            let (stream, Count { time, .. }) = same[0];
            let sum = |direction: usize| same.iter().map(|(_, one)| one.packets[direction]).sum();
            let (flow, stream) = named(stream);
            rows.push(LossRow { time: time.min(end), flow, stream, forward: sum(0), reverse: sum(1) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dictionary;

    #[test]
    fn losses_are_added_up_by_stream_and_interval_in_whatever_order_they_become_known() {
        let mut dictionary = Dictionary::default();
        let name = dictionary.symbol("bulk");
        let mut tally = LossTally::new(2, Some(100));
        for (stream, reverse, at) in
            [(0, false, 1), (1, true, 0), (0, false, 150), (0, true, 100), (0, false, 200)]
        {
            tally.count(stream, reverse, at);
        }
        let mut rows = Losses::default();
        tally.drain(100, 170, |stream| (name, stream as u64), &mut rows);
        assert_eq!(rows.time.len(), 2);
        tally.drain(u64::MAX, 170, |stream| (name, stream as u64), &mut rows);
        assert_eq!(rows.time.values(), [100, 100, 170, 170]);
        assert_eq!(rows.stream.values(), [0, 1, 0, 0]);
        assert_eq!(rows.forward.values(), [1, 0, 1, 1]);
        assert_eq!(rows.reverse.values(), [0, 1, 1, 0]);
    }

    #[test]
    fn streams_that_share_a_place_are_distinguished() {
        let mut dictionary = Dictionary::default();
        let name = dictionary.symbol("bulk");
        let mut tally = LossTally::new(PLACES + 1, Some(100));
        for stream in [0, PLACES, 0] {
            tally.count(stream, false, 5);
        }
        let mut rows = Losses::default();
        tally.drain(u64::MAX, 100, |stream| (name, stream as u64), &mut rows);
        assert_eq!(rows.stream.values(), [0, PLACES as i64]);
        assert_eq!(rows.forward.values(), [2, 1]);
    }

    #[test]
    fn without_an_interval_nothing_is_counted() {
        let mut tally = LossTally::new(1, None);
        tally.count(0, false, 5);
        let mut rows = Losses::default();
        tally.drain(u64::MAX, 9, |_| unreachable!(), &mut rows);
        assert_eq!(rows.time.len(), 0);
    }
}
