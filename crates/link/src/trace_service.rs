//! Serves frames at the opportunities of a delivery trace.

use tcplab_units::{Rate, Span, Time};

use crate::config::{OPPORTUNITY_BYTES, Trace};

/// Ethernet header bytes, which mahimahi's packets do not have.
const FRAME_HEADER: u32 = 14;

const NS_PER_MS: u64 = 1_000_000;

/// Bytes that a frame takes of opportunities.
pub(crate) fn packet_len(frame_len: u32) -> u32 {
    frame_len.saturating_sub(FRAME_HEADER).max(1)
}

/// Repeats a trace for ever.
///
/// As mahimahi's link does: packets share an opportunity's bytes in order, a packet that does not fit
/// goes on in the next one, and what nobody waits for is wasted.
#[derive(Clone, Debug)]
pub(crate) struct TraceService {
    opportunities: Vec<Time>,
    period: Span,
    /// Start of the present repetition.
    base: Time,
    mean_rate: Option<Rate>,
    /// The first opportunity of this repetition that is not used up.
    next: usize,
    /// Bytes left of the opportunity before `next`, at time `end`.
    left: u32,
    /// When the last packet ended.
    end: Time,
}

impl TraceService {
    /// A service by `trace`; none if the trace is empty or has no length, which the reader of traces refuses.
    pub(crate) fn new(trace: &Trace) -> Option<TraceService> {
        let period = *trace.opportunities_ms.last()?;
        if period == 0 {
            return None;
        }
        let at = |ms: u64| Time::from_ns(ms.saturating_mul(NS_PER_MS));
        Some(TraceService {
            opportunities: trace.opportunities_ms.iter().map(|&ms| at(ms)).collect(),
            period: at(period).since(Time::ZERO),
            base: Time::ZERO,
            mean_rate: trace.mean_rate(),
            next: 0,
            left: 0,
            end: Time::ZERO,
        })
    }

    /// When a frame begins that is next in turn at `now`, and `follows` another without a gap.
    ///
    /// One that arrives at a free link at the very time of an opportunity has missed it.
    pub(crate) fn begin(&mut self, now: Time, follows: bool) -> Time {
        if !follows {
            self.skip_to_after(now);
        }
        if self.left == 0 {
            self.take_opportunity();
        }
        self.end
    }

    /// When a frame ends that begins in the opportunity that `begin` found.
    pub(crate) fn send(&mut self, frame_len: u32) -> Time {
        let mut remaining = packet_len(frame_len);
        while remaining > self.left {
            remaining -= self.left;
            self.take_opportunity();
        }
        self.left -= remaining;
        self.end
    }

    /// The mean rate of the trace in frame payload.
    pub(crate) fn mean_rate(&self) -> Option<Rate> {
        self.mean_rate
    }

    /// Forgets what was to be sent; the next frame finds its place anew.
    pub(crate) fn rewind(&mut self) {
        self.base = Time::ZERO;
        self.next = 0;
        self.left = 0;
    }

    fn take_opportunity(&mut self) {
        if self.next == self.opportunities.len() {
            self.next = 0;
            self.base += self.period;
        }
        self.end = self.base + self.opportunities[self.next].since(Time::ZERO);
        self.next += 1;
        self.left = OPPORTUNITY_BYTES;
    }

    /// Wastes everything up to and including `now`.
    fn skip_to_after(&mut self, now: Time) {
        self.left = 0;
        let repetitions = now.since(self.base).as_ns() / self.period.as_ns();
        if repetitions > 0 {
            self.base += self.period * repetitions;
            self.next = 0;
        }
        let within = Time::ZERO + now.since(self.base);
        self.next += self.opportunities[self.next..].partition_point(|&opportunity| opportunity <= within);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(opportunities_ms: &[u64]) -> TraceService {
        TraceService::new(&Trace { opportunities_ms: opportunities_ms.to_vec() })
            .expect("the trace has a length")
    }

    /// From the first byte of a frame to its last.
    fn sending(service: &mut TraceService, now: Time, follows: bool, frame_len: u32) -> (Time, Time) {
        (service.begin(now, follows), service.send(frame_len))
    }

    /// When its last byte is sent, ms.
    fn end(service: &mut TraceService, now: Time, follows: bool, frame_len: u32) -> u64 {
        ms(sending(service, now, follows, frame_len).1)
    }

    fn ms(time: Time) -> u64 {
        time.as_ns() / NS_PER_MS
    }

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * NS_PER_MS)
    }

    #[test]
    fn a_full_packet_takes_one_opportunity_and_the_trace_repeats() {
        let mut service = service(&[1, 1, 5, 10]);
        let first = end(&mut service, Time::ZERO, false, 1514);
        let others: Vec<u64> = (0..8).map(|_| end(&mut service, Time::ZERO, true, 1514)).collect();
        assert_eq!((first, others), (1, vec![1, 5, 10, 11, 11, 15, 20, 21]));
    }

    #[test]
    fn small_packets_share_an_opportunity() {
        let mut service = service(&[1, 2]);
        let ends = [false, true, true, true].map(|follows| end(&mut service, Time::ZERO, follows, 514));
        assert_eq!(ends, [1, 1, 1, 2]);
    }

    #[test]
    fn a_large_packet_needs_several_and_leaves_the_rest_to_the_next() {
        let mut service = service(&[1, 2, 3]);
        assert_eq!(sending(&mut service, Time::ZERO, false, 3214), (at(1), at(3)));
        assert_eq!(sending(&mut service, at(3), true, 1314), (at(3), at(3)));
        assert_eq!(sending(&mut service, at(3), true, 14), (at(4), at(4)));
    }

    #[test]
    fn what_nobody_waits_for_is_wasted() {
        let mut service = service(&[1, 2, 3]);
        assert_eq!(end(&mut service, Time::ZERO, false, 114), 1);
        assert_eq!(end(&mut service, at(1), false, 114), 2);
        assert_eq!(end(&mut service, at(2), false, 114), 3);
        assert_eq!(end(&mut service, at(3_000_000), false, 114), 3_000_001);
    }

    #[test]
    fn after_a_reset_the_present_opportunities_are_found_again() {
        let mut service = service(&[1, 2, 3]);
        assert_eq!(end(&mut service, Time::ZERO, false, 14 + 1500 * 30), 30);
        service.rewind();
        assert_eq!(end(&mut service, at(4), false, 1514), 5);
    }

    #[test]
    fn a_trace_without_length_is_refused() {
        assert!(TraceService::new(&Trace { opportunities_ms: vec![] }).is_none());
        assert!(TraceService::new(&Trace { opportunities_ms: vec![0, 0] }).is_none());
    }
}
