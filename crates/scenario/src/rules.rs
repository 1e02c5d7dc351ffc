//! Rules between the keys of one mapping. They apply only to a mapping without errors.

use serde_json::Value as Json;

use crate::document::Node;
use crate::generate;
use crate::language::{self, Form, Generated};
use crate::reader::shown_time;

/// A message and a suggestion.
type Wrong = (String, String);

/// Asks the rule of this name.
pub(crate) fn check(rule: &str, values: &Json) -> Result<(), Wrong> {
    match rule {
        "loss" => loss(values),
        "jitter" => jitter(values),
        "red" => red(values),
        "axis" => axis(values),
        "topology" => topology(values),
        _ => Ok(()),
    }
}

fn wrong(message: impl Into<String>, suggestion: impl Into<String>) -> Result<(), Wrong> {
    Err((message.into(), suggestion.into()))
}

fn loss(values: &Json) -> Result<(), Wrong> {
    let given = |key: &str| values.get(key).is_some();
    let processes: Vec<&str> =
        ["rate", "gilbert_elliott", "packets", "every"].into_iter().filter(|key| given(key)).collect();
    match processes.as_slice() {
        [] => {
            return wrong(
                "a loss needs one of `rate`, `gilbert_elliott`, `packets` and `every`",
                "loss: 0.5 %",
            );
        }
        [_] => {}
        [one, other, ..] => {
            return wrong(format!("a loss has one process, but `{one}` and `{other}` are given"), "");
        }
    }
    for (key, needed) in [("correlation", "rate"), ("model", "rate"), ("first", "every")] {
        if given(key) && !given(needed) {
            return wrong(format!("`{key}` goes with `{needed}`, which is not given"), "");
        }
    }
    let packets = values.get("packets").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let mut seen = std::collections::HashSet::new();
    for number in packets {
        if !seen.insert(number.as_u64()) {
            return wrong(format!("packet {number} is in the list twice"), "");
        }
    }
    Ok(())
}

fn topology(values: &Json) -> Result<(), Wrong> {
    let Ok(topology) = serde_json::from_value::<Generated>(values.clone()) else { return Ok(()) };
    match topology.form {
        Form::FatTree { k } if k % 2 == 1 => {
            return wrong("`k` of a fat tree is an even number", format!("k: {}", k + 1));
        }
        Form::Ring { routers, .. } if routers < 3 => {
            return wrong("a ring has 3 routers or more", "routers: 3");
        }
        _ => {}
    }
    let nodes = generate::size(&topology.form);
    if nodes > generate::MAX_NODES {
        return wrong(
            format!("the topology has {nodes} nodes; at most {} are generated", generate::MAX_NODES),
            "",
        );
    }
    Ok(())
}

fn axis(values: &Json) -> Result<(), Wrong> {
    if values.get("set").is_some() && values.get("values").is_some_and(Json::is_object) {
        return wrong("values by label say themselves what they set: leave out `set`, or give a list", "");
    }
    Ok(())
}

/// The delay falls at most half as fast as time passes (`crates/link/src/excursions.rs`). Below 10 amounts most
/// excursions of normal jitter would last longer than asked for.
pub(crate) const JITTER_MEMORY: u64 = 10;
/// Below, a link would take noticeable time to catch up after a pause.
const MIN_CORRELATION_TIME: u64 = 100_000;

fn jitter(values: &Json) -> Result<(), Wrong> {
    let Ok(jitter) = serde_json::from_value::<language::Jitter>(values.clone()) else { return Ok(()) };
    let minimum = jitter.amount.saturating_mul(JITTER_MEMORY).max(MIN_CORRELATION_TIME);
    match jitter.correlation_time {
        Some(given) if jitter.amount > 0 && given < minimum => {
            let (given, minimum) = (shown_time(given), shown_time(minimum));
            let message = format!(
                "`correlation_time` of {given} is too short: the minimum for this jitter is {minimum}, so that \
                 packets keep their order; with `reorder` each packet's delay is its own"
            );
            wrong(message, format!("correlation_time: {minimum}"))
        }
        _ => Ok(()),
    }
}

/// Its average is one number, in packets or in bytes.
fn red(values: &Json) -> Result<(), Wrong> {
    let amount = |key: &str| values.get(key)?.as_object()?.iter().next();
    let (min, max) = (amount("min"), amount("max"));
    let unit = |given: Option<(&String, &Json)>| given.map_or("bytes", |(unit, _)| unit.as_str()).to_owned();
    let in_packets = |given| unit(given) == "packets";
    if in_packets(min) != in_packets(max) {
        let message =
            "`min` and `max` are both in packets or both in bytes; the defaults are 20 kB and 60 kB";
        return wrong(message, "");
    }
    if let (Some((one, min)), Some((other, max))) = (min, max)
        && one == other
        && min.as_u64().zip(max.as_u64()).is_some_and(|(min, max)| min >= max)
    {
        return wrong("`max` must be more than `min`", "");
    }
    Ok(())
}

/// The meaning of a mapping's keys by being there, whatever their values; `whole`: nothing in it was refused.
pub(crate) fn check_keys(rule: &str, node: &Node, whole: bool) -> Result<(), Wrong> {
    if rule != "network" {
        return Ok(());
    }
    let listed = |key: &str| node.get(key).is_some_and(|list| !list.items().is_empty());
    let given = |key: &str| node.get(key).is_some();
    if given("path") && given("topology") {
        return wrong("a network is either a `path` or a `topology`, not both", "");
    }
    if given("path") && (listed("nodes") || listed("links")) {
        return wrong("a network is either a `path`, or `nodes` and `links`, not both", "");
    }
    if given("path") && listed("media") {
        return wrong("the link of a `path` is a wire; a medium needs `nodes` and `links`", "");
    }
    if whole && !given("path") && !given("topology") && !listed("nodes") {
        return wrong("a network needs a `path`, a `topology`, or `nodes` and `links`", "");
    }
    Ok(())
}
