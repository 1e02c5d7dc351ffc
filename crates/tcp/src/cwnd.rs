//! Congestion window validation (RFC 7661 as Linux does it) and restart after idleness.

use tcplab_control::{CaEvent, CaState};

use crate::Connection;
use crate::seq::before;

#[derive(Debug, Default)]
pub(crate) struct CwndUse {
    /// When the window was last known to be in full use or was changed, microseconds.
    stamp_us: u64,
    /// Maximum segments out since.
    used: u32,
    /// The present round of measurement ends when this is acknowledged.
    round_end: u32,
}

impl CwndUse {
    /// The window is in full use, or was changed, at `now_us`.
    pub(crate) fn renew(&mut self, now_us: u64) {
        self.stamp_us = now_us;
    }
}

impl Connection {
    /// Notes whether the window, not the application, limits the flow (`tcp_cwnd_validate`).
    pub(crate) fn validate_cwnd(&mut self, limited: bool) {
        let sk = &mut self.sk;
        if !before(sk.snd_una, self.snd.cwnd_use.round_end)
            || limited
            || (sk.is_cwnd_limited == 0 && sk.packets_out > sk.max_packets_out)
        {
            sk.is_cwnd_limited = u32::from(limited);
            sk.max_packets_out = sk.packets_out;
            self.snd.cwnd_use.round_end = sk.snd_nxt;
        }
        let slow_start = sk.snd_cwnd < sk.snd_ssthresh;
        if sk.is_cwnd_limited != 0 || (slow_start && sk.snd_cwnd < 2 * sk.max_packets_out) {
            self.snd.cwnd_use.used = 0;
            self.snd.cwnd_use.stamp_us = sk.tcp_mstamp;
            return;
        }
        self.snd.cwnd_use.used = self.snd.cwnd_use.used.max(sk.packets_out);
        if self.config.slow_start_after_idle
            && sk.tcp_mstamp - self.snd.cwnd_use.stamp_us >= self.snd.rtt.rto_us()
            && !self.snd.control.has_cong_control()
        {
            self.decay_unused_cwnd();
        }
        if !self.has_unsent() && self.snd.buffer.writer_waits() {
            self.chrono_start_sndbuf_limited();
        }
    }

    /// Half way down to what was used in the last timeout (RFC 2861; `tcp_cwnd_application_limited`).
    fn decay_unused_cwnd(&mut self) {
        if self.sk.icsk_ca_state == CaState::Open as u32 && !self.snd.buffer.writer_waits() {
            let used = self.snd.cwnd_use.used.max(self.config.initial_window);
            if used < self.sk.snd_cwnd {
                self.sk.snd_ssthresh = self.current_ssthresh();
                self.sk.snd_cwnd = (self.sk.snd_cwnd + used) >> 1;
            }
            self.snd.cwnd_use.used = 0;
        }
        self.snd.cwnd_use.stamp_us = self.sk.tcp_mstamp;
    }

    /// Halves the window for each timeout of silence before new data (RFC 2861; `tcp_cwnd_restart`).
    pub(crate) fn restart_after_idle(&mut self) {
        if !self.config.slow_start_after_idle
            || self.sk.packets_out > 0
            || self.snd.control.has_cong_control()
        {
            return;
        }
        let rto = self.snd.rtt.rto_us();
        let mut idle = self.sk.tcp_mstamp - self.snd.last_sent_us;
        if idle <= rto {
            return;
        }
        self.snd.control.cwnd_event(&mut self.sk, CaEvent::CwndRestart);
        self.sk.snd_ssthresh = self.current_ssthresh();
        let mut cwnd = self.sk.snd_cwnd;
        let minimum = self.config.initial_window.min(cwnd);
        while idle > rto && cwnd > minimum {
            idle -= rto;
            cwnd >>= 1;
        }
        self.sk.snd_cwnd = cwnd.max(minimum);
        self.snd.cwnd_use.stamp_us = self.sk.tcp_mstamp;
        self.snd.cwnd_use.used = 0;
    }
}
