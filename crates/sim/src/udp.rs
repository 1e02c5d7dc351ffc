//! When datagrams leave, and what their receiver finds missing.

use tcplab_units::{Rate, Span, Time};

use crate::plan::Poisson;

/// When each datagram leaves: datagram k exactly k · payload · 8 / rate after the first, rounded down to a
/// nanosecond, without drift. Or the intervals are those of a Poisson process, with this mean.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    next: Time,
    /// Numerator of the fraction of a nanosecond that `next` is short of the exact time.
    remainder: u64,
    interval: u64,
    interval_remainder: u64,
    rate: u64,
    poisson: Option<Box<Poisson>>,
}

impl Pacer {
    /// Datagrams of `payload` bytes at `rate`, the first one at `start`.
    pub(crate) fn new(rate: Rate, payload: u32, start: Time) -> Pacer {
        let rate = rate.bits_per_sec();
        let numerator = u64::from(payload) * 8_000_000_000;
        Pacer {
            next: start,
            remainder: 0,
            interval: numerator / rate,
            interval_remainder: numerator % rate,
            rate,
            poisson: None,
        }
    }
    /// The same with intervals of `poisson`, the first of which precedes the first datagram.
    pub(crate) fn at_random(mut self, poisson: Poisson) -> Pacer {
        self.poisson = Some(Box::new(poisson));
        self
    }
    /// The source starts: the first datagram of even ones leaves at once.
    pub(crate) fn start(&mut self) {
        if self.poisson.is_some() {
            self.advance();
        }
    }
    /// When the next datagram leaves.
    pub(crate) fn next(&self) -> Time {
        self.next
    }
    /// A datagram has left.
    pub(crate) fn advance(&mut self) {
        if let Some(poisson) = &mut self.poisson {
            self.next += poisson.interval();
            return;
        }
        let short_of_one = self.rate - self.interval_remainder;
        if self.remainder >= short_of_one {
            self.remainder -= short_of_one;
            self.next += Span::from_ns(self.interval + 1);
        } else {
            self.remainder += self.interval_remainder;
            self.next += Span::from_ns(self.interval);
        }
    }
    /// The next datagram and those that follow leave so much later.
    pub(crate) fn postpone(&mut self, by: Span) {
        self.next += by;
    }
}

/// How far back a late datagram can be distinguished from a second copy.
const WINDOW: u64 = 65_536;

/// The state of a receiver of numbered datagrams.
#[derive(Clone, Debug)]
pub(crate) struct Reception {
    /// One more than the highest number seen.
    next: u64,
    /// Which of the last `WINDOW` numbers have come; made with the first datagram.
    seen: Vec<u64>,
    received: u64,
    bytes: u64,
    out_of_order: u64,
    duplicates: u64,
    /// Interarrival jitter in units of 1/16 ns (RFC 3550 section 6.4.1 and appendix A.8).
    jitter_16: u64,
    last_transit: Option<u64>,
}

impl Reception {
    /// Nothing received yet.
    pub(crate) fn new() -> Reception {
        Reception {
            next: 0,
            seen: Vec::new(),
            received: 0,
            bytes: 0,
            out_of_order: 0,
            duplicates: 0,
            jitter_16: 0,
            last_transit: None,
        }
    }

    /// Datagram `number`, sent at `sent`, arrived at `now`; whether it is new to the application.
    pub(crate) fn receive(&mut self, number: u64, payload: u32, sent: Time, now: Time) -> bool {
        if self.seen.is_empty() {
            self.seen = vec![0; (WINDOW / 64) as usize];
        }
        if number >= self.next {
            self.forget(self.next, number);
            self.next = number + 1;
        } else {
            // One older than the window cannot be distinguished from a copy and is taken for late.
            if self.next - number <= WINDOW && self.has_come(number) {
                self.duplicates += 1;
                return false;
            }
            self.out_of_order += 1;
        }
        self.seen[(number % WINDOW / 64) as usize] |= 1 << (number % 64);
        self.received += 1;
        self.bytes += u64::from(payload);
        let transit = now.since(sent).as_ns();
        if let Some(last) = self.last_transit {
            let difference = transit.abs_diff(last);
            self.jitter_16 = self.jitter_16 + difference - ((self.jitter_16 + 8) >> 4);
        }
        self.last_transit = Some(transit);
        true
    }

