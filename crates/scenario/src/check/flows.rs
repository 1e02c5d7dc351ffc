//! Contradictions in the traffic: ends of flows, sizes that do not fit the path, congestion controls.

use num_bigint::BigInt;
use num_rational::BigRational;
use tcplab_plan::NodeKind;

use super::network::{kind_of, neighbour, node_names};
use super::{Finding, everything};
use crate::addresses::MIN_IPV6_MTU;
use crate::document::Document;
use crate::language::{Amount, Control, Flow, Payload};
use crate::layout::Layout;
use crate::nearest::nearest;
use crate::pairs;
use crate::quantity::{LARGEST, quoted, round};
use crate::reader::Path;
use crate::suggestions::near_name;
use crate::surroundings::Known;
use crate::topology::{at, below};

/// Bytes of a TCP header without options (RFC 9293).
pub(crate) const TCP_HEADER: u32 = 20;
/// Linux takes no TCP_MAXSEG below TCP_MIN_MSS.
const MIN_MSS: u64 = 88;
const LARGEST_CONTROL_FILE: usize = 1 << 20;

/// Bytes of an IP header by its version, without options or extensions (RFC 791, RFC 8200).
pub(crate) fn ip_header(version: u8) -> u32 {
    if version == 6 { 40 } else { 20 }
}

fn mtus() -> Vec<Path> {
    vec![at!["network", "path", "mtu"], at!["network", "links"]]
}

pub(super) fn ends(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    let on_path = layout.scenario.network.path.is_some();
    let hosts: Vec<&str> = if on_path {
        vec!["left", "right"]
    } else {
        let hosts = layout.topology.nodes.iter().filter(|node| node.kind == NodeKind::Host);
        hosts.map(|node| node.name.as_str()).collect()
    };
    let nodes = || if on_path { vec![at!["network", "path", "per_flow"]] } else { node_names(layout) };
    for (index, (flow, ends)) in layout.scenario.flows.iter().zip(&layout.topology.ends).enumerate() {
        let place = at!["flows", flow.number];
        let mut wrong = false;
        if let Some(message) = pairs::contradiction(layout.scenario, flow) {
            found
                .push(Finding::new(below(&place, "between"), message).depends(vec![at!["network"]]).at_key());
            continue;
        }
        for (key, name) in ["from", "to"].into_iter().zip(ends) {
            let finding = match name.as_deref().map(|name| (name, layout.node(name))) {
                None => {
                    let mut free =
                        hosts.iter().filter(|host| !ends.iter().flatten().any(|end| end == **host));
                    // Where both are missing, the first is the sender's.
                    let free = free.nth(usize::from(key == "to" && ends[0].is_none()));
                    let suggestion = free.map_or(String::new(), |host| format!("{key}: {host}"));
                    let mut depends = nodes();
                    depends.push(below(&place, key));
                    let finding = Finding::new(place.clone(), format!("{} is missing", quoted(key)));
                    finding.suggest(suggestion).depends(depends).at_key()
                }
                Some((name, None)) => {
                    let finding = Finding::new(below(&place, key), format!("unknown node {}", quoted(name)));
                    finding.suggest(near_name(name, hosts.iter().copied())).depends(nodes())
                }
                Some((name, Some(node))) if node.kind != NodeKind::Host => {
                    let kind = node.kind.traits().name;
                    let message = format!("{} is a {kind}; flows join hosts", quoted(name));
                    let finding = Finding::new(below(&place, key), message);
                    let depends = [nodes(), vec![kind_of(node)]].concat();
                    finding.suggest(near_name(name, hosts.iter().copied())).depends(depends)
                }
                Some(_) => continue,
            };
            wrong = true;
            found.push(finding);
        }
        let [Some(sender), Some(receiver)] = ends else { continue };
        if wrong {
            continue;
        }
        if sender == receiver {
            let given = flow.common.to.as_ref().unwrap_or(sender);
            let other = hosts.iter().find(|host| *host != given).copied().unwrap_or_default();
            let message = format!("the flow goes from {} to itself", quoted(given));
            found.push(Finding::new(below(&place, "to"), message).suggest(other));
        } else if layout.ways[index].is_none() {
            let message = format!("there is no route from {} to {}", quoted(sender), quoted(receiver));
            found.push(Finding::new(place, message).depends(vec![at!["network"]]).at_key());
        }
    }
}

