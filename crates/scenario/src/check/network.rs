//! Contradictions in the network: ends of links, traces, queues, changes, settings of nodes.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;
use tcplab_plan::NodeKind;

use super::flows::{Buffers, buffers};
use super::{Finding, everything};
use crate::addresses::{self, Pool};
use crate::document::Step;
use crate::language::{Amount, QueueTree};
use crate::layout::Layout;
use crate::quantity::{LARGEST, quoted};
use crate::reader::Path;
use crate::schema;
use crate::suggestions::near_name;
use crate::topology::{DirectionSpec, NodeSpec, Setting, at, below};

pub(super) fn links(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    for link in &layout.topology.links {
        let place = below(&link.place, "ends");
        for (side, end) in link.ends.iter().enumerate() {
            if layout.node(end).is_none() {
                let near = near_name(end, layout.topology.nodes.iter().map(|node| node.name.as_str()));
                let finding = Finding::new(below(&place, side), format!("unknown node {}", quoted(end)));
                found.push(finding.suggest(near).depends(node_names(layout)));
            }
        }
        if link.ends[0] == link.ends[1] {
            found.push(Finding::new(place, format!("the link joins {} to itself", quoted(&link.ends[0]))));
        }
    }
    let subnets = layout.scenario.network.subnets.as_deref();
    match (Pool::read(subnets), subnets) {
        (Err(wrong), _) => found.push(Finding::new(at!["network", "subnets"], wrong)),
        (Ok(pool), _) if addresses::assign(&layout.topology, pool).is_some() => {}
        (Ok(_), None) => {
            let message = "the network has more interfaces than fit into 10.0.0.0/8";
            found.push(Finding::new(at!["network"], message));
        }
        (Ok(pool), Some(text)) => {
            let needed = pool.needed(&layout.topology).map(|length| format!(", which needs a /{length}"));
            let message =
                format!("{} is too small for this network{}", quoted(text), needed.unwrap_or_default());
            found.push(Finding::new(at!["network", "subnets"], message));
        }
    }
}

/// Links on media: which there are, and what they need.
pub(super) fn media(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    let media = &layout.scenario.network.media;
    let names = || media.iter().map(|medium| medium.name.as_str());
    for link in &layout.topology.links {
        let Some(name) = &link.medium else { continue };
        let place = below(&link.place, "medium");
        if !names().any(|known| known == name) {
            let near = near_name(name, names());
            let finding = Finding::new(place.clone(), format!("unknown medium {}", quoted(name)));
            found.push(finding.suggest(near).depends(vec![at!["network", "media"]]));
        }
        for spec in [&link.forward, &link.backward] {
            let settings = &spec.settings;
            if let Some(trace) = &settings.trace {
                let message = "a link on a medium has a `rate`: the medium says when packets leave";
                found.push(Finding::new(trace.place.clone(), message).at_key());
            } else if settings.rate.as_ref().is_none_or(|rate| rate.value.is_none()) {
                let message = "a link on a medium needs a `rate`, at which its station sends";
                let at = settings.rate.as_ref().map_or_else(|| place.clone(), |rate| rate.place.clone());
                let finding = Finding::new(at, message).suggest("rate: 100 Mbit/s");
                found.push(finding.depends(vec![link.place.clone()]));
                break;
            }
        }
    }
}

/// Where nodes are named, and what a refused node leaves behind.
pub(super) fn node_names(layout: &Layout<'_>) -> Vec<Path> {
    let mut places = vec![at!["network", "nodes", "*"], at!["network", "topology"]];
    places.extend(layout.topology.nodes.iter().map(|node| below(&node.place, "name")));
    places
}

pub(super) fn traces(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    let of_path = at!["network", "path"];
    for (_, _, spec) in layout.directions() {
        let settings = &spec.settings;
        let Some(trace) = &settings.trace else {
            if spec.place == of_path && settings.rate.is_none() {
                let message = "the path has neither a `rate` nor a `trace`";
                let finding = Finding::new(spec.place.clone(), message).suggest("rate: 100 Mbit/s");
                found.push(finding.depends(vec![spec.place.clone()]).at_key());
            }
            continue;
        };
        if let Some(rate) = &settings.rate {
            let message = "a direction has either a `rate` or a `trace`, not both";
            found.push(Finding::new(trace.place.clone(), message).depends(vec![rate.place.clone()]));
        }
        if let Some(Err(wrong)) = layout.traces.get(&trace.value) {
            let near = if wrong.missing { neighbour(layout, &trace.value) } else { String::new() };
            let message = format!("the trace {} {}", quoted(&trace.value), wrong.reason);
            found.push(Finding::new(trace.place.clone(), message).suggest(near));
        }
    }
}

/// A file in the same directory whose name is near; only below the scenario, whose files they are.
pub(super) fn neighbour(layout: &Layout<'_>, name: &str) -> String {
    if name.starts_with('/') || name.split('/').any(|part| part == "..") {
        return String::new();
    }
    let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
    let others = layout.around.beside(name);
    let near = near_name(file, others.iter().map(String::as_str));
    match folder {
        _ if near.is_empty() || near == file => String::new(),
        "" => near,
        folder => format!("{folder}/{near}"),
    }
}

