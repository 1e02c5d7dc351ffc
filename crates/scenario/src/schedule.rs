//! When flows stop and when the run ends.
//!
//! A flow stops at its `stop`, or after its `duration`. One that says neither ends by itself if it has a number of
//! bytes, requests or messages, and else goes on to the end of the scenario. That is the scenario's `duration`, or
//! else when the last flow stops that says so, or else 30 s. Without a `duration`, flows that end by themselves stop
//! at `timeout` at the latest.

use crate::language::{Flow, Scenario};

const DEFAULT_DURATION: u64 = 30_000_000_000;

/// Times in ns.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Per flow; none: when its work is done, or at `limit`.
    pub(crate) stops: Vec<Option<u64>>,
    /// When the run ends at the latest.
    pub(crate) limit: u64,
}

/// The times of a scenario.
pub(crate) fn schedule(scenario: &Scenario) -> Schedule {
    let own: Vec<Option<u64>> = scenario
        .flows
        .iter()
        .map(|flow| match flow.common.duration {
            Some(duration) => Some(flow.common.start.saturating_add(duration)),
            None => flow.common.stop,
        })
        .collect();
    let flows = || scenario.flows.iter().zip(&own);
    let (end, limit) = match scenario.duration {
        Some(duration) => (duration, duration),
        None => {
            let without_stop = || flows().filter(|(_, stop)| stop.is_none());
            let any_open = without_stop().any(|(flow, _)| flow.traffic().ends_by_itself());
            let any_endless = without_stop().any(|(flow, _)| !flow.traffic().ends_by_itself());
            let stated = own.iter().flatten().copied().max();
            let end = stated.or(any_endless.then_some(DEFAULT_DURATION)).unwrap_or(scenario.timeout);
            (end, if any_open { end.max(scenario.timeout) } else { end })
        }
    };
    let stop = |flow: &Flow, stop: Option<u64>| match stop {
        None if !flow.traffic().ends_by_itself() => Some(end),
        None if scenario.duration.is_none() && scenario.timeout < limit => Some(scenario.timeout),
        stop => stop,
    };
    let stops = flows().map(|(flow, own)| stop(flow, *own)).collect();
    Schedule { stops, limit }
}
