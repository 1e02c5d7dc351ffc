//! Static routes, which are there as long as the interface of the next router has a carrier.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::core::Core;
use super::rib::{Hop, Source};
use super::wiring::{Address, Prefix, RouterId};

/// A router's static routes go into its table.
pub(super) fn begin(core: &mut Core, router: RouterId) {
    let wiring = &core.wiring;
    let own = &wiring.routers[router];
    let mut candidates: BTreeMap<(Prefix, Source), Vec<Hop>> = BTreeMap::new();
    for route in &own.routing.static_routes {
        for family in 0..2 {
            let via = match route.via.parse::<IpAddr>() {
                Ok(address) => (usize::from(address.is_ipv6()) == family).then_some(address),
                Err(_) => wiring.neighbour(router, &route.via, family),
            };
            let Some(via) = via else { continue };
            let hop = wiring.port_towards(router, via).map_or(Hop::Through(via), |port| Hop::Via(port, via));
            let source = Source { distance: route.distance, protocol: "static" };
            let given = Address::parse(&route.to).map(Address::prefix);
            let prefixes: Vec<Prefix> =
                given.map_or_else(|| wiring.networks(&route.to).collect(), |one| vec![one]);
            for prefix in prefixes.into_iter().filter(|prefix| usize::from(prefix.is_six()) == family) {
                candidates.entry((prefix, source)).or_default().push(hop);
            }
        }
    }
    for ((prefix, source), hops) in candidates {
        core.update(router, prefix, source, hops);
    }
}
