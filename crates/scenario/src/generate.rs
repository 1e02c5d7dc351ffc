//! The nodes and links of generated topologies.

use rand::Rng;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

use crate::language::Form;

/// Nodes of a generated network: those that make it take seconds to read are refused.
pub(crate) const MAX_NODES: u64 = 1000;

/// A network without settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    /// Routers or switches.
    pub(crate) joints: Vec<String>,
    pub(crate) hosts: Vec<String>,
    /// Between joints.
    pub(crate) core: Vec<[String; 2]>,
    /// Between a host and its joint.
    pub(crate) edge: Vec<[String; 2]>,
}

impl Graph {
    fn joint(&mut self, name: impl Into<String>) -> String {
        let name = name.into();
        self.joints.push(name.clone());
        name
    }

    /// Joints `r1`, `r2`, ...
    fn numbered(&mut self, count: u32) -> Vec<String> {
        (1..=count).map(|number| self.joint(format!("r{number}"))).collect()
    }

    fn join(&mut self, one: &str, other: &str) {
        self.core.push([one.to_owned(), other.to_owned()]);
    }

    fn host(&mut self, name: impl Into<String>, at: &str) {
        let name = name.into();
        self.edge.push([name.clone(), at.to_owned()]);
        self.hosts.push(name);
    }

    /// So many hosts at each of the joints, numbered through.
    fn hosts_at(&mut self, joints: &[String], each: u32) {
        for joint in joints {
            for _ in 0..each {
                self.host(format!("h{}", self.hosts.len() + 1), joint);
            }
        }
    }
}

/// How many nodes a form has.
pub(crate) fn size(form: &Form) -> u64 {
    let wide = u64::from;
    match *form {
        Form::Dumbbell { hosts } => 2 + 2 * wide(hosts),
        Form::ParkingLot { bottlenecks } => 3 * wide(bottlenecks) + 3,
        Form::Star { hosts } => 1 + wide(hosts),
        Form::Line { routers, hosts }
        | Form::Ring { routers, hosts }
        | Form::FullMesh { routers, hosts }
        | Form::Random { routers, hosts, .. } => wide(routers) * (1 + wide(hosts)),
        Form::Grid { rows, columns, hosts } => {
            wide(rows).saturating_mul(wide(columns)).saturating_mul(1 + wide(hosts))
        }
        Form::Tree { depth, fanout } => {
            (0..=depth).map(|level| wide(fanout).saturating_pow(level)).fold(0, u64::saturating_add)
        }
        Form::FatTree { k } => wide(k).pow(2) * 5 / 4 + wide(k).pow(3) / 4,
        Form::LeafSpine { leaves, spines, hosts } => wide(spines) + wide(leaves) * (1 + wide(hosts)),
    }
}

/// The graph of a form.
pub(crate) fn graph(form: &Form) -> Graph {
    let mut made = Graph::default();
    match *form {
        Form::Dumbbell { hosts } => dumbbell(&mut made, hosts),
        Form::ParkingLot { bottlenecks } => parking_lot(&mut made, bottlenecks),
        Form::Star { hosts } => {
            let centre = made.numbered(1);
            made.hosts_at(&centre, hosts);
        }
        Form::Line { routers, hosts } => {
            let all = made.numbered(routers);
            all.windows(2).for_each(|two| made.join(&two[0], &two[1]));
            made.hosts_at(&all, hosts);
        }
        Form::Ring { routers, hosts } => {
            let all = made.numbered(routers);
            (0..all.len()).for_each(|at| made.join(&all[at], &all[(at + 1) % all.len()]));
            made.hosts_at(&all, hosts);
        }
        Form::Grid { rows, columns, hosts } => grid(&mut made, rows as usize, columns as usize, hosts),
        Form::Tree { depth, fanout } => tree(&mut made, depth, fanout),
        Form::FullMesh { routers, hosts } => {
            let all = made.numbered(routers);
            for (number, one) in all.iter().enumerate() {
                all[number + 1..].iter().for_each(|other| made.join(one, other));
            }
            made.hosts_at(&all, hosts);
        }
        Form::FatTree { k } => fat_tree(&mut made, k as usize),
        Form::LeafSpine { leaves, spines, hosts } => {
            let spines: Vec<String> =
                (1..=spines).map(|number| made.joint(format!("spine{number}"))).collect();
            let leaves: Vec<String> =
                (1..=leaves).map(|number| made.joint(format!("leaf{number}"))).collect();
            for leaf in &leaves {
                spines.iter().for_each(|spine| made.join(leaf, spine));
            }
            made.hosts_at(&leaves, hosts);
        }
        Form::Random { routers, hosts, alpha, beta, seed } => {
            let all = made.numbered(routers);
            for (one, other) in waxman(all.len(), alpha, beta, seed) {
                made.join(&all[one], &all[other]);
            }
            made.hosts_at(&all, hosts);
        }
    }
    made
}

