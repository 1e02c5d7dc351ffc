//! A split-TCP accelerator: a performance-enhancing proxy (RFC 3135) in a router.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tcplab_units::{Span, Time};

use crate::Cc;

/// Ends each TCP connection that passes the node and opens a second one to its destination.
///
/// Each leg has a congestion control and buffers of its own.
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
    /// Whether the server sees the client's address and port. Else it sees an address of the node, and a port of its own.
    pub transparent: bool,
    /// By port of the node itself, the address and port that connections to it go on to: it is addressed as a proxy there. These come
    /// from an address of the node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub forward: BTreeMap<u16, String>,
    /// When it dies: the connections that it has split are reset, and later ones pass. None: never.
    pub kill_at: Option<Time>,
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
            transparent: true,
            forward: BTreeMap::new(),
            kill_at: None,
        }
    }
}

impl Accelerator {
    /// How it stands to its limits with so many connections, and so much payload held.
    pub fn load(&self, connections: u64, held: u64) -> Load {
        Load::of(connections, u64::from(self.connections)).max(Load::of(held, self.memory))
    }

    /// Whether it splits connections to this node and port.
    pub fn splits(&self, host: &str, port: u16) -> bool {
        (self.hosts.is_empty() || self.hosts.iter().any(|name| name == host))
            && (self.ports.is_empty() || self.ports.contains(&port))
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [client, server] = [&self.towards_client.cc, &self.towards_server.cc];
        write!(f, "accelerator with {client} towards the client and {server} towards the server")?;
        if !self.ports.is_empty() {
            write!(f, ", for port {}", self.ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "))?;
        }
        if !self.hosts.is_empty() {
            write!(f, ", for connections to {}", self.hosts.join(", "))?;
        }
        self.kill_at.map_or(Ok(()), |at| write!(f, ", dies at {at}"))
    }
}

/// How a figure stands to its limit. New connections pass once it is reached, and until it is well below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// A tenth of the limit is free, or more.
    Low,
    /// Less is free.
    High,
    /// It is reached.
    Full,
}

impl Load {
    /// Of the limit that must be free again, percent.
    const FREE: u64 = 10;

    /// How `figure` stands to `limit`.
    pub fn of(figure: u64, limit: u64) -> Load {
        if figure >= limit {
            Load::Full
        } else if figure > limit - limit.div_ceil(100 / Load::FREE) {
            Load::High
        } else {
            Load::Low
        }
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

#[cfg(test)]
mod tests {
    use super::Load::{Full, High, Low};
    use super::*;

    #[test]
    fn a_limit_that_was_reached_is_well_below_again_with_a_tenth_free() {
        let of = |figure| Load::of(figure, 1000);
        assert_eq!([of(0), of(900), of(901), of(999), of(1000)], [Low, Low, High, High, Full]);
        assert_eq!([Load::of(0, 1), Load::of(1, 1)], [Low, Full]);
        let accelerator = Accelerator { connections: 10, memory: 1000, ..Accelerator::default() };
        assert_eq!(
            [accelerator.load(10, 0), accelerator.load(0, 950), accelerator.load(9, 0)],
            [Full, High, Low]
        );
    }
}
