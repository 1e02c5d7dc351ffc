//! Warnings before a run of settings that are valid but rarely intended.

use std::collections::HashMap;

use tcplab_plan::{
    Direction, Distribution, Flow, Limit, Link, LossModel, Omit, Plan, TcpSettings, Traffic, effective_loss,
};
use tcplab_units::{Rate, Span};

use crate::quantity::{Dimension, format};
use crate::reader::shown_time;

/// Warnings about a plan before a run, one sentence each.
pub fn warnings(plan: &Plan) -> Vec<String> {
    let mut found: Vec<(String, String)> = Vec::new();
    let directions = || {
        plan.links.iter().flat_map(|link| {
            [("forward", &link.forward), ("reverse", &link.backward)]
                .map(|(key, direction)| (format!("link {} {key}", link.name), link, direction))
        })
    };
    for (name, _, direction) in directions() {
        losses(direction, |sentence| found.push((sentence, name.clone())));
    }
    for (name, _, direction) in directions() {
        jitter(direction, |sentence| found.push((sentence, name.clone())));
    }
    for (name, link, direction) in directions() {
        let sentences = queue(link, direction)
            .into_iter()
            .chain(idle_queue(direction))
            .chain(direction.queue.cautions(steady_rate(direction)))
            .chain(policer(link, direction));
        found.extend(sentences.map(|sentence| (sentence, name.clone())));
    }
    echoes(plan, &mut found);
    windows(plan, &mut found);
    buffers(plan, &mut found);
    proxies(plan, &mut found);
    let end = plan.duration;
    for flow in &plan.flows {
        if let Some(stop) = flow.stop.filter(|stop| stop.as_ns() > end.as_ns()) {
            let sentence =
                format!("would go on to {}, but the run ends at {}", time(stop.as_ns()), span(end));
            found.push((sentence, format!("flow {}", flow.name)));
        }
        let left = Span::from_ns(end.as_ns().saturating_sub(flow.start.as_ns()));
        if left < flow.base_rtt {
            let sentence = format!(
                "the run ends {} after the flow's start, less than its base RTT of {}, so that no round trip is \
                 completed",
                span(left),
                span(flow.base_rtt)
            );
            found.push((sentence, format!("flow {}", flow.name)));
        }
        found.extend(warm_up(plan.omit, flow, end).map(|sentence| (sentence, format!("flow {}", flow.name))));
    }
    for (name, _, direction) in directions() {
        for change in direction.changes.iter().filter(|change| change.at.as_ns() >= end.as_ns()) {
            let sentence = format!(
                "the change at {} comes after the run's end at {}",
                time(change.at.as_ns()),
                span(end)
            );
            found.push((sentence, name.clone()));
        }
    }
    messages(found)
}

/// One line for each sentence, with all whom it concerns.
fn messages(found: Vec<(String, String)>) -> Vec<String> {
    let mut subjects: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (sentence, subject) in found {
        let place = *places.entry(sentence).or_insert_with_key(|sentence| {
            subjects.push((sentence.clone(), Vec::new()));
            subjects.len() - 1
        });
        subjects[place].1.push(subject);
    }
    let listed = |names: &[String]| match names {
        [a, b, c, _, _, ..] => format!("{a}, {b}, {c} and {} more", names.len() - 3),
        few => few.join(", "),
    };
    subjects.into_iter().map(|(sentence, names)| format!("{}: {sentence}", listed(&names))).collect()
}

fn time(ns: u64) -> String {
    shown_time(ns)
}

fn span(span: Span) -> String {
    shown_time(span.as_ns())
}

fn size(bytes: u64) -> String {
    format(bytes, Dimension::Size)
}

/// ` from 20 s`, for what a change brings.
fn since(ns: u64) -> String {
    if ns == 0 { String::new() } else { format!(" from {}", time(ns)) }
}

