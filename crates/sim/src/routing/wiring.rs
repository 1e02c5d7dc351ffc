//! The network as routing protocols see it: routers, their interfaces, and which of these face each other.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tcplab_units::Rate;

use crate::error::PlanError;
use crate::network::{DirectionId, NodeId};
use crate::plan::{NodeKind, Plan, Routing};

/// A router's place among those that run protocols.
pub(super) type RouterId = usize;
/// An interface's place among those of all these routers.
pub(super) type PortId = usize;

/// A network's address with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Prefix {
    network: IpAddr,
    length: u8,
}

impl Prefix {
    /// The network that `address` is in.
    pub(super) fn of(address: IpAddr, length: u8) -> Prefix {
        let network = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(length.into())).unwrap_or(0);
                Ipv4Addr::from(u32::from(address) & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(length.into())).unwrap_or(0);
                Ipv6Addr::from(u128::from(address) & mask).into()
            }
        };
        Prefix { network, length }
    }

    pub(super) fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.network.is_ipv4() && Prefix::of(address, self.length) == self
    }

    pub(super) fn length(self) -> u8 {
        self.length
    }

    pub(super) fn is_six(self) -> bool {
        self.network.is_ipv6()
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.network, self.length)
    }
}

/// An interface's address with the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) ip: IpAddr,
    length: u8,
}

impl Address {
    pub(super) fn parse(text: &str) -> Option<Address> {
        let (ip, length) = text.split_once('/')?;
        Some(Address { ip: ip.parse().ok()?, length: length.parse().ok()? })
    }

    pub(super) fn prefix(self) -> Prefix {
        Prefix::of(self.ip, self.length)
    }
}

/// An interface of a router that runs protocols.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) router: RouterId,
    /// Its name in the node, as on the kernel engine.
    pub(super) name: String,
    /// The link's place in the plan.
    pub(super) link: usize,
    pub(super) link_name: String,
    /// The direction that it sends into.
    pub(super) out: DirectionId,
    pub(super) rate: Option<Rate>,
    /// Its addresses of IPv4 and of IPv6.
    pub(super) addresses: [Option<Address>; 2],
    /// The interface at the other end of the link, where that is another of these routers.
    pub(super) peer: Option<PortId>,
}

/// A router that runs protocols.
#[derive(Clone, Debug)]
pub(super) struct Router {
    pub(super) node: NodeId,
    pub(super) name: String,
    pub(super) routing: Routing,
    pub(super) ports: Vec<PortId>,
}

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct Wiring {
    pub(super) routers: Vec<Router>,
    pub(super) ports: Vec<Port>,
    /// The first address of every node, of IPv4 and of IPv6.
    pub(super) destinations: Vec<(NodeId, IpAddr)>,
    /// All addresses with their nodes' names.
    addresses: Vec<(String, Address)>,
    routers_by_link: Vec<[Option<PortId>; 2]>,
}

impl Wiring {
    /// Refuses what the models do not know: files in FRR's language, and several such routers at one switch.
    pub(super) fn new(plan: &Plan) -> Result<Wiring, PlanError> {
        let numbers: BTreeMap<&str, usize> =
            plan.nodes.iter().enumerate().map(|(number, node)| (node.name.as_str(), number)).collect();
        let mut made = Wiring {
            routers: Vec::new(),
            ports: Vec::new(),
            destinations: Vec::new(),
            addresses: Vec::new(),
            routers_by_link: vec![[None; 2]; plan.links.len()],
        };
        let mut of_node = vec![None; plan.nodes.len()];
        for (number, node) in plan.nodes.iter().enumerate() {
            let Some(routing) = &node.routing else { continue };
            if routing.frr.is_some() {
                return Err(PlanError::FrrFile { node: node.name.clone() });
            }
            of_node[number] = Some(made.routers.len());
            made.routers.push(Router {
                node: number as NodeId,
                name: node.name.clone(),
                routing: routing.clone(),
                ports: Vec::new(),
            });
        }
        let mut interfaces = vec![0; plan.nodes.len()];
        let mut has_address = vec![[false; 2]; plan.nodes.len()];
        for (number, link) in plan.links.iter().enumerate() {
            for (side, end) in link.ends.iter().enumerate() {
                let Some(&node) = numbers.get(end.as_str()) else { continue };
                let name = format!("eth{}", interfaces[node]);
                interfaces[node] += 1;
                let parse = |text: &Option<String>| text.as_deref().and_then(Address::parse);
                let addresses = [parse(&link.addresses[side]), parse(&link.addresses6[side])];
                for (has, address) in has_address[node].iter_mut().zip(addresses) {
                    let Some(address) = address else { continue };
                    made.addresses.push((end.clone(), address));
                    if !std::mem::replace(has, true) {
                        made.destinations.push((node as NodeId, address.ip));
                    }
                }
                let Some(router) = of_node[node] else { continue };
                let rate = if side == 0 { link.forward.rate } else { link.backward.rate };
                made.routers_by_link[number][side] = Some(made.ports.len());
                made.routers[router].ports.push(made.ports.len());
                made.ports.push(Port {
                    router,
                    name,
                    link: number,
                    link_name: link.name.clone(),
                    out: (2 * number + side) as DirectionId,
                    rate,
                    addresses,
                    peer: None,
                });
            }
        }
        for both in &made.routers_by_link {
            if let [Some(one), Some(other)] = *both {
                made.ports[one].peer = Some(other);
                made.ports[other].peer = Some(one);
            }
        }
        made.check_switches(plan, &numbers)?;
        Ok(made)
    }

