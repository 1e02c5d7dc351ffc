//! Flows between all hosts, from one that says so.

use tcplab_plan::NodeKind;

use crate::generate;
use crate::language::{Between, Flow, Network, Scenario};

/// How many flows a plan has at most; the simulator numbers them with 16 bits.
const MAX_FLOWS: usize = 65_536;

/// Puts a flow for each ordered pair of hosts in place of one that says `between: all`.
pub(crate) fn spread(scenario: &mut Scenario) {
    let hosts = hosts(&scenario.network);
    let flows = std::mem::take(&mut scenario.flows);
    for flow in flows {
        if flow.common.between.is_none()
            || hosts.len() < 2
            || pairs(hosts.len()) > MAX_FLOWS
            || flow.common.from.is_some()
            || flow.common.to.is_some()
        {
            scenario.flows.push(flow);
            continue;
        }
        for from in &hosts {
            for to in hosts.iter().filter(|to| *to != from) {
                let mut one = flow.clone();
                one.common.name = format!("{}-{from}-{to}", flow.common.name);
                (one.common.from, one.common.to) = (Some(from.clone()), Some(to.clone()));
                one.common.between = None;
                scenario.flows.push(one);
            }
        }
    }
}

/// How many ordered pairs there are of so many hosts.
fn pairs(hosts: usize) -> usize {
    hosts.saturating_mul(hosts.saturating_sub(1))
}

/// Why a flow could not be spread; none for one that does not ask for it.
pub(crate) fn contradiction(scenario: &Scenario, flow: &Flow) -> Option<String> {
    let Between::All = flow.common.between?;
    let hosts = hosts(&scenario.network).len();
    let reason = if scenario.network.path.is_some() {
        "`between` is for a network with `nodes` or a `topology`; a path has two hosts"
    } else if flow.common.from.is_some() || flow.common.to.is_some() {
        "a flow has either `between`, or `from` and `to`, not both"
    } else if pairs(hosts) > MAX_FLOWS {
        return Some(format!(
            "{hosts} hosts have {} flows between them; a plan has at most {MAX_FLOWS}",
            pairs(hosts)
        ));
    } else {
        "`between` needs two hosts or more"
    };
    Some(reason.to_owned())
}

/// The names of all hosts, the generated first.
fn hosts(network: &Network) -> Vec<String> {
    let graph = network.topology.as_ref().map(|given| generate::graph(&given.form)).unwrap_or_default();
    let of_kind =
        |name: &String| network.nodes.iter().find(|node| node.name == *name).and_then(|node| node.kind);
    let named: Vec<String> = network.nodes.iter().map(|node| node.name.clone()).collect();
    let own = named.into_iter().filter(|name| !graph.joints.contains(name) && !graph.hosts.contains(name));
    let own: Vec<String> = own.collect();
    let hosts = graph.hosts.into_iter().chain(own);
    hosts.filter(|name| of_kind(name).is_none_or(|role| role.kind() == NodeKind::Host)).collect()
}
