//! Checks of a valid document: names, routes, times, sizes, files, controls.
//!
//! Everything is checked before anything is refused, so that all mistakes are reported together.

mod flows;
mod network;
mod routing;

use std::collections::HashSet;

use crate::document::{Document, Step};
use crate::error::Mistake;
use crate::layout::Layout;
use crate::quantity::quoted;
use crate::reader::{Path, shown_time};
use crate::schedule::schedule;
use crate::suggestions::near_name;
use crate::topology::{at, below};

pub(crate) use flows::{TCP_HEADER, ip_header, source};

/// A finer sampling would cost more than it shows.
const MIN_SAMPLING: u64 = 1_000;

/// A contradiction at `path`.
///
/// It is not reported if the value there was refused before, or anything around the paths it depends on.
pub(crate) struct Finding {
    path: Path,
    message: String,
    suggestion: String,
    depends: Vec<Path>,
    at_key: bool,
}

impl Finding {
    fn new(path: Path, message: impl Into<String>) -> Finding {
        Finding {
            path,
            message: message.into(),
            suggestion: String::new(),
            depends: Vec::new(),
            at_key: false,
        }
    }

    fn suggest(mut self, suggestion: impl Into<String>) -> Finding {
        self.suggestion = suggestion.into();
        self
    }

    fn depends(mut self, on: Vec<Path>) -> Finding {
        self.depends = on;
        self
    }

    fn at_key(mut self) -> Finding {
        self.at_key = true;
        self
    }
}

/// Errors; at the `refused` paths, already reported, stand-ins are used.
pub(crate) fn check(layout: &Layout<'_>, document: &Document, refused: &[Path]) -> Vec<Mistake> {
    let mut found = Vec::new();
    names(layout, &mut found);
    network::links(layout, &mut found);
    network::media(layout, &mut found);
    flows::ends(layout, &mut found);
    times(layout, &mut found);
    network::traces(layout, &mut found);
    network::queues(layout, &mut found);
    network::changes(layout, &mut found);
    network::node_settings(layout, &mut found);
    routing::routing(layout, &mut found);
    routing::versions(layout, &mut found);
    flows::ports(layout, &mut found);
    flows::sizes(layout, &mut found);
    flows::controls(layout, document, &mut found);
    captured(layout, document, &mut found);
    placed(layout, &mut found);
    let mut mistakes = Vec::new();
    for finding in found {
        let path = written(document, &finding.path);
        let hidden = refused.iter().any(|gone| path.starts_with(gone) || finding.path.starts_with(gone));
        let unsure = || finding.depends.iter().any(|on| refused.iter().any(|gone| related(on, gone)));
        if !hidden && !unsure() {
            mistakes.push(document.mistake(&path, &finding.message, &finding.suggestion, finding.at_key));
        }
    }
    mistakes
}

/// Whether one path lies at, above or below the other.
fn related(one: &[Step], other: &[Step]) -> bool {
    let shared = one.len().min(other.len());
    one[..shared] == other[..shared]
}

/// The path as the text has it, where short forms leave steps out: `cc.params.beta` is written `cc.beta`.
fn written(document: &Document, path: &[Step]) -> Path {
    let mut found: Path = Vec::new();
    for (index, step) in path.iter().enumerate() {
        let further = |step: &Step| [found.as_slice(), std::slice::from_ref(step)].concat();
        if document.node(&further(step)).is_some() {
            found.push(step.clone());
        } else if path.get(index + 1).is_some_and(|next| document.node(&further(next)).is_some()) {
            // The next step stands here.
        } else {
            let mapping = document.node(&found).is_some_and(|node| node.is_mapping());
            if index + 1 == path.len() && mapping {
                found.push(step.clone());
            }
            return found;
        }
    }
    found
}

/// Everything that a network and its traffic are made of.
fn everything() -> Vec<Path> {
    vec![at!["network"], at!["flows"]]
}

