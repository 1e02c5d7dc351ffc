//! Quantities with units, read exactly.
//!
//! Every number that means an amount of something carries its unit (`25 ms`, `100 Mbit/s`, `200 kB`, `0.5 %`,
//! `1.5 BDP`). They are read as fractions and become integers in base units: nanoseconds, bit/s, bytes, parts per
//! billion. No floating point is involved, so `0.1 s` is exactly 100,000,000 ns.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::nearest::nearest;

mod spelling;

/// The result tables keep times and sizes as signed 64-bit integers; the sum of two must fit.
pub const LARGEST: u64 = 1 << 62;
/// One, in parts per billion.
pub const PPB: u64 = 1_000_000_000;

/// The dimension of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// In nanoseconds.
    Time,
    /// In bit/s.
    Rate,
    /// In bytes.
    Size,
    /// In parts per billion.
    Probability,
    /// Packets.
    Packets,
    /// Multiples of the bandwidth-delay product.
    Bdp,
}

impl Dimension {
    /// All of them.
    pub const ALL: [Dimension; 6] = [
        Dimension::Time,
        Dimension::Rate,
        Dimension::Size,
        Dimension::Probability,
        Dimension::Packets,
        Dimension::Bdp,
    ];

    /// Its name in messages, with the article.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Time => "a time",
            Dimension::Rate => "a rate",
            Dimension::Size => "a size",
            Dimension::Probability => "a percentage",
            Dimension::Packets => "a number of packets",
            Dimension::Bdp => "a multiple of the bandwidth-delay product",
        }
    }

    /// The spellings of its units, and what one is in the base unit.
    pub fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Dimension::Time => &[
                ("ns", 1),
                ("us", 1_000),
                ("µs", 1_000),
                ("μs", 1_000),
                ("ms", 1_000_000),
                ("s", 1_000_000_000),
                ("min", 60_000_000_000),
                ("h", 3_600_000_000_000),
            ],
            Dimension::Rate => &[
                ("bit/s", 1),
                ("kbit/s", 1_000),
                ("Mbit/s", 1_000_000),
                ("Gbit/s", 1_000_000_000),
                ("bps", 1),
                ("kbps", 1_000),
                ("Mbps", 1_000_000),
                ("Gbps", 1_000_000_000),
            ],
            Dimension::Size => &[
                ("B", 1),
                ("kB", 1_000),
                ("MB", 1_000_000),
                ("GB", 1_000_000_000),
                ("KiB", 1 << 10),
                ("MiB", 1 << 20),
                ("GiB", 1 << 30),
            ],
            Dimension::Probability => &[("%", PPB / 100)],
            Dimension::Packets => &[("packets", 1), ("packet", 1)],
            Dimension::Bdp => &[("BDP", 1)],
        }
    }

    /// A value as an example.
    pub fn example(self) -> &'static str {
        match self {
            Dimension::Time => "25 ms",
            Dimension::Rate => "100 Mbit/s",
            Dimension::Size => "200 kB",
            Dimension::Probability => "0.5 %",
            Dimension::Packets => "625 packets",
            Dimension::Bdp => "1.5 BDP",
        }
    }

    /// The unit most likely meant by a bare number.
    fn usual_unit(self) -> &'static str {
        match self {
            Dimension::Time => "ms",
            Dimension::Rate => "Mbit/s",
            Dimension::Size => "B",
            Dimension::Probability => "%",
            Dimension::Packets => "packets",
            Dimension::Bdp => "BDP",
        }
    }
}

