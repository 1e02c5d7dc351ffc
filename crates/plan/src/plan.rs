//! The plan as a whole.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use crate::{Capture, Emulator, ExpectPath, Flow, Link, Medium, Node, Omit, Sample};

/// A plan, executed by an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// Free text about it.
    #[serde(default)]
    pub description: String,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Number of runs, each with its own seed.
    #[serde(default = "one")]
    pub repeat: u64,
    /// From the second run on, each flow starts later by a random phase of up to its base RTT.
    #[serde(default)]
    pub vary: bool,
    /// The warm-up that steady-state figures leave out.
    #[serde(default)]
    pub omit: Omit,
    /// The run ends here at the latest.
    pub duration: Span,
    /// Hosts, switches and routers.
    pub nodes: Vec<Node>,
    /// Point-to-point links.
    pub links: Vec<Link>,
    /// Media that links share which do not have a wire of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Medium>,
    /// Traffic.
    pub flows: Vec<Flow>,
    /// How often what is sampled.
    pub sample: Sample,
    /// Packets to capture.
    pub capture: Option<Capture>,
    /// Emulator of the links of a real kernel's network.
    #[serde(default)]
    pub emulator: Emulator,
    /// How much later each flow starts in this repetition, ns, by its name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub phases: IndexMap<String, Span>,
    /// How long routing protocols may take until the ends of every flow reach each other. Default: 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Span>,
    /// Measure the links before traffic, and refuse those that are off. Default: up to 50 links; before runs, where a flow
    /// lasts beyond 10 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<bool>,
    /// Where its hosts are, as URLs by their names, for the engine of real hosts.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub hosts_at: IndexMap<String, String>,
    /// Requirements on the path between real hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_path: Option<ExpectPath>,
}

fn one() -> u64 {
    1
}
