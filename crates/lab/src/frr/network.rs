//! The network as routing protocols see it: interfaces, and who else is in their subnets.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use tcplab_plan::{Link, Node, Plan};
use tcplab_units::Rate;

use crate::layout::Subnet;

/// An interface of a node.
#[derive(Clone, Debug)]
pub(super) struct Attachment<'p> {
    pub(super) node: &'p Node,
    /// Its name in the node.
    pub(super) name: String,
    pub(super) link: &'p Link,
    /// The rate at which it sends; none: unlimited.
    pub(super) rate: Option<Rate>,
    pub(super) v4: Option<Subnet>,
    pub(super) v6: Option<Subnet>,
}

impl Attachment<'_> {
    /// Its address of IPv6 or IPv4.
    pub(super) fn subnet(&self, six: bool) -> Option<Subnet> {
        if six { self.v6 } else { self.v4 }
    }
}

/// All interfaces of a plan that have addresses.
pub(super) struct Network<'p> {
    attachments: Vec<Attachment<'p>>,
    by_node: HashMap<&'p str, Vec<usize>>,
    /// By the network's address, of both families.
    members: BTreeMap<IpAddr, Vec<usize>>,
}

impl<'p> Network<'p> {
    pub(super) fn new(plan: &'p Plan) -> Network<'p> {
        let nodes: HashMap<&str, &Node> = plan.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let mut count: HashMap<&str, usize> = HashMap::new();
        let mut made = Network { attachments: Vec::new(), by_node: HashMap::new(), members: BTreeMap::new() };
        for link in &plan.links {
            for (side, end) in link.ends.iter().enumerate() {
                let number = count.entry(end).or_default();
                let name = format!("eth{number}");
                *number += 1;
                let Some(node) = nodes.get(end.as_str()) else { continue };
                let parse = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
                let (v4, v6) = (parse(&link.addresses[side]), parse(&link.addresses6[side]));
                let rate = if side == 0 { link.forward.rate } else { link.backward.rate };
                let index = made.attachments.len();
                for subnet in [v4, v6].into_iter().flatten() {
                    made.members.entry(Subnet::network(subnet)).or_default().push(index);
                }
                made.by_node.entry(end).or_default().push(index);
                made.attachments.push(Attachment { node, name, link, rate, v4, v6 });
            }
        }
        made
    }

    /// The interfaces of a node, in the order of links.
    pub(super) fn of(&self, node: &str) -> impl Iterator<Item = &Attachment<'p>> {
        self.by_node.get(node).into_iter().flatten().map(|&index| &self.attachments[index])
    }

    /// The other interfaces in the subnet of one.
    pub(super) fn peers(&self, of: &Attachment<'p>, six: bool) -> Vec<&Attachment<'p>> {
        let members = of.subnet(six).and_then(|subnet| self.members.get(&subnet.network()));
        let all = members.into_iter().flatten().map(|&index| &self.attachments[index]);
        all.filter(|one| one.node.name != of.node.name).collect()
    }

    /// Every node, once, in the order of links.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &'p Node> {
        let mut seen = HashSet::new();
        self.attachments.iter().map(|one| one.node).filter(move |node| seen.insert(node.name.as_str()))
    }

    /// The router ID: its first address.
    pub(super) fn router_id(&self, node: &str) -> IpAddr {
        let first = self.of(node).find_map(|one| one.v4);
        first.map_or(IpAddr::from([0, 0, 0, 1]), |subnet| subnet.address)
    }
}
