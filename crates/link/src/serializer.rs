//! Serialization at a rate.

use tcplab_units::{Rate, Span, Time};

/// Sends frames one after another at a rate.
///
/// A frame's end is rounded up to a nanosecond. While frames follow each other without a gap, what was
/// rounded up is credited to the next one, so that the rate is exact over any run of them.
#[derive(Clone, Debug)]
pub(crate) struct Serializer {
    rate: Rate,
    /// Part of a nanosecond by which the last end was rounded up, in units of 10^−9 bits.
    credit: u64,
    /// Nanoseconds a byte takes where that is a whole number, as at most rates; then no division is needed.
    whole_ns_per_byte: Option<u64>,
    /// 2^64 over the rate, rounded down: a multiplication is faster than a division.
    inverse: u64,
}

/// A byte's bits in units of 10^−9 bits.
const BYTE: u64 = 8_000_000_000;

impl Serializer {
    pub(crate) fn new(rate: Rate) -> Serializer {
        let bits = rate.bits_per_sec();
        let whole_ns_per_byte = BYTE.is_multiple_of(bits).then_some(BYTE / bits);
        Serializer { rate, credit: 0, whole_ns_per_byte, inverse: u64::MAX / bits }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// A new rate for the frames that are not yet being sent.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        *self = Serializer::new(rate);
    }

    /// A new rate from `now` on, also for the rest of the frame being sent, which would have ended at `end`:
    /// when it ends now.
    pub(crate) fn change_rate(&mut self, rate: Rate, now: Time, end: Time) -> Time {
        let whole = end.since(now).as_ns().saturating_mul(self.rate.bits_per_sec());
        let rest = whole.saturating_sub(self.credit);
        // The excess that the old rate had sent beyond the frame's end until `now`.
        let credit = self.credit.saturating_sub(whole);
        self.set_rate(rate);
        self.credit = credit;
        self.finish(now, rest)
    }

    /// When a frame of `bytes` ends that starts at `start`; it `follows` where the one before ended then.
    #[inline]
    pub(crate) fn send(&mut self, start: Time, follows: bool, bytes: u32) -> Time {
        if !follows {
            self.credit = 0;
        }
        match self.whole_ns_per_byte {
            Some(ns_per_byte) if self.credit == 0 => start + Span::from_ns(u64::from(bytes) * ns_per_byte),
            _ => self.finish(start, u64::from(bytes).saturating_mul(BYTE)),
        }
    }

    /// When `work`, in units of 10^−9 bits, ends that starts at `start`.
    #[inline(never)]
    fn finish(&mut self, start: Time, work: u64) -> Time {
        let (ns, rest) = self.divide(work.saturating_sub(self.credit));
        if rest == 0 {
            self.credit = self.credit.saturating_sub(work);
            return start + Span::from_ns(ns);
        }
        self.credit = self.rate.bits_per_sec() - rest;
        start + Span::from_ns(ns + 1)
    }

    /// Whole nanoseconds of `work`, and the work that is left.
    #[inline]
    fn divide(&self, work: u64) -> (u64, u64) {
        let rate = self.rate.bits_per_sec();
        let mut ns = ((u128::from(work) * u128::from(self.inverse)) >> 64) as u64;
        let mut rest = work - ns * rate;
        // The estimate is too small by two at most.
        while rest >= rate {
            (ns, rest) = (ns + 1, rest - rate);
        }
        (ns, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn serializer(bits: u64) -> Serializer {
        Serializer::new(Rate::from_bits_per_sec(bits).expect("not zero"))
    }

    #[test]
    fn a_full_frame_at_100_mbit() {
        let end = serializer(100_000_000).send(Time::from_ns(5), false, 1514);
        assert_eq!(end, Time::from_ns(5 + 121_120));
    }

    #[test]
    fn a_frame_after_a_gap_gets_no_credit() {
        let mut serializer = serializer(3_000_000_000);
        assert_eq!(serializer.send(Time::ZERO, false, 1), Time::from_ns(3));
        assert_eq!(serializer.send(Time::from_ns(10), false, 1), Time::from_ns(13));
        assert_eq!(serializer.send(Time::from_ns(13), true, 1), Time::from_ns(16));
        assert_eq!(serializer.send(Time::from_ns(16), true, 1), Time::from_ns(18));
    }

    #[test]
    fn the_rest_of_a_frame_leaves_at_the_new_rate() {
        // 1000 bits at 1 kbit/s; after 0.4 s the other 600 at 1 Mbit/s.
        let mut serializer = serializer(1000);
        let end = serializer.send(Time::ZERO, false, 125);
        let rate = Rate::from_bits_per_sec(1_000_000).expect("not zero");
        assert_eq!(serializer.change_rate(rate, Time::from_ns(400_000_000), end), Time::from_ns(400_600_000));
    }

    proptest! {
        #[test]
        fn a_division_by_the_rate_is_exact(work in any::<u64>(), bits in prop_oneof![1..=20u64, any::<u64>()]) {
            let bits = bits.max(1);
            prop_assert_eq!(serializer(bits).divide(work), (work / bits, work % bits));
        }

        #[test]
        fn no_bit_is_lost_or_won_by_changes_of_the_rate(
            changes in prop::collection::vec((0u64..2_000_000, 1000u64..10_000_000_000), 1..30),
            first in 1000u64..10_000_000_000,
            len in 1u32..70_000,
        ) {
            let mut serializer = serializer(first);
            let (mut now, mut end) = (Time::ZERO, serializer.send(Time::ZERO, false, len));
            let mut rest = i128::from(len) * i128::from(BYTE);
            for (gap, bits) in changes {
                let before = (now, serializer.rate().bits_per_sec());
                now += Span::from_ns(gap);
                if now > end {
                    break;
                }
                end = serializer.change_rate(Rate::from_bits_per_sec(bits).expect("not zero"), now, end);
                rest -= i128::from(now.since(before.0).as_ns()) * i128::from(before.1);
                let ns = rest.max(0).unsigned_abs().div_ceil(u128::from(bits));
                prop_assert_eq!(u128::from(end.since(now).as_ns()), ns);
            }
        }

        #[test]
        fn any_run_of_frames_takes_as_long_as_its_bits_at_the_rate(
            bits in 1000u64..400_000_000_000,
            lengths in prop::collection::vec(1u32..70_000, 1..200),
        ) {
            let mut serializer = serializer(bits);
            let mut end = Time::ZERO;
            let mut sent = 0;
            for (index, &len) in lengths.iter().enumerate() {
                end = serializer.send(end, index > 0, len);
                sent += u128::from(len) * u128::from(BYTE);
                prop_assert_eq!(u128::from(end.as_ns()), sent.div_ceil(u128::from(bits)));
            }
        }
    }
}
