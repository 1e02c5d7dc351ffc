//! A token bucket that shapes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Rate;

use super::{Discipline, Limit, Queue, never_shapes};
use crate::describe::Bytes;

/// A token bucket: packets leave at `rate` on average, and as many bytes as have been saved up at once.
///
/// A packet larger than the bucket waits until it is full and leaves it in debt, so that the rate is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tbf {
    /// Rate at which the bucket fills.
    #[schemars(extend("x-role" = "shaper"))]
    pub rate: Rate,
    /// Size of the bucket in frame bytes.
    #[schemars(extend("x-tcplab" = "positive-size"))]
    pub burst: u64,
    /// Rate at which saved bytes leave; none: as fast as the link takes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Rate>,
    /// The queue in which packets wait for tokens. The one at the head, which takes the next tokens, does not count
    /// toward its limit; a limit given as time is converted at this bucket's rate.
    pub queue: Box<Queue>,
}

impl Discipline for Tbf {
    /// Its queue has one.
    fn limit(&self) -> Option<Limit> {
        None
    }

    fn shapes(&self) -> bool {
        true
    }

    fn cautions(&self, rate: Option<Rate>) -> Vec<String> {
        let slow = self.peak.filter(|peak| *peak <= self.rate);
        let slow =
            slow.map(|peak| format!("tbf's `peak` of {peak} is not above its `rate` of {}", self.rate));
        never_shapes("tbf's rate", self.rate, rate)
            .into_iter()
            .chain(slow)
            .chain(self.queue.cautions(Some(self.rate)))
            .collect()
    }
}

impl fmt::Display for Tbf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tbf at {} with bursts of {} ({})", self.rate, Bytes(self.burst), self.queue)
    }
}