/// Spellings in use elsewhere: what is written here instead, and by what the number is multiplied.
const FOREIGN: &[(&str, &str, u64)] = &[
    ("bps", "bit/s", 1),
    ("bit", "bit/s", 1),
    ("bits/s", "bit/s", 1),
    ("kbps", "kbit/s", 1),
    ("kbit", "kbit/s", 1),
    ("kb/s", "kbit/s", 1),
    ("mbps", "Mbit/s", 1),
    ("mbit", "Mbit/s", 1),
    ("mb/s", "Mbit/s", 1),
    ("gbps", "Gbit/s", 1),
    ("gbit", "Gbit/s", 1),
    ("gb/s", "Gbit/s", 1),
    ("kB/s", "kbit/s", 8),
    ("MB/s", "Mbit/s", 8),
    ("GB/s", "Gbit/s", 8),
    ("B/s", "bit/s", 8),
    ("kBps", "kbit/s", 8),
    ("KBps", "kbit/s", 8),
    ("MBps", "Mbit/s", 8),
    ("GBps", "Gbit/s", 8),
    ("Bps", "bit/s", 8),
    ("nsec", "ns", 1),
    ("usec", "us", 1),
    ("msec", "ms", 1),
    ("sec", "s", 1),
    ("secs", "s", 1),
    ("second", "s", 1),
    ("seconds", "s", 1),
    ("m", "min", 1),
    ("mins", "min", 1),
    ("minute", "min", 1),
    ("minutes", "min", 1),
    ("hour", "h", 1),
    ("hours", "h", 1),
    ("byte", "B", 1),
    ("bytes", "B", 1),
    ("k", "kB", 1),
    ("K", "KiB", 1),
    ("M", "MB", 1),
    ("G", "GB", 1),
    ("KB", "kB", 1),
    ("TB", "GB", 1_000),
    ("T", "GB", 1_000),
    ("TiB", "GiB", 1_024),
    ("tbit/s", "Gbit/s", 1_000),
    ("tbit", "Gbit/s", 1_000),
    ("tbps", "Gbit/s", 1_000),
    ("Kb", "kB", 1),
    ("kb", "kB", 1),
    ("p", "packets", 1),
    ("pkt", "packets", 1),
    ("pkts", "packets", 1),
    ("percent", "%", 1),
    ("pct", "%", 1),
];

/// Units of sizes in bits, in lower case.
const BITS: &[(&str, u64)] = &[("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)];

/// Second spellings of a unit: read, but never written or suggested.
const ALSO_READ: [&str; 7] = ["bps", "kbps", "Mbps", "Gbps", "µs", "μs", "packet"];

/// Units that are read and suggested, but not printed.
const NOT_PRINTED: [&str; 5] = ["min", "h", "KiB", "MiB", "GiB"];

/// A value as it was read: what messages quote.
#[derive(Clone, Debug, PartialEq)]
pub enum Read<'a> {
    /// `null`, or nothing.
    Nothing,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// A list.
    List,
    /// A mapping.
    Mapping,
}

impl Read<'_> {
    /// As it is quoted in a message.
    pub fn shown(&self) -> String {
        match self {
            Read::Nothing => "nothing".to_owned(),
            Read::Bool(yes) => format!("`{yes}`"),
            Read::Mapping => "a mapping".to_owned(),
            Read::List => "a list".to_owned(),
            _ => quoted(&self.written().unwrap_or_default()),
        }
    }

    /// A number or a text as text.
    pub(crate) fn written(&self) -> Option<String> {
        match self {
            Read::Int(number) => Some(number.to_string()),
            Read::Float(number) => Some(decimal(*number)),
            Read::Text(text) => Some((*text).to_owned()),
            _ => None,
        }
    }
}

/// A text in back quotes, in one line, cut if it is long.
pub fn quoted(text: &str) -> String {
    let text = text.replace('\n', "\\n").replace('\r', "\\r");
    if text.chars().count() <= 60 {
        format!("`{text}`")
    } else {
        format!("`{}...`", text.chars().take(57).collect::<String>())
    }
}

/// A number with a point, so that it differs from a whole one.
pub fn decimal(number: f64) -> String {
    if number == number.trunc() && number.abs() < 1e16 {
        format!("{number:.1}")
    } else {
        let text = format!("{number:?}");
        // 1e-7 is printed as Python and people write it: 1e-07.
        match text.split_once('e') {
            Some((mantissa, exponent)) => {
                let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |d| ("-", d));
                format!("{mantissa}e{sign}{digits:0>2}")
            }
            None => text,
        }
    }
}

/// A text that is not the quantity asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    /// The error message.
    pub message: String,
    /// The nearest valid spelling, or empty.
    pub suggestion: String,
}

impl QuantityError {
    pub(crate) fn new(message: impl Into<String>, suggestion: impl Into<String>) -> QuantityError {
        QuantityError { message: message.into(), suggestion: suggestion.into() }
    }
}

/// A dimension and an exact value in its base unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Its dimension.
    pub dimension: Dimension,
    /// How much.
    pub value: BigRational,
}

impl Quantity {
    /// The value as a floating-point number.
    pub fn as_f64(&self) -> f64 {
        self.value.to_f64().unwrap_or(f64::NAN)
    }

    /// As a whole number of base units, ties to even.
    pub fn rounded(&self) -> u64 {
        round(&self.value)
    }
}

/// The nearest whole number, ties to even; what does not fit is the largest.
pub fn round(value: &BigRational) -> u64 {
    let two = BigInt::from(2);
    let floor = value.floor().to_integer();
    let rest = value - BigRational::from(floor.clone());
    let half = BigRational::new(BigInt::from(1), two.clone());
    let up = rest > half || (rest == half && !(floor.clone() % two).is_zero());
    (if up { floor + 1 } else { floor }).to_u64().unwrap_or(u64::MAX)
}

