//! Values by their kind: what is written becomes a JSON value in base units, or a mistake.

use num_traits::Zero;
use serde_json::{Value as Json, json};

use crate::document::{Node, Value};
use crate::quantity::{
    Dimension, LARGEST, PPB, Quantity, QuantityError, Read, format, parse, parse_meant, quoted,
};

use crate::structured;

type Reading = Result<Json, QuantityError>;

/// Each stream has its own sockets and rows.
const MAX_STREAMS: u64 = 100_000;
/// So many messages of each size and client are kept one by one, whatever follows.
const MAX_WARMUP: u64 = 100_000;
/// Both ends keep a message in memory.
const LARGEST_MESSAGE: u64 = 16 << 20;
/// The last number is reserved (RFC 7300).
const MAX_ASN: u64 = 4_294_967_294;
/// RFC 2328, appendix C.3.
const MAX_COST: u64 = 65_535;
/// The limits that FRR is built with in Debian.
const MAX_PATHS: u64 = 256;
/// A route of distance 255 is not used.
const MAX_DISTANCE: u64 = 254;
/// Message sizes of one flow.
const MAX_SIZES: usize = 1024;

fn error(message: String, suggestion: impl Into<String>) -> QuantityError {
    QuantityError::new(message, suggestion)
}

/// The value of a kind, if it is within the bounds; none for an unknown kind.
pub(crate) fn bounded(
    kind: &str,
    node: &Node,
    minimum: Option<u64>,
    maximum: Option<u64>,
) -> Option<Reading> {
    if kind == "integer" {
        return Some(whole(&node.read(), minimum.unwrap_or(0), maximum.unwrap_or(LARGEST)));
    }
    let beyond = |side: &str, bound: u64| {
        let bound = shown(kind, bound);
        error(format!("{} must be at {side} {bound}", node.read().shown()), &bound)
    };
    Some(read(kind, node)?.and_then(|value| match (value.as_u64(), minimum, maximum) {
        (Some(given), _, Some(maximum)) if given > maximum => Err(beyond("most", maximum)),
        (Some(given), Some(minimum), _) if given < minimum => Err(beyond("least", minimum)),
        _ => Ok(value),
    }))
}

/// A bound as a person writes it.
fn shown(kind: &str, bound: u64) -> String {
    match kind {
        "size" | "positive-size" => format(bound, Dimension::Size),
        _ => bound.to_string(),
    }
}

/// The value of a kind; none for an unknown kind.
pub fn read(kind: &str, node: &Node) -> Option<Reading> {
    let read = node.read();
    Some(match kind {
        "version" => version(&read, "scenario"),
        "study-version" => version(&read, "study"),
        "name" => name(&read),
        "text" => text(&read),
        "switch" => switch(&read),
        "count" => whole(&read, 1, LARGEST),
        "port" => whole(&read, 1, u64::from(u16::MAX)),
        "asn" => whole(&read, 1, MAX_ASN),
        "area" => whole(&read, 0, u64::from(u32::MAX)),
        "cost" => whole(&read, 1, MAX_COST),
        "paths" => whole(&read, 1, MAX_PATHS),
        "distance" => whole(&read, 1, MAX_DISTANCE),
        "streams" => whole(&read, 1, MAX_STREAMS),
        "warmup" => whole(&read, 0, MAX_WARMUP),
        "seed" => seed(&read),
        "ip" => ip_version(&read),
        "number" => number(&read),
        "time" => time(&read),
        "positive-time" => positive(&read, Dimension::Time, time(&read)),
        "moment" => moment(&read),
        "positive-moment" => positive(&read, Dimension::Time, moment(&read)),
        "interval" => or_word(&read, "off", positive(&read, Dimension::Time, time(&read))),
        "omit" => or_word(&read, "auto", moment(&read)),
        "rate" => rate(&read),
        "link-rate" => match or_word(&read, "unlimited", rate(&read)) {
            Ok(Json::Null) => Ok(json!("unlimited")),
            other => other,
        },
        "size" => size(&read),
        "positive-size" => positive(&read, Dimension::Size, size(&read)),
        "mtu" => mtu(&read),
        "packets" => packets(&read),
        "initial-window" => initial_window(&read),
        "probability" => probability(&read),
        "correlation" => correlation(&read),
        "queue-limit" => or_word(&read, "unlimited", queue_limit(&read)),
        "positive-amount" => queue_limit(&read),
        "threshold" => threshold(&read),
        "dscp" => dscp(&read),
        "ect" => whole(&read, 0, 1),
        "window" => window(&read),
        "sizes" => sizes(node),
        "cpus" => cpus(node),
        "ports" => ports(&read),
        "around" => around(&read),
        _ => return structured::read(kind, node),
    })
}

