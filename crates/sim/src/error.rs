//! Why a plan cannot be simulated.

use tcplab_control::ControlError;
use tcplab_units::Span;

/// Why a plan cannot be simulated.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum PlanError {
    /// Two nodes, links or flows share a name.
    #[error("two {what} are called `{name}`")]
    Twice {
        /// `nodes`, `links` or `flows`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that nothing bears.
    #[error("{place}: there is no {what} called `{name}`")]
    Unknown {
        /// Where it is used.
        place: String,
        /// `node` or `link`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A route leaves by a link that does not end at the node.
    #[error("nodes.{node}.routes: link `{link}` does not end at this node")]
    ForeignLink {
        /// The node.
        node: String,
        /// The link.
        link: String,
    },
    /// A link on a medium does not say how fast it sends.
    #[error("links.{link}: a link on a medium needs a `rate` in both directions, and takes no `trace`")]
    NoRate {
        /// The link.
        link: String,
    },
    /// Packets would not arrive.
    #[error("flows.{flow}: no route from `{from}` to `{to}` (it ends at `{stuck}`)")]
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
    #[error(
        "flows.{flow}: {from} does not reach {to} after {patience}: {stuck} has no route. Check what its routers \
         announce, or set `wait: {{timeout: ...}}`"
    )]
    NotConverged {
        /// The flow.
        flow: String,
        /// Where packets start.
        from: String,
        /// Where they should arrive.
        to: String,
        /// The node that knows no further.
        stuck: String,
        /// How long was waited.
        patience: Span,
    },
    /// A configuration that the models do not read.
    #[error("nodes.{node}.frr: the simulator does not read FRR's own language")]
    FrrFile {
        /// The router.
        node: String,
    },
    /// A network with more than two routers.
    #[error(
        "nodes.{node}.routing: the simulator's routing protocols run on links between two routers, \
         and {node} meets {other} at the switch {switch}"
    )]
    SharedSubnet {
        /// The router.
        node: String,
        /// Another in the same subnet.
        other: String,
        /// The link or medium that joins them.
        switch: String,
    },
    /// A path has room for so many.
    #[error("flows.{flow}: its path has {count} accelerators and caches; {most} are possible")]
    Relays {
        /// The flow.
        flow: String,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// The field has six bits.
    #[error("flows.{flow}.dscp: {dscp} is not a codepoint from 0 to 63")]
    Dscp {
        /// The flow.
        flow: String,
        /// Codepoint asked for.
        dscp: u8,
    },
    /// A packet would have to be fragmented, which is not simulated.
    #[error(
        "flows.{flow}.payload: {payload} B make an IP packet of {length} B, \
         but the path carries at most {mtu} B and fragments are not simulated"
    )]
    TooLong {
        /// The flow.
        flow: String,
        /// Payload asked for, bytes.
        payload: u32,
        /// IP length it needs, bytes.
        length: u64,
        /// The path's least MTU, bytes.
        mtu: u32,
    },
    /// A setting that would stop the clock.
    #[error("{place} must be more than zero")]
    Zero {
        /// The setting.
        place: String,
    },
    /// Nothing on the path takes time.
    #[error("flows.{flow}: no link on its path has a rate or a delay, so a round trip would take no time")]
    NoTime {
        /// The flow.
        flow: String,
    },
    /// The path's MTU leaves no room for payload.
    #[error("flows.{flow}: an MTU of {mtu} B leaves no room for TCP payload")]
    NoRoomForPayload {
        /// The flow.
        flow: String,
        /// The path's least MTU, bytes.
        mtu: u32,
    },
    /// An interface address that is not an IP address with a prefix length.
    #[error("links.{link}.addresses: `{address}` is not an IP address with a prefix length")]
    Address {
        /// The link.
        link: String,
        /// The given value.
        address: String,
    },
    /// A captured node without an address of its own.
    #[error("flows.{flow}: node `{node}` has no address to capture packets with")]
    NoAddress {
        /// The flow.
        flow: String,
        /// The node.
        node: String,
    },
    /// More parts than indices.
    #[error("{what}: the plan has {count}, but the simulator takes at most {most}")]
    TooMany {
        /// `nodes`, `links`, `flows` or `streams`.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many are possible.
        most: u64,
    },
    /// A congestion control that cannot be had.
    #[error("flows.{flow}.cc: {source}")]
    Control {
        /// The flow.
        flow: String,
        /// The mistake in it.
        source: ControlError,
    },
}
