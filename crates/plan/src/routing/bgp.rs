//! BGP-4 (RFC 4271).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use super::{is_maximum, maximum_paths};

/// BGP-4 (RFC 4271). It announces the networks of the router's interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bgp {
    /// Number of the autonomous system.
    #[serde(rename = "as")]
    #[schemars(extend("x-tcplab" = "asn"))]
    pub autonomous_system: u32,
    /// Routers that it has sessions with, where those have it too. Default: `auto`, every neighbour with BGP, and every
    /// router of the same system (iBGP).
    #[serde(default = "auto", skip_serializing_if = "is_auto")]
    #[schemars(extend("x-tcplab" = "words"))]
    pub neighbours: Vec<String>,
    /// Prefixes that it announces beside the networks of its interfaces. Packets to them that no longer prefix fits are
    /// discarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-tcplab" = "words"))]
    pub networks: Vec<String>,
    /// Communities of what it announces (RFC 1997): `100:20`, `no-export` or `no-advertise`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-tcplab" = "words"))]
    pub communities: Vec<String>,
    /// Paths of equal rank that share the traffic (ECMP); 1: the best alone. Default: 256.
    #[serde(default = "maximum_paths", skip_serializing_if = "is_maximum")]
    #[schemars(extend("x-tcplab" = "paths"))]
    pub maximum_paths: u32,
    /// Time between KEEPALIVE messages. Default: 60 s.
    #[serde(default = "keepalive")]
    pub keepalive: Span,
    /// A session ends when nothing has come for this long; whole seconds, 3 s at least. Default: 180 s.
    #[serde(default = "hold_time")]
    pub hold_time: Span,
    /// Time until a session that could not be opened is tried again (ConnectRetryTimer). Default: 10 s, of FRR's profile
    /// for data centres: routers that start together may miss each other once.
    #[serde(default = "connect_retry")]
    pub connect_retry: Span,
    /// Minimum time between advertisements to a neighbour (MRAI). Default: 0 s, FRR's for other systems.
    #[serde(default)]
    pub advertisement_interval: Span,
    /// Detect the loss of a neighbour with BFD (RFC 5880): 3 missed packets of 300 ms. Default: off.
    #[serde(default)]
    #[schemars(extend("x-tcplab" = "switch"))]
    pub bfd: bool,
}

impl Bgp {
    /// Whether it is to have a session with this router.
    pub fn wants(&self, router: &str) -> bool {
        is_auto(&self.neighbours) || self.neighbours.iter().any(|name| name == router)
    }
}

/// A community by name or as two numbers; none: it is not one.
pub fn community(text: &str) -> Option<u32> {
    match text {
        "no-export" => Some(NO_EXPORT),
        "no-advertise" => Some(NO_ADVERTISE),
        _ => {
            let (system, value) = text.split_once(':')?;
            Some(u32::from(system.parse::<u16>().ok()?) << 16 | u32::from(value.parse::<u16>().ok()?))
        }
    }
}

/// Not to be announced to other systems (RFC 1997).
pub const NO_EXPORT: u32 = 0xffff_ff01;
/// Not to be announced to any neighbour (RFC 1997).
pub const NO_ADVERTISE: u32 = 0xffff_ff02;

fn auto() -> Vec<String> {
    vec!["auto".to_owned()]
}

fn is_auto(neighbours: &[String]) -> bool {
    neighbours == ["auto"]
}

fn keepalive() -> Span {
    Span::from_ms(60_000)
}

fn connect_retry() -> Span {
    Span::from_ms(10_000)
}

fn hold_time() -> Span {
    Span::from_ms(180_000)
}
