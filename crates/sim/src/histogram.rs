//! Percentiles of many samples in bounded memory.

use std::mem::offset_of;

use tcplab_units::Span;

/// Buckets in each octave: values are distinguished to one part in 1024, three significant digits.
const BUCKETS: u64 = 1024;
const BUCKET_BITS: u32 = BUCKETS.trailing_zeros();
/// Neighbouring buckets that are allocated together.
const CHUNK: usize = 64;

/// Samples that are counted together.
const TOGETHER: usize = 40;

/// A log-linear histogram of times. Memory grows with the chunks of an octave in use (256 B each), not with the
/// samples: RTTs between 50 and 60 ms take 1.5 kB.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Histogram {
    sum: u128,
    min: u64,
    max: u64,
    samples: u64,
    waiting: usize,
    /// Buckets of samples that wait to be counted. With thousands of connections the counters are not in the processor's
    /// cache: one wait then serves several samples.
    recent: [u16; TOGETHER],
    /// The chunks in use, side by side.
    chunks: Vec<[u32; CHUNK]>,
    /// By chunk number, from `first` on: which of them that is, plus one; zero: it is not in use.
    places: Vec<u16>,
    first: usize,
}

/// The row of a histogram in a table, ns; none without samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) mean: Option<f64>,
    /// The 50th, 95th and 99th percentile.
    pub(crate) percentiles: [Option<f64>; 3],
}

impl Histogram {
    /// Bytes from the first on that most samples need.
    pub(crate) const RECENT: usize = offset_of!(Histogram, chunks);

    /// Its row in a table.
    pub(crate) fn summary(&mut self) -> Summary {
        self.count_recent();
        Summary { mean: self.mean(), percentiles: [50, 95, 99].map(|percent| self.percentile(percent)) }
    }

    /// Counts one sample.
    #[inline]
    pub(crate) fn record(&mut self, sample: Span) {
        let value = sample.as_ns();
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.samples += 1;
        self.recent[self.waiting % TOGETHER] = Self::bucket(value);
        self.waiting += 1;
        if self.waiting == TOGETHER {
            self.count_recent();
        }
    }

    /// Counts the samples that wait for it.
    #[inline(never)]
    fn count_recent(&mut self) {
        let recent = self.recent;
        for &bucket in &recent[..std::mem::take(&mut self.waiting)] {
            self.count(usize::from(bucket));
        }
    }

    #[inline]
    fn count(&mut self, bucket: usize) {
        let number = bucket / CHUNK;
        let place = match self.places.get(number.wrapping_sub(self.first)) {
            Some(&place) if place > 0 => place,
            _ => self.add_chunk(number),
        };
        let counter = &mut self.chunks[usize::from(place) - 1][bucket % CHUNK];
        *counter = counter.saturating_add(1);
    }

    /// Makes the chunk numbered `number`; its place.
    #[cold]
    fn add_chunk(&mut self, number: usize) -> u16 {
        if self.places.is_empty() {
            self.first = number;
        }
        if number < self.first {
            self.places.splice(0..0, std::iter::repeat_n(0, self.first - number));
            self.first = number;
        } else if number - self.first >= self.places.len() {
            self.places.resize(number - self.first + 1, 0);
        }
        if self.chunks.len() == self.chunks.capacity() {
            // Doubles from one, not from four as `Vec` would: many of thousands of streams need no more.
            self.chunks.reserve_exact(self.chunks.len().max(1));
        }
        self.chunks.push([0; CHUNK]);
        let place = self.chunks.len() as u16;
        self.places[number - self.first] = place;
        place
    }

    /// Mean of all samples, ns, exact up to its rounding as a number; none without samples.
    fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum as f64 / self.samples as f64)
    }

    /// The smallest sample, ns, that `percent` of the samples do not exceed, to three significant digits.
    fn percentile(&self, percent: u64) -> Option<f64> {
        if self.samples == 0 {
            return None;
        }
        let rank = (u128::from(self.samples) * u128::from(percent)).div_ceil(100).max(1) as u64;
        let mut seen = 0;
        for (number, &place) in (self.first..).zip(&self.places) {
            let Some(counters) = usize::from(place).checked_sub(1).map(|place| &self.chunks[place]) else {
                continue;
            };
            for (bucket, &count) in (number * CHUNK..).zip(counters.iter()) {
                seen += u64::from(count);
                if seen >= rank {
                    return Some(Self::middle(bucket).clamp(self.min as f64, self.max as f64));
                }
            }
        }
        Some(self.max as f64)
    }

    /// Values below `BUCKETS` have a bucket each; above, an octave [2^k, 2^(k+1)) has `BUCKETS` of equal width.
    #[inline]
    fn bucket(value: u64) -> u16 {
        if value < BUCKETS {
            return value as u16;
        }
        let shift = 63 - value.leading_zeros() - BUCKET_BITS;
        // The first bit of what is left counts as one octave.
        ((u64::from(shift) << BUCKET_BITS) + (value >> shift)) as u16
    }

    fn middle(bucket: usize) -> f64 {
        let (octave, within) = (bucket >> BUCKET_BITS, bucket as u64 % BUCKETS);
        if octave == 0 {
            return within as f64;
        }
        let width = (1u64 << (octave - 1)) as f64;
        (BUCKETS + within) as f64 * width + (width - 1.0) / 2.0
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            sum: 0,
            min: u64::MAX,
            max: 0,
            samples: 0,
            waiting: 0,
            recent: [0; TOGETHER],
            chunks: Vec::new(),
            places: Vec::new(),
            first: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_known_of_no_samples() {
        let Summary { mean, percentiles } = Histogram::default().summary();
        assert_eq!((mean, percentiles), (None, [None; 3]));
    }

    #[test]
    fn one_sample_is_every_percentile() {
        let mut histogram = Histogram::default();
        histogram.record(Span::from_us(50_121));
        assert_eq!(histogram.summary().percentiles, [Some(50_121_000.0); 3]);
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
            histogram.count_recent();
            values.sort_unstable();
            let exact = values[(values.len() * percent as usize).div_ceil(100) - 1] as f64;
            let found = histogram.percentile(percent).expect("there are samples");
            prop_assert!((found - exact).abs() <= exact / 1024.0, "{} for {}", found, exact);
            let mean = values.iter().map(|&v| v as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((histogram.mean().expect("there are samples") - mean).abs() <= mean * 1e-9 + 1e-9);
        }
    }
}
