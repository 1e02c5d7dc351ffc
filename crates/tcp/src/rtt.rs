//! Round-trip time and retransmission timeout (RFC 6298 with Linux's variance terms), and the minimum RTT.

use tcplab_units::Span;

use crate::Connection;
use crate::minmax::RunningMin;
use crate::seq::after;
use crate::timers::RTO_MAX_US;

/// Initial retransmission timeout (RFC 6298, section 2.1), microseconds.
pub(crate) const RTO_INITIAL_US: u64 = 1_000_000;
/// Window of the minimum RTT (`tcp_min_rtt_wlen`), microseconds.
const MIN_RTT_WINDOW_US: u64 = 300_000_000;

/// The estimator: smoothed RTT, its deviation, the minimum, and the timeout that follows from them.
#[derive(Debug)]
pub(crate) struct Rtt {
    /// Smoothed RTT times 8, microseconds; 0 before the first sample.
    srtt_us: u32,
    /// Mean deviation times 4, microseconds.
    mdev_us: u32,
    /// Largest deviation of the present round.
    mdev_max_us: u32,
    /// Smoothed largest deviation: the variance term of the timeout.
    rttvar_us: u32,
    /// The present round ends when this is acknowledged.
    round_end: u32,
    min: RunningMin,
    /// Present timeout, back-off included.
    rto_us: u64,
    /// How often the timeout was doubled.
    backoff: u32,
    rto_min_us: u32,
}

impl Rtt {
    pub(crate) fn new(rto_min: Span) -> Rtt {
        Rtt {
            srtt_us: 0,
            mdev_us: RTO_INITIAL_US as u32,
            mdev_max_us: 0,
            rttvar_us: 0,
            round_end: 0,
            min: RunningMin::new(MIN_RTT_WINDOW_US),
            rto_us: RTO_INITIAL_US,
            backoff: 0,
            rto_min_us: rto_min.as_us().min(RTO_MAX_US) as u32,
        }
    }

    /// Takes a valid sample, and the timeout from it, which resets the back-off: only a valid sample does (RFC 6298,
    /// section 5.7; Karn's algorithm).
    ///
    /// RFC 6298 with two refinements of Linux (`tcp_rtt_estimator`). A falling RTT raises the deviation only an
    /// eighth as much. The variance term is the largest deviation of a round, never below the minimum timeout. A
    /// round ends when what was `snd_nxt` at its start is acknowledged.
    pub(crate) fn sample(&mut self, rtt_us: u32, snd_una: u32, snd_nxt: u32) {
        self.backoff = 0;
        if self.srtt_us == 0 {
            self.begin(rtt_us, snd_nxt);
        } else {
            let error = i64::from(rtt_us) - i64::from(self.srtt_us >> 3);
            self.srtt_us = (i64::from(self.srtt_us) + error).max(1) as u32;
            self.deviate(error);
            if after(snd_una, self.round_end) {
                self.end_round(snd_nxt);
            }
        }
        self.rto_us = (u64::from(self.srtt_us >> 3) + u64::from(self.rttvar_us)).min(RTO_MAX_US);
    }

    /// The first sample.
    #[cold]
    fn begin(&mut self, rtt_us: u32, snd_nxt: u32) {
        self.srtt_us = (rtt_us << 3).max(1);
        self.mdev_us = rtt_us << 1;
        self.rttvar_us = self.mdev_us.max(self.rto_min_us);
        self.mdev_max_us = self.rttvar_us;
        self.round_end = snd_nxt;
    }

    fn deviate(&mut self, error: i64) {
        let mut change = error.abs() - i64::from(self.mdev_us >> 2);
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev_us = (i64::from(self.mdev_us) + change) as u32;
        if self.mdev_us > self.mdev_max_us {
            self.mdev_max_us = self.mdev_us;
            self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
        }
    }

    fn end_round(&mut self, snd_nxt: u32) {
        if self.mdev_max_us < self.rttvar_us {
            self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
        }
        self.round_end = snd_nxt;
        self.mdev_max_us = self.rto_min_us;
    }

    /// The minimum of the last five minutes, of which `rtt_us` is the latest sample.
    #[inline(always)]
    pub(crate) fn minimum(&mut self, now_us: u64, rtt_us: u32) -> u32 {
        self.min.update(now_us, rtt_us.max(1))
    }

    /// Smoothed RTT times 8, microseconds; 0 before the first sample.
    pub(crate) fn srtt_us(&self) -> u32 {
        self.srtt_us
    }

