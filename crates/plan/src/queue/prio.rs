//! Strict priority.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Rate;

use super::{Discipline, Limit, Queue};

/// Bands in order of priority: as long as something waits in one, no later one sends.
///
/// A packet joins the first band that names its DSCP, otherwise the first that names none, otherwise the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prio {
    /// From the highest priority to the lowest; at least one.
    #[schemars(length(min = 1, max = 16))]
    pub bands: Vec<Band>,
}

/// One band.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Differentiated services codepoints of its packets, 0 to 63 or as RFCs name them (`EF`, `AF41`, `CS1`); none: all that no band names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = {"type": "integer", "x-tcplab": "dscp"}))]
    pub dscp: Vec<u8>,
    /// The queue in which its packets wait.
    pub queue: Queue,
}

impl Discipline for Prio {
    /// Its bands have limits.
    fn limit(&self) -> Option<Limit> {
        None
    }

    fn shapes(&self) -> bool {
        self.bands.iter().any(|band| band.queue.shapes())
    }

    fn cautions(&self, rate: Option<Rate>) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let named = self.bands.iter().flat_map(|band| band.dscp.iter().copied().collect::<BTreeSet<u8>>());
        let twice = named.filter(|dscp| !seen.insert(*dscp)).collect::<BTreeSet<u8>>();
        let first = |dscp| format!("DSCP {dscp} is in two bands; its packets join the first");
        let inner = self.bands.iter().flat_map(|band| band.queue.cautions(rate));
        twice.into_iter().map(first).chain(inner).collect()
    }
}

impl fmt::Display for Prio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let band = |band: &Band| {
            let codepoints: Vec<String> = band.dscp.iter().map(u8::to_string).collect();
            let who = if codepoints.is_empty() {
                "others".into()
            } else {
                format!("DSCP {}", codepoints.join(", "))
            };
            format!("{who}: {}", band.queue)
        };
        let bands: Vec<String> = self.bands.iter().map(band).collect();
        write!(f, "prio ({})", bands.join("; "))
    }
}