/// The parts of a number with its unit.
struct Written<'a> {
    negative: bool,
    sign: &'a str,
    digits: &'a str,
    exponent: Option<&'a str>,
    unit: Option<&'a str>,
}

impl Written<'_> {
    /// The number without its sign, as written.
    fn number(&self) -> String {
        self.exponent.map_or_else(|| self.digits.to_owned(), |e| format!("{}e{e}", self.digits))
    }
}

/// Long numbers are mistakes, and a huge exponent would take for ever to expand.
const DIGITS: usize = 30;

fn digits(text: &str, maximum: usize) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (1..=maximum).contains(&end).then(|| text.split_at(end))
}

fn split(text: &str) -> Option<Written<'_>> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' | b'-' => text.split_at(1),
        _ => ("", text),
    };
    if rest.starts_with("0x") {
        return None;
    }
    let (_, mut after) = digits(rest, DIGITS)?;
    if let Some(fraction) = after.strip_prefix('.') {
        (_, after) = digits(fraction, DIGITS)?;
    }
    let number = &rest[..rest.len() - after.len()];
    let mut exponent = None;
    if after.starts_with(['e', 'E']) {
        let signed = &after[1..];
        let unsigned = signed.strip_prefix(['+', '-']).unwrap_or(signed);
        if unsigned.starts_with(|c: char| c.is_ascii_digit()) {
            let (_, beyond) = digits(unsigned, 2)?;
            exponent = Some(&signed[..signed.len() - beyond.len()]);
            after = beyond;
        }
    }
    let unit = after.trim_start();
    let begins_unit = |c: char| c.is_ascii_alphabetic() || matches!(c, '%' | 'µ' | 'μ');
    if !unit.is_empty() && !unit.starts_with(begins_unit) {
        return None;
    }
    let unit = (!unit.is_empty()).then_some(unit);
    Some(Written { negative: sign == "-", sign, digits: number, exponent, unit })
}

fn power_of_ten(exponent: i32) -> BigRational {
    let power = BigRational::from(BigInt::from(10).pow(exponent.unsigned_abs()));
    if exponent < 0 { power.recip() } else { power }
}

/// A number of the form `12.5`, exactly.
fn fraction(digits: &str) -> BigRational {
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let number: BigInt = format!("{whole}{decimals}").parse().unwrap_or_default();
    BigRational::from(number) * power_of_ten(-(decimals.len() as i32))
}

/// The quantity read, which must have one of the dimensions.
pub fn parse(read: &Read<'_>, dimensions: &[Dimension]) -> Result<Quantity, QuantityError> {
    parse_meant(read, dimensions, None)
}

/// The same, where a bare number most likely means this unit.
pub(crate) fn parse_meant(
    read: &Read<'_>,
    dimensions: &[Dimension],
    unit_meant: Option<&str>,
) -> Result<Quantity, QuantityError> {
    let usual = unit_meant.unwrap_or_else(|| dimensions[0].usual_unit());
    let example = unit_meant.map_or_else(|| dimensions[0].example().to_owned(), |unit| format!("10 {unit}"));
    let wanted = either(&dimensions.iter().map(|d| d.name()).collect::<Vec<_>>());
    let shown = read.shown();
    let Some(text) = read.written() else {
        return Err(QuantityError::new(format!("{shown} is not {wanted}"), example));
    };
    let text = text.trim();
    let Some(written) = split(text) else {
        return Err(QuantityError::new(
            format!("{shown} is not {wanted}"),
            spelling::closest_text(text, dimensions, usual, &example),
        ));
    };
    let number = written.number();
    let Some(unit) = written.unit else {
        // 1e6 was read as a number with a point.
        let number = number.strip_suffix(".0").unwrap_or(&number);
        let mut message = format!("{shown} has no unit");
        if dimensions == [Dimension::Probability] && number.starts_with("0.") {
            let percent = value_of(number) * BigRational::from(BigInt::from(100));
            message += &format!("; the share {number} is `{} %`", exact(&percent));
        }
        return Err(QuantityError::new(message, with_unit(number, usual)));
    };
    let known = Dimension::ALL.iter().find_map(|&d| {
        d.units().iter().find(|(spelling, _)| *spelling == unit).map(|&(_, scale)| (d, scale))
    });
    let Some((dimension, scale)) = known else {
        let message = format!("{shown}: unknown unit `{unit}`");
        return Err(QuantityError::new(message, respell(&number, unit, dimensions, usual)));
    };
    if !dimensions.contains(&dimension) {
        let message = format!("{shown} is {}, not {wanted}", dimension.name());
        return Err(QuantityError::new(message, respell(&number, unit, dimensions, usual)));
    }
    let exponent = written.exponent.map_or(0, |e| e.parse().unwrap_or(0));
    let value = fraction(written.digits) * power_of_ten(exponent) * BigRational::from(BigInt::from(scale));
    if written.negative && !value.is_zero() {
        return Err(QuantityError::new(format!("{shown} is negative"), format!("{number} {unit}")));
    }
    if dimension != Dimension::Bdp && !value.is_zero() && round(&value) == 0 {
        let message = format!("{shown} is too small: it rounds to zero");
        return Err(QuantityError::new(message, ""));
    }
    if value > BigRational::from(BigInt::from(LARGEST)) {
        return Err(QuantityError::new(format!("{shown} is too large"), ""));
    }
    Ok(Quantity { dimension, value })
}

