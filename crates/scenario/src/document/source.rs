//! Texts, and places in them.

use std::sync::Arc;

use crate::error::Mistake;

/// A text and what it is called in messages.
#[derive(Debug)]
pub struct Source {
    name: String,
    pub(super) lines: Vec<String>,
}

impl Source {
    /// A source with its lines split as YAML splits them.
    pub fn new(name: &str, text: &str) -> Arc<Source> {
        let unified = text.replace("\r\n", "\n");
        let lines =
            unified.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).map(str::to_owned).collect();
        Arc::new(Source { name: name.to_owned(), lines })
    }

    /// A line of it, counted from 1; empty beyond its end.
    pub(crate) fn line(&self, number: usize) -> &str {
        number.checked_sub(1).and_then(|index| self.lines.get(index)).map_or("", String::as_str)
    }
}

/// A stretch of a source; line and column count from 1.
#[derive(Clone, Debug)]
pub struct Mark {
    pub(super) source: Arc<Source>,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) width: usize,
}

impl Mark {
    /// A stretch of one line.
    pub(crate) fn new(source: &Arc<Source>, line: usize, column: usize, width: usize) -> Mark {
        Mark { source: source.clone(), line, column, width }
    }

    /// No place: of data that comes from a program rather than a text.
    pub fn nowhere(name: &str) -> Mark {
        Mark::new(&Source::new(name, ""), 0, 0, 1)
    }

    /// A mistake found here.
    pub fn mistake(&self, path: &str, value: &str, message: &str, suggestion: &str) -> Mistake {
        Mistake {
            file: self.source.name.clone(),
            line: self.line,
            column: self.column,
            path: path.to_owned(),
            value: value.to_owned(),
            message: message.to_owned(),
            suggestion: suggestion.to_owned(),
            source: self.source.line(self.line).to_owned(),
            width: self.width,
        }
    }
}
