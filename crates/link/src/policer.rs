//! A policer: a token bucket that drops what it has no tokens for (RFC 2475, section 2.3.3.4).

use tcplab_units::Time;

use crate::bucket::Bucket;
use crate::config;

/// Lets packets pass at a rate, with bursts. It delays none.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    bucket: Bucket,
}

impl Policer {
    pub(crate) fn new(config: config::Policer) -> Policer {
        Policer { bucket: Bucket::new(config.rate, config.burst) }
    }

    /// Whether a packet of `frame_len` bytes passes at `now`. One that does not takes no tokens.
    pub(crate) fn passes(&mut self, now: Time, frame_len: u32) -> bool {
        self.bucket.take(now, frame_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tcplab_units::{Rate, Span};

    fn policer(bits: u64, burst: u64) -> Policer {
        Policer::new(config::Policer { rate: Rate::from_bits_per_sec(bits).expect("not zero"), burst })
    }

    #[test]
    fn a_burst_passes_and_then_what_the_rate_allows() {
        // 8 Mbit/s is 1000 bytes a millisecond.
        let mut policer = policer(8_000_000, 3000);
        let mut at = |ms: u64| policer.passes(Time::ZERO + Span::from_ms(ms), 1500);
        assert_eq!([0, 0, 0, 1, 2, 3].map(&mut at), [true, true, false, false, true, true]);
    }

    #[test]
    fn what_is_larger_than_the_bucket_never_passes() {
        let mut policer = policer(8_000_000, 1000);
        assert!(!policer.passes(Time::ZERO + Span::from_secs(10), 1001));
        assert!(policer.passes(Time::ZERO + Span::from_secs(10), 1000));
    }

    proptest! {
        #[test]
        fn a_greedy_source_gets_the_burst_and_the_rate(
            bits in 1_000_000u64..1_000_000_000,
            // Room for a packet and the tokens of a gap: none are lost while packets are refused.
            burst in 2_139u64..1_000_000,
            gap in 100u64..5_000,
        ) {
            let mut policer = policer(bits, burst);
            let count = 20_000;
            let offered = (0..count).map(|number| Time::ZERO + Span::from_ns(gap) * number);
            let passed = offered.filter(|&now| policer.passes(now, 1514)).count() as u64 * 1514;
            let filled = bits as f64 / 8e9 * (gap * (count - 1)) as f64;
            let max = burst as f64 + filled;
            prop_assert!(passed as f64 <= max);
            // Less than a packet is left in the bucket, unless the source itself is slower.
            let min = max - 1514.0 - bits as f64 / 8e9 * gap as f64;
            prop_assert!(passed as f64 >= min.min((count * 1514) as f64), "{passed} of {max}");
        }
    }
}
