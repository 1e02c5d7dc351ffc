//! BGP-4 (RFC 4271).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

/// BGP-4 (RFC 4271): a session with every neighbour that has it, and with every router of the same system (iBGP).
///
/// It announces the networks of the router's interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bgp {
    /// Number of the autonomous system.
    #[serde(rename = "as")]
    #[schemars(extend("x-tcplab" = "asn"))]
    pub autonomous_system: u32,
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

fn keepalive() -> Span {
    Span::from_ms(60_000)
}

fn connect_retry() -> Span {
    Span::from_ms(10_000)
}

fn hold_time() -> Span {
    Span::from_ms(180_000)
}
