//! A link's verdicts: the requested value beside the measured one.

use serde::Serialize;

/// Whether a link does what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Within the tolerance.
    Ok,
    /// Off by more.
    Off,
    /// Cannot be measured.
    NotVerified,
}

/// One property of one direction. Delays are in seconds, rates in bit/s, queue limits in frames, losses shares.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Finding {
    pub(super) what: &'static str,
    pub(super) verdict: Verdict,
    asked: Option<f64>,
    measured: Option<f64>,
    tolerance: Option<f64>,
    /// Why it is not verified.
    pub(super) reason: &'static str,
    /// It was measured before, and was off then too.
    #[serde(skip)]
    confirmed: bool,
}

impl Finding {
    pub(super) fn compare(what: &'static str, asked: f64, measured: f64, tolerance: f64) -> Finding {
        let verdict = if (measured - asked).abs() <= tolerance { Verdict::Ok } else { Verdict::Off };
        let [asked, measured, tolerance] = [asked, measured, tolerance].map(Some);
        Finding { what, verdict, asked, measured, tolerance, reason: "", confirmed: false }
    }

    pub(super) fn unknown(what: &'static str, reason: &'static str) -> Finding {
        Finding {
            what,
            verdict: Verdict::NotVerified,
            asked: None,
            measured: None,
            tolerance: None,
            reason,
            confirmed: false,
        }
    }

    pub(super) fn nothing_came(what: &'static str, asked: f64) -> Finding {
        let asked = Some(asked);
        Finding {
            what,
            verdict: Verdict::Off,
            asked,
            measured: None,
            tolerance: None,
            reason: "no probe arrived",
            confirmed: false,
        }
    }

    /// The finding that takes the place of this one.
    pub(super) fn repeated(&self, next: Finding) -> Finding {
        let off = self.verdict == Verdict::Off;
        if off && next.verdict == Verdict::NotVerified {
            return self.clone();
        }
        Finding { confirmed: off, ..next }
    }

    /// It was off once, which may have been the machine. It makes no link quicker.
    pub(super) fn is_doubtful(&self) -> bool {
        let too_early = self.what == "delay" && self.measured < self.asked && self.measured.is_some();
        self.verdict == Verdict::Off && !self.confirmed && !too_early
    }

    /// The finding that stands at the end.
    pub(super) fn concluded(&self, doubt: &'static str) -> Finding {
        if !self.is_doubtful() {
            return self.clone();
        }
        Finding { verdict: Verdict::NotVerified, reason: doubt, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBT: &str = "not measured again";

    fn delay(measured: f64) -> Finding {
        Finding::compare("delay", 0.1, measured, 0.002)
    }

    #[test]
    fn what_is_off_once_is_not_verified_and_has_its_figures() {
        let found = delay(0.2).concluded(DOUBT);
        assert_eq!((found.verdict, found.reason), (Verdict::NotVerified, DOUBT));
        assert_eq!((found.asked, found.measured), (Some(0.1), Some(0.2)));
        assert!(delay(0.2).is_doubtful());
        assert_eq!(Finding::nothing_came("rate", 1e6).concluded(DOUBT).verdict, Verdict::NotVerified);
    }

    #[test]
    fn what_is_off_twice_is_off() {
        assert_eq!(delay(0.2).repeated(delay(0.3)).concluded(DOUBT).verdict, Verdict::Off);
        assert!(!delay(0.2).repeated(delay(0.3)).is_doubtful());
        assert_eq!(delay(0.2).repeated(delay(0.1)).concluded(DOUBT).verdict, Verdict::Ok);
        let unknown = Finding::unknown("delay", "no time");
        assert_eq!(unknown.repeated(delay(0.2)).concluded(DOUBT).verdict, Verdict::NotVerified);
    }

    #[test]
    fn a_repetition_without_an_answer_changes_nothing() {
        let found = delay(0.2).repeated(Finding::unknown("delay", "no time"));
        assert_eq!((found.verdict, found.measured), (Verdict::Off, Some(0.2)));
    }

    #[test]
    fn a_delay_that_is_too_short_needs_no_repetition() {
        assert_eq!(delay(0.05).concluded(DOUBT).verdict, Verdict::Off);
        assert!(!delay(0.05).is_doubtful());
        assert_eq!(delay(0.101).concluded(DOUBT).verdict, Verdict::Ok);
    }
}
