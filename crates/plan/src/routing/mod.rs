//! Routing protocols of a router, one file a protocol. Names and defaults are those of the protocol and of FRR.

mod bgp;
mod ospf;
mod static_route;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use bgp::{Bgp, NO_ADVERTISE, NO_EXPORT, community};
pub use ospf::{Ospf, OspfInterface};
pub use static_route::StaticRoute;

/// Routing of a router, instead of the plan's default of shortest paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Routing {
    /// BGP-4, for IPv4 and IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp: Option<Bgp>,
    /// OSPFv2, for IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ospf: Option<Ospf>,
    /// OSPFv3, for IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ospf6: Option<Ospf>,
    /// Static routes.
    #[serde(default, rename = "static", skip_serializing_if = "Vec::is_empty")]
    pub static_routes: Vec<StaticRoute>,
    /// A file in FRR's own language, added to what these settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub frr: Option<FrrFile>,
}

/// As many as FRR can, as Debian builds it (`--enable-multipath`).
const MAXIMUM_PATHS: u32 = 256;

fn maximum_paths() -> u32 {
    MAXIMUM_PATHS
}

fn is_maximum(paths: &u32) -> bool {
    *paths == MAXIMUM_PATHS
}

/// A configuration in FRR's own language.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrrFile {
    /// The file as the scenario names it.
    pub file: String,
    /// Its message.
    pub text: String,
}
