//! A packet's line, in columns.

use std::fmt::Write;

use super::{Row, write_seconds};

/// Columns of the list. The first line may already be wanted before the second packet is there, so columns
/// begin at usual widths and grow when something longer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Characters of a line at most; 0: as many as it needs.
    width: usize,
    number: usize,
    address: usize,
    protocol: usize,
}

impl Layout {
    /// Columns for lines of at most `width` characters; 0: without a limit.
    pub fn new(width: usize) -> Layout {
        Layout { width, number: 6, address: 12, protocol: 6 }
    }

    /// The columns' names, in a line of the same widths.
    pub fn heading(&self) -> String {
        let Layout { number, address, protocol, .. } = *self;
        let line = format!(
            "{:>number$}  {:>11}  {:address$}  {:address$}  {:protocol$}  {:>6}  info",
            "number", "time (s)", "source", "destination", "proto", "length"
        );
        self.fitted(&line).to_owned()
    }

    /// Appends a packet's line.
    pub(super) fn write(&mut self, text: &mut String, row: &Row<'_>) {
        let start = text.len();
        let summary = row.summary;
        // Writing to a String cannot fail.
        let _ = write!(text, "{:>width$}  ", row.number, width = self.number);
        write_seconds(text, row.time, 11);
        text.push_str("  ");
        for place in [&summary.source, &summary.destination] {
            let at = text.len();
            let _ = write!(text, "{place}");
            self.address = self.address.max(text.len() - at);
            pad(text, at, self.address);
        }
        let at = text.len();
        text.push_str(summary.protocol);
        self.protocol = self.protocol.max(text.len() - at);
        pad(text, at, self.protocol);
        let _ = write!(text, "{:>6}  ", row.wire_len);
        if !row.note.is_empty() {
            let _ = write!(text, "[{}] ", row.note);
        }
        text.push_str(&summary.info);
        let kept = self.fitted(&text[start..]).trim_end().len();
        text.truncate(start + kept);
        text.push('\n');
    }

    /// The beginning of a line that fits.
    fn fitted<'a>(&self, line: &'a str) -> &'a str {
        if self.width == 0 {
            return line;
        }
        line.char_indices().nth(self.width).map_or(line, |(end, _)| &line[..end])
    }
}

/// Fills up what began at `at` to `width` and the gap to the next column.
fn pad(text: &mut String, at: usize, width: usize) {
    let missing = (at + width + 2).saturating_sub(text.len());
    text.extend(std::iter::repeat_n(' ', missing));
}