    /// A switch forwards by destination here, not by the next router's address.
    fn check_switches(&self, plan: &Plan, numbers: &BTreeMap<&str, usize>) -> Result<(), PlanError> {
        let is_switch =
            |name: &str| numbers.get(name).is_some_and(|&number| plan.nodes[number].kind == NodeKind::Switch);
        for port in &self.ports {
            let [one, other] = &plan.links[port.link].ends;
            let own = &self.routers[port.router].name;
            let far = if one == own { other } else { one };
            if !is_switch(far) {
                continue;
            }
            let met = self.ports.iter().find(|other| {
                let shares = |family: usize| {
                    let prefix = |port: &Port| port.addresses[family].map(Address::prefix);
                    prefix(port).is_some() && prefix(port) == prefix(other)
                };
                other.router != port.router && (shares(0) || shares(1))
            });
            if let Some(met) = met {
                let other = self.routers[met.router].name.clone();
                return Err(PlanError::SharedSubnet { node: own.clone(), other, switch: far.clone() });
            }
        }
        Ok(())
    }

    /// The two interfaces of a link that belong to routers with protocols.
    pub(super) fn of_link(&self, link: usize) -> impl Iterator<Item = PortId> {
        self.routers_by_link[link].into_iter().flatten()
    }

    /// The interface of `router` whose subnet `address` is in.
    pub(super) fn port_towards(&self, router: RouterId, address: IpAddr) -> Option<PortId> {
        let family = usize::from(address.is_ipv6());
        let has = |port: &PortId| {
            self.ports[*port].addresses[family].is_some_and(|own| own.prefix().contains(address))
        };
        self.routers[router].ports.iter().copied().find(has)
    }

    /// The address of an interface's peer, of IPv4 or IPv6.
    pub(super) fn gateway(&self, port: PortId, family: usize) -> Option<IpAddr> {
        let peer = self.ports[port].peer?;
        self.ports[peer].addresses[family].map(|address| address.ip)
    }

    /// The first address of a router.
    pub(super) fn first_address(&self, router: RouterId, family: usize) -> Option<IpAddr> {
        let ports = self.routers[router].ports.iter();
        ports.filter_map(|&port| self.ports[port].addresses[family]).map(|address| address.ip).next()
    }

    /// The identifier of a router: its first address of IPv4.
    pub(super) fn router_id(&self, router: RouterId) -> IpAddr {
        self.first_address(router, 0).unwrap_or(IpAddr::from([0, 0, 0, 1]))
    }

    /// The networks of a node's interfaces.
    pub(super) fn networks(&self, node: &str) -> impl Iterator<Item = Prefix> {
        let own = self.addresses.iter().filter(move |(name, _)| name == node);
        own.map(|(_, address)| address.prefix())
    }

    /// The address of `node` in a subnet of `router`, of IPv4 or IPv6.
    pub(super) fn neighbour(&self, router: RouterId, node: &str, family: usize) -> Option<IpAddr> {
        let own = self
            .addresses
            .iter()
            .filter(|(name, one)| name == node && usize::from(one.ip.is_ipv6()) == family);
        own.map(|(_, address)| address.ip).find(|&ip| self.port_towards(router, ip).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_holds_the_addresses_of_its_network() {
        let prefix = Address::parse("10.1.2.3/16").expect("an address").prefix();
        assert_eq!(prefix.to_string(), "10.1.0.0/16");
        assert!(prefix.contains("10.1.200.1".parse().unwrap()));
        assert!(!prefix.contains("10.2.0.1".parse().unwrap()));
        assert!(!prefix.contains("fd00::1".parse().unwrap()));
        let all = Prefix::of("10.1.2.3".parse().unwrap(), 0);
        assert!(all.contains("192.0.2.1".parse().unwrap()));
        let six = Address::parse("fd00:0:0:5::1/64").expect("an address").prefix();
        assert_eq!(six.to_string(), "fd00:0:0:5::/64");
    }
}
