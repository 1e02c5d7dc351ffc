//! Accelerators: `accelerate` of a router.

use schemars::JsonSchema;
use serde::Deserialize;
use tcplab_plan::WhenFull;

use super::flow::Control;
use super::kinds;

/// A split-TCP accelerator (a performance-enhancing proxy, RFC 3135).
///
/// It ends each TCP connection that passes the router and opens a second one to its destination.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accelerate {
    /// The leg to the end that opened the connection.
    #[serde(default)]
    pub(crate) towards_client: Leg,
    /// The leg to the end that was asked for.
    #[serde(default)]
    pub(crate) towards_server: Leg,
    /// Destination ports of the connections that are split; default: all.
    #[schemars(with = "Option<Vec<kinds::Port>>", length(min = 1), extend("examples" = [[5201]]))]
    pub(crate) ports: Option<Vec<u16>>,
    /// Destination hosts of the connections that are split; default: all.
    #[schemars(with = "Option<Vec<kinds::Name>>", length(min = 1), extend("examples" = [["server"]]))]
    pub(crate) hosts: Option<Vec<String>>,
    /// Connections at a time (default 10000).
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) connections: Option<u32>,
    /// Payload held for all connections together: acknowledged to one end and not yet by the other (default 1 GiB).
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) memory: Option<u64>,
    /// Action on a connection that exceeds a limit: `pass` (default; it is not split) or `reset`.
    pub(crate) when_full: Option<WhenFull>,
    /// How long an end may leave unacknowledged what it was sent before its connection is reset (default 120 s).
    #[schemars(with = "Option<kinds::PositiveTime>")]
    pub(crate) user_timeout: Option<u64>,
    /// Whether the server sees the client's address (default on). Off, it sees the router's, as behind a NAT.
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) transparent: Option<bool>,
    /// Time of its death: split connections are reset, and later ones pass (default never).
    #[schemars(with = "Option<kinds::PositiveTime>")]
    pub(crate) kill_at: Option<u64>,
}

/// One of the two connections, at the accelerator's end.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Leg {
    /// Congestion control (default cubic).
    #[schemars(with = "Option<kinds::Control>")]
    pub(crate) cc: Option<Control>,
    /// Send buffer, as SO_SNDBUF; default: auto-tuned.
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) send_buffer: Option<u64>,
    /// Receive buffer, as SO_RCVBUF; default: auto-tuned.
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) receive_buffer: Option<u64>,
    /// Pace whatever the congestion control, as the fq queue discipline does (default off).
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) pacing: Option<bool>,
}
