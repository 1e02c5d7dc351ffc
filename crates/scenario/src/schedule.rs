//! When flows stop and when the run ends.
//!
//! A flow stops at its `stop`, or after its `duration`. One that says neither ends by itself if it has a number of
//! bytes, requests or messages, and else goes on to the end of the scenario. That is the scenario's `duration`, or
//! else when the last flow stops that says so, or else 30 s. Without a `duration`, flows that end by themselves may
//! take until `timeout`.

use crate::language::Scenario;

const DEFAULT_DURATION: u64 = 30_000_000_000;

/// Times in ns.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Per flow; none: when its work is done.
    pub(crate) stops: Vec<Option<u64>>,
    /// When flows stop that go on to the end.
    pub(crate) end: u64,
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
            let end = own.iter().flatten().copied().max().unwrap_or(DEFAULT_DURATION);
            let open = flows().any(|(flow, stop)| stop.is_none() && flow.ends_by_itself());
            (end, if open { end.max(scenario.timeout) } else { end })
        }
    };
    let stops = flows().map(|(flow, stop)| stop.or((!flow.ends_by_itself()).then_some(end))).collect();
    Schedule { stops, end, limit }
}
