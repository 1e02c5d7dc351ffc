//! A host's wake-ups: it handles a packet a little after it has arrived, and with it what has arrived meanwhile.

use tcplab_units::{Span, Time};

use crate::random::Stream;

/// Equally likely ranges of the time (ns) from a packet's arrival to that of what it makes the host send. The times
/// were measured on Linux 6.18 with one flow of 10 and of 100 Mbit/s, packet by packet. The times are the mean of
/// data to ACK (median 33 µs) and of ACK to data (17 µs). The last range is cut short: longer times depend on the
/// load of the machine. docs/fidelity.md has both.
const RANGES: [u64; 17] = [
    8_000, 16_000, 18_500, 20_500, 22_000, 23_000, 23_700, 24_300, 25_000, 25_700, 26_500, 27_300, 28_500,
    30_000, 32_500, 38_000, 90_000,
];
const COUNT: u64 = RANGES.len() as u64 - 1;

/// When the host wakes up.
#[derive(Clone, Debug)]
pub(crate) struct WakeUp {
    random: Stream,
    next: Time,
}

impl WakeUp {
    /// An idle host, whose random stream derives from `seed`.
    pub(crate) fn new(seed: u64) -> WakeUp {
        WakeUp { random: Stream::new(seed, "wake-up"), next: Time::ZERO }
    }

    /// When it handles what arrives at `arrival`, which must not go back from call to call.
    #[inline]
    pub(crate) fn after(&mut self, arrival: Time) -> Time {
        if arrival > self.next {
            self.next = arrival + self.duration();
        }
        self.next
    }

    fn duration(&mut self) -> Span {
        let range = self.random.below(COUNT) as usize;
        let (low, high) = (RANGES[range], RANGES[range + 1]);
        Span::from_ns(low + self.random.below(high - low + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_handled_some_25_us_after_it_came() {
        let mut wake_up = WakeUp::new(1);
        let mut took: Vec<u64> = (1..=10_000)
            .map(|number| {
                let arrival = Time::from_ns(number * 1_000_000);
                wake_up.after(arrival).since(arrival).as_ns()
            })
            .collect();
        took.sort_unstable();
        assert!(took[0] >= RANGES[0] && took[9_999] <= RANGES[16], "{} {}", took[0], took[9_999]);
        assert!((24_500..25_500).contains(&took[5_000]), "{}", took[5_000]);
        assert!((36_000..40_000).contains(&took[9_375]), "{}", took[9_375]);
    }

    #[test]
    fn what_comes_meanwhile_is_handled_with_it_and_in_order() {
        let mut wake_up = WakeUp::new(1);
        let arrivals = (0..1_000).map(|number| Time::from_ns(number * 1_000));
        let handled: Vec<(Time, Time)> = arrivals.map(|arrival| (arrival, wake_up.after(arrival))).collect();
        assert!(handled.windows(2).all(|two| two[0].1 <= two[1].1));
        assert!(handled.iter().all(|(arrival, at)| at >= arrival));
        let wake_ups = handled.windows(2).filter(|two| two[0].1 != two[1].1).count();
        assert!((25..80).contains(&wake_ups), "{wake_ups} wake-ups in a millisecond");
    }
}
