//! A link direction as queue disciplines of the running kernel, in the words of tc(8).
//!
//! The interface that sends into a direction gets up to two netems, one in the other. The outer one does what happens
//! to packets on their way. The inner one is the queue and serialises at the rate.
//!
//! This order has two reasons. First, the limit of an outer netem counts what the inner one holds with some kernels
//! and not with others (`sch->q.qlen` and `q->t_len` in `netem_enqueue`). Second, the sender's TCP learns at once
//! what an outer netem refuses, where a loss in a network shows by what is not delivered. The differences from a link
//! of tcplab's are in docs/kernel-engine.md.

use serde::Serialize;
use tcplab_plan::{Chance, Direction, Distribution, Limit, Loss, LossModel};
use tcplab_units::{Probability, Span};

pub(super) const ETHERNET_HEADER: u64 = 14;
/// Room for what is on its way, packets; netem counts those too, and a link does not.
const AMPLE: u64 = 1_000_000;
const OWN: &str = "leave `emulator` out: tcplab's own emulator does it";

/// A deviation of netem from the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unlike {
    /// Of the link direction.
    pub key: &'static str,
    /// In words.
    pub message: String,
    /// How to avoid it.
    pub hint: &'static str,
    /// False: it does something like it.
    pub refused: bool,
}

/// Arguments of tc, one list a command; none where the direction does nothing. Settings that `unlike` refuses are left out.
pub(super) fn commands(interface: &str, mtu: u32, direction: &Direction) -> Vec<Vec<String>> {
    let places: [&[&str]; 2] = [&["root", "handle", "1:"], &["parent", "1:1"]];
    let begin = ["qdisc", "add", "dev", interface];
    let command = |(place, netem): (&[&str], Vec<String>)| {
        let words = begin.iter().chain(place).chain(&["netem"]);
        words.map(|&word| word.to_owned()).chain(netem).collect()
    };
    places.into_iter().zip(netems(mtu, direction)).map(command).collect()
}

/// Arguments of each netem that a packet passes, the outer one first; none where the direction does nothing.
pub fn netems(mtu: u32, direction: &Direction) -> Vec<Vec<String>> {
    let (mut path, queue) = (path(direction), serialisation(direction, mtu));
    if path.is_empty() && queue.is_none() {
        return Vec::new();
    }
    path.push(format!("limit {AMPLE}"));
    let words = |line: String| line.split(' ').map(str::to_owned).collect();
    std::iter::once(path.join(" ")).chain(queue).map(words).collect()
}

/// Settings of a direction that netem cannot do, or does in another way.
pub fn unlike(mtu: u32, direction: &Direction) -> Vec<Unlike> {
    let mut found = Vec::new();
    let mut differs = |differs: bool, refused: bool, key, message: &str, hint| {
        if differs {
            found.push(Unlike { key, message: message.to_owned(), hint, refused });
        }
    };
    differs(!direction.up, true, "up", "netem cannot take a link down", OWN);
    differs(direction.trace.is_some(), true, "trace", "netem follows no delivery trace", OWN);
    let counted = "netem's rate counts what tc counts, IP length + 14 bytes";
    differs(!direction.overhead.is_none(), true, "overhead", counted, OWN);
    differs(direction.policer.is_some(), true, "policer", "netem does not police", OWN);
    differs(!direction.changes.is_empty(), true, "at", "netem's settings stay as they are during a run", OWN);
    let queue = !direction.queue.only_drops_tail();
    differs(queue, true, "queue", "netem's queue is droptail and marks nothing", OWN);
    // Newer kernels forbid two netems in one another of which one duplicates (`check_netem_in_tree`).
    let twice = direction.duplicate.is_some() && direction.rate.is_some();
    differs(twice, true, "duplicate", "netem does not duplicate on a link with a `rate`", OWN);
    if let Some(reorder) = direction.reorder {
        let skips = "packets that overtake skip all of the delay in netem";
        let other = reorder.by.is_some_and(|by| by != direction.delay);
        differs(other, true, "reorder.by", skips, "leave `by` out");
        let none = "netem reorders by skipping the delay, and the delay is 0";
        differs(direction.delay == Span::ZERO, true, "reorder", none, "give a `delay`");
    }
    let jitter = direction.jitter.map(|jitter| jitter.distribution);
    let pareto = jitter == Some(Distribution::Pareto);
    differs(pareto, true, "jitter.distribution", "netem's Pareto distribution is another one", OWN);
    let each = "netem draws each packet's delay by itself, so that packets overtake each other";
    differs(jitter.is_some() && !pareto, false, "jitter", each, OWN);
    if let Some(loss) = &direction.loss {
        differs(lost(loss).is_empty(), true, "loss", "netem loses packets by chance only", OWN);
        let correlated = matches!(loss.model, LossModel::Random { chance } if !chance.correlation.is_zero());
        let fewer = "netem's correlated losses are fewer than the rate asked for";
        differs(correlated, false, "loss.correlation", fewer, "`model: netem` says how many they are");
    }
    let in_bytes = matches!(direction.queue.limit(), Some(Limit::Bytes(_) | Limit::Time(_)));
    let packets = waiting(direction, mtu);
    let full = format!("netem limits packets, not bytes: {packets} of them, as if all were full");
    let limited = direction.rate.is_some() && in_bytes;
    differs(limited, false, "queue.limit", &full, "give the limit in packets");
    found
}

