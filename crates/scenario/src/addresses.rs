//! Addresses of both families, one subnet of each for each broadcast domain.
//!
//! Links joined by switches share a subnet. Subnets are handed out in the order of their first link, from
//! 10.0.0.0/24 upwards; one is a /24, or the smallest power of two that holds its interfaces. Interfaces are numbered
//! from .1 in the order of links, the first end before the second. A switch's ports have none.
//!
//! The IPv6 subnet of 10.X.Y.0 is the /64 of fd00::/48 (unique local addresses, RFC 4193) with the number 256 X + Y,
//! and the interface has the same number in it: 10.0.1.2/24 is fd00:0:0:1::2/64. A link whose MTU is below IPv6's
//! minimum has none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{Ipv4Addr, Ipv6Addr};

use tcplab_plan::NodeKind;

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

/// The addresses of each link; none if the network does not fit into 10.0.0.0/8.
pub(crate) fn assign(topology: &Topology) -> Option<Vec<LinkAddresses>> {
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
    let mut base: u32 = 0;
    for interfaces in members.values() {
        // Network and broadcast address are not for interfaces.
        let block = u32::try_from(interfaces.len() + 2).ok()?.checked_next_power_of_two()?.max(256);
        base = base.checked_next_multiple_of(block)?;
        if base.checked_add(block)? > 1 << 24 {
            return None;
        }
        let prefix = 32 - block.trailing_zeros();
        for (&(link, side), number) in interfaces.iter().zip(1_u32..) {
            let v4 = Ipv4Addr::from((10 << 24) | (base + number));
            addresses[link].v4[side] = Some(format!("{v4}/{prefix}"));
            if topology.links[link].mtu >= MIN_IPV6_MTU {
                let v6 = Ipv6Addr::from(ULA | u128::from(base >> 8) << 64 | u128::from(number));
                addresses[link].v6[side] = Some(format!("{v6}/64"));
            }
        }
        base += block;
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
