//! Delivery opportunities recorded on a real link, in mahimahi's format.

use std::fmt;

use tcplab_units::Rate;

use crate::config::Trace;

/// Bytes of the frame's payload (the IP packet) that one opportunity carries.
pub(crate) const OPPORTUNITY_BYTES: u32 = 1500;

/// Latest time of an opportunity, so that times in nanoseconds stay far from overflow: 10^9 s.
const LATEST_MS: u64 = 1_000_000_000_000;

/// What is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// A line, counted from 1, is not a whole number of milliseconds.
    NotANumber {
        /// The line's number.
        line: usize,
        /// What it says, shortened.
        text: String,
    },
    /// A line's time is before the one above it.
    Descends {
        /// The line's number.
        line: usize,
        /// Its milliseconds.
        ms: u64,
        /// The milliseconds of the line above.
        previous_ms: u64,
    },
    /// A line's time is beyond what can be simulated.
    TooLate {
        /// The line's number.
        line: usize,
        /// Its milliseconds.
        ms: u64,
    },
    /// There is no opportunity at all.
    Empty,
    /// The last opportunity is at 0 ms, so the trace has no length to repeat after.
    NoLength {
        /// The last line's number.
        line: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::NotANumber { line, text } => {
                write!(f, "line {line}: expected a whole number of milliseconds, found {text:?}")
            }
            TraceError::Descends { line, ms, previous_ms } => {
                write!(f, "line {line}: {ms} ms is before the {previous_ms} ms of the line above")
            }
            TraceError::TooLate { line, ms } => {
                write!(f, "line {line}: {ms} ms is beyond the latest time allowed, {LATEST_MS} ms")
            }
            TraceError::Empty => f.write_str("the trace has no delivery opportunity"),
            TraceError::NoLength { line } => {
                write!(
                    f,
                    "line {line}: the last opportunity is at 0 ms, so the trace has no length to repeat after"
                )
            }
        }
    }
}

impl std::error::Error for TraceError {}

impl Trace {
    /// Reads a trace: one line for each opportunity to deliver 1500 bytes, with its time in milliseconds.
    ///
    /// Times ascend (several may be equal), and the last one, above zero, is the period after which the
    /// trace repeats. Blank lines are passed over.
    ///
    /// # Errors
    /// The first line that is wrong, with its number and what it says.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut opportunities_ms = Vec::new();
        let mut last = (0, 0);
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            let ms = match text.parse::<u64>() {
                Ok(ms) if text.starts_with(|c: char| c.is_ascii_digit()) => ms,
                _ => return Err(TraceError::NotANumber { line, text: text.chars().take(40).collect() }),
            };
            let (_, previous_ms) = last;
            if ms < previous_ms {
                return Err(TraceError::Descends { line, ms, previous_ms });
            }
            if ms > LATEST_MS {
                return Err(TraceError::TooLate { line, ms });
            }
            opportunities_ms.push(ms);
            last = (line, ms);
        }
        match last {
            (0, _) => Err(TraceError::Empty),
            (line, 0) => Err(TraceError::NoLength { line }),
            _ => Ok(Trace { opportunities_ms }),
        }
    }

    /// The mean rate of the trace in frame payload, for limits given as time.
    pub fn mean_rate(&self) -> Option<Rate> {
        let period_ms = *self.opportunities_ms.last()?;
        let bits = self.opportunities_ms.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8 * 1000;
        Rate::from_bits_per_sec(u64::try_from(bits.checked_div(u128::from(period_ms))?).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Trace::parse(text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn one_opportunity_a_line() {
        let trace = Trace::parse("0\n0\r\n 7\n\n12").expect("it is right");
        assert_eq!(trace.opportunities_ms, [0, 0, 7, 12]);
    }

    #[test]
    fn errors_name_the_line_and_what_it_says() {
        assert_eq!(error("1\n2\n1.5\n"), "line 3: expected a whole number of milliseconds, found \"1.5\"");
        assert_eq!(error("1\n\n-2\n"), "line 3: expected a whole number of milliseconds, found \"-2\"");
        assert_eq!(error("+1"), "line 1: expected a whole number of milliseconds, found \"+1\"");
        assert_eq!(error("5\n4\n"), "line 2: 4 ms is before the 5 ms of the line above");
        assert_eq!(
            error("5\n\n1000000000001"),
            "line 3: 1000000000001 ms is beyond the latest time allowed, 1000000000000 ms"
        );
        assert_eq!(error("\n \n"), "the trace has no delivery opportunity");
        assert_eq!(
            error("0\n0\n"),
            "line 2: the last opportunity is at 0 ms, so the trace has no length to repeat after"
        );
    }

    #[test]
    fn a_long_line_is_quoted_shortened() {
        let TraceError::NotANumber { text, .. } = Trace::parse(&"x".repeat(1000)).expect_err("it is wrong")
        else {
            panic!("another error");
        };
        assert_eq!(text.len(), 40);
    }

    #[test]
    fn the_mean_rate_counts_1500_bytes_an_opportunity() {
        let trace = Trace { opportunities_ms: vec![1, 2, 3, 4] };
        assert_eq!(trace.mean_rate(), Rate::from_bits_per_sec(12_000_000));
        assert_eq!(Trace { opportunities_ms: vec![] }.mean_rate(), None);
        assert_eq!(Trace { opportunities_ms: vec![0] }.mean_rate(), None);
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_text_the_answer_is_a_playable_trace_or_an_error(text in "[0-9+\\-. \n]{0,40}") {
            if let Ok(trace) = Trace::parse(&text) {
                proptest::prop_assert!(trace.opportunities_ms.is_sorted());
                proptest::prop_assert!(trace.opportunities_ms.last() > Some(&0));
            }
        }
    }
}