/// A number with at most `digits` significant ones.
fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = value.abs().log10().floor() as i32;
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    // A percentage has three digits before its point at most.
    if (-5..digits.max(3) as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        let text = format!("{rounded:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        let text = format!("{rounded:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
    }
}

fn losses(direction: &Direction, mut warn: impl FnMut(String)) {
    let first = direction.loss.iter().map(|loss| (0, loss));
    let later =
        direction.changes.iter().filter_map(|change| Some((change.at.as_ns(), change.loss.as_ref()?)));
    for (when, loss) in first.chain(later) {
        let LossModel::Netem { chance } = &loss.model else { continue };
        if chance.correlation.is_zero() {
            continue;
        }
        let (rate, correlation) = (chance.rate.as_f64(), chance.correlation.as_f64());
        let actual = effective_loss(rate, correlation);
        let shown = if actual >= 1e-6 {
            format!("about {} %", significant(100.0 * actual, 2))
        } else {
            "fewer than 1 in 10^6 packets".to_owned()
        };
        warn(format!(
            "netem's model with {} % loss and {} % correlation loses {shown}{}; `model: random` keeps the rate asked for",
            significant(100.0 * rate, 6),
            significant(100.0 * correlation, 6),
            since(when)
        ));
    }
}

fn jitter(direction: &Direction, mut warn: impl FnMut(String)) {
    let (mut delay, mut jitter) = (direction.delay, direction.jitter);
    let mut look = |when: u64, delay: Span, jitter: Option<tcplab_plan::Jitter>| {
        let Some(jitter) = jitter else { return };
        // Values below zero are cut off: of a normal law with a mean of two deviations 2 %.
        let (reach, law) = match jitter.distribution {
            Distribution::Uniform => (1, "uniform"),
            Distribution::Normal => (2, "normal"),
            Distribution::Pareto => (0, "pareto"),
        };
        if jitter.amount * reach > delay {
            warn(format!(
                "{law} jitter of {} is more than the delay of {} has room for{}. No delay is below zero, so the \
                 mean is higher than asked",
                span(jitter.amount),
                span(delay),
                since(when)
            ));
        }
    };
    look(0, delay, jitter);
    for change in &direction.changes {
        delay = change.delay.unwrap_or(delay);
        jitter = change.jitter.or(jitter);
        look(change.at.as_ns(), delay, jitter);
    }
}

/// The rate of a direction: its own, or its trace's mean.
fn rate(direction: &Direction) -> Option<Rate> {
    match &direction.trace {
        Some(trace) => trace.mean_rate(),
        None => direction.rate,
    }
}

/// The rate that a direction has all the time.
fn steady_rate(direction: &Direction) -> Option<Rate> {
    let varies = direction.trace.is_some() || direction.changes.iter().any(|change| change.rate.is_some());
    direction.rate.filter(|_| !varies)
}

fn queue(link: &Link, direction: &Direction) -> Option<String> {
    let frame = u64::from(link.mtu) + 14;
    let holds = match direction.queue.limit()? {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => bytes / frame,
        Limit::Time(span) => match rate(direction) {
            Some(rate) => rate.bytes_in(span) / frame,
            None => 2,
        },
    };
    let packets = match holds {
        0 => "no full packet",
        1 => "1 full packet",
        _ => return None,
    };
    Some(format!("the queue holds {packets}, so that any burst overflows it"))
}

/// A discipline that never has a packet to decide about.
fn idle_queue(direction: &Direction) -> Option<String> {
    let ever_limited =
        rate(direction).is_some() || direction.changes.iter().any(|change| change.rate.is_some());
    let queue = &direction.queue;
    (!ever_limited && !queue.only_drops_tail() && !queue.shapes())
        .then(|| "nothing ever waits in the queue: the link has no `rate`".to_owned())
}

fn policer(link: &Link, direction: &Direction) -> Option<String> {
    let frame = u64::from(link.mtu) + 14;
    let burst = direction.policer.filter(|policer| policer.burst < frame)?.burst;
    Some(format!(
        "the policer's bucket of {} is smaller than a full frame of {}, so that none ever passes",
        size(burst),
        size(frame)
    ))
}

/// A warm-up that is as long as all of the flow.
fn warm_up(omit: Omit, flow: &Flow, end: Span) -> Option<String> {
    let Omit::For(omit) = omit else { return None };
    let stop = flow.stop.map_or(end.as_ns(), |stop| stop.as_ns().min(end.as_ns()));
    let longest = Span::from_ns(stop.saturating_sub(flow.start.as_ns()));
    (omit > Span::ZERO && omit >= longest).then(|| {
        format!(
            "`omit` of {} is at least as long as the flow ({} at most): no warm-up is left out",
            span(omit),
            span(longest)
        )
    })
}

/// Echo flows whose messages are all of the warm-up.
fn echoes(plan: &Plan, found: &mut Vec<(String, String)>) {
    for flow in &plan.flows {
        if let Traffic::Echo(echo) = &flow.traffic
            && echo.warmup >= echo.iterations
        {
            let sentence = format!(
                "`warmup` leaves out all {} messages of a size: there are no statistics",
                echo.iterations
            );
            found.push((sentence, format!("flow {}", flow.name)));
        }
    }
}

/// The settings of both ends of a flow's connections.
fn ends(flow: &Flow) -> Option<(&TcpSettings, &TcpSettings)> {
    flow.traffic.connections().map(|connections| (connections.sender, connections.receiver))
}

fn windows(plan: &Plan, found: &mut Vec<(String, String)>) {
    let ways = Ways::new(plan);
    for flow in &plan.flows {
        let Some((sender, receiver)) = ends(flow) else { continue };
        let Some(bdp) = ways.bdp(&flow.from, &flow.to) else { continue };
        let (send, receive) = (sender.send_buffer, receiver.receive_buffer);
        let Some(window) = send.into_iter().chain(receive).min() else { continue };
        let streams = u64::from(flow.streams);
        if window.saturating_mul(streams) >= bdp {
            continue;
        }
        let which = match () {
            () if send == receive => "window",
            () if send == Some(window) => "send buffer",
            () => "receive buffer",
        };
        let times = if streams > 1 { format!(" times {streams} streams") } else { String::new() };
        let sentence = format!(
            "its {which} of {}{times} is below the path's bandwidth-delay product of {}, so that it limits the rate",
            size(window),
            size(bdp)
        );
        found.push((sentence, format!("flow {}", flow.name)));
    }
}

/// Limits of auto-tuning below where it begins: Linux never makes a buffer smaller.
fn buffers(plan: &Plan, found: &mut Vec<(String, String)>) {
    for node in plan.nodes.iter().filter(|node| node.kind.traits().ends_flows) {
        let (first, maximum) = (node.tcp.receive_buffer_initial, node.tcp.receive_buffer_max);
        if maximum < first {
            let sentence = format!(
                "`receive_buffer_max` of {} has no effect: a socket begins with `receive_buffer_initial`, {}",
                size(maximum),
                size(first)
            );
            found.push((sentence, format!("node {}", node.name)));
        }
    }
}

/// Accelerators and caches that no flow has use of.
fn proxies(plan: &Plan, found: &mut Vec<(String, String)>) {
    let ways = Ways::new(plan);
    for node in plan.nodes.iter().filter(|node| node.accelerate.is_some() || node.cache.is_some()) {
        let passing: Vec<&Flow> =
            plan.flows.iter().filter(|flow| ways.passes(flow, &node.name) && ends(flow).is_some()).collect();
        if let Some(accelerator) = &node.accelerate {
            // A port that is not given is chosen later, and may be any.
            let splits = |flow: &&Flow| match flow.port {
                Some(first) => (0..flow.streams.min(1 << 16)).any(|stream| {
                    u16::try_from(u32::from(first) + stream)
                        .is_ok_and(|port| accelerator.splits(&flow.to, port))
                }),
                None => accelerator.ports.is_empty() && accelerator.splits(&flow.to, 0),
            };
            let sentence = if passing.is_empty() {
                "the accelerator splits nothing: no TCP flow passes this router"
            } else if passing.iter().any(splits) {
                continue;
            } else if passing.iter().all(|flow| flow.port.is_none()) && !accelerator.ports.is_empty() {
                "the accelerator splits nothing: give a flow one of its `ports` as `port`"
            } else {
                "the accelerator splits nothing: its `ports` and `hosts` are of no flow that passes"
            };
            found.push((sentence.to_owned(), format!("node {}", node.name)));
        }
        if node.cache.is_some() && !passing.iter().any(|flow| matches!(flow.traffic, Traffic::Http(_))) {
            let sentence = "the cache stores nothing: no http flow passes this router";
            found.push((sentence.to_owned(), format!("node {}", node.name)));
        }
    }
}

/// The ways through a plan's network.
struct Ways<'p> {
    routes: HashMap<&'p str, &'p std::collections::BTreeMap<String, String>>,
    links: HashMap<&'p str, &'p Link>,
}

