//! Round trips in fixed memory: what is kept of them where they are too many for a row each.
//!
//! A log-linear histogram, as HdrHistogram's, keeps how they are distributed; the means of consecutive batches
//! keep their order, which shows the dependence of one on the next.

use crate::{EchoBatchRow, EchoBatches, EchoRow, Echoes, Symbol};

/// Above this many round trips of a flow the table of echoes holds histograms.
pub const MAX_ECHO_ROWS: u64 = 1_000_000;
/// The first round trips at a size are kept one by one, whatever follows.
pub const ECHO_HEAD: u64 = 100;

/// Buckets in an octave: a bucket's middle is within one part in 1024 of every value in it.
const BUCKETS: usize = 512;
const BUCKET_BITS: u32 = BUCKETS.trailing_zeros();
/// Longer round trips (2^40 ns are 18 minutes) count as this long.
const LONGEST: u64 = (1 << 40) - 1;
const OCTAVES: usize = (40 - BUCKET_BITS) as usize + 1;
/// Batches are merged in pairs when there are this many.
const MAX_BATCHES: usize = 512;

/// A histogram and batches of the round trips of one client at one size. Recording allocates nothing.
#[derive(Clone, Debug)]
pub struct EchoTally {
    counts: Box<[u32]>,
    count: u64,
    batches: Vec<Batch>,
    /// Round trips in a whole batch.
    length: u64,
    open: Batch,
}

/// Consecutive round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Number of the first one at its size.
    pub iteration: u64,
    /// When the first one began, ns since the run's start.
    pub time: u64,
    /// How many.
    pub count: u64,
    /// Sum of their times, ns.
    pub sum: u64,
    /// The longest, ns.
    pub max: u64,
}

impl Batch {
    /// Mean time, ns; 0 of none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    fn take(&mut self, other: &Batch) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }
}

impl Default for EchoTally {
    fn default() -> EchoTally {
        EchoTally {
            counts: vec![0; OCTAVES * BUCKETS].into(),
            count: 0,
            batches: Vec::with_capacity(MAX_BATCHES),
            length: 1,
            open: Batch::default(),
        }
    }
}

impl EchoTally {
    /// Counts a round trip that began at `time` and took `rtt` ns. Iterations come in order.
    #[inline]
    pub fn record(&mut self, iteration: u64, time: u64, rtt: u64) {
        let rtt = rtt.min(LONGEST);
        let bucket = &mut self.counts[place(rtt)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        let one = Batch { iteration, time, count: 1, sum: rtt, max: rtt };
        if self.open.count == 0 {
            self.open = one;
        } else {
            self.open.take(&one);
        }
        if self.open.count == self.length {
            self.batches.push(std::mem::take(&mut self.open));
            if self.batches.len() == MAX_BATCHES {
                self.merge();
            }
        }
    }

    fn merge(&mut self) {
        for pair in 0..MAX_BATCHES / 2 {
            let mut both = self.batches[2 * pair];
            both.take(&self.batches[2 * pair + 1]);
            self.batches[pair] = both;
        }
        self.batches.truncate(MAX_BATCHES / 2);
        self.length *= 2;
    }

    /// Forgets all of it and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.count = 0;
        self.batches.clear();
        self.length = 1;
        self.open = Batch::default();
    }

    /// Round trips recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Times, ns, in ascending order, and how often each occurred.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let occupied = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        occupied.map(|(bucket, count)| (middle(bucket), u64::from(*count)))
    }

    /// The batches in order, the last one perhaps shorter than the others.
    pub fn batches(&self) -> impl Iterator<Item = &Batch> + '_ {
        let open = (self.open.count > 0).then_some(&self.open);
        self.batches.iter().chain(open)
    }

    /// Appends the histogram and the batches to the tables.
    pub fn pour(
        &self,
        flow: Symbol,
        client: u64,
        size: u64,
        echoes: &mut Echoes,
        echo_batches: &mut EchoBatches,
    ) {
        for (rtt, count) in self.buckets() {
            echoes.push(EchoRow { flow, client, size, iteration: None, time: None, rtt, count });
        }
        for batch in self.batches() {
            echo_batches.push(EchoBatchRow {
                flow,
                client,
                size,
                iteration: batch.iteration,
                time: batch.time,
                count: batch.count,
                rtt_mean: batch.mean(),
                rtt_max: batch.max,
            });
        }
    }
}

/// Values below `BUCKETS` have a bucket each; above, an octave [2^k, 2^(k+1)) has `BUCKETS` of equal width.
#[inline]
fn place(value: u64) -> usize {
    if value < BUCKETS as u64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - BUCKET_BITS;
    (shift as usize + 1) * BUCKETS + ((value >> shift) as usize - BUCKETS)
}

fn middle(bucket: usize) -> u64 {
    let (octave, step) = (bucket / BUCKETS, (bucket % BUCKETS) as u64);
    if octave == 0 {
        return step;
    }
    let width = 1 << (octave - 1);
    (BUCKETS as u64 + step) * width + (width - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(values: impl IntoIterator<Item = u64>) -> EchoTally {
        let mut tally = EchoTally::default();
        for (iteration, rtt) in values.into_iter().enumerate() {
            tally.record(iteration as u64, 10 * iteration as u64, rtt);
        }
        tally
    }

    #[test]
    fn a_bucket_tells_three_significant_digits() {
        for exponent in 0..40 {
            for value in [1u64 << exponent, (1 << exponent) + (1 << exponent) / 3, (2 << exponent) - 1] {
                let estimate = middle(place(value));
                assert!(estimate.abs_diff(value) as f64 <= value as f64 / 1000.0, "{estimate} for {value}");
            }
        }
        assert_eq!(middle(place(LONGEST)) >> 39, 1);
    }

    #[test]
    fn batches_keep_the_sum_the_order_and_a_bounded_number() {
        let values: Vec<u64> = (0..100_003).map(|i| 1000 + i % 7).collect();
        let tally = tally(values.iter().copied());
        let batches: Vec<_> = tally.batches().copied().collect();
        assert!((256..=512).contains(&batches.len()), "{}", batches.len());
        assert_eq!(batches.iter().map(|b| b.sum).sum::<u64>(), values.iter().sum());
        let mut next = 0;
        for batch in &batches {
            assert_eq!((batch.iteration, batch.time), (next, 10 * next));
            next += batch.count;
        }
        assert_eq!((next, tally.count()), (100_003, 100_003));
        let whole = &batches[..batches.len() - 1];
        assert!(whole.iter().all(|batch| batch.count == whole[0].count));
    }

    #[test]
    fn few_values_are_batches_of_their_own() {
        let tally = tally([5, 9, 7]);
        assert_eq!(tally.batches().map(Batch::mean).collect::<Vec<_>>(), [5.0, 9.0, 7.0]);
        assert_eq!(tally.buckets().collect::<Vec<_>>(), [(5, 1), (7, 1), (9, 1)]);
    }

    #[test]
    fn a_cleared_tally_is_as_new() {
        let mut used = tally(0..2000);
        used.clear();
        used.record(0, 0, 3);
        assert_eq!(used.buckets().collect::<Vec<_>>(), [(3, 1)]);
        assert_eq!(used.batches().count(), 1);
    }

    #[test]
    fn what_takes_for_ever_counts_as_the_longest() {
        let tally = tally([u64::MAX]);
        assert_eq!(tally.batches().next().map(|batch| batch.max), Some(LONGEST));
    }
}
