//! Instants and spans, in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Serialize};

/// An instant: nanoseconds since the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time: nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(u64);

impl Time {
    /// The run's start.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `ns` nanoseconds after the run's start.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns)
    }
    /// Nanoseconds since the run's start.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// Seconds since the run's start, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Whole microseconds since the run's start.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }
    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than any run.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns)
    }
    /// A span of `us` microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us * 1_000)
    }
    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }
    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s * 1_000_000_000)
    }
    /// The span in nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// The span in whole microseconds.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }
    /// The span in seconds, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }
}

impl Div<u64> for Span {
    type Output = Span;
    fn div(self, n: u64) -> Span {
        Span(self.0 / n)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        let (unit, scale) = match ns {
            0 | 1_000_000_000.. => ("s", 1_000_000_000),
            1_000_000.. => ("ms", 1_000_000),
            1_000.. => ("µs", 1_000),
            _ => ("ns", 1),
        };
        crate::rate::write_scaled(f, ns, scale, unit)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER {
            return f.write_str("never");
        }
        Span(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_in_the_largest_whole_unit() {
        assert_eq!(Span::from_ms(25).to_string(), "25 ms");
        assert_eq!(Span::from_us(1500).to_string(), "1.5 ms");
        assert_eq!(Span::from_ns(999).to_string(), "999 ns");
        assert_eq!(Span::ZERO.to_string(), "0 s");
        assert_eq!(Time::NEVER.to_string(), "never");
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO.since(Time::from_ns(5)), Span::ZERO);
    }
}
