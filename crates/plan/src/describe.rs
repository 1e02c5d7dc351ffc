//! A plan in words: what `tcplab check` says would run, and what reports say of links and flows. The words of
//! each kind are its `Display`, beside its type.

use std::fmt;

use serde::Serialize;
use tcplab_units::{Rate, Span, write_scaled};

use crate::{
    CaptureAt, CaptureWhat, Chance, Change, Direction, Flow, IpVersion, Jitter, Link, Loss, NodeKind, Plan,
    Reorder, Trace,
};

/// Longer lists end with how many more there are.
const LISTED: usize = 12;
const CHANGES_LISTED: usize = 4;

/// One direction of a link.
#[derive(Debug, Serialize)]
pub struct DirectionWords {
    /// `10 Mbit/s`, `no rate limit`, or a trace's mean.
    pub rate: String,
    /// One-way propagation.
    pub delay: String,
    /// The queue with its settings.
    pub queue: String,
    /// In the order in which packets meet them.
    pub impairments: Vec<String>,
    /// Changes during the run, by time.
    pub changes: Vec<String>,
    /// All of it.
    pub line: String,
}

/// One flow.
#[derive(Debug, Serialize)]
pub struct FlowWords {
    /// Traffic.
    pub traffic: String,
    /// Its congestion control; empty: it has none.
    pub control: String,
    /// When it runs.
    pub time: String,
}

impl Direction {
    /// Effect on packets.
    pub fn describe(&self) -> DirectionWords {
        let rate = match (&self.trace, self.rate) {
            (Some(trace), _) => trace.to_string(),
            (None, Some(rate)) => rate.to_string(),
            (None, None) => "no rate limit".to_owned(),
        };
        let mut impairments: Vec<String> = Vec::new();
        impairments.extend((!self.up).then(|| "down at the start".to_owned()));
        impairments.extend((!self.overhead.is_none()).then(|| self.overhead.to_string()));
        impairments.extend(self.policer.map(|policer| policer.to_string()));
        impairments.extend(impairments_of(
            self.loss.as_ref(),
            self.corrupt,
            self.duplicate,
            self.jitter,
            self.reorder,
        ));
        let changes: Vec<String> =
            self.changes.iter().map(|change| format!("from {}: {}", change.at, change.settings())).collect();
        let mut parts = vec![rate.clone(), format!("{} delay", self.delay), self.queue.to_string()];
        parts.extend(impairments.iter().cloned());
        parts.extend(changes.iter().take(CHANGES_LISTED).cloned());
        if changes.len() > CHANGES_LISTED {
            parts.push(format!("and {} more changes", changes.len() - CHANGES_LISTED));
        }
        let (delay, queue, line) = (self.delay.to_string(), self.queue.to_string(), parts.join(", "));
        DirectionWords { rate, delay, queue, impairments, changes, line }
    }
}

impl Change {
    /// The new settings.
    fn settings(&self) -> String {
        let mut said: Vec<String> = Vec::new();
        said.extend(self.rate.map(|rate| format!("rate {rate}")));
        said.extend(self.limit.map(|limit| format!("queue of {limit}")));
        said.extend(self.mark_above.map(|threshold| format!("marks above {threshold}")));
        said.extend(self.delay.map(|delay| format!("delay {delay}")));
        said.extend(self.up.map(|up| if up { "up" } else { "down" }.to_owned()));
        said.extend(impairments_of(
            self.loss.as_ref(),
            self.corrupt,
            self.duplicate,
            self.jitter,
            self.reorder,
        ));
        said.join(", ")
    }
}

/// Impairments that may change, in the order in which packets meet them.
fn impairments_of(
    loss: Option<&Loss>,
    corrupt: Option<Chance>,
    duplicate: Option<Chance>,
    jitter: Option<Jitter>,
    reorder: Option<Reorder>,
) -> Vec<String> {
    let jitter = jitter.map(|jitter| match reorder {
        Some(_) => format!("{jitter} (independent from packet to packet)"),
        None => format!("{jitter} (correlation time {})", jitter.correlation_time),
    });
    let said = [
        loss.map(Loss::to_string),
        corrupt.map(|chance| format!("{chance} corrupted")),
        duplicate.map(|chance| format!("{chance} duplicated")),
        jitter,
        reorder.map(|reorder| reorder.to_string()),
    ];
    said.into_iter().flatten().collect()
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rate of a delivery trace")?;
        self.mean_rate().map_or(Ok(()), |mean| write!(f, " (mean {})", three_digits(mean)))
    }
}

/// A mean to three significant digits.
fn three_digits(rate: Rate) -> Rate {
    let bits = rate.bits_per_sec();
    let unit = 10_u64.pow(bits.ilog10().saturating_sub(2));
    Rate::from_bits_per_sec((bits + unit / 2) / unit * unit).unwrap_or(rate)
}

