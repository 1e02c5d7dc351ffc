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
}

impl Finding {
    pub(super) fn compare(what: &'static str, asked: f64, measured: f64, tolerance: f64) -> Finding {
        let verdict = if (measured - asked).abs() <= tolerance { Verdict::Ok } else { Verdict::Off };
        let [asked, measured, tolerance] = [asked, measured, tolerance].map(Some);
        Finding { what, verdict, asked, measured, tolerance, reason: "" }
    }

    pub(super) fn unknown(what: &'static str, reason: &'static str) -> Finding {
        Finding { what, verdict: Verdict::NotVerified, asked: None, measured: None, tolerance: None, reason }
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
        }
    }
}
