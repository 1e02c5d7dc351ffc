//! How late packets are delivered, and whether that spoils a run.

use serde::Serialize;
use tcplab_units::Span;

/// Buckets in each octave: times are told apart to 1 part in 64.
const BUCKETS: u64 = 64;
const BUCKET_BITS: u32 = BUCKETS.trailing_zeros();
const OCTAVES: usize = 64 - BUCKET_BITS as usize + 1;

/// A later delivery counts as late whatever the path.
const LATE: Span = Span::from_us(100);
/// Or this share of the round-trip time, if that is more.
const LATE_PERCENT: u64 = 2;
/// A run with more late packets than this share is overloaded.
const OVERLOADED: f64 = 0.01;

/// How late a delivery may be on a link with this round-trip time.
pub(crate) fn tolerance(rtt: Span) -> Span {
    LATE.max(rtt * LATE_PERCENT / 100)
}

/// A log-linear histogram of lateness, and how many were too late.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    buckets: Vec<u64>,
    packets: u64,
    late: u64,
    max: u64,
}

/// Lateness in figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Packets delivered.
    pub packets: u64,
    /// Median lateness, ns.
    pub p50: u64,
    /// 99th percentile, ns.
    pub p99: u64,
    /// The greatest, ns.
    pub max: u64,
    /// Share of packets later than 100 µs and 2 % of the link's RTT.
    pub late_share: f64,
    /// That share is above 1 %: the machine, not the network asked for, set the result.
    pub overloaded: bool,
}

impl Lateness {
    pub(crate) fn new() -> Lateness {
        Lateness { buckets: vec![0; OCTAVES * BUCKETS as usize], packets: 0, late: 0, max: 0 }
    }

    /// Counts one delivery.
    #[inline]
    pub(crate) fn record(&mut self, lateness: Span, tolerance: Span) {
        self.buckets[place(lateness.as_ns())] += 1;
        self.packets += 1;
        self.late += u64::from(lateness > tolerance);
        self.max = self.max.max(lateness.as_ns());
    }

    /// Adds what another has counted.
    pub(crate) fn add(&mut self, other: &Lateness) {
        for (bucket, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += count;
        }
        self.packets += other.packets;
        self.late += other.late;
        self.max = self.max.max(other.max);
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let late_share = if self.packets == 0 { 0.0 } else { self.late as f64 / self.packets as f64 };
        Verdict {
            packets: self.packets,
            p50: self.percentile(50),
            p99: self.percentile(99),
            max: self.max,
            late_share,
            overloaded: late_share > OVERLOADED,
        }
    }

    /// The least lateness that `percent` of all packets do not exceed, rounded down to its bucket.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.packets * percent).div_ceil(100);
        let mut seen = 0;
        for (place, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return least(place);
            }
        }
        0
    }
}

/// Values below `BUCKETS` have a bucket each; above, each octave has `BUCKETS` of equal width.
#[inline]
fn place(value: u64) -> usize {
    if value < BUCKETS {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - BUCKET_BITS;
    ((u64::from(shift) + 1) * BUCKETS + (value >> shift) - BUCKETS) as usize
}

/// The least value of a bucket.
fn least(place: usize) -> u64 {
    let (octave, bucket) = (place as u64 / BUCKETS, place as u64 % BUCKETS);
    if octave == 0 { bucket } else { (BUCKETS + bucket) << (octave - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_percent_late_is_not_overloaded_and_more_is() {
        let mut lateness = Lateness::new();
        let tolerance = tolerance(Span::ZERO);
        for n in 0..100 {
            lateness.record(Span::from_us(if n == 0 { 101 } else { 100 }), tolerance);
        }
        assert_eq!((lateness.verdict().late_share, lateness.verdict().overloaded), (0.01, false));
        lateness.record(Span::from_us(101), tolerance);
        assert!(lateness.verdict().overloaded);
    }

    #[test]
    fn what_is_late_depends_on_the_round_trip_time() {
        assert_eq!(tolerance(Span::from_ms(1)), Span::from_us(100));
        assert_eq!(tolerance(Span::from_ms(50)), Span::from_ms(1));
    }

    #[test]
    fn nothing_delivered_is_nothing_late() {
        let verdict = Lateness::new().verdict();
        assert_eq!((verdict.packets, verdict.p99, verdict.overloaded), (0, 0, false));
    }

    proptest! {
        #[test]
        fn percentiles_are_right_to_one_part_in_64(
            mut values in proptest::collection::vec(any::<u64>().prop_map(|v| v >> (v % 60)), 1..300),
            percent in 1u64..=100,
        ) {
            let mut lateness = Lateness::new();
            for &value in &values {
                lateness.record(Span::from_ns(value), Span::ZERO);
            }
            values.sort_unstable();
            let exact = values[(values.len() as u64 * percent).div_ceil(100) as usize - 1];
            let told = lateness.percentile(percent);
            prop_assert!(told <= exact && exact - told <= exact / 64, "{} for {}", told, exact);
        }
    }
}
