//! A receiver's counters, by intervals of the run's time.

use std::collections::VecDeque;

use super::sequence::{Arrival, Sequence};
use crate::Interval;

/// Intervals are kept this long before they are reported, so that a late datagram can be taken off the losses
/// of the interval in which it was missed, ns.
const HOLD: u64 = 1_000_000_000;

/// Counts of one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    index: u64,
    bytes: u64,
    lost: u64,
    out_of_order: u64,
    duplicates: u64,
    jitter: Option<f64>,
}

/// Everything a stream's receiver knows.
#[derive(Debug)]
pub struct Arrivals {
    width: u64,
    start: u64,
    stream: u64,
    sequence: Sequence,
    /// Intervals not yet reported, the current one last.
    held: VecDeque<Count>,
    /// Transit time of the datagram before, ns, on an arbitrary scale.
    transit: Option<i64>,
    /// None before the second datagram.
    jitter: Option<f64>,
    /// Datagrams, duplicates not counted.
    pub received: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Missing so far.
    pub lost: u64,
    /// When the last one came.
    pub last: Option<u64>,
}

impl Arrivals {
    /// Intervals of `width` ns; the first one begins at `start`.
    pub fn new(stream: u64, width: u64, start: u64) -> Arrivals {
        let first = Count { index: start / width, ..Count::default() };
        Arrivals {
            width,
            start,
            stream,
            sequence: Sequence::default(),
            held: VecDeque::from([first]),
            transit: None,
            jitter: None,
            received: 0,
            bytes: 0,
            lost: 0,
            last: None,
        }
    }

    /// Datagram `number` of `bytes`, sent at `sent`, came at `time`.
    pub fn arrive(&mut self, number: u64, sent: u64, time: u64, bytes: u64) {
        self.advance(time);
        let Some(current) = self.held.back_mut() else { return };
        let arrival = self.sequence.arrive(number, current.index);
        match arrival {
            Arrival::Duplicate => {
                current.duplicates += 1;
                return;
            }
            Arrival::Later { missing } => {
                current.lost += missing;
                self.lost += missing;
            }
            Arrival::OutOfOrder { .. } => {
                current.out_of_order += 1;
                self.lost -= 1;
            }
        }
        current.bytes += bytes;
        // RFC 3550, section 6.4.1: J += (|D| − J) / 16 over datagrams in the order of their arrival.
        let transit = time as i64 - sent as i64;
        if let Some(before) = self.transit.replace(transit) {
            let jitter = self.jitter.unwrap_or(0.0);
            self.jitter = Some(jitter + ((transit - before).abs() as f64 - jitter) / 16.0);
        }
        current.jitter = self.jitter;
        self.received += 1;
        self.bytes += bytes;
        self.last = Some(time);
        if let Arrival::OutOfOrder { noticed } = arrival
            && let Some(missed) = self.held.iter_mut().find(|count| count.index == noticed)
        {
            missed.lost -= 1;
        }
    }

    /// Opens the interval of `time`, if it is not yet open.
    fn advance(&mut self, time: u64) {
        while let Some(current) = self.held.back()
            && (current.index + 1) * self.width <= time
        {
            let next = Count { index: current.index + 1, jitter: self.jitter, ..Count::default() };
            self.held.push_back(next);
        }
    }

    /// Hands over the intervals that ended `HOLD` before `time`. Later ones are opened by what comes in them: datagrams that
    /// came before `time` may not have been read.
    pub fn report(&mut self, time: u64, mut each: impl FnMut(&Interval)) {
        let ended = time.saturating_sub(HOLD);
        self.advance(ended);
        while let Some(oldest) = self.held.front()
            && (oldest.index + 1) * self.width <= ended
        {
            each(&self.row(oldest, (oldest.index + 1) * self.width));
            self.held.pop_front();
        }
    }

    /// Hands over all intervals up to `end`, the last one cut there.
    pub fn report_all(&mut self, end: u64, mut each: impl FnMut(&Interval)) {
        self.advance(end.saturating_sub(1));
        for count in &self.held {
            let time = ((count.index + 1) * self.width).min(end);
            if time > self.begin(count) {
                each(&self.row(count, time));
            }
        }
        self.held.clear();
    }