/// The name of an amount of a queue.
fn noun(key: &str) -> String {
    match key {
        "limit" => "queue limit".to_owned(),
        "mark_above" => "marking threshold".to_owned(),
        other => format!("`{other}`"),
    }
}

/// Amounts in BDP or time need a rate.
pub(super) fn queues(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    for (link, _, spec) in layout.directions() {
        let own = spec.settings.queue.iter().map(|queue| (0, queue));
        let later = spec.changes.iter().filter_map(|(time, change)| Some((*time, change.queue.as_ref()?)));
        for (time, queue) in own.clone().chain(later) {
            // A change names no rate: the shaper is the one there is.
            let like = own.clone().next().map(|(_, own)| own.value.clone());
            let mut trees = vec![(queue.value.clone(), like, None)];
            while let Some((tree, like, outside)) = trees.pop() {
                let shaper = tree.shaper().or(like.as_ref().and_then(QueueTree::shaper)).or(outside);
                let like = like.and_then(|like| like.within());
                trees.extend(tree.inner().into_iter().map(|inner| (inner, like.clone(), shaper)));
                for (key, amount) in tree.amounts() {
                    found.extend(amount_finding((layout, link, spec, shaper, time), queue, key, &amount));
                }
            }
        }
    }
}

fn amount_finding(
    (layout, link, spec, shaper, time): (&Layout<'_>, usize, &DirectionSpec, Option<u64>, u64),
    queue: &Setting<QueueTree>,
    key: &str,
    amount: &Amount,
) -> Option<Finding> {
    let what = match amount {
        Amount::Bdp(_) => "BDP",
        Amount::Time(_) => "time",
        Amount::Packets(_) | Amount::Bytes(_) => return None,
    };
    let by_default = queue.place.last() != Some(&Step::from("queue"));
    let rate = shaper.or_else(|| layout.rate(spec, time));
    let (Some(rate), Some(bdp)) = (rate, layout.bdp(link, spec, shaper, time)) else {
        let message = format!("a {} given as {what} needs a rate, and here it is unlimited", noun(key));
        let finding = Finding::new(queue.place.clone(), message).suggest("1000 packets");
        return (!by_default).then(|| finding.depends(vec![at!["network"]]));
    };
    let holds = match amount {
        Amount::Bdp(multiple) => &multiple.0 * BigRational::from(BigInt::from(bdp)),
        Amount::Time(time) => {
            BigRational::new(BigInt::from(*time) * BigInt::from(rate), BigInt::from(8_000_000_000_u64))
        }
        Amount::Packets(_) | Amount::Bytes(_) => BigRational::zero(),
    };
    if matches!(amount, Amount::Bdp(_)) && bdp == 0 && !by_default {
        let message = "the bandwidth-delay product is zero: nothing delays the packets";
        let finding = Finding::new(queue.place.clone(), message).suggest("1000 packets");
        return Some(finding.depends(everything()));
    }
    if holds > BigRational::from(BigInt::from(LARGEST)) {
        let message = format!("the {} is too large", noun(key));
        let finding = Finding::new(queue.place.clone(), message).suggest("1000000 packets");
        return Some(finding.depends(everything()));
    }
    None
}

/// A change gives a new value, it does not take a setting away.
pub(super) fn changes(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    for (_, _, spec) in layout.directions() {
        for change in spec.changes.values() {
            if let Some(rate) = &change.rate {
                if spec.settings.trace.is_some() {
                    let message = "the rate cannot change where a `trace` says when packets leave";
                    found.push(Finding::new(rate.place.clone(), message));
                } else if rate.value.is_none() {
                    let message = "a rate cannot become `unlimited` later";
                    found.push(Finding::new(rate.place.clone(), message).suggest("100 Gbit/s"));
                }
            }
            let Some(queue) = &change.queue else { continue };
            let own = spec.settings.queue.as_ref().map(|own| own.value.clone());
            queue_change(own, &queue.value, &queue.place, found);
        }
    }
}

/// Mistakes of a change of `own`, the queue at `place`.
fn queue_change(own: Option<QueueTree>, change: &QueueTree, place: &[Step], found: &mut Vec<Finding>) {
    let kind = own.as_ref().and_then(QueueTree::kind).unwrap_or("droptail");
    let finding = |message: String| Finding::new(place.to_vec(), message);
    if change.kind().is_some_and(|other| other != kind) {
        let message = format!("the queue is `{kind}`, and its kind cannot change during the run");
        found.push(Finding::new(below(place, "kind"), message));
    }
    for key in change.0.keys().map(String::as_str) {
        match key {
            "kind" => {}
            "queue" if schema::queue_has(kind, key) => {
                if let (Some(own), Some(change)) = (own.as_ref().and_then(QueueTree::within), change.within())
                {
                    queue_change(Some(own), &change, &below(place, key), found);
                }
            }
            _ if ["limit", "mark_above"].iter().any(|role| schema::queue_key(kind, role) == Some(key)) => {}
            _ if schema::queue_has(kind, key) => {
                let message = format!("{} cannot change during the run", quoted(key));
                found.push(Finding::new(below(place, key), message).at_key());
            }
            _ => {
                let instead = match schema::queue_key(kind, "limit") {
                    Some("limit") => String::new(),
                    Some(own) => format!("queue: {{{own}: 1 MB}}"),
                    None => "queue: {queue: 100 packets}".to_owned(),
                };
                let message = format!("a `{kind}` queue has no `{key}` that could change");
                found.push(finding(message).suggest(instead));
            }
        }
    }
    if change.0.get("limit").is_some_and(serde_json::Value::is_null) {
        found.push(finding("a queue cannot become `unlimited` later".to_owned()).suggest("1000000 packets"));
    }
}

pub(super) fn node_settings(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    let bdps = layout.node_bdps();
    for node in &layout.topology.nodes {
        accelerators(layout, node, found);
        caches(layout, node, found);
        multipath(layout, node, found);
        if node.kind == NodeKind::Host {
            let place = |key: &str| node.place_of(key).clone();
            let given = Buffers {
                window: node.settings.window.as_ref(),
                send_buffer: node.settings.send_buffer.as_ref(),
                receive_buffer: node.settings.receive_buffer.as_ref(),
                mss: node.settings.mss,
                place: &place,
            };
            let bdp = bdps.get(&node.name).copied();
            buffers(layout, &given, layout.node_mtu(&node.name), bdp, 4, found);
            continue;
        }
        for (key, place) in &node.places {
            if !matches!(*key, "sysctls" | "cpus") {
                let kind = node.kind.traits().name;
                let message = format!("{} is for hosts, and {} is a {kind}", quoted(key), quoted(&node.name));
                found.push(Finding::new(place.clone(), message).at_key().depends(vec![kind_of(node)]));
            }
        }
    }
}

/// The finding that a node with this setting is not a router.
pub(super) fn for_routers(node: &NodeSpec, key: &str) -> Finding {
    let (name, kind) = (quoted(&node.name), node.kind.traits().name);
    let message = format!("`{key}` is for routers, and {name} is a {kind}: give it `kind: router`");
    Finding::new(below(&node.place, key), message).at_key().depends(vec![kind_of(node)])
}

/// Where a node's kind is given.
pub(super) fn kind_of(node: &NodeSpec) -> Path {
    below(&node.place, "kind")
}

fn multipath(layout: &Layout<'_>, node: &NodeSpec, found: &mut Vec<Finding>) {
    if node.ecmp != Some(true) {
        return;
    }
    let place = below(&node.place, "ecmp");
    if node.kind != NodeKind::Router {
        found.push(for_routers(node, "ecmp"));
    } else if node.routing.is_some() || node.frr.is_some() {
        let message = format!("the routing protocols of {} choose its paths", quoted(&node.name));
        found.push(Finding::new(place, message).at_key());
    } else if let Some(other) = layout.topology.nodes.iter().find(|node| node.accelerate.is_some()) {
        // It must see every packet of a connection that it splits.
        let message =
            format!("`ecmp` could lead connections past the accelerator of {}", quoted(&other.name));
        found.push(Finding::new(place, message).at_key().depends(vec![other.place.clone()]));
    }
}

fn caches(layout: &Layout<'_>, node: &NodeSpec, found: &mut Vec<Finding>) {
    if node.cache.is_none() {
        return;
    }
    let place = below(&node.place, "cache");
    if node.kind != NodeKind::Router {
        found.push(for_routers(node, "cache"));
    } else if let Some(other) = layout.topology.nodes.iter().find(|node| node.ecmp == Some(true)) {
        // It must see every packet of a connection that it ends.
        let message = format!("`ecmp` of {} could lead connections past the cache", quoted(&other.name));
        found.push(Finding::new(place, message).at_key().depends(vec![other.place.clone()]));
    }
}

fn accelerators(layout: &Layout<'_>, node: &NodeSpec, found: &mut Vec<Finding>) {
    let Some(given) = &node.accelerate else { return };
    let place = below(&node.place, "accelerate");
    if node.kind != NodeKind::Router {
        found.push(for_routers(node, "accelerate"));
    }
    let is_host = |node: &&NodeSpec| node.kind == NodeKind::Host;
    let hosts: Vec<&str> =
        layout.topology.nodes.iter().filter(is_host).map(|node| node.name.as_str()).collect();
    for (number, name) in given.hosts.iter().flatten().enumerate() {
        if !hosts.contains(&name.as_str()) {
            let at = below(&below(&place, "hosts"), number);
            let mut depends = node_names(layout);
            let message = match layout.node(name) {
                Some(other) => {
                    depends.push(kind_of(other));
                    format!("{} is a {}, not a host", quoted(name), other.kind.traits().name)
                }
                None => format!("unknown host {}", quoted(name)),
            };
            let near = near_name(name, hosts.iter().copied());
            let near = if near.is_empty() { hosts.last().copied().unwrap_or_default() } else { &near };
            found.push(Finding::new(at, message).suggest(near).depends(depends));
        }
    }
}
