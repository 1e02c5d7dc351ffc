//! Quantiles of a stream of durations in little memory.

/// So many values are kept as they are, so that quantiles of few are exact.
const EXACT: usize = 128;
/// Buckets a power of two: a value is known to 1/128 of itself.
const BUCKET_BITS: u32 = 6;
const BUCKETS: usize = 1 << BUCKET_BITS;

/// Count, extremes, mean, deviation and quantiles of values.
///
/// Quantiles are exact up to 128 values. Beyond, values are counted in 64 buckets a power of two, of which a
/// quantile is the middle: it is off by at most 1/128 (0.8 %) of itself. Without values it takes one word.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantiles(Option<Box<Samples>>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Samples {
    count: u64,
    min: i64,
    max: i64,
    sum: i128,
    sum_of_squares: f64,
    exact: Vec<i64>,
    /// Counts by bucket from `first` on.
    buckets: Vec<u32>,
    first: usize,
}

impl Quantiles {
    /// Adds a value; a negative one counts as 0 in the quantiles.
    #[inline]
    pub fn record(&mut self, value: i64) {
        self.0.get_or_insert_with(|| Box::new(Samples::beginning_with(value))).record(value);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |samples| samples.count)
    }

    /// The smallest; none without values.
    pub fn min(&self) -> Option<i64> {
        self.0.as_ref().map(|samples| samples.min)
    }

    /// The largest; none without values.
    pub fn max(&self) -> Option<i64> {
        self.0.as_ref().map(|samples| samples.max)
    }

    /// The mean; none without values.
    pub fn mean(&self) -> Option<f64> {
        self.0.as_ref().map(|samples| samples.mean())
    }

    /// The sample standard deviation; none of fewer than two values.
    pub fn deviation(&self) -> Option<f64> {
        let samples = self.0.as_ref()?;
        let (n, mean) = (samples.count as f64, samples.mean());
        let squares = samples.sum_of_squares - n * mean * mean;
        (samples.count > 1).then(|| (squares / (n - 1.0)).max(0.0).sqrt())
    }

    /// The smallest value that at least `share` (0 to 1) of the values do not exceed; none without values.
    pub fn quantile(&self, share: f64) -> Option<i64> {
        self.0.as_ref().and_then(|samples| samples.quantile(share))
    }
}

impl Samples {
    fn beginning_with(value: i64) -> Samples {
        Samples { min: value, max: value, ..Samples::default() }
    }

    #[inline]
    fn record(&mut self, value: i64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += i128::from(value);
        self.sum_of_squares += value as f64 * value as f64;
        if self.buckets.is_empty() {
            self.record_exact(value);
        } else {
            self.count_in_bucket(bucket(value));
        }
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    fn record_exact(&mut self, value: i64) {
        self.exact.push(value);
        if self.exact.len() > EXACT {
            for value in std::mem::take(&mut self.exact) {
                self.count_in_bucket(bucket(value));
            }
        }
    }

    #[inline]
    fn count_in_bucket(&mut self, bucket: usize) {
        match bucket.checked_sub(self.first).and_then(|at| self.buckets.get_mut(at)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.widen(bucket),
        }
    }

    /// Makes room for whole powers of two.
    #[cold]
    fn widen(&mut self, bucket: usize) {
        let (begin, end) = (bucket / BUCKETS * BUCKETS, bucket / BUCKETS * BUCKETS + BUCKETS);
        if self.buckets.is_empty() {
            self.first = begin;
        }
        if begin < self.first {
            self.buckets.splice(0..0, std::iter::repeat_n(0, self.first - begin));
            self.first = begin;
        }
        let needed = end.max(self.first + self.buckets.len()) - self.first;
        self.buckets.resize(needed, 0);
        self.buckets[bucket - self.first] += 1;
    }

    fn quantile(&self, share: f64) -> Option<i64> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count);
        if self.buckets.is_empty() {
            let mut sorted = self.exact.clone();
            sorted.sort_unstable();
            return sorted.get(rank as usize - 1).copied();
        }
        let mut below = 0;
        for (bucket, &count) in (self.first..).zip(&self.buckets) {
            below += u64::from(count);
            if below >= rank {
                return Some(middle(bucket).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }
}

/// Below 64 each value has its own bucket; above, each power of two has 64.
#[inline]
fn bucket(value: i64) -> usize {
    let value = value.max(0) as u64;
    if value < BUCKETS as u64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - BUCKET_BITS;
    ((shift as usize + 1) << BUCKET_BITS) + (value >> shift) as usize - BUCKETS
}

fn middle(bucket: usize) -> i64 {
    if bucket < BUCKETS {
        return bucket as i64;
    }
    let shift = (bucket >> BUCKET_BITS) - 1;
    let low = ((bucket & (BUCKETS - 1)) + BUCKETS) << shift;
    (low + ((1 << shift) >> 1)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_exact() {
        let mut quantiles = Quantiles::default();
        for value in [5, 1, 4, 2, 3] {
            quantiles.record(value);
        }
        let all = [0.0, 0.2, 0.5, 0.95, 1.0].map(|share| quantiles.quantile(share));
        assert_eq!(all, [Some(1), Some(1), Some(3), Some(5), Some(5)]);
        assert_eq!((quantiles.mean(), quantiles.deviation()), (Some(3.0), Some(2.5f64.sqrt())));
    }

    #[test]
    fn nothing_has_no_quantile() {
        let none = Quantiles::default();
        assert_eq!((none.quantile(0.5), none.mean(), none.min(), none.deviation()), (None, None, None, None));
    }

    #[test]
    fn the_largest_value_has_a_bucket() {
        let mut quantiles = Quantiles::default();
        (0..1000).for_each(|_| quantiles.record(i64::MAX));
        quantiles.record(i64::MIN);
        assert!(quantiles.quantile(0.5).is_some_and(|median| median >= i64::MAX / 128 * 127));
        assert_eq!(quantiles.quantile(0.0), Some(0));
    }

    proptest::proptest! {
        #[test]
        fn quantiles_of_many_are_within_one_percent(
            values in proptest::collection::vec(0i64..1_000_000_000_000, 1..2000),
            share in 0.0..1.0f64,
        ) {
            let mut quantiles = Quantiles::default();
            values.iter().for_each(|&value| quantiles.record(value));
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = ((share * sorted.len() as f64).ceil() as usize).max(1);
            let exact = sorted[rank - 1] as f64;
            let estimate = quantiles.quantile(share).expect("there are values") as f64;
            proptest::prop_assert!((estimate - exact).abs() <= exact / 100.0, "{estimate} for {exact}");
        }
    }
}