    /// Numbers below the highest that have not come; at the end, of all `sent` ones.
    pub(crate) fn lost(&self, sent: Option<u64>) -> u64 {
        sent.unwrap_or(self.next).max(self.next) - self.received
    }
    /// Payload bytes, copies not counted.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Datagrams that came after a later one.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }
    /// Datagrams that came twice.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }
    /// Interarrival jitter, ns; none before the second datagram.
    pub(crate) fn jitter(&self) -> Option<f64> {
        (self.received > 1).then(|| self.jitter_16 as f64 / 16.0)
    }

    fn has_come(&self, number: u64) -> bool {
        self.seen[(number % WINDOW / 64) as usize] >> (number % 64) & 1 == 1
    }

    /// Clears the window's places of the numbers `from..to`, which nothing is known of yet.
    fn forget(&mut self, from: u64, to: u64) {
        for number in from.max(to.saturating_sub(WINDOW))..=to {
            self.seen[(number % WINDOW / 64) as usize] &= !(1 << (number % 64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn receive(reception: &mut Reception, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            reception.receive(number, 100, Time::from_ns(number), Time::from_ns(number + 1000));
        }
    }

    #[test]
    fn a_gap_is_lost_until_the_late_datagram_fills_it() {
        let mut reception = Reception::new();
        receive(&mut reception, [0, 1, 4]);
        assert_eq!(reception.lost(None), 2);
        receive(&mut reception, [2]);
        assert_eq!((reception.lost(None), reception.out_of_order()), (1, 1));
        assert_eq!(reception.lost(Some(10)), 6, "those after the last one are lost too");
    }

    #[test]
    fn copies_are_counted_once_and_not_as_payload() {
        let mut reception = Reception::new();
        receive(&mut reception, [0, 0, 2, 1, 1, 2]);
        assert_eq!((reception.duplicates(), reception.out_of_order(), reception.bytes()), (3, 1, 300));
        assert_eq!(reception.lost(None), 0);
    }

    #[test]
    fn a_number_is_new_again_after_the_window_has_passed_it() {
        let mut reception = Reception::new();
        receive(&mut reception, (0..3 * WINDOW).filter(|number| number % 2 == 0));
        receive(&mut reception, (2 * WINDOW..3 * WINDOW).filter(|number| number % 2 == 1));
        assert_eq!(reception.duplicates(), 0);
        assert_eq!(reception.lost(None), WINDOW);
    }

    #[test]
    fn jitter_follows_rfc_3550() {
        let mut reception = Reception::new();
        for (number, transit) in [1000, 1000, 1160, 1000].into_iter().enumerate() {
            let sent = Time::from_ns(number as u64 * 5000);
            reception.receive(number as u64, 100, sent, sent + Span::from_ns(transit));
        }
        // |D| = 0, 160, 160: J = 0, then 160/16 = 10, then 10 + (160 - 10)/16 = 19.375.
        assert_eq!(reception.jitter(), Some(19.375));
    }

    proptest! {
        #[test]
        fn datagram_k_leaves_at_its_exact_time(
            bits in 1u64..400_000_000_000, payload in 1u32..65_508, k in 0u64..2000,
        ) {
            let mut pacer = Pacer::new(Rate::from_bits_per_sec(bits).expect("not zero"), payload, Time::from_ns(7));
            for _ in 0..k {
                pacer.advance();
            }
            let exact = u128::from(k) * u128::from(payload) * 8_000_000_000 / u128::from(bits);
            prop_assert_eq!(u128::from(pacer.next().as_ns()), 7 + exact);
        }
    }
}
