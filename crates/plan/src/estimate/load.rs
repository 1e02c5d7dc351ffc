//! The load of each flow in a run.

use super::sharing::{self, Share};
use super::ways::{Map, Ways};
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
    let ways: Vec<Ways<'_>> = plan.flows.iter().map(|flow| map.ways(flow)).collect();
    let (mut places, mut shares) = (Vec::new(), Vec::new());
    for (place, (flow, ways)) in plan.flows.iter().zip(&ways).enumerate() {
        if let Some(fluid) = flow.traffic.kind().fluid(flow, ways) {
            places.push(place);
            shares.push(Share { flow, ways, fluid });
        }
    }
    let mut carried = vec![Carried::default(); plan.flows.len()];
    for (place, own) in places.into_iter().zip(sharing::carried(plan, &shares)) {
        carried[place] = own;
    }
    let each = plan.flows.iter().zip(&ways).zip(carried);
    each.map(|((flow, ways), carried)| load(flow, ways, carried, plan.duration.as_secs_f64())).collect()
}

fn load<'p>(flow: &'p Flow, ways: &Ways<'_>, carried: Carried, duration: f64) -> Load<'p> {
    let stop = flow.stop.map_or(duration, |stop| duration.min(stop.as_secs_f64()));
    let time = (stop - flow.start.as_secs_f64()).max(0.0);
    let Count { mut forward, mut reverse, trips, carried } =
        flow.traffic.kind().count(flow, ways, carried, time);
    if flow.traffic.traits().connected {
        forward += ENDS.0 * f64::from(flow.streams);
        reverse += ENDS.1 * f64::from(flow.streams);
    }
    let packets = forward * ways.forward.len() as f64 + reverse * ways.reverse.len() as f64;
    Load { flow, carried, trips, packets, sent: forward + reverse }
}
