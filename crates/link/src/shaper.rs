//! Serialisation at a rate.

use tcplab_units::{Rate, Span, Time};

/// Sends frames one after another at a rate.
///
/// A frame's end is rounded up to a nanosecond; while frames follow each other without a gap, what was
/// rounded up is credited to the next one, so that the rate is exact over any run of them.
#[derive(Clone, Debug)]
pub(crate) struct Shaper {
    rate: Rate,
    /// Part of a nanosecond by which the last end was rounded up, in units of 10^−9 bits.
    credit: u64,
    /// Nanoseconds a byte takes where that is a whole number, as at most rates; then no division is needed.
    whole_ns_per_byte: Option<u64>,
}

/// A byte's bits in units of 10^−9 bits.
const BYTE: u64 = 8_000_000_000;

impl Shaper {
    pub(crate) fn new(rate: Rate) -> Shaper {
        let bits = rate.bits_per_sec();
        Shaper { rate, credit: 0, whole_ns_per_byte: BYTE.is_multiple_of(bits).then_some(BYTE / bits) }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// A new rate for the frames that are not yet being sent.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        *self = Shaper::new(rate);
    }

    /// When a frame of `bytes` ends that starts at `start`; it `follows` where the one before ended then.
    #[inline]
    pub(crate) fn send(&mut self, start: Time, follows: bool, bytes: u32) -> Time {
        if let Some(ns_per_byte) = self.whole_ns_per_byte {
            return start + Span::from_ns(u64::from(bytes) * ns_per_byte);
        }
        let credit = if follows { self.credit } else { 0 };
        let rate = self.rate.bits_per_sec();
        let work = u64::from(bytes).saturating_mul(BYTE);
        let ns = work.saturating_sub(credit).div_ceil(rate);
        self.credit = ns.saturating_mul(rate).saturating_add(credit).saturating_sub(work);
        start + Span::from_ns(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shaper(bits: u64) -> Shaper {
        Shaper::new(Rate::from_bits_per_sec(bits).expect("not zero"))
    }

    #[test]
    fn a_full_frame_at_100_mbit() {
        let end = shaper(100_000_000).send(Time::from_ns(5), false, 1514);
        assert_eq!(end, Time::from_ns(5 + 121_120));
    }

    #[test]
    fn a_frame_after_a_gap_gets_no_credit() {
        let mut shaper = shaper(3_000_000_000);
        assert_eq!(shaper.send(Time::ZERO, false, 1), Time::from_ns(3));
        assert_eq!(shaper.send(Time::from_ns(10), false, 1), Time::from_ns(13));
        assert_eq!(shaper.send(Time::from_ns(13), true, 1), Time::from_ns(16));
        assert_eq!(shaper.send(Time::from_ns(16), true, 1), Time::from_ns(18));
    }

    proptest! {
        #[test]
        fn any_run_of_frames_takes_as_long_as_its_bits_at_the_rate(
            bits in 1000u64..400_000_000_000,
            lengths in prop::collection::vec(1u32..70_000, 1..200),
        ) {
            let mut shaper = shaper(bits);
            let mut end = Time::ZERO;
            let mut sent = 0;
            for (index, &len) in lengths.iter().enumerate() {
                end = shaper.send(end, index > 0, len);
                sent += u128::from(len) * u128::from(BYTE);
                prop_assert_eq!(u128::from(end.as_ns()), sent.div_ceil(u128::from(bits)));
            }
        }
    }
}
