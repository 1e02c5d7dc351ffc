//! The plan as a whole.

use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use crate::{Capture, Flow, Link, Node, Sample};

/// What an engine executes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// The run ends here at the latest.
    pub duration: Span,
    /// Hosts, switches and routers.
    pub nodes: Vec<Node>,
    /// Point-to-point links.
    pub links: Vec<Link>,
    /// Traffic.
    pub flows: Vec<Flow>,
    /// How often what is sampled.
    pub sample: Sample,
    /// What is captured.
    pub capture: Option<Capture>,
}
