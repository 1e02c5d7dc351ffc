//! Pacing inside TCP, and the pacing rate of controls that do not set one themselves.

use tcplab_control::sock::PACING_NEEDED;
use tcplab_units::{Span, Time};

use crate::Connection;
use crate::connection::EPOCH_NS;
use crate::transmit::Push;

/// Segments sent unpaced at the start of a connection, as by Linux `tcp_update_skb_after_send`.
const UNPACED_SEGMENTS: u64 = 10;

/// When the next burst may leave, if one whose length at the pacing rate is `length_ns` leaves at `leaves` and might have left
/// at `earliest` already. Up to half of its length is forgiven for lateness (`tcp_update_skb_after_send`).
fn next_departure(earliest: u64, leaves: u64, length_ns: u64) -> u64 {
    leaves + length_ns - (leaves - earliest).min(length_ns / 2)
}

impl Connection {
    fn paces(&self) -> bool {
        self.sk.sk_pacing_status == PACING_NEEDED
    }

    /// Earliest departure of the next burst. It is kept where controls see it, to distinguish what waits in the
    /// sender from what is in the network (Linux `bbr_packets_in_net_at_edt`).
    fn departure(&self) -> Time {
        Time::from_ns(self.sk.tcp_wstamp_ns.saturating_sub(EPOCH_NS))
    }

    /// Whether pacing forbids to send now; its timer is then armed.
    pub(crate) fn pacing_holds_back(&mut self) -> bool {
        if !self.paces() || self.sk.tcp_wstamp_ns <= self.sk.tcp_clock_cache {
            return false;
        }
        self.timers.pacing = self.departure();
        true
    }

    /// How long pacing holds the next burst back.
    pub(crate) fn pacing_delay(&self) -> Span {
        if self.paces() { self.departure().since(self.now) } else { Span::ZERO }
    }

    /// A burst of `bytes`, already counted, leaves: sets when the next may.
    pub(crate) fn pace(&mut self, bytes: u32) {
        let previous = self.sk.tcp_wstamp_ns;
        self.sk.tcp_wstamp_ns = previous.max(self.sk.tcp_clock_cache);
        if !self.paces() || self.snd.counters.segments_sent < UNPACED_SEGMENTS {
            return;
        }
        let rate = self.sk.sk_pacing_rate;
        if rate != u64::MAX && rate != 0 {
            let length_ns = u64::from(bytes) * 1_000_000_000 / rate;
            self.sk.tcp_wstamp_ns = next_departure(previous, self.sk.tcp_wstamp_ns, length_ns);
        }
    }

    pub(crate) fn pacing_timeout(&mut self) {
        self.timers.pacing = Time::NEVER;
        if self.sk.lost_out > self.sk.retrans_out && self.sk.snd_cwnd > self.sk.packets_in_flight() {
            self.retransmit_lost();
        }
        if self.established && self.has_unsent() {
            self.write_xmit(Push::Pending);
        }
    }

    /// 200 % of the present rate in slow start, 120 % after (`tcp_update_pacing_rate`).
    pub(crate) fn update_pacing_rate(&mut self) {
        let sk = &mut self.sk;
        let percent = if sk.snd_cwnd < sk.snd_ssthresh / 2 { 200 } else { 120 };
        let window = u64::from(sk.mss_cache) * u64::from(sk.snd_cwnd.max(sk.packets_out));
        let mut rate = window * 8 * percent * 10_000;
        if sk.srtt_us != 0 {
            rate /= u64::from(sk.srtt_us);
        }
        sk.sk_pacing_rate = rate.min(sk.sk_max_pacing_rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_takes_its_length_less_at_most_half_of_it_for_lateness() {
        assert_eq!(next_departure(1_000, 1_000, 600), 1_600);
        assert_eq!(next_departure(900, 1_000, 600), 1_500);
        assert_eq!(next_departure(700, 1_000, 600), 1_300);
        assert_eq!(next_departure(0, 1_000, 600), 1_300);
    }
}
