//! How frames leave the queue: at once, at a rate, or at the opportunities of a trace.

use tcplab_units::{Rate, Time};

use crate::config::Direction;
use crate::shaper::Shaper;
use crate::trace_service::TraceService;

/// The server behind the queue.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// No rate: frames leave the moment they arrive.
    Instant,
    /// Serialisation at a rate.
    Rate(Shaper),
    /// Delivery opportunities.
    Trace(TraceService),
}

impl Service {
    pub(crate) fn new(config: &Direction) -> Service {
        let trace = config.trace.as_ref().and_then(TraceService::new);
        match (trace, config.rate) {
            (Some(trace), _) => Service::Trace(trace),
            (None, Some(rate)) => Service::Rate(Shaper::new(rate)),
            (None, None) => Service::Instant,
        }
    }

    /// A new rate while no frame is being sent; a trace stays as it is.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        match self {
            Service::Instant => *self = Service::Rate(Shaper::new(rate)),
            Service::Rate(shaper) => shaper.set_rate(rate),
            Service::Trace(_) => {}
        }
    }

    /// A new rate from `now` on, also for the rest of the frame being sent, which would have ended at `end`: when it
    /// ends now. A trace stays as it is.
    pub(crate) fn change_rate(&mut self, rate: Rate, now: Time, end: Time) -> Time {
        match self {
            Service::Rate(shaper) => shaper.change_rate(rate, now, end),
            Service::Instant | Service::Trace(_) => {
                self.set_rate(rate);
                end
            }
        }
    }

    /// The present rate, which turns a limit in time into bytes; none: nothing ever waits.
    pub(crate) fn rate(&self) -> Option<Rate> {
        match self {
            Service::Instant => None,
            Service::Rate(shaper) => Some(shaper.rate()),
            Service::Trace(trace) => trace.mean_rate(),
        }
    }

    /// When the next frame begins that could at `now`, and `follows` another without a gap.
    ///
    /// Asked again before `send`, with `follows`, it says the same.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time, follows: bool) -> Time {
        match self {
            Service::Instant | Service::Rate(_) => now,
            Service::Trace(trace) => trace.begin(now, follows),
        }
    }

    /// When a frame ends that begins at `now`, which `begin` has returned.
    #[inline]
    pub(crate) fn send(&mut self, now: Time, follows: bool, frame_len: u32) -> Time {
        match self {
            Service::Instant => now,
            Service::Rate(shaper) => shaper.send(now, follows, frame_len),
            Service::Trace(trace) => trace.send(frame_len),
        }
    }

    /// Forgets the frames that were to be sent.
    pub(crate) fn reset(&mut self) {
        if let Service::Trace(trace) = self {
            trace.rewind();
        }
    }
}
