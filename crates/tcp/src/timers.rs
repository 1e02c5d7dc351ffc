//! The endpoint's timers and the order in which they are served.

use tcplab_units::{Span, Time};

use crate::{Connection, Ticks};

/// The purpose of the sender's single timer (Linux `icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// It is not armed.
    Nothing,
    /// Retransmission timeout.
    Retransmit,
    /// Tail loss probe.
    LossProbe,
    /// RACK's reordering window runs out.
    Reordering,
    /// Zero-window probe.
    WindowProbe,
}

/// Deadlines; `Time::NEVER` where not armed.
#[derive(Debug)]
pub(crate) struct Timers {
    pub pending: Pending,
    pub xmit: Time,
    pub delayed_ack: Time,
    pub compressed_ack: Time,
    pub pacing: Time,
    pub gro: Time,
    /// With which all but the last three fire; none: they fire on time.
    pub ticks: Option<Ticks>,
}

impl Timers {
    pub(crate) fn new() -> Timers {
        Timers {
            pending: Pending::Nothing,
            xmit: Time::NEVER,
            delayed_ack: Time::NEVER,
            compressed_ack: Time::NEVER,
            pacing: Time::NEVER,
            gro: Time::NEVER,
            ticks: None,
        }
    }

    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.xmit.min(self.delayed_ack).min(self.compressed_ack).min(self.pacing).min(self.gro)
    }

    /// Whether none is armed but that of a delayed ACK.
    #[inline]
    pub(crate) fn only_delays_ack(&self) -> bool {
        self.xmit.min(self.compressed_ack).min(self.pacing).min(self.gro) == Time::NEVER
    }

    /// When a timer fires that is set at `now` to `wait`.
    #[inline]
    pub(crate) fn fire(&self, now: Time, wait: Span) -> Time {
        self.ticks.map_or(now + wait, |ticks| ticks.fire(now, wait))
    }

    pub(crate) fn stop_xmit(&mut self) {
        self.pending = Pending::Nothing;
        self.xmit = Time::NEVER;
    }
}

/// Largest retransmission timeout (Linux `TCP_RTO_MAX`), microseconds.
pub(crate) const RTO_MAX_US: u64 = 120_000_000;

impl Connection {
    /// Arms the sender's timer `us` from now.
    pub(crate) fn arm_xmit(&mut self, pending: Pending, us: u64) {
        self.arm(pending, Span::from_us(us));
    }

    /// The same where the timer waits for an answer to what pacing may still hold back: it starts when that leaves
    /// (Linux `tcp_reset_xmit_timer` with `pace_delay`).
    pub(crate) fn arm_xmit_paced(&mut self, pending: Pending, us: u64) {
        self.arm(pending, self.pacing_delay() + Span::from_us(us));
    }

    fn arm(&mut self, pending: Pending, wait: Span) {
        self.timers.pending = pending;
        self.timers.xmit = self.timers.fire(self.now, wait.min(Span::from_us(RTO_MAX_US)));
    }

    /// Serves every timer whose time has come.
    pub(crate) fn serve_timers(&mut self) {
        if self.timers.gro <= self.now {
            self.gro_flush();
        }
        if self.timers.delayed_ack <= self.now {
            self.delayed_ack_timeout();
        }
        if self.timers.compressed_ack <= self.now {
            self.compressed_ack_timeout();
        }
        if self.timers.xmit <= self.now {
            self.serve_xmit();
        }
        if self.timers.pacing <= self.now {
            self.pacing_timeout();
        }
    }

    /// A probe and the reordering timer stay pending while they are served: the timeout armed after them counts from
    /// the first segment's sending, not from now (`tcp_write_timer_handler`, `tcp_rearm_rto`).
    fn serve_xmit(&mut self) {
        self.timers.xmit = Time::NEVER;
        match self.timers.pending {
            Pending::Nothing => {}
            Pending::LossProbe => self.send_loss_probe(),
            Pending::Reordering => self.reordering_timeout(),
            Pending::Retransmit => {
                self.timers.pending = Pending::Nothing;
                self.retransmission_timeout();
            }
            Pending::WindowProbe => {
                self.timers.pending = Pending::Nothing;
                self.window_probe_timeout();
            }
        }
    }
}