fn either(names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
        [] => String::new(),
    }
}

/// The nearest valid spelling of a number with its unit.
fn respell(number: &str, unit: &str, dimensions: &[Dimension], usual: &str) -> String {
    let valid: Vec<&str> = dimensions
        .iter()
        .flat_map(|d| d.units())
        .map(|&(spelling, _)| spelling)
        .filter(|spelling| !ALSO_READ.contains(spelling))
        .collect();
    let lower = unit.to_lowercase();
    let foreign = |unit: &str| FOREIGN.iter().find(|(theirs, ..)| *theirs == unit);
    if let Some(&(_, ours, factor)) = foreign(unit).or_else(|| foreign(&lower))
        && valid.contains(&ours)
    {
        if factor == 1 {
            return format!("{number} {ours}");
        }
        return format!("{} {ours}", exact(&(value_of(number) * BigRational::from(BigInt::from(factor)))));
    }
    let bits = |&&(theirs, _): &&(&str, u64)| theirs == lower.trim_end_matches('s') && valid.contains(&"B");
    if let Some(&(_, scale)) = BITS.iter().find(bits) {
        let bytes = value_of(number) * BigRational::new(BigInt::from(scale), BigInt::from(8));
        if bytes <= BigRational::from(BigInt::from(LARGEST)) {
            return format(round(&bytes), Dimension::Size);
        }
    }
    let folded: Vec<String> = valid.iter().map(|spelling| spelling.to_lowercase()).collect();
    match nearest(&lower, folded.iter().map(String::as_str), 0.5) {
        Some(near) => {
            let index = folded.iter().position(|f| f == near).unwrap_or(0);
            format!("{number} {}", valid[index])
        }
        None => format!("{number} {usual}"),
    }
}

/// A bare number with the unit that most likely was meant: a rate in the millions is in bit/s.
fn with_unit(number: &str, usual: &str) -> String {
    let value = value_of(number);
    let bits =
        usual == "Mbit/s" && (BigInt::from(1_000_000)..=BigInt::from(LARGEST)).contains(&value.to_integer());
    if bits && value.is_integer() {
        return format(round(&value), Dimension::Rate);
    }
    format!("{number} {usual}")
}

fn value_of(number: &str) -> BigRational {
    let (digits, exponent) = number.split_once('e').unwrap_or((number, "0"));
    fraction(digits) * power_of_ten(exponent.parse().unwrap_or(0))
}

