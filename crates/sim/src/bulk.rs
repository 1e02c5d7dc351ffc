//! A bulk transfer's application: writes data all the time, or with pauses.

use tcplab_tcp::Connection;
use tcplab_units::Time;

use crate::application::{Application, Context};
use crate::plan::Pauses;

/// The sending application.
#[derive(Debug)]
pub(crate) struct Bulk {
    bytes: Option<u64>,
    /// Bytes not yet taken into the send buffer; `u64::MAX` is without end.
    left: u64,
    pauses: Option<Pauses>,
    sending: bool,
    /// When it begins or ends a pause next.
    turn: Time,
    stop: Time,
    stopped: bool,
}

impl Bulk {
    /// Sends `bytes`, or without end, until `stop`, with `pauses`.
    pub(crate) fn new(bytes: Option<u64>, pauses: Option<Pauses>, stop: Time) -> Bulk {
        Bulk {
            bytes,
            left: bytes.unwrap_or(u64::MAX),
            pauses,
            sending: false,
            turn: Time::ZERO,
            stop,
            stopped: false,
        }
    }

    /// The flow starts, a pause begins or ends, or the source stops. When it wants to be woken next.
    fn wake(&mut self, connection: &mut Connection, now: Time) -> Time {
        if self.stopped {
            return Time::NEVER;
        }
        if now >= self.stop {
            self.stopped = true;
            connection.cancel(now);
            connection.close(now);
            return Time::NEVER;
        }
        let Some(pauses) = &mut self.pauses else {
            if !self.sending {
                self.sending = true;
                connection.write(self.left, now);
                if self.bytes.is_some() {
                    connection.close(now);
                }
            }
            return self.stop;
        };
        if now >= self.turn {
            self.sending = !self.sending;
            if self.sending {
                connection.write(self.left, now);
                self.turn = now + pauses.on();
            } else {
                let cancelled = connection.cancel(now);
                if self.bytes.is_some() {
                    self.left = cancelled;
                }
                self.turn = now + pauses.off();
            }
        }
        if self.left == 0 {
            self.stopped = true;
            connection.close(now);
            return Time::NEVER;
        }
        self.turn.min(self.stop)
    }
}

impl Application for Bulk {
    fn on_timer(&mut self, client: &mut Connection, context: &mut Context) {
        let next = self.wake(client, context.now());
        context.wake_at(next);
    }

    fn complete(&self, received: u64, end: Time, ended: bool) -> bool {
        match self.bytes {
            Some(bytes) => received >= bytes,
            None if self.stop == Time::NEVER => ended,
            None => end >= self.stop,
        }
    }

    fn answers(&self) -> bool {
        false
    }
}
