//! A split-TCP accelerator: a performance-enhancing proxy (RFC 3135) in a router.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tcplab_units::Span;

use crate::Cc;

/// Ends each TCP connection that passes the node and opens a second one to its destination.
///
/// Each leg has a congestion control and buffers of its own. The addresses and ports of both ends stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Accelerator {
    /// The connection to the end that opened it.
    pub towards_client: Leg,
    /// The connection to the end that was asked for.
    pub towards_server: Leg,
    /// Destination ports of the connections that are split; empty: all.
    pub ports: Vec<u16>,
    /// Destination hosts of the connections that are split, nodes by name; empty: all. An agent is given their addresses.
    pub hosts: Vec<String>,
    /// Connections at a time.
    pub connections: u32,
    /// Payload held for all connections together, bytes: acknowledged to one end and not yet by the other.
    pub memory: u64,
    /// Action on a connection that exceeds one of the limits.
    pub when_full: WhenFull,
    /// How long an end may leave unacknowledged what it was sent before its connection is reset (RFC 9293, section 3.9.1).
    pub user_timeout: Span,
}

impl Default for Accelerator {
    fn default() -> Accelerator {
        Accelerator {
            towards_client: Leg::default(),
            towards_server: Leg::default(),
            ports: Vec::new(),
            hosts: Vec::new(),
            connections: 10_000,
            memory: 1 << 30,
            when_full: WhenFull::Pass,
            user_timeout: Span::from_secs(120),
        }
    }
}

impl Accelerator {
    /// Whether it splits connections to this node and port.
    pub fn splits(&self, host: &str, port: u16) -> bool {
        (self.hosts.is_empty() || self.hosts.iter().any(|name| name == host))
            && (self.ports.is_empty() || self.ports.contains(&port))
    }
}

/// One of an accelerator's two connections, at the accelerator's end. Settings not given are Linux's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Leg {
    /// Its congestion control. The default of a namespace depends on the host.
    pub cc: Cc,
    /// Send buffer in bytes as given to SO_SNDBUF; none: auto-tuned.
    pub send_buffer: Option<u64>,
    /// Receive buffer in bytes as given to SO_RCVBUF; none: auto-tuned.
    pub receive_buffer: Option<u64>,
    /// Pace whatever the congestion control, as the fq queue discipline does.
    pub pacing: bool,
}

impl Default for Leg {
    fn default() -> Leg {
        let cc = Cc { name: "cubic".to_owned(), params: BTreeMap::new(), file: None, source: None };
        Leg { cc, send_buffer: None, receive_buffer: None, pacing: false }
    }
}

/// Action on a connection when the accelerator is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// It passes, and is not accelerated.
    Pass,
    /// It is reset.
    Reset,
}
