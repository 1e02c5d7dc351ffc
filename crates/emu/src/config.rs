//! Configuration of an emulator: the protocol's `configure` and `start`.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use tcplab_link::Direction;
use tcplab_link::config::{Change, Medium};
use tcplab_units::{Span, Time};

/// Links to emulate, and what to record of them.
#[derive(Clone, Debug, Deserialize)]
pub struct Setup {
    /// Seed of the run: with it every link's random streams are those of the simulator.
    pub seed: u64,
    /// The run directory, which exists; none: nothing is recorded.
    #[serde(default)]
    pub dir: Option<PathBuf>,
    /// The links.
    pub links: Vec<LinkSetup>,
    /// Media that links share.
    #[serde(default)]
    pub media: Vec<Medium>,
    /// CPUs to serve them on, which the nodes leave free; empty: any.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// How often what is sampled.
    #[serde(default)]
    pub sample: Sample,
    /// How much of each packet captures keep.
    #[serde(default)]
    pub capture: Option<What>,
}

/// A link between two nodes.
#[derive(Clone, Debug, Deserialize)]
pub struct LinkSetup {
    /// Its name in the plan.
    pub name: String,
    /// First and second end; forward is from the first to the second.
    pub ends: [End; 2],
    /// First end to second end.
    pub forward: Direction,
    /// Second end to first end.
    pub backward: Direction,
    /// The name of the medium over which both directions send; none: each has a wire of its own.
    #[serde(default)]
    pub medium: Option<String>,
    /// The devices lose their carrier while neither direction is up, as those of a cable that is unplugged.
    #[serde(default)]
    pub carrier: bool,
}

/// One end of a link: an interface to be made.
#[derive(Clone, Debug, Deserialize)]
pub struct End {
    /// The node's name in the plan.
    pub node: String,
    /// A process in the node's namespace.
    pub pid: u32,
    /// The interface's name.
    pub interface: String,
    /// Its address.
    pub mac: Mac,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// The node may leave segmentation to the device.
    #[serde(default = "yes")]
    pub tso: bool,
    /// The node takes packets coalesced.
    #[serde(default = "yes")]
    pub gro: bool,
    /// Its packets are captured.
    #[serde(default)]
    pub capture: bool,
}

/// How often what is recorded.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Every link direction's queue; none: never.
    pub queues: Option<Span>,
    /// Losses of streams; none: only their sum is reported.
    #[serde(default)]
    pub flows: Option<Span>,
    /// Every packet event.
    pub packets: bool,
}

/// How much of each packet a capture keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Ethernet, IP and transport headers.
    Headers,
    /// Everything.
    Full,
}

/// New settings of a link at once.
#[derive(Clone, Debug, Deserialize)]
pub struct LiveChange {
    /// The link's name.
    pub link: String,
    /// Which of its directions.
    pub direction: LinkDirection,
    /// The new settings; their time is that of the order.
    pub change: Change,
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkDirection {
    /// First end to second end.
    Forward,
    /// Second end to first end.
    Backward,
}

/// When a run begins and what it consists of.
#[derive(Clone, Debug, Deserialize)]
pub struct Start {
    /// The run's zero of time on CLOCK_MONOTONIC, ns.
    pub at: u64,
    /// How long it lasts; none: until it is stopped.
    pub duration: Option<Span>,
    /// The servers of the run's streams, which identify the packets' streams.
    #[serde(default)]
    pub streams: Vec<StreamName>,
    /// Links are as at the start of the run, to be measured before it: nothing is recorded or reported, and nothing
    /// changes. It lasts until it is stopped.
    #[serde(default)]
    pub rehearsal: bool,
}

impl Start {
    /// When the run ends.
    pub(crate) fn end(&self) -> Time {
        let duration = self.duration.filter(|_| !self.rehearsal);
        duration.map_or(Time::NEVER, |duration| Time::ZERO + duration)
    }
}

/// Where a stream's server listens.
#[derive(Clone, Debug, Deserialize)]
pub struct StreamName {
    /// The flow's name in the plan.
    pub flow: String,
    /// The stream's number in the flow.
    pub stream: u64,
    /// The server's address.
    pub address: IpAddr,
    /// The server's port; the identifier of ICMP echo requests.
    pub port: u16,
    /// The stream is of ICMP echo requests to the address.
    #[serde(default)]
    pub icmp: bool,
}

/// An Ethernet address, written as six hexadecimal numbers with colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mac, D::Error> {
        let text = String::deserialize(deserializer)?;
        let numbers: Option<Vec<u8>> =
            text.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
        match numbers.and_then(|numbers| numbers.try_into().ok()) {
            Some(mac) => Ok(Mac(mac)),
            None => Err(serde::de::Error::custom(format!(
                "{text:?} is not a MAC address such as 02:00:00:00:00:01"
            ))),
        }
    }
}

fn yes() -> bool {
    true
}
