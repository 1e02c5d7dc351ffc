//! What each namespace of a lab holds: interfaces, addresses, routes, neighbours, settings.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// What one node's namespace holds.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Namespace {
    pub(crate) node: String,
    pub(crate) kind: Kind,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) routes: Vec<Route>,
    /// Address, MAC and interface.
    pub(crate) neighbours: Vec<(IpAddr, Mac, String)>,
    /// Of a switch: MAC and port.
    pub(crate) forwarding: Vec<(Mac, String)>,
    pub(crate) sysctls: BTreeMap<String, String>,
    /// Initial congestion window of its routes, segments.
    pub(crate) initcwnd: Option<u32>,
    /// Minimum retransmission timeout of its routes, ms.
    pub(crate) rto_min: Option<u32>,
    /// Acknowledge every segment at once.
    pub(crate) quickack: bool,
}

/// What a node does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Host,
    Switch,
    Router,
}

/// One end of a link.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Interface {
    pub(crate) node: String,
    pub(crate) name: String,
    pub(crate) mac: Mac,
    pub(crate) mtu: u32,
    /// IPv4, with prefix length; none: a switch's port.
    pub(crate) address: Option<Subnet>,
    /// IPv6 likewise.
    pub(crate) address6: Option<Subnet>,
    /// A TAP device of the emulator; otherwise one end of a veth pair.
    pub(crate) emulated: bool,
    /// Commands of tc(8) that make the direction it sends into, where netem does.
    pub(crate) qdiscs: Vec<Vec<String>>,
    /// It resolves no addresses and takes no part in multicast: its neighbours are named.
    pub(crate) silent: bool,
    /// TCP hands packets to it one by one.
    pub(crate) singly: bool,
    /// Offloads that the plan sets.
    pub(crate) offloads: BTreeMap<String, bool>,
}

impl Interface {
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Subnet> {
        [self.address, self.address6].into_iter().flatten()
    }
}

/// The way to a network, or to one address.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Route {
    pub(crate) to: Subnet,
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) interface: String,
    pub(crate) source: Option<IpAddr>,
    /// More gateways of equal cost with their interfaces, between which flows are shared.
    pub(crate) others: Vec<(IpAddr, String)>,
}

/// An Ethernet address, written as six hexadecimal numbers with colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mac, D::Error> {
        let text = String::deserialize(deserializer)?;
        let numbers: Option<Vec<u8>> =
            text.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
        numbers.and_then(|numbers| numbers.try_into().ok()).map(Mac).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is not a MAC such as 02:00:00:00:00:01"))
        })
    }
}

/// An address with the length of its prefix, as `10.0.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

impl Subnet {
    /// The address of the network: this one without the host's part.
    pub(crate) fn network(self) -> IpAddr {
        let host = |bits: u32| u32::from(self.prefix).min(bits);
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - host(32)).unwrap_or(0);
                Ipv4Addr::from(u32::from(address) & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - host(128)).unwrap_or(0);
                Ipv6Addr::from(u128::from(address) & mask).into()
            }
        }
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Subnet, String> {
        let parsed = text.split_once('/').and_then(|(address, prefix)| {
            Some(Subnet { address: address.parse().ok()?, prefix: prefix.parse().ok()? })
        });
        parsed.ok_or_else(|| format!("{text:?} is not an address such as 10.0.0.1/24"))
    }
}

impl<'de> Deserialize<'de> for Subnet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Subnet, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
