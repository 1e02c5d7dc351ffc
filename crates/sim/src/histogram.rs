//! Percentiles of many samples in bounded memory.

use tcplab_units::{Span, prefetch, prefetch_start};

/// Buckets in each octave: values are distinguished to one part in 1024, three significant digits.
const BUCKETS: u64 = 1024;
const BUCKET_BITS: u32 = BUCKETS.trailing_zeros();
/// Neighbouring buckets that are allocated together.
const CHUNK: usize = 64;
/// Chunks of an octave.
const CHUNKS: usize = BUCKETS as usize / CHUNK;

/// A log-linear histogram of times. Memory grows with the chunks of an octave in use (256 B each), not with the
/// samples: RTTs between 50 and 60 ms take 1.5 kB.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// From chunk number `first` on.
    chunks: Vec<Option<Box<[u32; CHUNK]>>>,
    first: usize,
    /// Where the last sample was counted: its chunk, from the first on, and the bucket in it.
    latest: (u32, u32),
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// The row of a histogram in a table, ns; none without samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) mean: Option<f64>,
    /// The 50th, 95th and 99th percentile.
    pub(crate) percentiles: [Option<f64>; 3],
}

impl Histogram {
    pub(crate) fn summary(&self) -> Summary {
        Summary { mean: self.mean(), percentiles: [50, 95, 99].map(|percent| self.percentile(percent)) }
    }

    /// Counts one sample.
    #[inline]
    pub(crate) fn record(&mut self, sample: Span) {
        let value = sample.as_ns();
        let (octave, bucket) = Self::place(value);
        let number = octave * CHUNKS + bucket / CHUNK;
        let chunk = match self.chunks.get_mut(number.wrapping_sub(self.first)) {
            Some(Some(chunk)) => chunk,
            _ => self.add_chunk(number),
        };
        chunk[bucket % CHUNK] = chunk[bucket % CHUNK].saturating_add(1);
        self.latest = ((number - self.first) as u32, (bucket % CHUNK) as u32);
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
    }

    /// A sample will be counted soon.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(chunk) = self.chunks.get(self.latest.0 as usize) {
            prefetch(chunk);
        }
    }

    /// The same when that memory is there: most samples are counted near the one before.
    #[inline]
    pub(crate) fn prefetch_bucket(&self) {
        let (chunk, bucket) = self.latest;
        if let Some(Some(chunk)) = self.chunks.get(chunk as usize) {
            prefetch_start::<1>(&chunk[bucket as usize % CHUNK]);
        }
    }

    /// Makes the chunk numbered `number`, counted over all octaves.
    #[cold]
    fn add_chunk(&mut self, number: usize) -> &mut [u32; CHUNK] {
        if self.chunks.is_empty() {
            self.first = number;
        }
        if number < self.first {
            self.chunks.splice(0..0, (number..self.first).map(|_| None));
            self.first = number;
        } else if number - self.first >= self.chunks.len() {
            self.chunks.resize(number - self.first + 1, None);
        }
        self.chunks[number - self.first].insert(Box::new([0; CHUNK]))
    }

    /// Mean of all samples, ns, exact up to its rounding as a number; none without samples.
    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest sample, ns, that `percent` of the samples do not exceed, to three significant digits.
    fn percentile(&self, percent: u64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1) as u64;
        let mut seen = 0;
        for (number, buckets) in (self.first..).zip(&self.chunks) {
            let Some(buckets) = buckets else { continue };
            for (bucket, &count) in (number % CHUNKS * CHUNK..).zip(buckets.iter()) {
                seen += u64::from(count);
                if seen >= rank {
                    return Some(
                        Self::middle(number / CHUNKS, bucket).clamp(self.min as f64, self.max as f64),
                    );
                }
            }
        }
        Some(self.max as f64)
    }

    /// Values below `BUCKETS` have a bucket each; above, an octave [2^k, 2^(k+1)) has `BUCKETS` of equal width.
    #[inline]
    fn place(value: u64) -> (usize, usize) {
        if value < BUCKETS {
            return (0, value as usize);
        }
        let shift = 63 - value.leading_zeros() - BUCKET_BITS;
        (shift as usize + 1, ((value >> shift) - BUCKETS) as usize)
    }

    fn middle(octave: usize, bucket: usize) -> f64 {
        if octave == 0 {
            return bucket as f64;
        }
        let width = (1u64 << (octave - 1)) as f64;
        (BUCKETS as f64 + bucket as f64) * width + (width - 1.0) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_known_of_no_samples() {
        assert_eq!(Histogram::default().mean(), None);
        assert_eq!(Histogram::default().percentile(50), None);
    }

    #[test]
    fn one_sample_is_every_percentile() {
        let mut histogram = Histogram::default();
        histogram.record(Span::from_us(50_121));
        for percent in [0, 50, 99, 100] {
            assert_eq!(histogram.percentile(percent), Some(50_121_000.0));
        }
    }

    proptest! {
        #[test]
        fn percentiles_have_three_significant_digits(
            mut values in proptest::collection::vec(0u64..1 << 40, 1..400), percent in 1u64..=100,
        ) {
            let mut histogram = Histogram::default();
            for &value in &values {
                histogram.record(Span::from_ns(value));
            }
            values.sort_unstable();
            let exact = values[(values.len() * percent as usize).div_ceil(100) - 1] as f64;
            let found = histogram.percentile(percent).expect("there are samples");
            prop_assert!((found - exact).abs() <= exact / 1024.0, "{} for {}", found, exact);
            let mean = values.iter().map(|&v| v as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((histogram.mean().expect("there are samples") - mean).abs() <= mean * 1e-9 + 1e-9);
        }
    }
}
