//! How frames leave the queue: at once, at a rate, or at the opportunities of a trace.

use tcplab_units::{Rate, Time};

use crate::config::Direction;
use crate::player::{Player, Sending};
use crate::shaper::Shaper;

/// The server behind the queue.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// No rate: frames leave the moment they arrive.
    Instant,
    /// Serialisation at a rate.
    Rate(Shaper),
    /// Delivery opportunities.
    Trace(Player),
}

impl Service {
    pub(crate) fn new(config: &Direction) -> Service {
        let player = config.trace.as_ref().and_then(Player::new);
        match (player, config.rate) {
            (Some(player), _) => Service::Trace(player),
            (None, Some(rate)) => Service::Rate(Shaper::new(rate)),
            (None, None) => Service::Instant,
        }
    }

    /// A new rate from `now` on; a trace stays as it is. When the frame being sent, which would have ended at
    /// `end`, ends now; `sending` says whether there is one.
    pub(crate) fn set_rate(&mut self, rate: Rate, now: Time, end: Time, sending: bool) -> Time {
        match self {
            Service::Instant => *self = Service::Rate(Shaper::new(rate)),
            Service::Rate(shaper) if sending => return shaper.change_rate(rate, now, end),
            Service::Rate(shaper) => shaper.set_rate(rate),
            Service::Trace(_) => {}
        }
        end
    }

    /// The present rate, which turns a limit in time into bytes; none: nothing ever waits.
    pub(crate) fn rate(&self) -> Option<Rate> {
        match self {
            Service::Instant => None,
            Service::Rate(shaper) => Some(shaper.rate()),
            Service::Trace(player) => player.mean_rate(),
        }
    }

    /// When a frame is sent that is next in turn at `now`, and `follows` another without a gap.
    #[inline]
    pub(crate) fn send(&mut self, now: Time, follows: bool, frame_len: u32) -> Sending {
        match self {
            Service::Instant => Sending { begin: now, end: now },
            Service::Rate(shaper) => Sending { begin: now, end: shaper.send(now, follows, frame_len) },
            Service::Trace(player) => player.send(now, follows, frame_len),
        }
    }

    /// Forgets the frames that were to be sent.
    pub(crate) fn reset(&mut self) {
        if let Service::Trace(player) = self {
            player.rewind();
        }
    }
}
