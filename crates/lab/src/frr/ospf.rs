//! OSPF version 2 and 3: the settings of each interface, then those of the router.

use tcplab_plan::{Node, NodeKind, Ospf};
use tcplab_units::Span;

use super::network::{Attachment, Network};

/// How a version of OSPF is called in FRR's language.
pub(super) struct Version {
    six: bool,
    interface: &'static str,
    router: &'static str,
    identifier: &'static str,
}

pub(super) const VERSION_2: Version =
    Version { six: false, interface: "ip ospf", router: "router ospf", identifier: "ospf router-id" };
pub(super) const VERSION_3: Version =
    Version { six: true, interface: "ipv6 ospf6", router: "router ospf6", identifier: "ospf6 router-id" };

/// The bandwidth of cost 1, bit/s (`auto-cost reference-bandwidth`, 100 Mbit/s).
const REFERENCE_BANDWIDTH: u64 = 100_000_000;

pub(super) fn lines(network: &Network<'_>, node: &Node, ospf: &Ospf, version: &Version) -> Vec<String> {
    let mut lines = Vec::new();
    for near in network.of(&node.name).filter(|near| near.subnet(version.six).is_some()) {
        lines.push(format!("interface {}", near.name));
        let set = interface(network, near, ospf, version);
        lines.extend(set.into_iter().map(|setting| format!(" {} {setting}", version.interface)));
        lines.push("exit".to_owned());
    }
    let ms = |span: Span| span.as_ns() / 1_000_000;
    lines.push(version.router.to_owned());
    lines.push(format!(" {} {}", version.identifier, network.router_id(&node.name)));
    lines.push(" log-adjacency-changes detail".to_owned());
    let (delay, hold, max) = (ms(ospf.spf_delay), ms(ospf.spf_hold), ms(ospf.spf_max_hold));
    lines.push(format!(" timers throttle spf {delay} {hold} {max}"));
    lines.push(format!(" maximum-paths {}", ospf.maximum_paths));
    lines.push("exit".to_owned());
    lines
}

fn interface(network: &Network<'_>, near: &Attachment<'_>, ospf: &Ospf, version: &Version) -> Vec<String> {
    let own = ospf.interfaces.iter().find(|one| one.link == near.link.name);
    let area = own.and_then(|own| own.area).unwrap_or(ospf.area);
    let cost = own.and_then(|own| own.cost).or(ospf.cost).unwrap_or_else(|| by_rate(near));
    let seconds = |span: Span| span.as_ns() / 1_000_000_000;
    let mut settings = vec![
        format!("area {}", std::net::Ipv4Addr::from(area)),
        format!("cost {cost}"),
        format!("hello-interval {}", seconds(ospf.hello_interval)),
        format!("dead-interval {}", seconds(ospf.dead_interval)),
    ];
    let peers = network.peers(near, version.six);
    let speaks = |one: &&&Attachment<'_>| {
        let routing = one.node.routing.as_ref();
        routing.is_some_and(|routing| if version.six { &routing.ospf6 } else { &routing.ospf }.is_some())
    };
    match peers.iter().filter(speaks).count() {
        0 => settings.push("passive".to_owned()),
        // Between two routers nobody need be elected, which takes the dead interval (RFC 2328, section 9.4).
        1 if peers.len() == 1 && peers[0].node.kind == NodeKind::Router => {
            settings.push("network point-to-point".to_owned());
        }
        _ => {}
    }
    if ospf.bfd {
        settings.push("bfd".to_owned());
    }
    settings
}

/// The reference bandwidth over the rate of the link. FRR itself asks the device, which does not know.
fn by_rate(near: &Attachment<'_>) -> u32 {
    let cost = near.rate.map_or(1, |rate| REFERENCE_BANDWIDTH / rate.bits_per_sec());
    cost.clamp(1, 65_535) as u32
}
