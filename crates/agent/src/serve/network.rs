//! Networks by address and prefix length, as an allow-list names them.

use std::net::{IpAddr, Ipv6Addr};

use serde::Deserialize;

/// Addresses with a prefix in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    first: Ipv6Addr,
    prefix: u32,
}

impl Network {
    /// Whether an address lies in it.
    pub fn contains(self, address: IpAddr) -> bool {
        let apart = u128::from(mapped(address)) ^ u128::from(self.first);
        apart.checked_shr(128 - self.prefix).unwrap_or(0) == 0
    }
}

/// IPv4 as it is mapped into IPv6 (RFC 4291, section 2.5.5.2), so that a socket for both needs one comparison.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Network, String> {
        let wrong = || format!("{text:?} is not a network such as 192.0.2.0/24");
        let (address, prefix) = text.split_once('/').unwrap_or((&text, ""));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let (bits, before) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
        let prefix = if prefix.is_empty() { bits } else { prefix.parse().map_err(|_| wrong())? };
        if prefix > bits {
            return Err(wrong());
        }
        Ok(Network { first: mapped(address), prefix: before + prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::try_from(text.to_owned()).expect("a network")
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_is_in_the_networks_it_shares_a_prefix_with() {
        assert!(network("192.0.2.0/24").contains(address("192.0.2.255")));
        assert!(network("192.0.2.0/24").contains(address("::ffff:192.0.2.1")));
        assert!(!network("192.0.2.0/24").contains(address("192.0.3.0")));
        assert!(network("192.0.2.7").contains(address("192.0.2.7")));
        assert!(!network("192.0.2.7").contains(address("192.0.2.6")));
        assert!(network("0.0.0.0/0").contains(address("203.0.113.1")));
        assert!(!network("0.0.0.0/0").contains(address("2001:db8::1")));
        assert!(network("::/0").contains(address("203.0.113.1")));
        assert!(network("2001:db8::/32").contains(address("2001:db8:1::")));
    }

    #[test]
    fn what_is_not_a_network_is_refused() {
        for text in ["", "192.0.2.0/33", "192.0.2/24", "2001:db8::/129", "192.0.2.0/-1", "192.0.2.0/x"] {
            assert!(Network::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