fn names(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    let scenario = layout.scenario;
    let mut named: Vec<(&str, &str, Path, Vec<Path>)> = scenario
        .flows
        .iter()
        .map(|flow| ("flow", flow.common.name.as_str(), at!["flows", flow.number, "name"], Vec::new()))
        .collect();
    for (number, medium) in scenario.network.media.iter().enumerate() {
        named.push(("medium", &medium.name, at!["network", "media", number, "name"], Vec::new()));
    }
    if scenario.network.path.is_none() {
        for node in &layout.topology.nodes {
            named.push(("node", &node.name, crate::topology::below(&node.place, "name"), Vec::new()));
        }
        for link in &layout.topology.links {
            // A link without a name is called by its ends.
            let depends = vec![crate::topology::below(&link.place, "ends")];
            named.push(("link", &link.name, crate::topology::below(&link.place, "name"), depends));
        }
    }
    let mut taken: HashSet<(&str, String)> =
        named.iter().map(|(kind, name, ..)| (*kind, (*name).to_owned())).collect();
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for (kind, name, path, depends) in &named {
        if !seen.insert((kind, name)) {
            let spare = (2..).map(|number| format!("{name}-{number}"));
            let spare = spare.into_iter().find(|spare| !taken.contains(&(*kind, spare.clone())));
            let spare = spare.unwrap_or_default();
            let message = format!("duplicate {kind} name {}", quoted(name));
            let finding = Finding::new(path.clone(), message).suggest(format!("name: {spare}"));
            found.push(finding.depends(depends.clone()));
            taken.insert((kind, spare));
        }
    }
}

fn times(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    let scenario = layout.scenario;
    let times = schedule(scenario);
    for (flow, own_end) in scenario.flows.iter().zip(&times.stops) {
        let place = |key: &str| at!["flows", flow.number, key];
        let start = flow.common.start;
        let end = own_end.unwrap_or(times.limit).min(times.limit);
        match (flow.common.duration, flow.common.stop) {
            (Some(_), Some(_)) => {
                let message = "the flow has both `duration` and `stop`: give one of them";
                found.push(Finding::new(place("stop"), message));
            }
            (_, Some(stop)) if stop <= start => {
                let message =
                    format!("the flow stops at {}, but starts at {}", shown_time(stop), shown_time(start));
                found.push(Finding::new(place("stop"), message).depends(vec![place("start")]));
            }
            _ if start >= end => {
                let message = format!(
                    "the flow starts at {}, but the run ends at {}",
                    shown_time(start),
                    shown_time(end)
                );
                let depends = vec![at!["duration"], at!["timeout"], at!["flows"]];
                found.push(Finding::new(place("start"), message).depends(depends));
            }
            _ => {}
        }
    }
    for node in &layout.topology.nodes {
        let death = node.accelerate.as_ref().and_then(|given| given.kill_at);
        if let Some(death) = death.filter(|&death| death >= times.limit) {
            let message = format!(
                "the accelerator dies at {}, but the run ends at {}",
                shown_time(death),
                shown_time(times.limit)
            );
            let place = below(&below(&node.place, "accelerate"), "kill_at");
            let depends = vec![at!["duration"], at!["timeout"], at!["flows"]];
            let half = shown_time(times.limit / 2);
            found.push(Finding::new(place, message).suggest(half).depends(depends));
        }
    }
    if scenario.seed.checked_add(scenario.repeat - 1).is_none() {
        let message =
            format!("{} repetitions from seed {} go beyond 2^64 - 1", scenario.repeat, scenario.seed);
        found.push(Finding::new(at!["seed"], message).suggest("1").depends(vec![at!["repeat"]]));
    }
    let sample = &scenario.sample;
    for (key, interval) in [
        ("sockets", sample.sockets),
        ("queues", sample.queues),
        ("flows", sample.flows),
        ("hosts", sample.hosts),
    ] {
        if let Some(interval) = interval.filter(|&interval| interval < MIN_SAMPLING) {
            let message = format!("sampling every {interval} ns; the minimum is 1 us");
            found.push(Finding::new(at!["sample", key], message).suggest("1 ms"));
        }
    }
}

fn captured(layout: &Layout<'_>, document: &Document, found: &mut Vec<Finding>) {
    let Some(nodes) = layout.scenario.capture.as_ref().and_then(|capture| capture.nodes.as_ref()) else {
        return;
    };
    let list = document
        .root
        .get("capture")
        .and_then(|capture| capture.get("nodes"))
        .map_or(&[][..], |list| list.items());
    for name in nodes.iter().filter(|name| layout.node(name).is_none()) {
        let index = list.iter().position(|item| item.written == **name).unwrap_or(0);
        let near = near_name(name, layout.topology.nodes.iter().map(|node| node.name.as_str()));
        let message = format!("unknown node {}", quoted(name));
        let finding = Finding::new(at!["capture", "nodes", index], message);
        found.push(finding.suggest(near).depends(everything()));
    }
}

fn placed(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    for name in layout.scenario.network.hosts_at.keys().filter(|name| layout.node(name).is_none()) {
        let near = near_name(name, layout.topology.nodes.iter().map(|node| node.name.as_str()));
        let path = at!["network", "hosts_at", name.as_str()];
        let finding = Finding::new(path, format!("unknown node {}", quoted(name))).suggest(near);
        found.push(finding.at_key().depends(everything()));
    }
}
