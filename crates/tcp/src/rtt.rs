//! Round-trip time and retransmission timeout (RFC 6298 with Linux's variance terms), and the minimum RTT.

use tcplab_units::Span;

use crate::Connection;
use crate::connection::Notice;
use crate::minmax::RunningMin;
use crate::seq::after;
use crate::timers::RTO_MAX_US;

/// Initial retransmission timeout (RFC 6298, section 2.1), microseconds.
pub(crate) const RTO_INITIAL_US: u64 = 1_000_000;
/// Window of the minimum RTT (`tcp_min_rtt_wlen`), microseconds.
const MIN_RTT_WINDOW_US: u64 = 300_000_000;

/// State of the estimator; the smoothed RTT itself is `TcpSock::srtt_us`.
#[derive(Debug)]
pub(crate) struct Rtt {
    /// Medium deviation times 4, microseconds.
    pub mdev_us: u32,
    /// Largest deviation of the present round.
    mdev_max_us: u32,
    /// Smoothed largest deviation: the variance term of the timeout.
    pub rttvar_us: u32,
    /// The present round ends when this is acknowledged.
    round_end: u32,
    min: RunningMin,
    /// Present timeout, back-off included.
    pub rto_us: u64,
    /// How often the timeout was doubled.
    pub backoff: u32,
    rto_min_us: u32,
}

impl Rtt {
    pub(crate) fn new(rto_min: Span) -> Rtt {
        Rtt {
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

    pub(crate) fn rto_min_us(&self) -> u64 {
        u64::from(self.rto_min_us)
    }
}

impl Connection {
    /// Takes a valid sample (Linux `tcp_ack_update_rtt` from where the sample is known to be valid):
    /// `rtt_us` is of the first, `latest_us` of the last packet this ACK delivered.
    pub(crate) fn take_rtt_sample(&mut self, rtt_us: u32, latest_us: u32, maybe_delayed: bool) {
        if !maybe_delayed || latest_us <= self.sk.rtt_min_us {
            self.sk.rtt_min_us = self.rtt.min.update(self.sk.tcp_mstamp, latest_us.max(1));
        }
        self.estimate(rtt_us);
        self.set_rto();
        // Only a valid sample resets the back-off (RFC 6298, section 5.7; Karn's algorithm).
        self.rtt.backoff = 0;
        self.notice(Notice::RttSample(Span::from_us(u64::from(rtt_us))));
    }

    /// RFC 6298 with two refinements of Linux (`tcp_rtt_estimator`): a falling RTT raises the deviation
    /// only an eighth as much, and the variance term is the largest deviation of a round, never below
    /// the least timeout.
    fn estimate(&mut self, rtt_us: u32) {
        let rtt = &mut self.rtt;
        let srtt = self.sk.srtt_us;
        if srtt == 0 {
            self.sk.srtt_us = (rtt_us << 3).max(1);
            rtt.mdev_us = rtt_us << 1;
            rtt.rttvar_us = rtt.mdev_us.max(rtt.rto_min_us);
            rtt.mdev_max_us = rtt.rttvar_us;
            rtt.round_end = self.sk.snd_nxt;
            return;
        }
        let error = i64::from(rtt_us) - i64::from(srtt >> 3);
        self.sk.srtt_us = (i64::from(srtt) + error).max(1) as u32;
        let mut change = error.abs() - i64::from(rtt.mdev_us >> 2);
        if error < 0 && change > 0 {
            change >>= 3;
        }
        rtt.mdev_us = (i64::from(rtt.mdev_us) + change) as u32;
        if rtt.mdev_us > rtt.mdev_max_us {
            rtt.mdev_max_us = rtt.mdev_us;
            rtt.rttvar_us = rtt.rttvar_us.max(rtt.mdev_max_us);
        }
        if after(self.sk.snd_una, rtt.round_end) {
            if rtt.mdev_max_us < rtt.rttvar_us {
                rtt.rttvar_us -= (rtt.rttvar_us - rtt.mdev_max_us) >> 2;
            }
            rtt.round_end = self.sk.snd_nxt;
            rtt.mdev_max_us = rtt.rto_min_us;
        }
    }

    fn set_rto(&mut self) {
        self.rtt.rto_us = (u64::from(self.sk.srtt_us >> 3) + u64::from(self.rtt.rttvar_us)).min(RTO_MAX_US);
    }

    /// Microseconds from now until the first unacknowledged segment's timeout; not positive if it has passed.
    pub(crate) fn rto_left_us(&self) -> i64 {
        match self.board.first() {
            Some(first) => (first.sent_us + self.rtt.rto_us) as i64 - self.sk.tcp_mstamp as i64,
            None => self.rtt.rto_us as i64,
        }
    }
}
