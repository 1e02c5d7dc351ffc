//! The commands, as `docs/agent-protocol.md` lists them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;
use tcplab_plan::{Accelerator, Leg};
use tcplab_traffic::End;

use crate::capture::What;
use crate::impair::Towards;

/// The protocol's version. A change that an older caller would misunderstand raises it.
pub const VERSION: u32 = 1;

/// One line of input.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// Comes back with the answer.
    pub id: Option<u64>,
    /// The command.
    #[serde(flatten)]
    pub command: Command,
}

/// The command.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// Say who this is.
    Configure {
        /// The node's name.
        node: String,
        /// The run directory; none: the caller has it, and is sent the files.
        dir: Option<PathBuf>,
        /// CPUs to run on; empty: any.
        #[serde(default)]
        cpus: Vec<usize>,
    },
    /// Prepare one end of a flow.
    Flow(Box<End>),
    /// Split the connections that pass this node.
    Accelerate(Box<Accelerate>),
    /// Answer http requests that pass this node.
    Cache(Box<Cache>),
    /// Prepare sampling.
    Probe(Probe),
    /// Offer a congestion control to the whole machine, until the agent ends.
    #[cfg(feature = "controls")]
    Load(crate::controls::Load),
    /// Prepare captures.
    Capture {
        /// How much of each packet is kept.
        what: What,
        /// Interfaces; empty: all but loopback.
        #[serde(default)]
        interfaces: Vec<String>,
        /// Keep only packets from and to these, of the interfaces that lead there; empty: all packets.
        #[serde(default)]
        peers: Vec<IpAddr>,
    },
    /// Give the run its zero of time, on CLOCK_MONOTONIC.
    Start {
        /// ns on CLOCK_MONOTONIC.
        at: u64,
        /// ns.
        duration: u64,
    },
    /// End the run now.
    Stop,
    /// Say what the clock shows.
    Clock,
    /// Describe the machine.
    Host {
        /// Settings to read.
        #[serde(default)]
        sysctls: Vec<String>,
    },
    /// Answer another agent's questions about the path here, until the run starts.
    Reflect {
        /// Address to listen on.
        address: IpAddr,
        /// Ports to listen on, of which it takes the first free one; empty: any.
        #[serde(default)]
        ports: Vec<u16>,
        /// Payload of each request.
        token: u64,
        /// Whose questions are answered; none: anyone's who knows the token.
        #[serde(default)]
        from: Option<IpAddr>,
    },
    /// Put netem in front of hosts, until the agent ends.
    Impair {
        /// The hosts.
        towards: Vec<Towards>,
    },
    /// Say what the path to an agent that reflects is like.
    Path {
        /// Its address.
        address: IpAddr,
        /// Its port.
        port: u16,
        /// Payload of each request.
        token: u64,
    },
}

/// An accelerator in this node, from now until the agent ends.
#[derive(Debug, Deserialize)]
pub struct Accelerate {
    /// Its settings; congestion controls by their names in this kernel.
    pub accelerator: Accelerator,
    /// Where the streams of flows listen, so that a connection is known by its destination.
    #[serde(default)]
    pub streams: Vec<Destination>,
    /// Interval of rows in `legs`, ns; none: no such rows.
    pub sample: Option<u64>,
}

/// An HTTP cache in this node, from now until the agent ends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// Its settings.
    pub cache: tcplab_plan::Cache,
    /// The leg to the client; congestion controls by their names in this kernel.
    pub towards_client: Leg,
    /// The leg to the server.
    pub towards_server: Leg,
    /// Ports of servers, wherever they are.
    pub ports: Vec<u16>,
    /// Where the streams of http flows listen: servers too.
    pub streams: Vec<Destination>,
    /// Interval of rows in `legs`, ns; none: no such rows.
    pub sample: Option<u64>,
}

/// Where a stream listens.
#[derive(Clone, Debug, Deserialize)]
pub struct Destination {
    /// Its flow.
    pub flow: String,
    /// Its number.
    pub stream: u64,
    /// Its server's address.
    pub address: IpAddr,
    /// Its server's port.
    pub port: u16,
}

/// Tables to sample, and their intervals. Intervals in ns.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// Sending TCP sockets.
    pub sockets: Option<u64>,
    /// CPU and memory.
    pub hosts: Option<u64>,
    /// Every change of the routing table.
    pub routes: bool,
    /// Sockets of unknown programs too.
    pub all_sockets: bool,
    /// The whole machine too.
    pub machine: bool,
    /// Further processes, by name.
    pub processes: BTreeMap<String, u32>,
    /// Controls of ours in use, as `tcplab-agent controls` answered when it loaded them.
    pub controls: Vec<LoadedControl>,
}

/// A control of ours in the kernel.
#[derive(Clone, Debug, Deserialize)]
pub struct LoadedControl {
    /// Its name there.
    pub registered: String,
    /// The number of the map with its connections' state.
    pub state: u32,
    /// Names of its phases, by number.
    pub phases: Vec<String>,
    /// Further figures that it publishes of each connection.
    #[serde(default)]
    pub gauges: Vec<LoadedGauge>,
}

/// Where a control keeps a figure that it publishes.
#[derive(Clone, Debug, Deserialize)]
pub struct LoadedGauge {
    /// Name.
    pub name: String,
    /// Its unit; empty: none.
    pub unit: String,
    /// Bytes from the beginning of the state.
    pub offset: u32,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u32,
    /// Whether it can be negative.
    pub signed: bool,
    /// The divisor of the number.
    pub scale: u32,
}
