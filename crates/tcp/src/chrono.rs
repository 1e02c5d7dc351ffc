//! The limits of the sender, by time (Linux `tcp_chrono_*`).

use tcplab_units::Span;

use crate::Connection;

/// The present limit; a later one takes precedence over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    Idle,
    Busy,
    ReceiveWindow,
    SendBuffer,
}

/// Rarely needed members come last (see `Connection`).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Chrono {
    limit: Limit,
    since_us: u64,
    spent_us: [u64; 4],
}

impl Chrono {
    pub(crate) fn new() -> Chrono {
        Chrono { limit: Limit::Idle, since_us: 0, spent_us: [0; 4] }
    }

    #[cold]
    fn set(&mut self, limit: Limit, now_us: u64) {
        self.spent_us[self.limit as usize] += now_us - self.since_us;
        self.since_us = now_us;
        self.limit = limit;
    }

    fn start(&mut self, limit: Limit, now_us: u64) {
        if limit > self.limit {
            self.set(limit, now_us);
        }
    }

    fn stop(&mut self, limit: Limit, nothing_left: bool, now_us: u64) {
        if nothing_left {
            self.set(Limit::Idle, now_us);
        } else if limit == self.limit {
            self.set(Limit::Busy, now_us);
        }
    }

    /// Time spent busy (limited or not), limited by the peer's window, and by the send buffer.
    pub(crate) fn spans(&self, now_us: u64) -> (Span, Span, Span) {
        let mut spent = self.spent_us;
        spent[self.limit as usize] += now_us.saturating_sub(self.since_us);
        let [_, busy, window, buffer] = spent;
        (Span::from_us(busy + window + buffer), Span::from_us(window), Span::from_us(buffer))
    }
}

impl Connection {
    pub(crate) fn chrono_start_busy(&mut self) {
        self.snd.chrono.start(Limit::Busy, self.sk.tcp_mstamp);
    }

    pub(crate) fn chrono_stop_busy(&mut self) {
        let nothing_left = self.snd.board.is_empty() && !self.has_unsent();
        self.snd.chrono.stop(Limit::Busy, nothing_left, self.sk.tcp_mstamp);
    }

    pub(crate) fn chrono_rwnd_limited(&mut self, limited: bool) {
        if limited {
            self.snd.chrono.start(Limit::ReceiveWindow, self.sk.tcp_mstamp);
        } else if self.snd.chrono.limit == Limit::ReceiveWindow {
            self.snd.chrono.stop(Limit::ReceiveWindow, false, self.sk.tcp_mstamp);
        }
    }

    pub(crate) fn chrono_start_sndbuf_limited(&mut self) {
        self.snd.chrono.start(Limit::SendBuffer, self.sk.tcp_mstamp);
    }

    pub(crate) fn chrono_stop_sndbuf_limited(&mut self) {
        self.snd.chrono.stop(Limit::SendBuffer, false, self.sk.tcp_mstamp);
    }
}
