//! Settings of a link direction that change during the run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Rate, Span, Time};

use crate::{Chance, Jitter, Limit, Loss, Reorder};

/// New settings from a time on. An absent one stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When.
    pub at: Time,
    /// New rate, at which also the rest of the packet being sent leaves; a link with a trace keeps to the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// New loss process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// New corruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<Chance>,
    /// New duplication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Chance>,
    /// New reordering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// New jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Link goes up or down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// New queue limit, for arrivals; what waits already stays. A shaper hands it on to the queue within.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// New marking threshold, for arrivals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_above: Option<Limit>,
    /// New one-way delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
}

/// The changes as text: `rate 20 Mbit/s, loss`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if let Some(up) = self.up {
            words.push(if up { "up".to_owned() } else { "down".to_owned() });
        }
        if let Some(rate) = self.rate {
            words.push(format!("rate {rate}"));
        }
        if let Some(delay) = self.delay {
            words.push(format!("delay {delay}"));
        }
        for (name, changed) in [
            ("limit", self.limit.is_some()),
            ("marking threshold", self.mark_above.is_some()),
            ("jitter", self.jitter.is_some()),
            ("reorder", self.reorder.is_some()),
            ("loss", self.loss.is_some()),
            ("corrupt", self.corrupt.is_some()),
            ("duplicate", self.duplicate.is_some()),
        ] {
            if changed {
                words.push(name.to_owned());
            }
        }
        f.write_str(&words.join(", "))
    }
}
