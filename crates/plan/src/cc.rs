//! Congestion controls, as a plan names them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A congestion control with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cc {
    /// Its name.
    pub name: String,
    /// Parameters that differ from their defaults, as given (for example beta = 0.8).
    #[serde(default)]
    pub params: BTreeMap<String, f64>,
    /// The C file it is compiled from, by which it is found among the controls of the simulation; none: one of
    /// tcplab's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The text of that file, so that the plan says all there is to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl fmt::Display for Cc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.params.is_empty() {
            return Ok(());
        }
        let params: Vec<String> = self.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
        write!(f, " ({})", params.join(", "))
    }
}
