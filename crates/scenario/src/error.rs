//! Errors of a scenario: message, place, and suggestion.

use std::fmt;

use unicode_width::UnicodeWidthChar;

/// Columns of a source line shown before the mistake, and in all.
const BEFORE: usize = 60;
const SHOWN: usize = 110;

/// Where nothing was read, a suggestion is an example, not a guess at what was meant.
const ABSENT: [&str; 3] = ["is missing", "has no value", "is empty"];

/// One mistake. Line and column count from 1, and are 0 where the scenario did not come from a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mistake {
    /// The file's name, or `--set` for a command-line override.
    pub file: String,
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
    /// Path in the scenario, such as `flows.bulk.rate`.
    pub path: String,
    /// The text there, as written.
    pub value: String,
    /// The error message.
    pub message: String,
    /// The nearest valid spelling, or what else fixes it; empty when nothing is near.
    pub suggestion: String,
    /// The text of the line.
    pub source: String,
    /// How many columns the mistake covers.
    pub width: usize,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.message)?;
        if !self.source.trim().is_empty() {
            self.excerpt(f)?;
        }
        if self.suggestion.is_empty() {
            return Ok(());
        }
        if ABSENT.iter().any(|absent| self.message.ends_with(absent)) {
            write!(f, "\n  for example `{}`", self.suggestion)
        } else {
            write!(f, "\n  did you mean `{}`?", self.suggestion)
        }
    }
}

impl Mistake {
    /// The source line with a caret below the mistake; a long line is cut around it.
    fn excerpt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.column.saturating_sub(BEFORE);
        let shown: Vec<char> = self.source.chars().skip(skipped).take(SHOWN).map(printable).collect();
        let before = self.column.saturating_sub(1).saturating_sub(skipped).min(shown.len());
        let indent: usize = shown[..before].iter().map(|&c| c.width().unwrap_or(1)).sum();
        let width = self.width.min(shown.len().saturating_sub(before)).max(1);
        let margin = self.line.to_string();
        let text: String = shown.iter().collect();
        write!(f, "\n  {margin} | {text}")?;
        write!(f, "\n  {} | {}{}", " ".repeat(margin.len()), " ".repeat(indent), "^".repeat(width))
    }
}

/// Control characters and separators of lines and directions would move what a terminal shows.
fn printable(c: char) -> char {
    let moves = c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if moves { ' ' } else { c }
}

/// All mistakes of a scenario, in the order of the file; those of overrides come last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// The mistakes, sorted and each once.
    pub fn new(mut found: Vec<Mistake>) -> Mistakes {
        found.sort_by(|a, b| order(a).cmp(&order(b)));
        found.dedup();
        Mistakes(found)
    }

    /// Each in turn.
    pub fn iter(&self) -> std::slice::Iter<'_, Mistake> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn order(mistake: &Mistake) -> (bool, usize, usize, &str, &str) {
    (mistake.file == "--set", mistake.line, mistake.column, &mistake.path, &mistake.message)
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}