/// Each stream's server has a port of its own.
pub(super) fn ports(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    let mut taken: Vec<(&str, std::ops::RangeInclusive<u64>, &str)> = Vec::new();
    for (flow, ends) in layout.scenario.flows.iter().zip(&layout.topology.ends) {
        let (Some(first), [_, Some(to)]) = (flow.common.port, ends) else { continue };
        let place = at!["flows", flow.number, "port"];
        let streams = flow.traffic().streams();
        let ports = u64::from(first)..=u64::from(first) + u64::from(streams) - 1;
        if let Some(why) = flow.traffic().without_ports() {
            found.push(Finding::new(place, why).at_key());
            continue;
        }
        if *ports.end() > u64::from(u16::MAX) {
            let message = format!("{streams} streams need ports up to {}", ports.end());
            found.push(Finding::new(place.clone(), message));
        }
        let same = |(host, others, _): &&(&str, std::ops::RangeInclusive<u64>, &str)| {
            host == to && others.start() <= ports.end() && ports.start() <= others.end()
        };
        if let Some((_, _, other)) = taken.iter().find(same) {
            let message = format!("flow {} has this port at {}", quoted(other), quoted(to));
            found.push(Finding::new(place, message));
        }
        taken.push((to, ports, &flow.common.name));
    }
}

pub(super) fn sizes(layout: &Layout<'_>, found: &mut Vec<Finding>) {
    for (index, flow) in layout.scenario.flows.iter().enumerate() {
        let place = |key: &str| at!["flows", flow.number, key];
        let mtu = layout.path_mtu(index);
        let ip = flow.common.ip;
        if ip == 6 && mtu < MIN_IPV6_MTU {
            let message =
                format!("IPv6 needs an MTU of {MIN_IPV6_MTU} B on every link, and the path has {mtu} B");
            found.push(Finding::new(place("ip"), message).suggest("4").depends(mtus()));
        }
        if let Some(own) = flow.traffic().sockets() {
            let given = Buffers {
                window: own.window.as_ref(),
                send_buffer: own.send_buffer.as_ref(),
                receive_buffer: own.receive_buffer.as_ref(),
                mss: own.mss,
                place: &place,
            };
            buffers(layout, &given, mtu, layout.flow_bdp(index), ip, found);
        }
        let Some(Payload { bytes: payload, header }) = flow.traffic().payload() else { continue };
        let maximum = mtu - ip_header(ip) - header;
        if payload > u64::from(maximum) {
            let message = format!("a payload of {payload} B does not fit the path's MTU of {mtu} B");
            found.push(
                Finding::new(place("payload"), message).suggest(format!("{maximum} B")).depends(mtus()),
            );
        }
    }
}

/// Buffers and segment size as given for a host or a flow.
pub(super) struct Buffers<'a> {
    pub(super) window: Option<&'a Amount>,
    pub(super) send_buffer: Option<&'a Amount>,
    pub(super) receive_buffer: Option<&'a Amount>,
    pub(super) mss: Option<u64>,
    pub(super) place: &'a dyn Fn(&str) -> Path,
}

/// Segments fit the MTU, and a window holds one.
pub(super) fn buffers(
    layout: &Layout<'_>,
    given: &Buffers<'_>,
    mtu: u32,
    bdp: Option<u128>,
    ip: u8,
    found: &mut Vec<Finding>,
) {
    let maximum = u64::from(mtu - ip_header(ip) - TCP_HEADER);
    if let Some(mss) = given.mss {
        if mss > maximum {
            let message = format!("segments of {mss} B do not fit the MTU of {mtu} B");
            let finding = Finding::new((given.place)("mss"), message).suggest(format!("{maximum} B"));
            found.push(finding.depends(mtus()));
        } else if mss < MIN_MSS {
            let message = format!("{mss} B is below {MIN_MSS} B, the minimum segment Linux sends");
            found.push(Finding::new((given.place)("mss"), message).suggest(format!("{MIN_MSS} B")));
        }
    }
    let segment = given.mss.unwrap_or(maximum).min(maximum);
    for (key, window) in [
        ("window", given.window),
        ("send_buffer", given.send_buffer),
        ("receive_buffer", given.receive_buffer),
    ] {
        let place = || (given.place)(key);
        let (size, depends) = match window {
            None => continue,
            Some(Amount::Bdp(multiple)) => {
                let Some(bdp) = bdp else {
                    if layout.ways.iter().all(Option::is_some) {
                        let message = "a window in BDP needs a limited rate on the path of its flows";
                        found.push(Finding::new(place(), message).suggest("1 MB").depends(everything()));
                    }
                    continue;
                };
                let size = &multiple.0 * BigRational::from(BigInt::from(bdp));
                if size > BigRational::from(BigInt::from(LARGEST)) {
                    let message = "the window is too large";
                    found.push(Finding::new(place(), message).suggest("1 GB").depends(everything()));
                }
                (round(&size), everything())
            }
            Some(Amount::Bytes(size) | Amount::Packets(size) | Amount::Time(size)) => (*size, mtus()),
        };
        if size < segment {
            let message = format!("a window of {size} B is less than one segment of {segment} B");
            found
                .push(Finding::new(place(), message).suggest(format!("{} B", 10 * segment)).depends(depends));
        }
    }
}

