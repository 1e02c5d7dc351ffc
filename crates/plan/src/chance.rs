//! Random events with correlation.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Probability;

/// An event that hits packets at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chance {
    /// The mean share of packets affected.
    pub rate: Probability,
    /// How much one packet's fate resembles its predecessor's, 0 to 1; the mean rate is kept.
    pub correlation: Probability,
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rate)?;
        if self.correlation.is_zero() { Ok(()) } else { write!(f, " (correlation {})", self.correlation) }
    }
}