/// A valid value that stands in for a required one that was refused. Nothing is concluded from it.
pub(crate) fn stand_in(kind: &str) -> Json {
    match kind {
        "name" | "text" => json!("unnamed"),
        "switch" => json!(false),
        "queue-limit" | "positive-amount" | "threshold" => json!({"packets": 1000}),
        "window" => json!({"bytes": 1 << 20}),
        "sizes" | "cpus" => json!([1]),
        "ip" => json!(4),
        "ports" => json!("5300-5399"),
        "dscp" | "ect" => json!(0),
        "rate" | "link-rate" | "time" | "positive-time" | "moment" | "positive-moment" => {
            json!(1_000_000_000)
        }
        "probability" | "correlation" => json!(PPB / 100),
        "size" | "positive-size" | "mtu" => json!(1500),
        "around" => json!({"value": 1_000_000_000, "tolerance": PPB}),
        _ => json!(1),
    }
}

fn version(read: &Read<'_>, language: &str) -> Reading {
    match read {
        Read::Int(1) => Ok(json!(1)),
        Read::Float(number) if *number == 1.0 => Ok(json!(1)),
        Read::Text("1") => {
            Err(error(format!("the text `1` is not a version of the {language} language"), "1"))
        }
        _ => Err(error(format!("{} is not a version of the {language} language", read.shown()), "1")),
    }
}

/// Whether a text is a name: a letter, then letters, digits, `-` and `_`, at most 48 in all.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        && text.len() <= 48
}

fn name(read: &Read<'_>) -> Reading {
    let shown = read.shown();
    let Read::Text(text) = read else {
        return Err(error(format!("{shown} is not a name: it must be a text that starts with a letter"), ""));
    };
    if is_name(text) {
        return Ok(json!(text));
    }
    let mut near = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            near.push(c);
        } else if !near.ends_with('\u{0}') {
            near.push('\u{0}');
        }
    }
    let near = near.replace('\u{0}', "-");
    let near: String = near.trim_matches('-').chars().take(48).collect();
    let suggestion = if is_name(&near) { near } else { String::new() };
    let message = format!("{shown} is not a name: letters, digits, `-` and `_`, a letter first, at most 48");
    Err(error(message, suggestion))
}

/// A text that can be written to a file and shown on a terminal.
pub(crate) fn text(read: &Read<'_>) -> Reading {
    let Read::Text(text) = read else {
        return Err(error(format!("{} is not a string", read.shown()), ""));
    };
    match text.chars().find(|&c| c.is_control() && c != '\n' && c != '\t') {
        Some(odd) => Err(error(format!("the text holds the control character U+{:04X}", u32::from(odd)), "")),
        None => Ok(json!(text)),
    }
}

fn switch(read: &Read<'_>) -> Reading {
    match read {
        Read::Bool(yes) => return Ok(json!(yes)),
        Read::Text("on") => return Ok(json!(true)),
        Read::Text("off") => return Ok(json!(false)),
        _ => {}
    }
    let written = read.shown().trim_matches('`').to_lowercase();
    let meant = match written.as_str() {
        "yes" | "y" | "1" | "true" | "enabled" | "enable" | "on" | "up" => "on",
        "no" | "n" | "0" | "false" | "disabled" | "disable" | "off" | "down" => "off",
        _ => "on",
    };
    Err(error(format!("{} is neither `on` nor `off`", read.shown()), meant))
}

