//! OSPF version 2 (RFC 2328) and 3 (RFC 5340), which have the same settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use super::{is_maximum, maximum_paths};

/// OSPF on every interface of a router. Interfaces without another OSPF router are passive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ospf {
    /// Area of the interfaces. Default: 0, the backbone.
    #[serde(default)]
    #[schemars(extend("x-tcplab" = "area"))]
    pub area: u32,
    /// Cost of the interfaces. Default: 100 Mbit/s over the rate of the link, 1 at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-tcplab" = "cost"))]
    pub cost: Option<u32>,
    /// Time between Hello packets; whole seconds. Default: 10 s.
    #[serde(default = "hello")]
    pub hello_interval: Span,
    /// A neighbour is gone when no Hello has come for this long; whole seconds. Default: 40 s.
    #[serde(default = "dead")]
    pub dead_interval: Span,
    /// From a change to the calculation of routes. Default: 0 ms.
    #[serde(default)]
    pub spf_delay: Span,
    /// Minimum time between two calculations; it grows by itself while changes go on. Default: 50 ms.
    #[serde(default = "hold")]
    pub spf_hold: Span,
    /// Maximum of that time. Default: 5 s.
    #[serde(default = "max_hold")]
    pub spf_max_hold: Span,
    /// Paths of equal cost that share the traffic (ECMP); 1: one alone. Default: 256.
    #[serde(default = "maximum_paths", skip_serializing_if = "is_maximum")]
    #[schemars(extend("x-tcplab" = "paths"))]
    pub maximum_paths: u32,
    /// Detect the loss of a neighbour with BFD (RFC 5880): 3 missed packets of 300 ms. Default: off.
    #[serde(default)]
    #[schemars(extend("x-tcplab" = "switch"))]
    pub bfd: bool,
    /// Interfaces that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<OspfInterface>,
}

/// Settings of one interface, named by its link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OspfInterface {
    /// The link.
    #[schemars(extend("x-tcplab" = "name"))]
    pub link: String,
    /// Its area.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-tcplab" = "area"))]
    pub area: Option<u32>,
    /// Its cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-tcplab" = "cost"))]
    pub cost: Option<u32>,
}

fn hello() -> Span {
    Span::from_ms(10_000)
}

fn dead() -> Span {
    Span::from_ms(40_000)
}

fn hold() -> Span {
    Span::from_ms(50)
}

fn max_hold() -> Span {
    Span::from_ms(5_000)
}
