//! Packets that overtake others.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use crate::Chance;

/// Packets that overtake others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of packets that skip `by` of the delay.
    pub chance: Chance,
    /// How much of the delay they skip; none: all of it.
    pub by: Option<Span>,
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} reordered", self.chance)?;
        self.by.map_or(Ok(()), |by| write!(f, " by {by}"))
    }
}
