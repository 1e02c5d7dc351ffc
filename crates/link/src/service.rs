//! How frames leave the queue: at once, at a rate, at the opportunities of a trace, or when a medium is free.

use tcplab_units::{Rate, Time};

use crate::config::Direction;
use crate::serializer::Serializer;
use crate::trace_service::{self, TraceService};

/// The server behind the queue. Its kind has a byte of its own, which is read faster than a niche.
#[derive(Clone, Debug)]
#[repr(u8)]
pub(crate) enum Service {
    /// No rate: frames leave the moment they arrive.
    Instant,
    /// Serialization at a rate.
    Rate(Serializer),
    /// Delivery opportunities.
    Trace(TraceService),
    /// A medium says when, and takes frames itself; they are sent at this rate.
    Medium(Rate),
}

impl Service {
    pub(crate) fn new(config: &Direction) -> Service {
        let trace = config.trace.as_ref().and_then(TraceService::new);
        match (trace, config.rate) {
            (Some(trace), _) => Service::Trace(trace),
            (None, Some(rate)) => Service::Rate(Serializer::new(rate)),
            (None, None) => Service::Instant,
        }
    }

    /// A new rate while no frame is being sent; a trace stays as it is.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        match self {
            Service::Instant => *self = Service::Rate(Serializer::new(rate)),
            Service::Rate(serializer) => serializer.set_rate(rate),
            Service::Trace(_) => {}
            Service::Medium(present) => *present = rate,
        }
    }

    /// A new rate from `now` on, also for the rest of the frame being sent, which would have ended at `end`: when it
    /// ends now. A trace stays as it is.
    pub(crate) fn change_rate(&mut self, rate: Rate, now: Time, end: Time) -> Time {
        match self {
            Service::Rate(serializer) => serializer.change_rate(rate, now, end),
            Service::Instant | Service::Trace(_) | Service::Medium(_) => {
                self.set_rate(rate);
                end
            }
        }
    }

    /// The present rate, which turns a limit in time into bytes; none: nothing ever waits.
    pub(crate) fn rate(&self) -> Option<Rate> {
        match self {
            Service::Instant => None,
            Service::Rate(serializer) => Some(serializer.rate()),
            Service::Trace(trace) => trace.mean_rate(),
            Service::Medium(rate) => Some(*rate),
        }
    }

    /// Bytes of its capacity that a frame takes of `len` bytes on the wire.
    #[inline]
    pub(crate) fn capacity_of(&self, len: u32) -> u32 {
        if matches!(self, Service::Trace(_)) { trace_service::packet_len(len) } else { len }
    }

    /// When the next frame begins that could at `now`, and `follows` another without a gap.
    ///
    /// Asked again before `send`, with `follows`, it says the same.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time, follows: bool) -> Time {
        match self {
            Service::Instant | Service::Rate(_) => now,
            Service::Trace(trace) => trace.begin(now, follows),
            Service::Medium(_) => Time::NEVER,
        }
    }

    /// When a frame ends that begins at `now`, which `begin` has returned.
    #[inline]
    pub(crate) fn send(&mut self, now: Time, follows: bool, frame_len: u32) -> Time {
        match self {
            Service::Instant | Service::Medium(_) => now,
            Service::Rate(serializer) => serializer.send(now, follows, frame_len),
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