impl Flow {
    /// Traffic and its times.
    pub fn describe(&self) -> FlowWords {
        FlowWords {
            traffic: self.traffic.to_string(),
            control: self.traffic.cc().map(ToString::to_string).unwrap_or_default(),
            time: match self.stop {
                Some(stop) => format!("{} to {stop}", self.start),
                None => format!("from {}", self.start),
            },
        }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.describe();
        write!(f, "{}: {}", self.name, words.traffic)?;
        if !words.control.is_empty() {
            write!(f, " with {}", words.control)?;
        }
        if self.ip == IpVersion::V6 {
            f.write_str(" over IPv6")?;
        }
        if self.streams > 1 {
            write!(f, ", {} streams", self.streams)?;
        }
        let (from, to) = (&self.from, &self.to);
        if self.traffic.traits().mostly_back {
            // The data go to the end that the flow is from.
            write!(f, ", client {from}, server {to}, {}", words.time)
        } else {
            write!(f, ", {from} to {to}, {}", words.time)
        }
    }
}

impl Link {
    /// A line for each direction; one for both where they are alike.
    fn lines(&self) -> Vec<String> {
        let [one, two] = &self.ends;
        let medium = self.medium.as_ref().map_or_else(String::new, |medium| format!(", on {medium}"));
        let [forward, backward] =
            [&self.forward, &self.backward].map(|direction| direction.describe().line + &medium);
        if forward == backward {
            vec![format!("  {one} <-> {two}: {forward}")]
        } else {
            vec![format!("  {one} -> {two}: {forward}"), format!("  {two} -> {one}: {backward}")]
        }
    }
}

impl Plan {
    /// Network, traffic and measurement, in lines.
    pub fn describe(&self) -> Vec<String> {
        let of = |kind| self.nodes.iter().filter(|node| node.kind == kind).count();
        let kinds = [(NodeKind::Host, "host"), (NodeKind::Router, "router"), (NodeKind::Switch, "switch")];
        let mut counts: Vec<String> = kinds
            .into_iter()
            .filter(|(kind, _)| of(*kind) > 0)
            .map(|(kind, word)| plural(of(kind), word))
            .collect();
        counts.push(plural(self.links.len(), "link"));
        let mut lines = vec![format!("network: {}", counts.join(", "))];
        lines.extend(listed(self.links.iter().flat_map(Link::lines).collect()));
        lines.extend(self.media.iter().map(|medium| format!("  {}: {medium}", medium.name)));
        for node in &self.nodes {
            lines.extend(node.accelerate.iter().map(|settings| format!("  {}: {settings}", node.name)));
            lines.extend(node.cache.iter().map(|settings| format!("  {}: {settings}", node.name)));
        }
        lines.push(format!("traffic: {}", plural(self.flows.len(), "flow")));
        lines.extend(listed(self.flows.iter().map(|flow| format!("  {flow}")).collect()));
        lines.push(format!("measured: {}", self.measured()));
        lines
    }

    fn measured(&self) -> String {
        let every = |what: &str, step: Option<Span>| step.map(|step| format!("{what} every {step}"));
        let sample = &self.sample;
        let packets = sample.packets.then(|| "every packet event".to_owned());
        let capture = self.capture.as_ref().map(|capture| {
            let what = match capture.what {
                CaptureWhat::Headers => "headers",
                CaptureWhat::Full => "full packets",
            };
            let at = match capture.at {
                CaptureAt::Wire => "wire",
                CaptureAt::Host => "host",
            };
            format!("capture of {what} at {at} on {}", capture.nodes.join(", "))
        });
        let steps = [
            every("sockets", sample.sockets),
            every("queues", sample.queues),
            every("flows", sample.flows),
            packets,
            capture,
        ];
        let said: Vec<String> = steps.into_iter().flatten().collect();
        if said.is_empty() { "totals only".to_owned() } else { said.join(", ") }
    }
}

fn listed(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > LISTED {
        let more = lines.len() - LISTED;
        lines.truncate(LISTED);
        lines.push(format!("  ... and {more} more"));
    }
    lines
}

/// `1 host`, `2 switches`.
fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 {
        ""
    } else if word.ends_with("ch") {
        "es"
    } else {
        "s"
    };
    format!("{count} {word}{ending}")
}

/// `1st`, `2nd`, `11th`, `102nd`.
pub(crate) fn ordinal(number: u64) -> String {
    let ending = match (number / 10 % 10, number % 10) {
        (1, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Bytes, printed as `200 kB`.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = match self.0 {
            1_000_000_000.. => ("GB", 1_000_000_000),
            1_000_000.. => ("MB", 1_000_000),
            1_000.. => ("kB", 1_000),
            _ => ("B", 1),
        };
        write_scaled(f, self.0, scale, unit)
    }
}

#[cfg(test)]
mod tests;
