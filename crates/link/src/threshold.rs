//! An amount of waiting packets, in whatever unit it was given.

use tcplab_units::Rate;

use crate::config::Limit;

/// A queue's limit or marking threshold at the link's present rate, as packets and frame bytes; what does not
/// bind is `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Threshold {
    given: Option<Limit>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Threshold {
    /// None: it is never reached.
    pub(crate) fn new(given: Option<Limit>, rate: Option<Rate>) -> Threshold {
        let (packets, bytes) = match (given, rate) {
            (None, _) | (Some(Limit::Time(_)), None) => (u64::MAX, u64::MAX),
            (Some(Limit::Packets(packets)), _) => (packets, u64::MAX),
            (Some(Limit::Bytes(bytes)), _) => (u64::MAX, bytes),
            (Some(Limit::Time(span)), Some(rate)) => (u64::MAX, rate.bytes_in(span)),
        };
        Threshold { given, packets, bytes }
    }

    /// The same at a new rate, at which one given as time is converted.
    pub(crate) fn at_rate(self, rate: Option<Rate>) -> Threshold {
        Threshold::new(self.given, rate)
    }

    /// One that is exceeded wherever this one or `other` is.
    pub(crate) fn lower(&self, other: &Threshold) -> Threshold {
        let (packets, bytes) = (self.packets.min(other.packets), self.bytes.min(other.bytes));
        Threshold { given: None, packets, bytes }
    }

    /// Whether this much is more.
    #[inline]
    pub(crate) fn is_exceeded(&self, packets: u64, bytes: u64) -> bool {
        packets > self.packets || bytes > self.bytes
    }
}
