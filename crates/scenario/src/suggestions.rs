//! The word that was probably meant, where another tool or another language calls the same thing otherwise.

use serde_json::{Map, Value};

use crate::document::Node;
use crate::nearest::nearest;
use crate::structured::plain;

/// Characters of a suggested list.
const LONGEST: usize = 80;

/// Names of the same thing in other tools.
const SYNONYMS: &[(&str, &str)] = &[
    ("bandwidth", "rate"),
    ("bw", "rate"),
    ("max_queue_size", "queue"),
    ("speed", "rate"),
    ("latency", "delay"),
    ("buffer", "queue"),
    ("limit", "queue"),
    ("congestion_control", "cc"),
    ("congestion", "cc"),
    ("algorithm", "cc"),
    ("time", "duration"),
    ("length", "payload"),
    ("length", "duration"),
    ("parallel", "streams"),
    ("connections", "streams"),
    ("clients", "streams"),
    ("streams", "clients"),
    ("count", "iterations"),
    ("messages", "iterations"),
    ("type", "kind"),
    ("role", "kind"),
    ("source", "from"),
    ("src", "from"),
    ("destination", "to"),
    ("dst", "to"),
    ("size", "payload"),
    ("packet_size", "payload"),
    ("packetsize", "payload"),
    ("len", "payload"),
    ("size", "bytes"),
    ("bytes", "sizes"),
    ("streams", "connections"),
    ("client", "from"),
    ("server", "to"),
    ("warmup", "omit"),
    ("runs", "repeat"),
    ("repetitions", "repeat"),
    ("sampling", "sample"),
    ("drop", "loss"),
    ("iw", "initial_window"),
    ("initcwnd", "initial_window"),
    ("sndbuf", "send_buffer"),
    ("rcvbuf", "receive_buffer"),
    ("title", "name"),
    ("version", "tcplab"),
    ("begin", "start"),
    ("end", "stop"),
    ("delay", "rtt"),
    ("rtt", "delay"),
    ("keep_alive", "connections"),
    ("pages", "count"),
    ("think_time", "think"),
    ("memory", "size"),
    ("arrivals", "spacing"),
    ("interarrival", "spacing"),
    ("nodelay", "nagle"),
    ("no_delay", "nagle"),
    ("tcp_nodelay", "nagle"),
];

/// Other words for the same value.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("yes", "on"),
    ("true", "on"),
    ("no", "off"),
    ("false", "off"),
    ("icmp", "ping"),
    ("rpc", "request"),
    ("pingpong", "echo"),
    ("ping-pong", "echo"),
    ("web", "http"),
    ("bulk", "tcp"),
    ("gaussian", "normal"),
    ("fifo", "droptail"),
    ("poisson", "exponential"),
    ("drop", "reset"),
    ("refuse", "reset"),
    ("reject", "reset"),
    ("bypass", "pass"),
    ("forward", "pass"),
    ("constant", "uniform"),
    ("equal", "uniform"),
    ("random", "uniform"),
    ("pareto", "zipf"),
];

/// How a missing key may be given whose schema has no example.
const EXAMPLES: &[(&str, &str)] = &[
    ("tcplab", "tcplab: 1"),
    ("name", "name: my-test"),
    ("rate", "rate: 100 Mbit/s"),
    ("rtt", "rtt: 50 ms"),
    ("limit", "limit: 1 BDP"),
    ("kind", "kind: tcp"),
    ("ends", "ends: [a, b]"),
    ("network", "network: {path: {rate: 100 Mbit/s, rtt: 50 ms}}"),
    ("flows", "flows: [{name: bulk, kind: tcp}]"),
    ("amount", "amount: 2 ms"),
    ("p", "p: 1 %"),
    ("r", "r: 25 %"),
    ("burst", "burst: 15 kB"),
    ("queue", "queue: 1 BDP"),
    ("bands", "bands: [{dscp: [EF], queue: 50 packets}, {queue: fq_codel}]"),
    ("on", "on: 1 s"),
    ("packets", "packets: [10, 20]"),
    ("nodes", "nodes: [a, b]"),
    ("study", "study: my-study"),
    ("scenario", "scenario: my-test.yaml"),
    ("that", "that: goodput(cc=bbr1) > goodput(cc=cubic)"),
    ("values", "values: [reno, cubic]"),
    ("axes", "axes: [cc]"),
    ("off", "off: 1 s"),
];

fn entry<'t>(table: &[(&str, &'t str)], word: &str) -> Option<&'t str> {
    table.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours)
}

/// An example of a key that is missing, given its schema.
pub(crate) fn example(key: &str, schema: &Value) -> String {
    if let Some(example) = schema["examples"].get(0) {
        return format!("{key}: {}", flow_style(example));
    }
    entry(EXAMPLES, key).map_or_else(|| format!("{key}: ..."), str::to_owned)
}

/// A value as it is written within a line.
fn flow_style(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(flow_style).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{key}: {}", flow_style(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// The list probably meant by a mapping: of it alone, or of its mappings, each named by its key; empty if it is long.
pub(crate) fn list_meant(node: &Node) -> String {
    let Value::Object(entries) = plain(node) else { return String::new() };
    let list = if entries.contains_key("name") || entries.contains_key("kind") {
        vec![Value::Object(entries)]
    } else {
        let named = |(name, value): (String, Value)| {
            let Value::Object(inside) = value else { return None };
            let mut named = Map::from_iter([("name".to_owned(), Value::String(name))]);
            named.extend(inside);
            Some(Value::Object(named))
        };
        entries.into_iter().map(named).collect::<Option<_>>().unwrap_or_default()
    };
    let text = flow_style(&Value::Array(list));
    if (3..=LONGEST).contains(&text.len()) { text } else { String::new() }
}

/// The key probably meant: another name for the same, or near in spelling; not given yet if possible.
pub(crate) fn near_key(key: &str, known: &[&str], given: &[&str]) -> String {
    let free: Vec<&str> = known.iter().copied().filter(|name| !given.contains(name)).collect();
    let folded = key.to_lowercase().replace(['-', ' '], "_");
    if free.contains(&folded.as_str()) {
        return folded;
    }
    let same = |(theirs, ours): &&(&str, &str)| *theirs == folded && free.contains(ours);
    if let Some((_, ours)) = SYNONYMS.iter().find(same) {
        return (*ours).to_owned();
    }
    // `hello` for `hello_interval`, if nothing else has a hello.
    let mut longer = free.iter().copied().filter(|name| name.split('_').any(|part| part == folded));
    let only = longer.next().filter(|_| longer.next().is_none());
    let near = nearest(&folded, free.iter().copied(), 0.6).or(only);
    near.or_else(|| nearest(&folded, known.iter().copied(), 0.6)).unwrap_or_default().to_owned()
}

/// The word probably meant, or empty.
pub(crate) fn near_word(word: &str, words: &[&str]) -> String {
    let word = word.to_lowercase();
    if let Some(ours) = entry(OTHER_WORDS, &word)
        && words.contains(&ours)
    {
        return ours.to_owned();
    }
    nearest(&word, words.iter().copied(), 0.5).unwrap_or_default().to_owned()
}

/// The name probably meant, or empty.
pub(crate) fn near_name<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    nearest(name, names, 0.5).unwrap_or_default().to_owned()
}

/// Words in back quotes: `a`, `b` or `c`.
pub(crate) fn listed(words: &[&str], last: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