fn whole(read: &Read<'_>, minimum: u64, maximum: u64) -> Reading {
    let shown = read.shown();
    match read {
        Read::Int(number) if *number < i128::from(minimum) => {
            Err(error(format!("{shown} must be at least {minimum}"), minimum.to_string()))
        }
        Read::Int(number) if *number > i128::from(maximum) => {
            Err(error(format!("{shown} must be at most {maximum}"), maximum.to_string()))
        }
        Read::Int(number) => Ok(json!(*number as u64)),
        Read::Float(number) if number.is_finite() => {
            let near = number.round().clamp(minimum as f64, maximum as f64);
            Err(error(format!("{shown} is not a whole number"), format!("{near}")))
        }
        _ if maximum < LARGEST => {
            Err(error(format!("{shown} is not a whole number from {minimum} to {maximum}"), ""))
        }
        _ => Err(error(format!("{shown} is not a whole number, {minimum} or more"), "")),
    }
}

fn seed(read: &Read<'_>) -> Reading {
    let shown = read.shown();
    match read {
        Read::Int(number) => match u64::try_from(*number) {
            Ok(seed) => Ok(json!(seed)),
            Err(_) => Err(error(format!("{shown} must be from 0 to 2^64 - 1"), "")),
        },
        _ => Err(error(format!("{shown} is not a whole number"), "")),
    }
}

fn ip_version(read: &Read<'_>) -> Reading {
    match read {
        Read::Int(version @ (4 | 6)) => return Ok(json!(*version as u64)),
        Read::Float(version) if *version == 4.0 || *version == 6.0 => return Ok(json!(*version as u64)),
        _ => {}
    }
    let written = read.shown().trim_matches('`').to_lowercase();
    let near = written.trim_start_matches("ip").trim_start_matches('v');
    let suggestion = if matches!(near, "4" | "6") { near } else { "" };
    Err(error(format!("{} is not a version of IP: 4 or 6", read.shown()), suggestion))
}

/// A range of ports above those of services (RFC 6335, section 6): `5300-5399`.
fn ports(read: &Read<'_>) -> Reading {
    let ends = match read {
        Read::Text(text) => {
            text.split_once('-').map(|(first, last)| (first.trim().parse(), last.trim().parse()))
        }
        _ => None,
    };
    match ends {
        Some((Ok(first @ 1024_u16..), Ok(last))) if first <= last => Ok(json!(format!("{first}-{last}"))),
        _ => {
            let message = format!("{} is not a range of ports from 1024 to 65535", read.shown());
            Err(error(message, "5300-5399"))
        }
    }
}

/// A differentiated services codepoint: a number, or the name that RFC 2474, 2597, 3246, 5865 or 8622 gives it.
fn dscp(read: &Read<'_>) -> Reading {
    let shown = read.shown();
    let unknown =
        |near: &str| Err(error(format!("{shown} is not a DSCP: 0 to 63, or a name such as `EF`"), near));
    let written = match read {
        Read::Int(number @ 0..=63) => return Ok(json!(*number as u64)),
        Read::Text(text) => text.to_uppercase(),
        _ => return unknown(""),
    };
    let digits: Vec<u64> = written.chars().filter_map(|c| c.to_digit(10)).map(u64::from).collect();
    let codepoint = match (written.trim_end_matches(|c: char| c.is_ascii_digit()), digits.as_slice()) {
        ("EF", []) => 46,
        ("VA", []) => 44,
        ("LE", []) => 1,
        ("DF" | "BE", []) => 0,
        ("CS", [class @ 0..=7]) => 8 * class,
        ("AF", [class @ 1..=4, drop @ 1..=3]) => 8 * class + 2 * drop,
        _ => return unknown("EF"),
    };
    Ok(json!(codepoint))
}

fn number(read: &Read<'_>) -> Reading {
    let number = match read {
        Read::Int(number) => *number as f64,
        Read::Float(number) if number.is_finite() => *number,
        _ => return Err(error(format!("{} is not a number", read.shown()), "")),
    };
    if number.abs() > 1e18 {
        return Err(error(format!("{} is out of range", read.shown()), ""));
    }
    Ok(json!(number))
}

/// A quantity, or the word that says there is none (null).
fn or_word(read: &Read<'_>, word: &str, quantity: Reading) -> Reading {
    match read {
        Read::Text(text) if *text == word => Ok(Json::Null),
        Read::Bool(false) if word == "off" => Ok(Json::Null),
        Read::Text(text) if !text.chars().any(|c| c.is_ascii_digit()) => {
            quantity.map_err(|wrong| error(format!("{} or `{word}`", wrong.message), word))
        }
        _ => quantity,
    }
}

