//! Addresses of both families, one subnet of each for each broadcast domain.
//!
//! Links joined by switches share a subnet. Subnets are handed out in the order of their first link, from
//! 10.0.0.0/24 upwards; one is a /24, or the smallest power of two that holds its interfaces. Interfaces are numbered
//! from .1 in the order of links, the first end before the second. A switch's ports have none.
//!
//! A network can name another prefix (`subnets`). Where that has no room for a /24 each, a subnet is the smallest power of
//! two that holds its interfaces.
//!
//! The IPv6 subnet of 10.X.Y.0 is the /64 of fd00::/48 (unique local addresses, RFC 4193) with the number 256 X + Y.
//! The interface has the same number in it: 10.0.1.2/24 is fd00:0:0:1::2/64. A link whose MTU is below IPv6's
//! minimum has none. In another prefix the IPv6 subnets are numbered in their order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{Ipv4Addr, Ipv6Addr};

use tcplab_plan::NodeKind;

use crate::quantity::quoted;
use crate::topology::Topology;

const ULA: u128 = 0xFD00 << 112;
/// RFC 8200, section 5.
pub(crate) const MIN_IPV6_MTU: u32 = 1280;

/// The addresses of a link's two ends, with prefix length; none: a switch's port.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkAddresses {
    pub(crate) v4: [Option<String>; 2],
    pub(crate) v6: [Option<String>; 2],
}

/// The prefix that subnets come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    base: u32,
    length: u8,
    /// Whether the scenario names it.
    named: bool,
}

/// 10.0.0.0/8 (RFC 1918).
const DEFAULT_POOL: Pool = Pool { base: 10 << 24, length: 8, named: false };

impl Pool {
    /// The prefix `text`, such as `10.1.0.0/16`; the default if there is none.
    ///
    /// # Errors
    /// In words, where it is not a prefix, or not one that hosts can have.
    pub(crate) fn read(text: Option<&str>) -> Result<Pool, String> {
        let Some(text) = text else { return Ok(DEFAULT_POOL) };
        let parsed = text.split_once('/').and_then(|(address, length)| {
            let address: Ipv4Addr = address.parse().ok()?;
            Some((address, length.parse().ok().filter(|length| *length <= 32)?))
        });
        let (address, length) =
            parsed.ok_or_else(|| format!("{} is not an IPv4 prefix such as 10.1.0.0/16", quoted(text)))?;
        let base = u32::from(address);
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        let first = base & mask;
        if base != first {
            return Err(format!(
                "{} has bits set behind its prefix; the prefix is {}/{length}",
                quoted(text),
                Ipv4Addr::from(first)
            ));
        }
        // RFC 6890: this network, loopback, link-local, and from 224.0.0.0 on multicast and reserved.
        let last = Ipv4Addr::from(base | !mask);
        let special = |one: Ipv4Addr| one.octets()[0] == 0 || one.is_loopback() || one.octets()[0] >= 224;
        if special(address) || special(last) || address.is_link_local() {
            return Err(format!("hosts cannot have addresses of {} (RFC 6890)", quoted(text)));
        }
        Ok(Pool { base, length, named: true })
    }

    /// The longest prefix that holds the network, if this one does not.
    pub(crate) fn needed(self, topology: &Topology) -> Option<u8> {
        (0..self.length)
            .rev()
            .find(|&length| assign(topology, Pool { base: 0, length, named: true }).is_some())
    }

    /// Where subnets of these numbers of interfaces begin, counted from the prefix's first address, and how many addresses
    /// each has, which are `minimum` or more. None if there is no room.
    fn blocks(self, interfaces: &[usize], minimum: u32) -> Option<Vec<(u32, u32)>> {
        let room = 1_u64 << (32 - self.length);
        let mut next: u32 = 0;
        let place = |&interfaces: &usize| {
            // Network and broadcast address are not for interfaces.
            let block = u32::try_from(interfaces + 2).ok()?.checked_next_power_of_two()?.max(minimum);
            let base = next.checked_next_multiple_of(block)?;
            next = base.checked_add(block)?;
            (u64::from(next) <= room).then_some((base, block))
        };
        interfaces.iter().map(place).collect()
    }
}

/// The addresses of each link; none if the network does not fit into the prefix.
pub(crate) fn assign(topology: &Topology, pool: Pool) -> Option<Vec<LinkAddresses>> {
    let switches: HashSet<&str> = topology
        .nodes
        .iter()
        .filter(|node| node.kind == NodeKind::Switch)
        .map(|node| node.name.as_str())
        .collect();
    // Domains are numbered by their first link, so that they come in the order of links.
    let mut members: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (link, domain) in domains(topology, &switches).into_iter().enumerate() {
        let ends = &topology.links[link].ends;
        let interfaces = members.entry(domain).or_default();
        interfaces.extend(
            [0, 1]
                .into_iter()
                .filter(|&side| !switches.contains(ends[side].as_str()))
                .map(|side| (link, side)),
        );
    }
    let mut addresses = vec![LinkAddresses::default(); topology.links.len()];
    let sizes: Vec<usize> = members.values().map(Vec::len).collect();
    let blocks =
        pool.blocks(&sizes, 256).or_else(|| if pool.named { pool.blocks(&sizes, 4) } else { None })?;
    for ((interfaces, (base, block)), order) in members.values().zip(blocks).zip(0_u32..) {
        let prefix = 32 - block.trailing_zeros();
        let subnet = if pool.named { order } else { base >> 8 };
        for (&(link, side), number) in interfaces.iter().zip(1_u32..) {
            let v4 = Ipv4Addr::from(pool.base + base + number);
            addresses[link].v4[side] = Some(format!("{v4}/{prefix}"));
            if topology.links[link].mtu >= MIN_IPV6_MTU {
                let v6 = Ipv6Addr::from(ULA | u128::from(subnet) << 64 | u128::from(number));
                addresses[link].v6[side] = Some(format!("{v6}/64"));
            }
        }
    }
    Some(addresses)
}

/// Per link, the number of the first link of its broadcast domain.
fn domains(topology: &Topology, switches: &HashSet<&str>) -> Vec<usize> {
    fn find(parent: &mut [usize], mut link: usize) -> usize {
        while parent[link] != link {
            parent[link] = parent[parent[link]];
            link = parent[link];
        }
        link
    }
    let mut parent: Vec<usize> = (0..topology.links.len()).collect();
    let mut at: HashMap<&str, usize> = HashMap::new();
    for (index, link) in topology.links.iter().enumerate() {
        for end in &link.ends {
            if switches.contains(end.as_str()) {
                let known = *at.entry(end).or_insert(index);
                let (one, other) = (find(&mut parent, known), find(&mut parent, index));
                parent[one.max(other)] = one.min(other);
            }
        }
    }
    (0..parent.len()).map(|link| find(&mut parent, link)).collect()
}