    /// Mean deviation, microseconds.
    pub(crate) fn deviation_us(&self) -> u32 {
        self.mdev_us >> 2
    }

    /// The timeout, back-off included, microseconds.
    pub(crate) fn rto_us(&self) -> u64 {
        self.rto_us
    }

    /// The minimum timeout, microseconds.
    pub(crate) fn rto_min_us(&self) -> u64 {
        u64::from(self.rto_min_us)
    }

    /// A timeout has fired: the next one takes twice as long (RFC 6298, section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
        self.rto_us = (self.rto_us << 1).min(RTO_MAX_US);
    }

    /// How often the next zero-window probe's interval is doubled.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// A zero-window probe was sent: the interval doubles up to `max` times.
    pub(crate) fn back_off_probe(&mut self, max: u32) {
        self.backoff = (self.backoff + 1).min(max);
    }

    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
}

impl Connection {
    /// Takes a valid sample (Linux `tcp_ack_update_rtt` from where the sample is known to be valid):
    /// `rtt_us` is of the first, `latest_us` of the last packet this ACK delivered.
    #[inline(always)]
    pub(crate) fn take_rtt_sample(&mut self, rtt_us: u32, latest_us: u32, maybe_delayed: bool) {
        if !maybe_delayed || latest_us <= self.sk.rtt_min_us {
            self.sk.rtt_min_us = self.snd.rtt.minimum(self.sk.tcp_mstamp, latest_us);
        }
        self.snd.rtt.sample(rtt_us, self.sk.snd_una, self.sk.snd_nxt);
        self.sk.srtt_us = self.snd.rtt.srtt_us();
        self.outbox().note_rtt(Span::from_us(u64::from(rtt_us)));
    }

    /// Microseconds from now until the first unacknowledged segment's timeout; not positive if it has passed.
    pub(crate) fn rto_left_us(&self) -> i64 {
        match self.snd.board.first() {
            Some(first) => (first.sent_us + self.snd.rtt.rto_us()) as i64 - self.sk.tcp_mstamp as i64,
            None => self.snd.rtt.rto_us() as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO_MIN_US: u64 = 200_000;

    /// An estimator that has taken `samples`, all in one round.
    fn estimated(samples: &[u32]) -> Rtt {
        let mut rtt = Rtt::new(Span::from_us(RTO_MIN_US));
        for &sample in samples {
            rtt.sample(sample, 0, 1);
        }
        rtt
    }

    #[test]
    fn the_first_sample_is_the_smoothed_rtt_and_half_of_it_the_deviation() {
        // RFC 6298, section 2.2.
        let rtt = estimated(&[100_000]);
        assert_eq!((rtt.srtt_us() >> 3, rtt.deviation_us()), (100_000, 50_000));
        assert_eq!(rtt.rto_us(), 100_000 + 4 * 50_000);
    }

    #[test]
    fn a_later_sample_counts_an_eighth() {
        // RFC 6298, section 2.3: alpha = 1/8, beta = 1/4.
        let rtt = estimated(&[100_000, 180_000]);
        assert_eq!(rtt.srtt_us() >> 3, 110_000);
        assert_eq!(rtt.deviation_us(), (3 * 50_000 + 80_000) / 4);
    }

    #[test]
    fn a_falling_rtt_raises_the_deviation_an_eighth_as_much() {
        let (rising, falling) = (estimated(&[10_000, 90_000]), estimated(&[90_000, 10_000]));
        let raised = |rtt: &Rtt, from: u32| rtt.deviation_us() - from / 2;
        assert_eq!(raised(&rising, 10_000), (80_000 - 5_000) / 4);
        assert_eq!(raised(&falling, 90_000), (80_000 - 45_000) / 4 / 8);
    }

    #[test]
    fn a_steady_rtt_leaves_the_minimum_timeout_above_it() {
        let mut rtt = estimated(&[]);
        for round in 0..100 {
            rtt.sample(50_000, 1_000 * round + 1, 1_000 * (round + 1));
        }
        assert_eq!(rtt.rto_us(), 50_000 + RTO_MIN_US);
    }

    #[test]
    fn timeouts_double_up_to_two_minutes_and_a_sample_ends_that() {
        let mut rtt = estimated(&[100_000]);
        let first = rtt.rto_us();
        rtt.back_off();
        assert_eq!(rtt.rto_us(), 2 * first);
        for _ in 0..20 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto_us(), RTO_MAX_US);
        rtt.sample(100_000, 0, 1);
        assert!(rtt.rto_us() <= first && rtt.backoff() == 0);
    }
}
