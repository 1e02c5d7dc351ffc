//! Differences between the repetitions of a plan: the seed, and the start times of flows.
//!
//! Without random decisions in the network, a new seed alone changes nothing: a repetition of a simulation would be a
//! copy. A phase of up to one base RTT is the smallest change that a real path makes, too: flows of different
//! origin are not synchronized. (Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992).

use sha2::{Digest, Sha256};
use tcplab_plan::{Flow, Plan};
use tcplab_units::Span;

/// The plan of a repetition, counted from 1: its seed and, from the second on, its `phases`.
///
/// Phases are uniform from 0 to the flow's base RTT, decided by the seed and the flow's name alone. The first
/// repetition has none, nor has any where the plan's `vary` is off or no flow's path has a delay.
pub fn repetition(mut plan: Plan, number: u64) -> Plan {
    plan.seed = plan.seed.saturating_add(number.saturating_sub(1));
    if number > 1 && plan.vary {
        let seed = plan.seed;
        let delayed = plan.flows.iter().filter(|flow| flow.base_rtt > Span::ZERO);
        plan.phases = delayed.map(|flow| (flow.name.clone(), phase(seed, flow))).collect();
    }
    plan
}

fn phase(seed: u64, flow: &Flow) -> Span {
    let digest = Sha256::digest(format!("{seed} {}", flow.name));
    let random = digest[..8].iter().fold(0_u128, |number, &byte| number << 8 | u128::from(byte));
    Span::from_ns(((random * u128::from(flow.base_rtt.as_ns())) >> 64) as u64)
}

/// The plan as an engine executes it: each flow starts and stops later by its phase.
///
/// The run ends later by the largest phase, so that no flow is cut short.
pub fn with_phases(mut plan: Plan) -> Plan {
    let longest = plan.phases.values().max().copied().unwrap_or(Span::ZERO);
    plan.duration += longest;
    for flow in &mut plan.flows {
        let phase = plan.phases.get(&flow.name).copied().unwrap_or(Span::ZERO);
        flow.start += phase;
        flow.stop = flow.stop.map(|stop| stop + phase);
    }
    plan
}