fn dumbbell(made: &mut Graph, hosts: u32) {
    let ends = made.numbered(2);
    made.join(&ends[0], &ends[1]);
    for (side, end) in ["left", "right"].into_iter().zip(&ends) {
        (1..=hosts).for_each(|number| made.host(format!("{side}{number}"), end));
    }
}

fn parking_lot(made: &mut Graph, bottlenecks: u32) {
    let all = made.numbered(bottlenecks + 1);
    all.windows(2).for_each(|two| made.join(&two[0], &two[1]));
    made.host("long-from", &all[0]);
    made.host("long-to", &all[all.len() - 1]);
    for (two, number) in all.windows(2).zip(1..) {
        made.host(format!("from{number}"), &two[0]);
        made.host(format!("to{number}"), &two[1]);
    }
}

fn grid(made: &mut Graph, rows: usize, columns: usize, hosts: u32) {
    for row in 1..=rows {
        (1..=columns).for_each(|column| _ = made.joint(format!("r{row}-{column}")));
    }
    let all = made.joints.clone();
    for (at, joint) in all.iter().enumerate() {
        if (at + 1) % columns > 0 {
            made.join(joint, &all[at + 1]);
        }
        if let Some(below) = all.get(at + columns) {
            made.join(joint, below);
        }
    }
    made.hosts_at(&all, hosts);
}

fn tree(made: &mut Graph, depth: u32, fanout: u32) {
    let mut level = made.numbered(1);
    for _ in 1..depth {
        let mut below = Vec::new();
        for parent in &level {
            for _ in 0..fanout {
                let child = made.joint(format!("r{}", made.joints.len() + 1));
                made.join(parent, &child);
                below.push(child);
            }
        }
        level = below;
    }
    made.hosts_at(&level, fanout);
}

/// The first k/2 cores are joined to the first aggregation router of each pod, the next to the second, and so on.
fn fat_tree(made: &mut Graph, k: usize) {
    let half = k / 2;
    let cores: Vec<String> = (1..=half * half).map(|number| made.joint(format!("core{number}"))).collect();
    let mut edges = Vec::new();
    for pod in 1..=k {
        let level = |made: &mut Graph, name: &str| -> Vec<String> {
            (1..=half).map(|number| made.joint(format!("{name}{pod}-{number}"))).collect()
        };
        let (upper, lower) = (level(made, "agg"), level(made, "edge"));
        for (number, router) in upper.iter().enumerate() {
            cores[number * half..][..half].iter().for_each(|core| made.join(core, router));
            lower.iter().for_each(|edge| made.join(router, edge));
        }
        edges.extend(lower);
    }
    made.hosts_at(&edges, half as u32);
}

/// A side of the square in which routers are placed.
const SIDE: u64 = 1 << 20;

/// Pairs of routers that have a link. Floating point as IEEE 754 defines it to the last bit: no library decides.
fn waxman(routers: usize, alpha: u32, beta: u32, seed: u64) -> Vec<(usize, usize)> {
    let mut random = SplitMix64::seed_from_u64(seed);
    let mut place = || (random.next_u64() % SIDE) as f64;
    let places: Vec<(f64, f64)> = (0..routers).map(|_| (place(), place())).collect();
    let distance = |one: usize, other: usize| {
        let (across, up) = (places[one].0 - places[other].0, places[one].1 - places[other].1);
        (across * across + up * up).sqrt()
    };
    let pairs: Vec<(usize, usize)> =
        (0..routers).flat_map(|one| (one + 1..routers).map(move |other| (one, other))).collect();
    let greatest = pairs.iter().map(|&(one, other)| distance(one, other)).fold(1.0, f64::max);
    let share = |ppb: u32| f64::from(ppb) / 1e9;
    let mut links: Vec<(usize, usize)> = pairs
        .iter()
        .copied()
        .filter(|&(one, other)| {
            let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            uniform < share(alpha) * decay(distance(one, other) / (share(beta).max(1e-9) * greatest))
        })
        .collect();
    // Parts that no link joins: the shortest pair between any two of them, as of a minimum spanning tree.
    let mut part: Vec<usize> = (0..routers).collect();
    let merge = |part: &mut Vec<usize>, (one, other): (usize, usize)| {
        let (from, to) = (part[one], part[other]);
        part.iter_mut().filter(|of| **of == from).for_each(|of| *of = to);
        from != to
    };
    links.iter().for_each(|&link| _ = merge(&mut part, link));
    let mut shortest = pairs;
    shortest.sort_by(|a, b| distance(a.0, a.1).total_cmp(&distance(b.0, b.1)));
    links.extend(shortest.into_iter().filter(|&link| merge(&mut part, link)));
    links
}