/// A fraction as a decimal number, without trailing zeros, to at most nine decimals.
pub fn exact(value: &BigRational) -> String {
    let billion = BigRational::from(BigInt::from(PPB));
    let scaled = round(&(value.abs() * billion));
    let (whole, decimals) = (scaled / PPB, scaled % PPB);
    let text = format!("{whole}.{decimals:09}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if value.is_negative() && scaled > 0 { format!("-{text}") } else { text.to_owned() }
}

/// A value in base units with the largest unit that leaves it at least one, such as `1.5 ms`.
pub fn format(value: u64, dimension: Dimension) -> String {
    let printed =
        dimension.units().iter().filter(|(unit, _)| !NOT_PRINTED.contains(unit) && !ALSO_READ.contains(unit));
    let (unit, scale) = printed
        .clone()
        .rev()
        .find(|(_, scale)| value >= *scale)
        .or(printed.clone().next())
        .unwrap_or(&("", 1));
    format!("{} {unit}", exact(&BigRational::new(BigInt::from(value), BigInt::from(*scale))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Result<u64, QuantityError> {
        parse(&Read::Text(text), &[Dimension::Time]).map(|quantity| quantity.rounded())
    }

    #[test]
    fn quantities_are_exact() {
        assert_eq!(time("0.1 s"), Ok(100_000_000));
        assert_eq!(time("1e-3s"), Ok(1_000_000));
        assert_eq!(time("2.5 µs"), Ok(2_500));
        assert_eq!(time("+3 min"), Ok(180_000_000_000));
    }

    #[test]
    fn mistakes_name_what_was_meant() {
        let wrong = |text: &str, dimension| {
            let error = parse(&Read::Text(text), &[dimension]).expect_err(text);
            (error.message, error.suggestion)
        };
        assert_eq!(wrong("1e300 s", Dimension::Time).0, "`1e300 s` is not a time");
        let share = "`0.004` has no unit; the share 0.004 is `0.4 %`";
        assert_eq!(wrong("0.004", Dimension::Probability), (share.into(), "0.004 %".into()));
        assert_eq!(wrong("1.5", Dimension::Probability).0, "`1.5` has no unit");
        assert_eq!(wrong("100", Dimension::Rate), ("`100` has no unit".into(), "100 Mbit/s".into()));
        assert_eq!(wrong("10000000", Dimension::Rate).1, "10 Mbit/s");
        assert_eq!(wrong("2.5e9", Dimension::Rate).1, "2.5 Gbit/s");
        assert_eq!(parse(&Read::Float(1e6), &[Dimension::Size]).expect_err("1e6").suggestion, "1000000 B");
        assert_eq!(wrong("1400", Dimension::Size), ("`1400` has no unit".into(), "1400 B".into()));
        assert_eq!(wrong("-3", Dimension::Time), ("`-3` has no unit".into(), "3 ms".into()));
        assert_eq!(wrong("10 MB/s", Dimension::Rate).1, "80 Mbit/s");
        assert_eq!(wrong("10 MBps", Dimension::Rate).1, "80 Mbit/s");
        assert_eq!(wrong("10 Mbit", Dimension::Size).1, "1.25 MB");
        assert_eq!(wrong("10,000 kbit/s", Dimension::Rate).1, "10000 kbit/s");
        assert_eq!(wrong("1,000,000 bit/s", Dimension::Rate).1, "1000000 bit/s");
        assert_eq!(wrong("0,125 s", Dimension::Time).1, "0.125 s");
        assert_eq!(wrong(".5 Mbit/s", Dimension::Rate).1, "0.5 Mbit/s");
        assert_eq!(wrong("10.Mbps", Dimension::Rate).1, "10 Mbit/s");
        assert_eq!(wrong("1_000 kbit/s", Dimension::Rate).1, "1000 kbit/s");
        assert_eq!(wrong("10 000 kbit/s", Dimension::Rate).1, "10000 kbit/s");
        assert_eq!(wrong("0x10 ms", Dimension::Time), ("`0x10 ms` is not a time".into(), "25 ms".into()));
        assert_eq!(wrong("1:30", Dimension::Time).1, "25 ms");
        assert_eq!(wrong("5\n", Dimension::Time).0, "`5\\n` has no unit");
        assert_eq!(wrong("25 msec", Dimension::Time).1, "25 ms");
        assert_eq!(wrong("ms 5", Dimension::Time).1, "5 ms");
        assert_eq!(wrong("2,5 ms", Dimension::Time).1, "2.5 ms");
        assert_eq!(wrong("-1 s", Dimension::Time), ("`-1 s` is negative".into(), "1 s".into()));
        assert_eq!(wrong("5 B", Dimension::Time).0, "`5 B` is a size, not a time");
        assert_eq!(wrong("0.1 ns", Dimension::Time).0, "`0.1 ns` is too small: it rounds to zero");
        assert_eq!(wrong("1e30 s", Dimension::Time).0, "`1e30 s` is too large");
    }

    #[test]
    fn amounts_are_printed_with_the_largest_unit() {
        assert_eq!(format(1_500_000, Dimension::Time), "1.5 ms");
        assert_eq!(format(0, Dimension::Time), "0 ns");
        assert_eq!(format(100_000_000, Dimension::Rate), "100 Mbit/s");
        assert_eq!(format(1_000_000, Dimension::Probability), "0.1 %");
    }

    #[test]
    fn halves_round_to_even() {
        let half = |n: i64| round(&BigRational::new(BigInt::from(n), BigInt::from(2)));
        assert_eq!([half(1), half(3), half(5)], [0, 2, 2]);
    }
}
