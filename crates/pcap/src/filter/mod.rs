//! The filter language: which packets or flows are meant.
//!
//! ```text
//! port 5201 and host 10.0.0.1
//! tcp and not (src net 10.0.0.0/8 or dst port 80-89)
//! flow 3 or udp
//! ```
//!
//! `or` binds looser than `and`, `and` looser than `not`; `||`, `&&` and `!` are the same words. Without `src` or
//! `dst` either end may match. A protocol may stand in front of a port or an address, as `tcp port 80`.

mod parse;
mod token;

use std::net::IpAddr;

pub use parse::FilterError;

/// The properties of a packet that a filter looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Where it comes from; of a flow, who began it.
    pub source: Option<IpAddr>,
    /// Where it goes.
    pub destination: Option<IpAddr>,
    /// Port it comes from.
    pub source_port: Option<u16>,
    /// Port it goes to.
    pub destination_port: Option<u16>,
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// The flow's number, from 1.
    pub flow: Option<u64>,
}

/// A filter that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    root: Node,
    needs_flows: bool,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// [`FilterError`] with the place of the first mistake.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let root = parse::parse(text)?;
        let needs_flows = root.mentions_flow();
        Ok(Filter { root, needs_flows })
    }

    /// Whether the subject is meant.
    pub fn matches(&self, subject: &Subject) -> bool {
        self.root.matches(subject)
    }

    /// Whether it asks for flow numbers.
    pub fn needs_flows(&self) -> bool {
        self.needs_flows
    }
}

/// Which end a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Source,
    Destination,
    Either,
}

impl End {
    fn any<T: Copy>(self, source: Option<T>, destination: Option<T>, test: impl Fn(T) -> bool) -> bool {
        match self {
            End::Source => source.is_some_and(test),
            End::Destination => destination.is_some_and(test),
            End::Either => source.is_some_and(&test) || destination.is_some_and(test),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    /// Addresses of this prefix; a host is the prefix of full length.
    Net(End, IpAddr, u8),
    Port(End, u16, u16),
    Protocol(u8),
    Version4,
    Version6,
    Flow(u64),
}

impl Node {
    fn matches(&self, subject: &Subject) -> bool {
        match self {
            Node::Or(parts) => parts.iter().any(|part| part.matches(subject)),
            Node::And(parts) => parts.iter().all(|part| part.matches(subject)),
            Node::Not(inner) => !inner.matches(subject),
            Node::Net(end, net, len) => {
                end.any(subject.source, subject.destination, |address| within(address, *net, *len))
            }
            Node::Port(end, low, high) => {
                end.any(subject.source_port, subject.destination_port, |port| (*low..=*high).contains(&port))
            }
            Node::Protocol(number) => subject.protocol == Some(*number),
            Node::Version4 => subject.source.is_some_and(|address| address.is_ipv4()),
            Node::Version6 => subject.source.is_some_and(|address| address.is_ipv6()),
            Node::Flow(number) => subject.flow == Some(*number),
        }
    }

    fn mentions_flow(&self) -> bool {
        match self {
            Node::Or(parts) | Node::And(parts) => parts.iter().any(Node::mentions_flow),
            Node::Not(inner) => inner.mentions_flow(),
            Node::Flow(_) => true,
            _ => false,
        }
    }
}

/// Whether the first `len` bits of the address are those of `net`.
fn within(address: IpAddr, net: IpAddr, len: u8) -> bool {
    match (address, net) {
        (IpAddr::V4(address), IpAddr::V4(net)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
            (u32::from(address) ^ u32::from(net)) & mask == 0
        }
        (IpAddr::V6(address), IpAddr::V6(net)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
            (u128::from(address) ^ u128::from(net)) & mask == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
