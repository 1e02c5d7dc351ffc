//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation, as Linux's `tcp_rate.c` takes them).

use tcplab_control::{RateSample, TcpSock};

use crate::Connection;
use crate::ack::AckState;
use crate::scoreboard::{APP_LIMITED, Id, SACKED, Sent};
use crate::seq::{after, before};

/// The latest sample worth showing (Linux `tp->rate_delivered`, `rate_interval_us`, `rate_app_limited`).
#[derive(Debug, Default)]
pub(crate) struct LatestRate {
    delivered: u32,
    interval_us: u64,
    app_limited: bool,
}

impl LatestRate {
    /// Segments that it saw delivered.
    #[cfg(test)]
    pub(crate) fn delivered(&self) -> u32 {
        self.delivered
    }

    /// The rate in bit/s for segments of `mss` bytes; none before the first sample.
    pub(crate) fn bits_per_sec(&self, mss: u32) -> Option<u64> {
        let bits = u64::from(self.delivered) * u64::from(mss) * 8_000_000;
        (self.interval_us > 0).then(|| bits / self.interval_us)
    }

    /// Whether the application limited it.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited
    }
}

/// A segment leaves: it remembers the state of delivery (`tcp_rate_skb_sent`). `nothing_out`: no other
/// segment was out before it.
pub(crate) fn note_sending(sk: &mut TcpSock, sent: &mut Sent, nothing_out: bool) {
    let sent_us = sk.tcp_mstamp;
    if nothing_out {
        sk.first_tx_mstamp = sent_us;
        sk.delivered_mstamp = sent_us;
    }
    sent.sent_us = sent_us;
    sent.first_tx_us = sk.first_tx_mstamp;
    sent.delivered_us = sk.delivered_mstamp;
    sent.delivered = sk.delivered;
    sent.delivered_ce = sk.delivered_ce;
    sent.lost = sk.lost;
    sent.flags = (sent.flags & !APP_LIMITED) | if sk.app_limited != 0 { APP_LIMITED } else { 0 };
}

impl Connection {
    /// A segment is delivered: the one sent last among those of this ACK makes the sample
    /// (`tcp_rate_skb_delivered`).
    pub(crate) fn rate_on_delivered(&mut self, id: Id, state: &mut AckState) {
        let sent = self.snd.board.get_mut(id);
        if sent.delivered_us == 0 {
            return;
        }
        let sample = &mut state.rate;
        if sample.prior_delivered == 0 || before(state.rate_order, sent.order) {
            state.rate_order = sent.order;
            sample.prior_delivered = sent.delivered;
            sample.prior_delivered_ce = sent.delivered_ce;
            sample.tl_prior_lost = sent.lost;
            sample.prior_mstamp = sent.delivered_us;
            sample.is_app_limited = u8::from(sent.has(APP_LIMITED));
            sample.is_retrans = u8::from(sent.retransmitted());
            sample.last_end_seq = sent.end_seq;
            sample.interval_us = sent.sent_us.wrapping_sub(sent.first_tx_us) as i64;
            self.sk.first_tx_mstamp = sent.sent_us;
        }
        if sent.has(SACKED) {
            sent.delivered_us = 0;
        }
    }

    /// Completes the sample of an ACK (`tcp_rate_gen`).
    pub(crate) fn rate_generate(
        &mut self,
        delivered: u32,
        lost: u32,
        reneged: bool,
        sample: &mut RateSample,
    ) {
        let sk = &mut self.sk;
        if sk.app_limited != 0 && after(sk.delivered, sk.app_limited) {
            sk.app_limited = 0;
        }
        if delivered != 0 {
            sk.delivered_mstamp = sk.tcp_mstamp;
        }
        sample.acked_sacked = delivered;
        sample.losses = lost as i32;
        if sample.prior_mstamp == 0 || reneged {
            sample.delivered = -1;
            sample.interval_us = -1;
            return;
        }
        sample.delivered = sk.delivered.wrapping_sub(sample.prior_delivered) as i32;
        sample.delivered_ce = sk.delivered_ce.wrapping_sub(sample.prior_delivered_ce) as i32;
        let send_us = sample.interval_us;
        let ack_us = (sk.tcp_mstamp - sample.prior_mstamp) as i64;
        sample.interval_us = send_us.max(ack_us);
        sample.snd_interval_us = send_us as u32;
        sample.rcv_interval_us = ack_us as u32;
        // Faster than the minimum RTT can only be a retransmission whose original was acknowledged.
        if sample.interval_us < i64::from(sk.rtt_min_us) {
            sample.interval_us = -1;
            return;
        }
        let latest = &mut self.snd.latest_rate;
        let higher = sample.delivered as u64 * latest.interval_us
            >= u64::from(latest.delivered) * sample.interval_us as u64;
        if sample.is_app_limited == 0 || higher {
            latest.delivered = sample.delivered as u32;
            latest.interval_us = sample.interval_us as u64;
            latest.app_limited = sample.is_app_limited != 0;
        }
    }

    /// The application is about to write: if the pipe had room and nothing to send, what is in flight is
    /// a bubble (`tcp_rate_check_app_limited`).
    pub(crate) fn rate_check_app_limited(&mut self) {
        let sk = &mut self.sk;
        let unsent = self.snd.write_seq.wrapping_sub(sk.snd_nxt);
        if unsent < sk.mss_cache && sk.packets_in_flight() < sk.snd_cwnd && sk.lost_out <= sk.retrans_out {
            sk.app_limited = sk.delivered.wrapping_add(sk.packets_in_flight()).max(1);
        }
    }
}
