//! The load of each flow in a run.

use super::paths::{Map, Paths};
use super::sharing::{self, Share};
use super::{Carried, Count};
use crate::{Flow, Plan};

/// The load of a flow in a run.
pub(super) struct Load<'p> {
    pub(super) flow: &'p Flow,
    pub(super) carried: Carried,
    /// Probes, messages or requests that were answered.
    pub(super) trips: f64,
    /// Arrivals at nodes.
    pub(super) packets: f64,
    /// Packets that leave or reach each of its hosts.
    pub(super) sent: f64,
}

/// The handshake and the end of a connection, packets forward and reverse.
const ENDS: (f64, f64) = (3.0, 2.0);

pub(super) fn loads(plan: &Plan) -> Vec<Load<'_>> {
    let map = Map::new(plan);
    let paths: Vec<Paths<'_>> = plan.flows.iter().map(|flow| map.paths(flow)).collect();
    let (mut places, mut shares) = (Vec::new(), Vec::new());
    for (place, (flow, paths)) in plan.flows.iter().zip(&paths).enumerate() {
        if let Some(fluid) = flow.traffic.kind().fluid(flow, paths) {
            places.push(place);
            shares.push(Share { flow, paths, fluid });
        }
    }
    let mut carried = vec![Carried::default(); plan.flows.len()];
    for (place, own) in places.into_iter().zip(sharing::carried(plan, &shares)) {
        carried[place] = own;
    }
    let each = plan.flows.iter().zip(&paths).zip(carried);
    each.map(|((flow, paths), carried)| load(flow, paths, carried, plan.duration.as_secs_f64())).collect()
}

fn load<'p>(flow: &'p Flow, paths: &Paths<'_>, carried: Carried, duration: f64) -> Load<'p> {
    let stop = flow.stop.map_or(duration, |stop| duration.min(stop.as_secs_f64()));
    let time = (stop - flow.start.as_secs_f64()).max(0.0);
    let Count { mut forward, mut reverse, trips, carried } =
        flow.traffic.kind().count(flow, paths, carried, time);
    if flow.traffic.traits().connected {
        forward += ENDS.0 * f64::from(flow.streams);
        reverse += ENDS.1 * f64::from(flow.streams);
    }
    let packets = forward * paths.forward.len() as f64 + reverse * paths.reverse.len() as f64;
    Load { flow, carried, trips, packets, sent: forward + reverse }
}
