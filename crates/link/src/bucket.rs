//! A token bucket: what shapers and policers count by.

use tcplab_units::{Rate, Span, Time};

/// Tokens are bits, counted in units of 10^−9: what a rate of 1 bit/s fills in a nanosecond.
const BYTE: i128 = 8_000_000_000;

/// Fills at a rate up to its depth; begins full.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    depth: i128,
    /// Less than zero: a debt.
    tokens: i128,
    /// When `tokens` was so much.
    at: Time,
}

impl Bucket {
    /// A bucket of `burst` bytes, which are there at time zero.
    pub(crate) fn new(rate: Rate, burst: u64) -> Bucket {
        let depth = i128::from(burst) * BYTE;
        Bucket { rate, depth, tokens: depth, at: Time::ZERO }
    }

    /// The rate at which it fills.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes tokens for `bytes` and returns when they are there, at `now` or later; those that are not there yet are
    /// a debt until then. Packets must be admitted one after another: the next not before that time.
    ///
    /// More than the depth is lent too, so that the rate is kept whatever the size.
    pub(crate) fn admit(&mut self, now: Time, bytes: u32) -> Time {
        self.fill(now);
        self.tokens -= i128::from(bytes) * BYTE;
        self.settled(now)
    }

    /// Takes tokens for `bytes` if they are all there at `now`; whether they were.
    pub(crate) fn take(&mut self, now: Time, bytes: u32) -> bool {
        self.fill(now);
        let wanted = i128::from(bytes) * BYTE;
        let there = self.tokens >= wanted;
        if there {
            self.tokens -= wanted;
        }
        there
    }

    /// Bytes for which there are tokens at `now`; less than zero: a debt.
    pub(crate) fn balance(&self, now: Time) -> f64 {
        let mut then = self.clone();
        then.fill(now);
        then.tokens as f64 / BYTE as f64
    }

    fn fill(&mut self, now: Time) {
        let elapsed = i128::from(now.since(self.at).as_ns());
        self.at = self.at.max(now);
        self.tokens = (self.tokens + elapsed * i128::from(self.rate.bits_per_sec())).min(self.depth);
    }

    fn settled(&self, now: Time) -> Time {
        let debt = (-self.tokens).max(0).unsigned_abs();
        let ns = debt.div_ceil(u128::from(self.rate.bits_per_sec()));
        now + Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_sec(bits).expect("not zero")
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn what_is_saved_up_goes_at_once_and_the_rest_at_the_rate() {
        // 8 Mbit/s is 1000 bytes a millisecond.
        let mut bucket = Bucket::new(rate(8_000_000), 2000);
        assert_eq!(bucket.admit(ms(0), 1000), ms(0));
        assert_eq!(bucket.admit(ms(0), 1000), ms(0));
        assert_eq!(bucket.admit(ms(0), 1000), ms(1));
        assert_eq!(bucket.admit(ms(1), 1000), ms(2));
        // It saves up no more than its size.
        assert_eq!(bucket.admit(ms(100), 3000), ms(101));
    }

    proptest! {
        #[test]
        fn no_window_admits_more_than_the_burst_and_the_rate(
            bits in 1000u64..100_000_000_000,
            burst in 0u64..100_000,
            packets in prop::collection::vec((0u64..10_000_000, 1u32..70_000), 1..100),
        ) {
            let mut bucket = Bucket::new(rate(bits), burst);
            let mut now = Time::ZERO;
            let mut admitted = Vec::new();
            for (gap, bytes) in packets {
                now = bucket.admit(now + Span::from_ns(gap), bytes);
                admitted.push((now, bytes));
            }
            for (first, &(start, _)) in admitted.iter().enumerate() {
                let mut sum = 0;
                for &(end, bytes) in &admitted[first..] {
                    sum += i128::from(bytes) * BYTE;
                    // A packet larger than the bucket, or than what is in it, was waited for before `start`.
                    let largest = i128::from(admitted[first].1).max(i128::from(burst)) * BYTE;
                    let filled = i128::from(end.since(start).as_ns()) * i128::from(bits);
                    // Times are rounded up to a nanosecond.
                    prop_assert!(sum <= largest + filled + i128::from(bits));
                }
            }
        }
    }
}
