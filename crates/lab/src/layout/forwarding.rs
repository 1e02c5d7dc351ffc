//! Behind which port of a switch each interface of its subnet is: the way with the fewest links.

use std::collections::{HashSet, VecDeque};

use super::Mac;
use super::routes::Map;

pub(super) fn forwarding(switch: &str, map: &Map<'_>) -> Vec<(Mac, String)> {
    let mut found = Vec::new();
    // Breadth first; each switch is entered once, with the port of ours by which it is reached.
    let mut seen = HashSet::from([switch]);
    let mut waiting = VecDeque::from([(switch, None)]);
    while let Some((here, port)) = waiting.pop_front() {
        for wire in map.links(here) {
            let (near, far) = wire.seen_from(here);
            let out: &str = port.unwrap_or(&near.name);
            if !map.is_switch(&far.node) {
                found.push((far.mac, out.to_owned()));
            } else if seen.insert(&far.node) {
                waiting.push_back((&far.node, Some(out)));
            }
        }
    }
    found
}
