//! The shortest paths of a router (RFC 2328, section 16), with all of equal cost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::core::Core;
use super::super::rib::Hop;
use super::super::wiring::{PortId, Prefix, RouterId};
use super::{Key, LinkState};

/// The backbone.
const BACKBONE: u32 = 0;

/// The result of a calculation.
pub(super) struct Found {
    /// Without the networks of the router's own interfaces.
    pub(super) routes: BTreeMap<Prefix, Vec<Hop>>,
    /// Of a router of several areas: what is advertised into each of them of the others.
    pub(super) summaries: BTreeMap<u32, BTreeMap<Prefix, u32>>,
}

type Costs = BTreeMap<Prefix, (u32, BTreeSet<Hop>)>;

/// A router, its distance, and by which of the root's interfaces it is reached.
type Tree = BTreeMap<RouterId, (u32, BTreeSet<PortId>)>;

/// The routes of `root` by what is in its database. Routes within an area count before those between areas.
pub(super) fn routes(
    core: &Core,
    family: usize,
    root: RouterId,
    database: &BTreeMap<Key, Arc<LinkState>>,
    areas: &[u32],
) -> Found {
    let hops = |ports: &BTreeSet<PortId>| -> BTreeSet<Hop> {
        ports.iter().filter_map(|&port| Some(Hop::Via(port, core.wiring.gateway(port, family)?))).collect()
    };
    // Without the backbone a router of several areas is not a border router, and learns by the summaries of them all.
    // So does a border router without a neighbour in the backbone (RFC 3509, section 2.2).
    let is_border = areas.len() > 1 && areas.contains(&BACKBONE);
    let of_root = database.get(&Key { area: BACKBONE, router: root, summary: None });
    let by_backbone = is_border && of_root.is_some_and(|state| !state.links.is_empty());
    let mut within: BTreeMap<u32, Costs> = BTreeMap::new();
    let mut between = Costs::new();
    for &area in areas {
        let tree = tree(root, area, database);
        let costs = within.entry(area).or_default();
        for (&router, (distance, ports)) in &tree {
            let own = Key { area, router, summary: None };
            if let Some(state) = database.get(&own) {
                for &(prefix, cost) in &state.networks {
                    add(
                        costs,
                        prefix,
                        distance + cost,
                        if router == root { BTreeSet::new() } else { hops(ports) },
                    );
                }
            }
            // A border router learns of other areas from the backbone alone (section 16.2).
            if router != root && (!by_backbone || area == BACKBONE) {
                let summaries = database.range(own..).skip_while(|(key, _)| **key == own);
                let summaries = summaries.take_while(|(key, _)| (key.area, key.router) == (area, router));
                for &(prefix, cost) in summaries.flat_map(|(_, state)| &state.networks) {
                    add(&mut between, prefix, distance + cost, hops(ports));
                }
            }
        }
    }
    let mut routes = Costs::new();
    for (&prefix, (cost, hops)) in within.values().flatten() {
        add(&mut routes, prefix, *cost, hops.clone());
    }
    for (&prefix, (cost, hops)) in &between {
        routes.entry(prefix).or_insert_with(|| (*cost, hops.clone()));
    }
    let mut summaries = BTreeMap::new();
    if is_border {
        for &area in areas {
            // Networks within any other area; below, those of areas beyond the backbone (section 12.4.3).
            let others = within.iter().filter(|(other, _)| **other != area);
            let mut advertised: BTreeMap<Prefix, u32> = BTreeMap::new();
            for (&prefix, &(cost, _)) in others.flat_map(|(_, costs)| costs) {
                let best = advertised.entry(prefix).or_insert(cost);
                *best = cost.min(*best);
            }
            if area != BACKBONE && by_backbone {
                for (&prefix, &(cost, _)) in &between {
                    advertised.entry(prefix).or_insert(cost);
                }
            }
            advertised.retain(|prefix, _| !within[&area].contains_key(prefix));
            summaries.insert(area, advertised);
        }
    }
    let found = routes.into_iter().filter(|(_, (_, hops))| !hops.is_empty());
    Found {
        routes: found.map(|(prefix, (_, hops))| (prefix, hops.into_iter().collect())).collect(),
        summaries,
    }
}

fn add(costs: &mut Costs, prefix: Prefix, cost: u32, hops: BTreeSet<Hop>) {
    match costs.get_mut(&prefix) {
        Some((best, _)) if *best < cost => {}
        // A network of the router's own needs no neighbour.
        Some((best, known)) if *best == cost => {
            if !known.is_empty() && !hops.is_empty() {
                known.extend(hops);
            }
        }
        _ => {
            costs.insert(prefix, (cost, hops));
        }
    }
}

/// Dijkstra's algorithm; a link counts where both its ends name it.
fn tree(root: RouterId, area: u32, database: &BTreeMap<Key, Arc<LinkState>>) -> Tree {
    let state = |router| database.get(&Key { area, router, summary: None });
    let mut tree = Tree::new();
    let mut candidates = Tree::from([(root, (0, BTreeSet::new()))]);
    while let Some((&nearest, _)) = candidates.iter().min_by_key(|(_, (distance, _))| *distance) {
        let Some((distance, ports)) = candidates.remove(&nearest) else { break };
        for &(router, port, cost) in state(nearest).map_or(&[][..], |state| &state.links) {
            let is_mutual =
                state(router).is_some_and(|other| other.links.iter().any(|&(back, ..)| back == nearest));
            if !is_mutual || tree.contains_key(&router) || router == root {
                continue;
            }
            let reach = distance + cost;
            let own = if nearest == root { BTreeSet::from([port]) } else { ports.clone() };
            match candidates.get_mut(&router) {
                Some((known, _)) if *known < reach => {}
                Some((known, all)) if *known == reach => all.extend(own),
                _ => {
                    candidates.insert(router, (reach, own));
                }
            }
        }
        tree.insert(nearest, (distance, ports));
    }
    tree
}
