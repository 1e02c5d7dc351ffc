//! Hosts, switches and routers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Accelerator, Cache, Nic, Routing, TcpSettings, Timing};

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Handling of packets for other nodes.
    pub kind: NodeKind,
    /// The settings of its TCP.
    pub tcp: TcpSettings,
    /// Where packets go: destination node to the name of the link they leave by.
    pub routes: BTreeMap<String, String>,
    /// Of a router with equal-cost multipath: the destinations that several links lead to, that of `routes` first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub multipath: BTreeMap<String, Vec<String>>,
    /// Kernel settings by name, for engines with a kernel.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// CPUs the node's processes are pinned to, for engines with real ones; empty: any.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// Offloads of its interfaces.
    #[serde(default)]
    pub offloads: Offloads,
    /// How long a host takes, for engines without real ones.
    #[serde(default, skip_serializing_if = "Timing::is_ideal")]
    pub timing: Timing,
    /// Of a host: what its interfaces are; none: they send at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<Nic>,
    /// Routing protocols of a router; none: packets go as `routes` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
    /// Of a router: what splits the TCP connections that pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerate: Option<Accelerator>,
    /// Of a router: what answers requests of http flows that pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
}

/// Handling of packets for other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// Discards them.
    Host,
    /// Forwards frames.
    Switch,
    /// Forwards packets along shortest paths.
    Router,
}

/// Traits of all nodes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NodeTraits {
    /// Its name in plans.
    pub name: &'static str,
    /// Flows begin and end there.
    pub ends_flows: bool,
    /// It joins its links to one subnet, and has no addresses there.
    pub bridges: bool,
    /// It forwards packets between its subnets.
    pub forwards: bool,
}

impl NodeKind {
    /// Traits of all nodes of its kind.
    pub const fn traits(self) -> NodeTraits {
        let (name, ends_flows, bridges, forwards) = match self {
            NodeKind::Host => ("host", true, false, false),
            NodeKind::Switch => ("switch", false, true, false),
            NodeKind::Router => ("router", false, false, true),
        };
        NodeTraits { name, ends_flows, bridges, forwards }
    }
}

/// Offloads of a node's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offloads {
    /// TCP segmentation offload.
    pub tso: bool,
    /// Generic segmentation offload.
    pub gso: bool,
    /// Generic receive offload.
    pub gro: bool,
}

impl Default for Offloads {
    fn default() -> Offloads {
        Offloads { tso: true, gso: true, gro: false }
    }
}