pub(super) fn controls(layout: &Layout<'_>, document: &Document, found: &mut Vec<Finding>) {
    for (control, place) in chosen(layout) {
        let at_name = below(&place, "name");
        let name = control.name.as_str();
        if document.node(&place).is_some_and(|node| node.is_mapping() && node.get("name").is_none()) {
            continue;
        }
        if name.ends_with(".c") {
            if let Err((message, near)) = source(layout, name) {
                found.push(Finding::new(at_name, message).suggest(near));
                continue;
            }
        } else if name.contains('/') {
            let finding = Finding::new(at_name, format!("{} is not a C file", quoted(name)));
            found.push(finding.suggest(format!("{name}.c")));
            continue;
        } else if name.is_empty()
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'))
        {
            let message = format!("{} is not the name of a congestion control", quoted(name));
            found.push(Finding::new(at_name, message).suggest("cubic"));
            continue;
        }
        match layout.around.control(name) {
            Known::Opaque => {}
            Known::Unknown => {
                let names = layout.around.controls();
                let near =
                    nearest(&name.to_lowercase(), names.iter().map(String::as_str), 0.6).unwrap_or_default();
                let message =
                    format!("unknown congestion control `{name}`: `tcplab cc list` shows the available ones");
                found.push(Finding::new(at_name, message).suggest(near));
            }
            Known::Broken(why) => found.push(Finding::new(at_name, format!("{name} {why}"))),
            Known::Described { name, parameters } => {
                for (parameter, value) in &control.params {
                    let at = below(&below(&place, "params"), parameter.as_str());
                    match parameters.iter().find(|(known, _)| known == parameter) {
                        None => {
                            let known: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
                            let near = near_name(parameter, known.iter().copied());
                            let has = match (known.is_empty(), near.is_empty()) {
                                (true, _) => "; it has none".to_owned(),
                                (false, true) => format!("; it has {}", known.join(", ")),
                                (false, false) => String::new(),
                            };
                            let message = format!("{name} has no parameter `{parameter}`{has}");
                            found.push(Finding::new(at, message).suggest(near).at_key());
                        }
                        Some((_, known)) if !(known.range.0..=known.range.1).contains(value) => {
                            let message = format!("{value} is outside {}", known.shown);
                            found.push(Finding::new(at, message));
                        }
                        Some(_) => {}
                    }
                }
            }
        }
    }
}

/// The controls that a scenario names, and where.
fn chosen<'a>(layout: &'a Layout<'_>) -> Vec<(&'a Control, Path)> {
    let of_flow = |flow: &'a Flow| Some((flow.traffic().control()?, at!["flows", flow.number, "cc"]));
    let mut found: Vec<_> = layout.scenario.flows.iter().filter_map(of_flow).collect();
    for node in &layout.topology.nodes {
        let Some(given) = &node.accelerate else { continue };
        for (leg, key) in
            [(&given.towards_client, "towards_client"), (&given.towards_server, "towards_server")]
        {
            let place = below(&below(&below(&node.place, "accelerate"), key), "cc");
            found.extend(leg.cc.as_ref().map(|cc| (cc, place)));
        }
    }
    found
}

/// The text of a control's file; a message and a suggestion where it cannot be had.
pub(crate) fn source(layout: &Layout<'_>, name: &str) -> Result<String, (String, String)> {
    let refused = |why: String| Err((format!("the file {} {why}", quoted(name)), String::new()));
    let bytes = match layout.around.file(name, LARGEST_CONTROL_FILE + 1) {
        Ok(bytes) => bytes,
        Err(wrong) if wrong.missing => {
            let message = format!("there is no file {} beside the scenario", quoted(name));
            return Err((message, neighbour(layout, name)));
        }
        Err(wrong) => return refused(wrong.reason),
    };
    if bytes.len() > LARGEST_CONTROL_FILE {
        return refused(format!("has more than {LARGEST_CONTROL_FILE} bytes"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count() + 1;
            refused(format!("is not UTF-8 in line {line}"))
        }
    }
}
