//! How late packets are delivered, and whether that spoils a run.

use serde::Serialize;
use tcplab_units::Span;

/// Buckets in each octave: times are distinct to 1 part in 64.
const BUCKETS: u64 = 64;
const BUCKET_BITS: u32 = BUCKETS.trailing_zeros();
const OCTAVES: usize = 64 - BUCKET_BITS as usize + 1;

/// A later delivery counts as late whatever the path.
const LATE: Span = Span::from_us(100);
/// Or this share of the round-trip time, if that is more.
const LATE_PERCENT: u64 = 2;
/// A run with more late packets than this share is overloaded.
const LATE_SHARE: f64 = 0.01;
/// A run with a single delivery later than this is overloaded, too. Packets that piled up meanwhile arrive at once,
/// and their ACKs release a burst of that length. A queue that cannot hold the burst makes TCP reduce its window.
const STALL: Span = Span::from_ms(5);
/// Or this share of the round-trip time, if that is more: queues are as long as round trips.
const STALL_PERCENT: u64 = 10;

/// How late deliveries on a link may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// A few of many.
    late: Span,
    /// Any.
    stall: Span,
}

impl Limits {
    /// On a link with this round-trip time.
    pub(crate) fn new(rtt: Span) -> Limits {
        Limits { late: LATE.max(rtt * LATE_PERCENT / 100), stall: STALL.max(rtt * STALL_PERCENT / 100) }
    }
}

/// A log-linear histogram of lateness, and how many were too late.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    buckets: Vec<u64>,
    packets: u64,
    late: u64,
    max: u64,
    /// The longest stall, in multiples of the limit that held then.
    stall: f64,
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
    /// The longest stall as a multiple of max(5 ms, 10 % of the link's RTT).
    pub stall: f64,
}

impl Verdict {
    /// How many times its limit the worse of both measures is: above 1 the machine, not the network asked for, set the result.
    pub fn excess(&self) -> f64 {
        self.stall.max(self.late_share / LATE_SHARE)
    }
}

impl Lateness {
    pub(crate) fn new() -> Lateness {
        Lateness { buckets: vec![0; OCTAVES * BUCKETS as usize], packets: 0, late: 0, max: 0, stall: 0.0 }
    }

    /// Counts one delivery.
    #[inline]
    pub(crate) fn record(&mut self, lateness: Span, limits: &Limits) {
        self.buckets[place(lateness.as_ns())] += 1;
        self.packets += 1;
        self.max = self.max.max(lateness.as_ns());
        if lateness > limits.late {
            self.late += 1;
            self.stall = self.stall.max(lateness.as_ns() as f64 / limits.stall.as_ns() as f64);
        }
    }

    /// Adds what another has counted.
    pub(crate) fn add(&mut self, other: &Lateness) {
        for (bucket, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += count;
        }
        self.packets += other.packets;
        self.late += other.late;
        self.max = self.max.max(other.max);
        self.stall = self.stall.max(other.stall);
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let late_share = if self.packets == 0 { 0.0 } else { self.late as f64 / self.packets as f64 };
        Verdict {
            packets: self.packets,
            p50: self.percentile(50),
            p99: self.percentile(99),
            max: self.max,
            late_share,
            stall: self.stall,
        }
    }

    /// The smallest lateness that `percent` of all packets do not exceed, rounded down to its bucket.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.packets * percent).div_ceil(100);
        let mut seen = 0;
        for (place, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return minimum(place);
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

/// The smallest value of a bucket.
fn minimum(place: usize) -> u64 {
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
        let limits = Limits::new(Span::ZERO);
        for n in 0..100 {
            lateness.record(Span::from_us(if n == 0 { 101 } else { 100 }), &limits);
        }
        assert_eq!((lateness.verdict().late_share, lateness.verdict().excess()), (0.01, 1.0));
        lateness.record(Span::from_us(101), &limits);
        assert!(lateness.verdict().excess() > 1.0);
    }

    #[test]
    fn one_stall_is_overload_however_few_packets_it_made_late() {
        for (rtt, stall) in [(20, 71), (20, 6), (100, 11)] {
            let mut lateness = Lateness::new();
            for _ in 0..1000 {
                lateness.record(Span::ZERO, &Limits::new(Span::from_ms(rtt)));
            }
            lateness.record(Span::from_ms(stall), &Limits::new(Span::from_ms(rtt)));
            let verdict = lateness.verdict();
            assert!(verdict.late_share < 0.01 && verdict.excess() > 1.0, "{rtt} ms: {verdict:?}");
        }
    }

    #[test]
    fn what_is_late_and_what_stalls_depends_on_the_round_trip_time() {
        let limits = |late, stall| Limits { late: Span::from_us(late), stall: Span::from_ms(stall) };
        assert_eq!(Limits::new(Span::from_ms(1)), limits(100, 5));
        assert_eq!(Limits::new(Span::from_ms(50)), limits(1000, 5));
        assert_eq!(Limits::new(Span::from_ms(500)), limits(10_000, 50));
    }

    #[test]
    fn nothing_delivered_is_nothing_late() {
        let verdict = Lateness::new().verdict();
        assert_eq!((verdict.packets, verdict.p99, verdict.excess()), (0, 0, 0.0));
    }

    proptest! {
        #[test]
        fn percentiles_are_right_to_one_part_in_64(
            mut values in proptest::collection::vec(any::<u64>().prop_map(|v| v >> (v % 60)), 1..300),
            percent in 1u64..=100,
        ) {
            let mut lateness = Lateness::new();
            for &value in &values {
                lateness.record(Span::from_ns(value), &Limits::new(Span::ZERO));
            }
            values.sort_unstable();
            let exact = values[(values.len() as u64 * percent).div_ceil(100) as usize - 1];
            let measured = lateness.percentile(percent);
            prop_assert!(measured <= exact && exact - measured <= exact / 64, "{} for {}", measured, exact);
        }
    }
}