    fn begin(&self, count: &Count) -> u64 {
        self.start.max(count.index * self.width)
    }

    fn row(&self, count: &Count, time: u64) -> Interval {
        Interval {
            time,
            duration: time - self.begin(count),
            stream: self.stream,
            bytes_received: Some(count.bytes),
            lost: Some(count.lost),
            out_of_order: Some(count.out_of_order),
            duplicates: Some(count.duplicates),
            jitter: count.jitter,
            ..Interval::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn rows(arrivals: &mut Arrivals, end: u64) -> Vec<Interval> {
        let mut rows = Vec::new();
        arrivals.report_all(end, |row| rows.push(row.clone()));
        rows
    }

    #[test]
    fn a_datagram_alone_has_no_jitter() {
        let mut arrivals = Arrivals::new(0, 100 * MS, 0);
        arrivals.arrive(0, 0, 150 * MS, 100);
        arrivals.arrive(1, 100 * MS, 251 * MS, 100);
        let jitters: Vec<_> = rows(&mut arrivals, 300 * MS).iter().map(|row| row.jitter).collect();
        assert_eq!(jitters, [None, None, Some(MS as f64 / 16.0)]);
    }

    #[test]
    fn a_datagram_that_comes_later_is_taken_off_the_losses_of_its_interval() {
        let mut arrivals = Arrivals::new(0, 100 * MS, 0);
        for (number, time) in [(0, 10), (3, 20), (1, 150), (3, 160)] {
            arrivals.arrive(number, 0, time * MS, 100);
        }
        let rows = rows(&mut arrivals, 250 * MS);
        let lost: Vec<_> = rows.iter().map(|row| row.lost.unwrap()).collect();
        assert_eq!(lost, [1, 0, 0]);
        assert_eq!((rows[1].out_of_order, rows[1].duplicates), (Some(1), Some(1)));
        assert_eq!((rows[1].bytes_received, rows[2].duration), (Some(100), 50 * MS));
        assert_eq!((arrivals.lost, arrivals.received), (1, 3));
    }

    #[test]
    fn jitter_is_zero_when_transit_is_constant_and_follows_rfc_3550_when_not() {
        let mut arrivals = Arrivals::new(0, 1000 * MS, 0);
        for number in 0..10 {
            arrivals.arrive(number, number * MS, number * MS + 5 * MS, 100);
        }
        assert_eq!(arrivals.jitter, Some(0.0));
        arrivals.arrive(10, 10 * MS, 10 * MS + 5 * MS + 1600, 100);
        assert_eq!(arrivals.jitter, Some(100.0));
    }

    #[test]
    fn the_first_interval_begins_with_the_stream() {
        let mut arrivals = Arrivals::new(0, 100 * MS, 230 * MS);
        arrivals.arrive(0, 0, 260 * MS, 100);
        let rows = rows(&mut arrivals, 450 * MS);
        let spans: Vec<_> = rows.iter().map(|row| (row.time / MS, row.duration / MS)).collect();
        assert_eq!(spans, [(300, 70), (400, 100), (450, 50)]);
    }

    #[test]
    fn silence_makes_rows_of_zeroes() {
        let mut arrivals = Arrivals::new(0, 100 * MS, 0);
        arrivals.arrive(0, 0, 10 * MS, 100);
        let mut count = 0;
        arrivals.report(1500 * MS, |_| count += 1);
        assert_eq!(count, 5, "those that ended a second ago");
    }

    #[test]
    fn a_datagram_that_is_read_late_counts_in_the_interval_in_which_it_came() {
        let mut arrivals = Arrivals::new(0, 100 * MS, 0);
        arrivals.arrive(0, 0, 10 * MS, 100);
        let mut rows = Vec::new();
        arrivals.report(2050 * MS, |row| rows.push(row.clone()));
        arrivals.arrive(1, 0, 1990 * MS, 100);
        arrivals.report_all(2000 * MS, |row| rows.push(row.clone()));
        let bytes: Vec<_> = rows.iter().map(|row| row.bytes_received.unwrap()).collect();
        assert_eq!((rows.len(), bytes[0], bytes[19]), (20, 100, 100), "{bytes:?}");
    }
}
