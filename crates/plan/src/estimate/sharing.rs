//! Links are divided between the flows that carry data in bulk.

use std::collections::{BTreeMap, HashMap};

use super::{Carried, Fluid, Paths, paths::Hop};
use crate::{Flow, Plan};

/// Of more moments than this only so many are looked at.
const MOMENTS: usize = 100;
/// Additions are as exact as this.
const TOLERANCE: f64 = 1e-9;

/// A flow that shares.
pub(super) struct Share<'a, 'p> {
    pub(super) flow: &'p Flow,
    pub(super) paths: &'a Paths<'p>,
    pub(super) fluid: Fluid,
}

impl<'p> Share<'_, 'p> {
    /// The directions that its payload takes.
    fn hops(&self) -> &[Hop<'p>] {
        if self.fluid.responses { &self.paths.reverse } else { &self.paths.forward }
    }

    fn is_active(&self, time: f64, duration: f64) -> bool {
        let stop = self.flow.stop.map_or(duration, |stop| stop.as_secs_f64());
        self.flow.start.as_secs_f64() <= time && time < stop
    }
}

/// The rate of each on the links.
pub(super) fn carried(plan: &Plan, shares: &[Share<'_, '_>]) -> Vec<Carried> {
    let duration = plan.duration.as_secs_f64();
    let mut left: Vec<f64> = shares.iter().map(|share| share.fluid.wanted).collect();
    let mut found = vec![Carried::default(); shares.len()];
    for pair in moments(plan, shares).windows(2) {
        let (begin, end) = (pair[0], pair[1]);
        let middle = (begin + end) / 2.0;
        let is_active = |&one: &usize| shares[one].is_active(middle, duration) && left[one] > 0.0;
        let mut active: Vec<usize> = (0..shares.len()).filter(is_active).collect();
        // First those that do not yield.
        active.sort_by_key(|&one| shares[one].fluid.yields);
        for (&one, rate) in active.iter().zip(divided(shares, &active, middle)) {
            let used = (rate * (end - begin)).min(left[one]);
            let time = if rate > 0.0 { used / rate } else { end - begin };
            left[one] -= used;
            found[one].bits += used;
            found[one].seconds += time;
            found[one].end = begin + time;
        }
    }
    found
}

/// The times at which something starts, stops or changes, s.
fn moments(plan: &Plan, shares: &[Share<'_, '_>]) -> Vec<f64> {
    let duration = plan.duration.as_ns();
    let mut inside = vec![0, duration];
    for share in shares {
        inside.push(share.flow.start.as_ns());
        inside.extend(share.flow.stop.map(|stop| stop.as_ns()));
        for hop in share.paths.forward.iter().chain(&share.paths.reverse) {
            inside.extend(hop.direction.changes.iter().map(|change| change.at.as_ns()));
        }
    }
    inside.retain(|&moment| moment <= duration);
    inside.sort_unstable();
    inside.dedup();
    let last = inside.pop();
    let step = ((inside.len() + 1) / MOMENTS).max(1);
    inside.into_iter().step_by(step).chain(last).map(|moment| moment as f64 / 1e9).collect()
}

/// Rates of the active ones in bit/s, max-min fair by streams below what each can take.
fn divided(shares: &[Share<'_, '_>], active: &[usize], time: f64) -> Vec<f64> {
    let mut room: HashMap<usize, f64> = HashMap::new();
    for hop in active.iter().flat_map(|&one| shares[one].hops()) {
        room.entry(hop.resource()).or_insert_with(|| hop.room(time));
    }
    let mut rates: BTreeMap<usize, f64> = active.iter().map(|&one| (one, 0.0)).collect();
    for yields in [false, true] {
        let mut growing: Vec<usize> =
            active.iter().copied().filter(|&one| shares[one].fluid.yields == yields).collect();
        while !growing.is_empty() {
            let steps = steps(shares, &growing, &room, &rates, time);
            let step = steps.iter().copied().fold(f64::INFINITY, f64::min);
            for &one in &growing {
                let streams = f64::from(shares[one].flow.streams);
                *rates.entry(one).or_default() += step * streams;
                for hop in shares[one].hops() {
                    *room.entry(hop.resource()).or_default() -= step * streams * hop.cost(time);
                }
            }
            // A flow that stops at this step is the first that was to.
            let mut steps = steps.into_iter();
            growing.retain(|_| steps.next().is_some_and(|own| own > step * (1.0 + TOLERANCE)));
        }
    }
    active.iter().map(|one| rates[one]).collect()
}

/// By how much a stream of each growing one could grow.
fn steps(
    shares: &[Share<'_, '_>],
    growing: &[usize],
    room: &HashMap<usize, f64>,
    rates: &BTreeMap<usize, f64>,
    time: f64,
) -> Vec<f64> {
    let mut taken: HashMap<usize, f64> = HashMap::new();
    for &one in growing {
        for hop in shares[one].hops() {
            *taken.entry(hop.resource()).or_default() += f64::from(shares[one].flow.streams) * hop.cost(time);
        }
    }
    let step = |&one: &usize| {
        let own = (shares[one].fluid.maximum - rates[&one]) / f64::from(shares[one].flow.streams);
        let of_hop = |hop: &Hop<'_>| room[&hop.resource()] / taken[&hop.resource()];
        shares[one].hops().iter().map(of_hop).fold(own, f64::min)
    };
    growing.iter().map(step).collect()
}
