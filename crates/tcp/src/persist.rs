//! Zero-window probes (RFC 9293, section 3.8.6.1; Linux `tcp_send_probe0`).

use crate::Connection;
use crate::seq::{after, before};
use crate::timers::{Pending, RTO_MAX_US};

/// Probes without any answer after which the connection is given up (`tcp_retries2`).
const RETRIES: u32 = 15;

#[derive(Debug, Default)]
pub(crate) struct Persist {
    /// Probes since the peer last answered.
    probes_out: u32,
}

impl Persist {
    /// The peer has answered.
    pub(crate) fn note_answer(&mut self) {
        self.probes_out = 0;
    }
}

impl Connection {
    fn probe_interval_us(&self) -> u64 {
        let base = self.snd.rtt.rto_us().max(200_000);
        (base << self.snd.rtt.backoff().min(10)).min(RTO_MAX_US)
    }

    /// Arms the probe if there is data, none of it is out and no timer runs.
    pub(crate) fn arm_window_probe(&mut self) {
        if self.sk.packets_out == 0 && self.timers.pending == Pending::Nothing && self.has_unsent() {
            self.arm_xmit_paced(Pending::WindowProbe, self.snd.rtt.rto_us().max(200_000));
        }
    }

    /// An ACK while nothing is out: the window is open again, or the probes go on.
    pub(crate) fn window_probe_acked(&mut self) {
        if !self.has_unsent() {
            return;
        }
        if self.next_fits_window() {
            self.snd.rtt.reset_backoff();
            self.timers.stop_xmit();
        } else {
            self.arm_xmit_paced(Pending::WindowProbe, self.probe_interval_us());
        }
    }

    pub(crate) fn window_probe_timeout(&mut self) {
        if self.sk.packets_out > 0 || !self.has_unsent() {
            self.snd.persist.probes_out = 0;
            return;
        }
        if self.snd.persist.probes_out >= RETRIES {
            self.abort();
            return;
        }
        self.send_window_probe();
        if self.sk.packets_out > 0 || !self.has_unsent() {
            self.snd.persist.probes_out = 0;
            self.snd.rtt.reset_backoff();
            return;
        }
        self.snd.persist.probes_out += 1;
        self.snd.rtt.back_off_probe(RETRIES);
        self.arm_xmit_paced(Pending::WindowProbe, self.probe_interval_us());
    }

    /// As much as the window takes, or an empty segment below it that draws an ACK (`tcp_write_wakeup`).
    fn send_window_probe(&mut self) {
        let room = self.window_end().wrapping_sub(self.sk.snd_nxt);
        if before(self.sk.snd_nxt, self.window_end()) && self.unsent() > 0 {
            let bytes = self.snd.buffer.first(0).min(self.current_mss()).min(room);
            let all = bytes == self.unsent();
            let fin =
                all && self.snd.fin_queued && after(self.window_end(), self.sk.snd_nxt.wrapping_add(bytes));
            self.send_burst(bytes, fin, true);
        } else {
            let mut probe = self.header();
            probe.seq = self.sk.snd_una.wrapping_sub(1);
            self.outbox().push(probe);
        }
    }
}