fn time(read: &Read<'_>) -> Reading {
    Ok(json!(parse(read, &[Dimension::Time])?.rounded()))
}

/// A time and how far from it is accepted: `80 ms ± 10 %`.
fn around(read: &Read<'_>) -> Reading {
    let Read::Text(text) = read else { return time(read) };
    let Some((value, tolerance)) = text.split_once('±').or_else(|| text.split_once("+-")) else {
        positive(read, Dimension::Time, time(read))?;
        let message = format!("{} does not say how far from it is accepted", read.shown());
        return Err(error(message, format!("{text} ± 10 %")));
    };
    let (value, tolerance) = (part(value), part(tolerance));
    Ok(
        json!({"value": positive(&value, Dimension::Time, time(&value))?, "tolerance": probability(&tolerance)?}),
    )
}

/// A time that is most likely seconds: when something in a run happens, or how long it lasts.
fn moment(read: &Read<'_>) -> Reading {
    Ok(json!(moment_ns(read)?))
}

/// The same, in nanoseconds.
pub(crate) fn moment_ns(read: &Read<'_>) -> Result<u64, QuantityError> {
    Ok(parse_meant(read, &[Dimension::Time], Some("s"))?.rounded())
}

fn positive(read: &Read<'_>, dimension: Dimension, value: Reading) -> Reading {
    let zero = || Err(error(format!("{} must be more than zero", read.shown()), dimension.example()));
    match value {
        Ok(value) if value == json!(0) => zero(),
        // Zero without a unit: one would not help.
        Err(wrong) if wrong.suggestion.starts_with("0 ") => zero(),
        other => other,
    }
}

fn rate(read: &Read<'_>) -> Reading {
    positive(read, Dimension::Rate, parse(read, &[Dimension::Rate]).map(|rate| json!(rate.rounded())))
}

fn size(read: &Read<'_>) -> Reading {
    Ok(json!(parse(read, &[Dimension::Size])?.rounded()))
}

/// At least 576 B, which every IPv4 host must take (RFC 791, section 3.1).
fn mtu(read: &Read<'_>) -> Reading {
    let size = positive(read, Dimension::Size, size(read))?;
    match size.as_u64() {
        Some(576..=65_535) => Ok(size),
        _ => Err(error(format!("{} must be from 576 B to 65535 B", read.shown()), "1500 B")),
    }
}

fn probability(read: &Read<'_>) -> Reading {
    let share = parse(read, &[Dimension::Probability])?;
    if share.value > num_bigint::BigInt::from(PPB).into() {
        return Err(error(format!("{} is more than 100 %", read.shown()), ""));
    }
    Ok(json!(share.rounded()))
}

/// Below 100 %: at 100 % one packet's fate would be everyone's.
fn correlation(read: &Read<'_>) -> Reading {
    let share = probability(read)?;
    if share == json!(PPB) {
        return Err(error(format!("{}: a correlation is below 100 %", read.shown()), "99 %"));
    }
    Ok(share)
}

fn packets(read: &Read<'_>) -> Reading {
    let quantity = parse(read, &[Dimension::Packets])?;
    if !quantity.value.is_integer() {
        return Err(error(format!("{} is not a whole number of packets", read.shown()), ""));
    }
    positive(read, Dimension::Packets, Ok(json!(quantity.rounded())))
}

fn initial_window(read: &Read<'_>) -> Reading {
    let window = packets(read)?;
    if window.as_u64().is_some_and(|packets| packets > 65_535) {
        return Err(error(format!("{} is more than 65535 packets", read.shown()), "10 packets"));
    }
    Ok(window)
}

const AMOUNTS: [Dimension; 4] = [Dimension::Packets, Dimension::Size, Dimension::Time, Dimension::Bdp];

fn queue_limit(read: &Read<'_>) -> Reading {
    let quantity = parse(read, &AMOUNTS)?;
    if quantity.value.is_zero() {
        return Err(error(format!("{}: a queue must hold at least one packet", read.shown()), "1 BDP"));
    }
    if quantity.dimension == Dimension::Packets {
        packets(read)?;
    }
    Ok(amount(&quantity))
}

