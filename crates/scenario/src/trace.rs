//! Delivery traces in mahimahi's format: one integer a line, the millisecond of one 1500-byte delivery.
//!
//! A scenario may name any file. So a message gives the line that is wrong, never its text.

use tcplab_plan::OPPORTUNITY_BYTES;

use crate::surroundings::{Surroundings, Unreadable};

const MAX_BYTES: usize = 64 << 20;

/// The delivery opportunities in ms, or what is wrong with the file, as part of a sentence.
pub(crate) fn read(name: &str, around: &dyn Surroundings) -> Result<Vec<u64>, Unreadable> {
    let text = around.file(name, MAX_BYTES + 1)?;
    if text.len() > MAX_BYTES {
        return Err(wrong(format!("has more than {MAX_BYTES} bytes")));
    }
    parse(&text).map_err(wrong)
}

fn wrong(reason: String) -> Unreadable {
    Unreadable { reason, missing: false }
}

/// The opportunities of a trace's text.
pub fn parse(text: &[u8]) -> Result<Vec<u64>, String> {
    let mut times: Vec<u64> = Vec::new();
    for (line, number) in lines(text).zip(1_u64..) {
        let word = line.trim_ascii();
        let digits = (1..=12).contains(&word.len()) && word.iter().all(u8::is_ascii_digit);
        let time = std::str::from_utf8(word).ok().filter(|_| digits).and_then(|word| word.parse().ok());
        let Some(time) = time else {
            return Err(format!("is malformed in line {number}: not a whole number of milliseconds"));
        };
        if times.last().is_some_and(|&last| time < last) {
            return Err(format!("is malformed in line {number}: the time is before that of the line above"));
        }
        times.push(time);
    }
    match times.last() {
        None => Err("is empty".to_owned()),
        Some(0) => Err(format!(
            "is malformed in line {}: the last time is the trace's period and must be above 0 ms",
            times.len()
        )),
        Some(_) => Ok(times),
    }
}

/// The mean rate of a trace, in bit/s.
pub(crate) fn mean_rate(opportunities: &[u64]) -> Option<u64> {
    let bits = opportunities.len() as u64 * u64::from(OPPORTUNITY_BYTES) * 8 * 1000;
    bits.checked_div(*opportunities.last()?)
}

/// Lines that end with a line feed, a carriage return or both; the last may have no end.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r').unwrap_or(rest.len());
        let line = &rest[..end];
        let ending = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = rest.get(end + ending..).unwrap_or_default();
        Some(line)
    })
}
