//! Why a plan cannot be simulated.

use std::fmt;

use tcplab_control::ControlError;
use tcplab_units::Span;

/// Why a plan cannot be simulated.
#[derive(Debug, PartialEq)]
pub enum PlanError {
    /// Two nodes, links or flows share a name.
    Twice {
        /// `nodes`, `links` or `flows`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that nothing bears.
    Unknown {
        /// Where it is used.
        place: String,
        /// `node` or `link`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A route leaves by a link that does not end at the node.
    ForeignLink {
        /// The node.
        node: String,
        /// The link.
        link: String,
    },
    /// A link on a medium does not say how fast it sends.
    NoRate {
        /// The link.
        link: String,
    },
    /// Packets would not arrive.
    NoRoute {
        /// The flow.
        flow: String,
        /// Where packets start.
        from: String,
        /// Where they should arrive.
        to: String,
        /// The node that knows no further, or that packets would come back to.
        stuck: String,
    },
    /// Routing protocols have found no way in time.
    NotConverged {
        /// The flow.
        flow: String,
        /// Where packets start.
        from: String,
        /// Where they should arrive.
        to: String,
        /// The node that knows no further, or that packets come back to.
        stuck: String,
        /// Whether they come back.
        goes_round: bool,
        /// How long was waited.
        patience: Span,
    },
    /// A configuration that the models do not read.
    FrrFile {
        /// The router.
        node: String,
    },
    /// A network with more than two routers.
    SharedSubnet {
        /// The router.
        node: String,
        /// Another in the same subnet.
        other: String,
        /// The link or medium that joins them.
        switch: String,
    },
    /// A path has room for so many.
    Relays {
        /// The flow.
        flow: String,
        /// How many there are.
        count: usize,
        /// How many there may be.
        maximum: usize,
    },
    /// The field has six bits.
    Dscp {
        /// The flow.
        flow: String,
        /// Codepoint asked for.
        dscp: u8,
    },
    /// A packet would have to be fragmented, which is not simulated.
    TooLong {
        /// The flow.
        flow: String,
        /// Payload asked for, bytes.
        payload: u32,
        /// IP length it needs, bytes.
        length: u64,
        /// The path's minimum MTU, bytes.
        mtu: u32,
    },
    /// A setting that would stop the clock.
    Zero {
        /// The setting.
        place: String,
    },
    /// Nothing on the path takes time.
    NoTime {
        /// The flow.
        flow: String,
    },
    /// The path's MTU leaves no room for payload.
    NoRoomForPayload {
        /// The flow.
        flow: String,
        /// The path's minimum MTU, bytes.
        mtu: u32,
    },
    /// An interface address that is not an IP address with a prefix length.
    Address {
        /// The link.
        link: String,
        /// The given value.
        address: String,
    },
    /// A captured node without an address of its own.
    NoAddress {
        /// The flow.
        flow: String,
        /// The node.
        node: String,
    },
    /// More parts than indices.
    TooMany {
        /// `nodes`, `links`, `flows` or `streams`.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many are possible.
        maximum: u64,
    },
    /// A congestion control that cannot be had.
    Control {
        /// The flow.
        flow: String,
        /// The mistake in it.
        source: ControlError,
    },
}

impl PlanError {
    /// Path in the plan of what it is about.
    pub fn place(&self) -> String {
        match self {
            PlanError::Twice { what, .. } | PlanError::TooMany { what, .. } => (*what).to_owned(),
            PlanError::Unknown { place, .. } | PlanError::Zero { place } => place.clone(),
            PlanError::ForeignLink { node, .. } => format!("nodes.{node}.routes"),
            PlanError::NoRate { link } => format!("links.{link}"),
            PlanError::NoRoute { flow, .. }
            | PlanError::NotConverged { flow, .. }
            | PlanError::Relays { flow, .. }
            | PlanError::NoTime { flow }
            | PlanError::NoRoomForPayload { flow, .. }
            | PlanError::NoAddress { flow, .. } => format!("flows.{flow}"),
            PlanError::FrrFile { node } => format!("nodes.{node}.frr"),
            PlanError::SharedSubnet { node, .. } => format!("nodes.{node}.routing"),
            PlanError::Dscp { flow, .. } => format!("flows.{flow}.dscp"),
            PlanError::TooLong { flow, .. } => format!("flows.{flow}.payload"),
            PlanError::Address { link, .. } => format!("links.{link}.addresses"),
            PlanError::Control { flow, .. } => format!("flows.{flow}.cc"),
        }
    }

    /// The mistake there.
    pub fn message(&self) -> String {
        match self {
            PlanError::Twice { what, name } => format!("two {what} are called `{name}`"),
            PlanError::Unknown { what, name, .. } => format!("unknown {what} `{name}`"),
            PlanError::ForeignLink { link, .. } => format!("link `{link}` does not end at this node"),
            PlanError::NoRate { .. } => {
                "a link on a medium needs a `rate` in both directions, and takes no `trace`".to_owned()
            }
            PlanError::NoRoute { from, to, stuck, .. } => {
                format!("no route from `{from}` to `{to}` (it ends at `{stuck}`)")
            }
            PlanError::NotConverged { from, to, stuck, goes_round, patience, .. } => {
                let why = if *goes_round { "is in a routing loop" } else { "has no route" };
                format!("{from} does not reach {to} after {patience}: {stuck} {why}")
            }
            PlanError::FrrFile { .. } => "the simulator does not read FRR's own language".to_owned(),
            PlanError::SharedSubnet { node, other, switch } => format!(
                "the simulator's routing protocols run on links between two routers, \
                 and {node} meets {other} at the switch {switch}"
            ),
            PlanError::Relays { count, maximum, .. } => {
                format!("its path has {count} accelerators and caches; {maximum} are possible")
            }
            PlanError::Dscp { dscp, .. } => format!("{dscp} is not a codepoint from 0 to 63"),
            PlanError::TooLong { payload, length, mtu, .. } => format!(
                "{payload} B make an IP packet of {length} B, \
                 but the path carries at most {mtu} B and fragments are not simulated"
            ),
            PlanError::Zero { .. } => "must be more than zero".to_owned(),
            PlanError::NoTime { .. } => {
                "no link on its path has a rate or a delay, so a round trip would take no time".to_owned()
            }
            PlanError::NoRoomForPayload { mtu, .. } => {
                format!("an MTU of {mtu} B leaves no room for TCP payload")
            }
            PlanError::Address { address, .. } => {
                format!("`{address}` is not an IP address with a prefix length")
            }
            PlanError::NoAddress { node, .. } => {
                format!("node `{node}` has no address to capture packets with")
            }
            PlanError::TooMany { count, maximum, .. } => {
                format!("the plan has {count}, but the simulator takes at most {maximum}")
            }
            PlanError::Control { source, .. } => source.to_string(),
        }
    }

    /// The setting that fixes it; empty where the message says it.
    pub fn hint(&self) -> String {
        match self {
            PlanError::NoRate { .. } => "give the link a `rate`, and leave out `trace`".to_owned(),
            PlanError::NotConverged { .. } => {
                "check what its routers announce, or set `wait: {timeout: ...}`".to_owned()
            }
            PlanError::FrrFile { .. } => "use `--engine kernel`, or leave out `frr`".to_owned(),
            PlanError::SharedSubnet { .. } => {
                "use `--engine kernel`, or join the routers by links of their own".to_owned()
            }
            PlanError::Relays { .. } => "leave out `accelerate` or `cache` at some of them".to_owned(),
            PlanError::TooLong { payload, length, mtu, .. } => {
                let header = length - u64::from(*payload);
                let maximum = u64::from(*mtu).saturating_sub(header);
                format!("use a `payload` of at most {maximum} B")
            }
            PlanError::NoTime { .. } => "give a link on the path a `rate` or a `delay`; \
                 to a generated `topology` add `edge: {rate: 1 Gbit/s, delay: 10 us}`"
                .to_owned(),
            PlanError::NoRoomForPayload { .. } => "use a larger `mtu` on the path's links".to_owned(),
            PlanError::Control { .. } => "change it or leave it out".to_owned(),
            PlanError::Twice { .. }
            | PlanError::Unknown { .. }
            | PlanError::ForeignLink { .. }
            | PlanError::NoRoute { .. }
            | PlanError::Dscp { .. }
            | PlanError::Zero { .. }
            | PlanError::Address { .. }
            | PlanError::NoAddress { .. }
            | PlanError::TooMany { .. } => String::new(),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.message())
    }
}

impl std::error::Error for PlanError {}