/// As a queue's limit, and nothing too.
fn threshold(read: &Read<'_>) -> Reading {
    let quantity = parse(read, &AMOUNTS)?;
    if quantity.dimension == Dimension::Packets && !quantity.value.is_zero() {
        packets(read)?;
    }
    Ok(amount(&quantity))
}

fn window(read: &Read<'_>) -> Reading {
    let quantity = parse(read, &[Dimension::Size, Dimension::Bdp])?;
    if quantity.value.is_zero() {
        return Err(error(format!("{} must be more than zero", read.shown()), Dimension::Size.example()));
    }
    Ok(amount(&quantity))
}

fn amount(quantity: &Quantity) -> Json {
    match quantity.dimension {
        Dimension::Packets => json!({"packets": quantity.rounded()}),
        Dimension::Time => json!({"time": quantity.rounded()}),
        Dimension::Bdp => json!({"bdp": quantity.value.to_string()}),
        _ => json!({"bytes": quantity.rounded()}),
    }
}

/// Sizes of messages in bytes, in the order given. `A..B` doubles from A on up to B, so that `1..65536` are the
/// powers of two from 1 to 65,536. A number is bytes; a text may carry a unit.
fn sizes(node: &Node) -> Reading {
    let read = node.read();
    if let Read::Text(text) = read
        && let Some((first, last)) = text.split_once("..")
    {
        let (mut first, last) = (message_size(&part(first))?, message_size(&part(last))?);
        if first > last {
            let message = format!("{} goes down: from {first} to {last} bytes", quoted(text));
            return Err(error(message, format!("{last}..{first}")));
        }
        let mut sizes = Vec::new();
        while first <= last {
            sizes.push(first);
            first *= 2;
        }
        return Ok(json!(sizes));
    }
    let each = match &read {
        Read::Text(text) if text.contains(',') => {
            text.split(',').map(|one| message_size(&part(one))).collect::<Vec<_>>()
        }
        Read::List => {
            if node.items().is_empty() {
                return Err(error("no size is given".to_owned(), "1..65536"));
            }
            if node.items().len() > MAX_SIZES {
                let message = format!("{} sizes are too many: {MAX_SIZES} at most", node.items().len());
                return Err(error(message, "1..65536"));
            }
            node.items().iter().map(|item| message_size(&item.read())).collect()
        }
        one => return Ok(json!([message_size(one)?])),
    };
    if each.len() > MAX_SIZES {
        return Err(error(format!("{} sizes are too many: {MAX_SIZES} at most", each.len()), "1..65536"));
    }
    let sizes = each.into_iter().collect::<Result<Vec<u64>, _>>()?;
    for (number, size) in sizes.iter().enumerate() {
        if sizes[..number].contains(size) {
            return Err(error(format!("duplicate size {size}"), ""));
        }
    }
    Ok(json!(sizes))
}

fn part(text: &str) -> Read<'_> {
    Read::Text(text.trim())
}

fn message_size(read: &Read<'_>) -> Result<u64, QuantityError> {
    let bare = match read {
        Read::Int(number) => Some(*number),
        Read::Text(text) if (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) => {
            text.parse().ok()
        }
        _ => None,
    };
    let size = match bare {
        Some(number) if number < 1 => return Err(error(format!("`{number}` must be above zero"), "1")),
        Some(number) => u64::try_from(number).unwrap_or(u64::MAX),
        None => positive(read, Dimension::Size, size(read))?.as_u64().unwrap_or(u64::MAX),
    };
    if size > LARGEST_MESSAGE {
        return Err(error(format!("a message of {size} bytes is longer than {LARGEST_MESSAGE}"), "16 MiB"));
    }
    Ok(size)
}

fn cpus(node: &Node) -> Reading {
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut cpus = Vec::new();
    for item in items {
        match item.value {
            Value::Int(number @ 0..8192) => cpus.push(number as u64),
            _ => return Err(error(format!("{} is not the number of a CPU", item.read().shown()), "")),
        }
    }
    Ok(json!(cpus))
}