/// exp(-x), as (1 - x / 2^20)^(2^20).
fn decay(x: f64) -> f64 {
    let mut power = (1.0 - x / f64::from(1 << 20)).max(0.0);
    (0..20).for_each(|_| power *= power);
    power
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use super::*;

    fn forms() -> Vec<Form> {
        vec![
            Form::Dumbbell { hosts: 3 },
            Form::ParkingLot { bottlenecks: 3 },
            Form::Star { hosts: 5 },
            Form::Line { routers: 4, hosts: 2 },
            Form::Ring { routers: 5, hosts: 1 },
            Form::Grid { rows: 3, columns: 4, hosts: 1 },
            Form::Tree { depth: 3, fanout: 2 },
            Form::FullMesh { routers: 5, hosts: 1 },
            Form::FatTree { k: 4 },
            Form::FatTree { k: 8 },
            Form::LeafSpine { leaves: 4, spines: 2, hosts: 3 },
            Form::Random { routers: 30, hosts: 1, alpha: 300_000_000, beta: 150_000_000, seed: 7 },
            Form::Random { routers: 30, hosts: 1, alpha: 0, beta: 0, seed: 7 },
        ]
    }

    #[test]
    fn every_form_has_the_size_it_says_distinct_names_and_is_connected() {
        for form in forms() {
            let made = graph(&form);
            let names: BTreeSet<&String> = made.joints.iter().chain(&made.hosts).collect();
            assert_eq!(names.len() as u64, size(&form), "{form:?}");
            assert_eq!(made.joints.len() + made.hosts.len(), names.len(), "{form:?}");
            let links: BTreeSet<[&str; 2]> =
                made.core.iter().chain(&made.edge).map(|[a, b]| [a.min(b).as_str(), a.max(b)]).collect();
            assert_eq!(links.len(), made.core.len() + made.edge.len(), "no link twice: {form:?}");
            let mut seen = BTreeSet::from([made.hosts[0].as_str()]);
            let mut waiting = VecDeque::from([made.hosts[0].as_str()]);
            while let Some(at) = waiting.pop_front() {
                for [a, b] in links.iter().filter(|link| link.contains(&at)) {
                    let far = if *a == at { b } else { a };
                    if seen.insert(far) {
                        waiting.push_back(far);
                    }
                }
            }
            assert_eq!(seen.len(), names.len(), "{form:?}");
        }
    }

    #[test]
    fn each_router_of_a_fat_tree_has_k_links() {
        let made = graph(&Form::FatTree { k: 4 });
        assert_eq!((made.joints.len(), made.hosts.len()), (20, 16));
        for joint in &made.joints {
            let links = made.core.iter().chain(&made.edge).filter(|ends| ends.contains(joint));
            assert_eq!(links.count(), 4, "{joint}");
        }
    }

    #[test]
    fn a_waxman_graph_has_as_many_links_as_its_probabilities_add_up_to() {
        // Density alone: with a very large beta the distance does not count, so n(n - 1)/2 pairs by alpha.
        let links = |seed| waxman(60, 500_000_000, u32::MAX, seed).len();
        let mean = (0..20).map(links).sum::<usize>() as f64 / 20.0;
        // beta is 4.3, so exp(-d/4.3 L) is 0.8 to 1: its mean over random pairs is about exp(-0.4/4.3) = 0.91.
        assert!((mean / (1770.0 * 0.5 * 0.91) - 1.0).abs() < 0.03, "{mean}");
        assert_eq!(waxman(40, 400_000_000, 400_000_000, 3), waxman(40, 400_000_000, 400_000_000, 3));
        assert_ne!(waxman(40, 400_000_000, 400_000_000, 3), waxman(40, 400_000_000, 400_000_000, 4));
    }

    #[test]
    fn the_decay_is_the_exponential_function() {
        for x in [0.0, 0.1, 1.0, 5.0, 20.0] {
            assert!((decay(x) / (-x).exp() - 1.0).abs() < 1e-3, "{x}");
        }
        assert_eq!(decay(1e12), 0.0);
    }
}