impl<'p> Ways<'p> {
    fn new(plan: &'p Plan) -> Ways<'p> {
        Ways {
            routes: plan.nodes.iter().map(|node| (node.name.as_str(), &node.routes)).collect(),
            links: plan.links.iter().map(|link| (link.name.as_str(), link)).collect(),
        }
    }

    /// The lowest rate on the way times the round-trip propagation, in bytes; none where unlimited.
    fn bdp(&self, source: &str, destination: &str) -> Option<u64> {
        let (there, back) = (self.way(source, destination)?, self.way(destination, source)?);
        let rate = there.iter().filter_map(|direction| rate(direction)).min()?;
        let delay = there.iter().chain(&back).fold(Span::ZERO, |sum, direction| sum + direction.delay);
        Some(rate.bytes_in(delay))
    }

    fn way(&self, source: &str, destination: &str) -> Option<Vec<&'p Direction>> {
        Some(self.hops(source, destination)?.into_iter().map(|(direction, _)| direction).collect())
    }

    /// Whether the flow's packets go through the node, there or back.
    fn passes(&self, flow: &Flow, node: &str) -> bool {
        [(&flow.from, &flow.to), (&flow.to, &flow.from)].into_iter().any(|(source, destination)| {
            let hops = self.hops(source, destination);
            hops.is_none_or(|hops| hops.iter().any(|(_, next)| *next == node))
        })
    }

    /// Each direction on the way, and the node to which it leads. None where a routing protocol finds the way.
    fn hops(&self, source: &str, destination: &str) -> Option<Vec<(&'p Direction, &'p str)>> {
        let mut hops = Vec::new();
        let mut node = source;
        while node != destination {
            let link = self.links.get(self.routes.get(node)?.get(destination)?.as_str())?;
            let forward = link.ends[0] == node;
            let next: &'p str = &link.ends[usize::from(forward)];
            hops.push((if forward { &link.forward } else { &link.backward }, next));
            node = next;
        }
        Some(hops)
    }
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn numbers_are_printed_with_few_digits() {
        assert_eq!(significant(0.19, 2), "0.19");
        assert_eq!(significant(12.345, 2), "12");
        assert_eq!(significant(25.0, 6), "25");
        assert_eq!(significant(0.5, 6), "0.5");
        assert_eq!(significant(0.000123, 2), "0.00012");
        assert_eq!(significant(99.97, 2), "100");
        assert_eq!(significant(100.0, 2), "100");
    }
}
