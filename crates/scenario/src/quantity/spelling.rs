//! Hints for texts that are not quantities, but nearly.

use super::{Dimension, respell, split};

/// A valid spelling near a text that does not even start with a number.
pub(super) fn closest_text(text: &str, dimensions: &[Dimension], usual: &str, example: &str) -> String {
    let unit_end = text.find(|c: char| !(c.is_ascii_alphabetic() || c == '%' || c == '/')).unwrap_or(0);
    if unit_end > 0 {
        let number = text[unit_end..].trim();
        if split(number).is_some_and(|w| w.sign.is_empty() && w.unit.is_none() && w.exponent.is_none()) {
            return respell(number, &text[..unit_end], dimensions, usual);
        }
    }
    let number_end = text.find(|c: char| !(c.is_ascii_digit() || c == ',')).unwrap_or(text.len());
    let (number, unit) = (&text[..number_end], text[number_end..].trim());
    let groups: Vec<&str> = number.split(',').collect();
    if let [whole, others @ ..] = groups.as_slice()
        && !others.is_empty()
        && !groups.contains(&"")
        && !unit.is_empty()
        && !unit.contains(char::is_whitespace)
    {
        // Groups of three digits are thousands, as in `10,000`; what else follows one comma is decimals.
        if others.iter().all(|group| group.len() == 3) && (1..=3).contains(&whole.len()) && *whole != "0" {
            return respell(&groups.concat(), unit, dimensions, usual);
        }
        if let [decimals] = others {
            return respell(&format!("{whole}.{decimals}"), unit, dimensions, usual);
        }
    }
    other_number(text)
        .map_or_else(|| example.to_owned(), |(number, unit)| respell(&number, unit, dimensions, usual))
}

/// The number and the unit of a text such as `.5 ms`, `10. ms`, `1_000 ms` or `10 000 ms`.
fn other_number(text: &str) -> Option<(String, &str)> {
    let (written, unit) = text.split_at(text.find(|c: char| !(c.is_ascii_digit() || "._ ".contains(c)))?);
    let number = written.replace(['_', ' '], "");
    let number = number.strip_suffix('.').unwrap_or(&number);
    let number = if number.starts_with('.') { format!("0{number}") } else { number.to_owned() };
    let is_number = split(&number).is_some_and(|written| written.unit.is_none());
    let is_unit =
        unit.chars().all(|c| c.is_ascii_alphabetic() || "%/µμ".contains(c)) && !unit.starts_with('/');
    (is_number && is_unit).then_some((number, unit))
}