fn serialisation(direction: &Direction, mtu: u32) -> Option<String> {
    let rate = direction.rate?;
    // A link's limit does not count the packet that is being sent, netem's does.
    let limit = AMPLE.min(waiting(direction, mtu) + 1);
    Some(format!("rate {}bit limit {limit}", rate.bits_per_sec()))
}

/// How many packets may wait: a limit in bytes or time as that of full ones.
fn waiting(direction: &Direction, mtu: u32) -> u64 {
    let size = match direction.queue.limit() {
        None => return AMPLE,
        Some(Limit::Packets(packets)) => return packets,
        Some(Limit::Bytes(bytes)) => bytes,
        Some(Limit::Time(time)) => {
            let rate = direction.rate.map_or(0, |rate| rate.bits_per_sec());
            let bytes = u128::from(time.as_ns()) * u128::from(rate) / 8_000_000_000;
            u64::try_from(bytes).unwrap_or(u64::MAX)
        }
    };
    (size / (u64::from(mtu) + ETHERNET_HEADER)).max(1)
}

fn path(direction: &Direction) -> Vec<String> {
    let mut words = Vec::new();
    if direction.delay != Span::ZERO || direction.jitter.is_some() {
        words.push(format!("delay {}", time(direction.delay)));
    }
    if let Some(jitter) = direction.jitter {
        words.push(time(jitter.amount));
        if jitter.distribution == Distribution::Normal {
            words.push("distribution normal".to_owned());
        }
    }
    words.extend(direction.loss.as_ref().map(lost).filter(|words| !words.is_empty()));
    let reorder = direction.reorder.map(|reorder| reorder.chance);
    let chances = [("corrupt", direction.corrupt), ("duplicate", direction.duplicate), ("reorder", reorder)];
    words.extend(chances.into_iter().filter_map(|(word, hit)| Some(format!("{word}{}", chance(hit?)))));
    words
}

/// Empty: netem has none like it.
fn lost(loss: &Loss) -> String {
    match &loss.model {
        LossModel::Random { chance: hit } | LossModel::Netem { chance: hit } => {
            format!("loss random{}", chance(*hit))
        }
        LossModel::GilbertElliott { p, r, bad, good } => {
            let [p, r, bad, good] = [p, r, bad, good].map(|share| percent(*share));
            format!("loss gemodel {p} {r} {bad} {good}")
        }
        LossModel::List { .. } | LossModel::Every { .. } => String::new(),
    }
}

fn chance(chance: Chance) -> String {
    let given = [chance.rate, chance.correlation].into_iter().filter(|share| !share.is_zero());
    given.map(|share| format!(" {}", percent(share))).collect()
}

fn percent(share: Probability) -> String {
    const PERCENT: u32 = 10_000_000;
    format!("{}.{:07}%", share.ppb() / PERCENT, share.ppb() % PERCENT)
}

fn time(span: Span) -> String {
    format!("{}.{:03}us", span.as_ns() / 1000, span.as_ns() % 1000)
}
