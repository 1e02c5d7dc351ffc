//! BGP-4: a session with every neighbour that has it, one for each family of addresses.

use tcplab_plan::{Bgp, Node};

use super::network::Network;

pub(super) fn lines(network: &Network<'_>, node: &Node, bgp: &Bgp) -> Vec<String> {
    let seconds = |span: tcplab_units::Span| span.as_ns() / 1_000_000_000;
    let mut lines = vec![
        format!("router bgp {}", bgp.autonomous_system),
        format!(" bgp router-id {}", network.router_id(&node.name)),
        " bgp log-neighbor-changes".to_owned(),
        // RFC 8212 asks for a policy towards other systems; without one nothing would be announced.
        " no bgp ebgp-requires-policy".to_owned(),
        " no bgp default ipv4-unicast".to_owned(),
        format!(" timers bgp {} {}", seconds(bgp.keepalive), seconds(bgp.hold_time)),
    ];
    let mut families = Vec::new();
    for (six, family) in [(false, "ipv4"), (true, "ipv6")] {
        families.push(format!(" address-family {family} unicast"));
        for near in network.of(&node.name) {
            for far in network.peers(near, six) {
                let other = far.node.routing.as_ref().and_then(|routing| routing.bgp.as_ref());
                let (Some(other), Some(at)) = (other, far.subnet(six)) else { continue };
                let neighbour = format!(" neighbor {}", at.address);
                lines.push(format!("{neighbour} remote-as {}", other.autonomous_system));
                lines.push(format!("{neighbour} timers connect {}", seconds(bgp.connect_retry)));
                if bgp.advertisement_interval.as_ns() > 0 {
                    let interval = seconds(bgp.advertisement_interval);
                    lines.push(format!("{neighbour} advertisement-interval {interval}"));
                }
                if bgp.bfd {
                    lines.push(format!("{neighbour} bfd"));
                }
                families.push(format!(" {neighbour} activate"));
            }
        }
        let mut networks: Vec<_> = network.of(&node.name).filter_map(|near| near.subnet(six)).collect();
        networks.dedup_by_key(|subnet| subnet.network());
        families.extend(
            networks.iter().map(|subnet| format!("  network {}/{}", subnet.network(), subnet.prefix)),
        );
        families.push(" exit-address-family".to_owned());
    }
    lines.extend(families);
    lines.push("exit".to_owned());
    lines
}
