//! Ethernet addresses, and IP addresses with the length of their prefix.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// An Ethernet address, written as six hexadecimal numbers with colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl Mac {
    /// That of the interface with an IPv4 address: 10.1.2.3 is 02:00:0a:01:02:03.
    pub(super) fn of(address: Ipv4Addr) -> Mac {
        let [a, b, c, d] = address.octets();
        Mac([2, 0, a, b, c, d])
    }

    /// That of an interface without one, a switch's port, by the number and the side of its link.
    pub(super) fn of_port(link: usize, side: usize) -> Mac {
        let number = link as u32;
        Mac([2, 1, (number >> 16) as u8, (number >> 8) as u8, number as u8, side as u8])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl Serialize for Mac {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An address with the length of its prefix, as `10.0.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

impl Subnet {
    /// Every address of IPv4, or of IPv6.
    pub(super) fn everywhere(six: bool) -> Subnet {
        let address = if six { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        Subnet { address, prefix: 0 }
    }

    /// One address alone.
    pub(super) fn alone(address: IpAddr) -> Subnet {
        Subnet { address, prefix: if address.is_ipv6() { 128 } else { 32 } }
    }

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

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Serialize for Subnet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
