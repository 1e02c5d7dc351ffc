//! YAML's events become values that remember where they stood. The cost of a hostile file is bounded. Depth and number
//! of values are limited, aliases count with all they contain, and only the scalars of YAML 1.2's core schema exist (no
//! tags).

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::{Duplicate, Entry, Mark, Node, Source, Value};
use crate::error::Mistake;
use crate::quantity::quoted;

const MAX_DEPTH: usize = 24;
const COLON: &str = "a colon needs a space after it";

/// The outermost value of `source`'s text, with `maximum` values at most, and its duplicate keys; or what is wrong.
pub(super) fn read(
    text: &str,
    source: &Arc<Source>,
    maximum: usize,
) -> Result<(Node, Vec<Duplicate>), Vec<Mistake>> {
    let mut builder = Builder {
        source: source.clone(),
        mistakes: Vec::new(),
        duplicates: Vec::new(),
        anchors: HashMap::new(),
        values: 0,
        maximum,
        open: Vec::new(),
    };
    match builder.document(text) {
        Some(root) if builder.mistakes.is_empty() => Ok((root, builder.duplicates)),
        _ => {
            let duplicates = builder.duplicates.into_iter().map(|one| one.mistake);
            Err(builder.mistakes.into_iter().chain(duplicates).collect())
        }
    }
}

/// Builds nodes from events.
struct Builder {
    source: Arc<Source>,
    /// Mistakes that leave the text unreadable.
    mistakes: Vec<Mistake>,
    /// Keys that are given twice.
    duplicates: Vec<Duplicate>,
    anchors: HashMap<usize, Node>,
    values: usize,
    /// So many values at most.
    maximum: usize,
    /// Where the lists and mappings begin that have not ended.
    open: Vec<Mark>,
}

/// The text cannot be read further; why is among the mistakes.
struct Stop;

type Events<'i> = Parser<'i, saphyr_parser::StrInput<'i>>;

impl Builder {
    /// The first document; a second one is a mistake.
    fn document(&mut self, text: &str) -> Option<Node> {
        // The parser takes an undefined anchor and a NUL for syntax errors without a good place.
        let mut events = Parser::new_from_str(text);
        self.read_document(&mut events).ok().flatten()
    }

    fn read_document(&mut self, events: &mut Events<'_>) -> Result<Option<Node>, Stop> {
        let mut root = None;
        loop {
            let (event, span) = self.next(events)?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(_) if root.is_some() => {
                    return self.stop(
                        self.mark(&span, 1),
                        "a second document; a scenario file holds one",
                        "",
                    );
                }
                Event::DocumentStart(_) => {
                    let first = self.next(events)?;
                    root = Some(self.node(first, events, 0)?);
                }
                _ => {}
            }
        }
        let empty =
            root.as_ref().is_none_or(|node| matches!(node.value, Value::Null) && node.written.is_empty());
        if empty {
            let start = Mark { source: self.source.clone(), line: 1, column: 1, width: 1 };
            return self.stop(start, "the file is empty", "tcplab: 1");
        }
        Ok(root)
    }

    fn next<'i>(&mut self, events: &mut Events<'i>) -> Result<(Event<'i>, Span), Stop> {
        match events.next() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => {
                let mistake = self.syntax_mistake(&error);
                self.mistakes.push(mistake);
                Err(Stop)
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(
        &mut self,
        (event, span): (Event<'_>, Span),
        events: &mut Events<'_>,
        depth: usize,
    ) -> Result<Node, Stop> {
        self.values += 1;
        let one_line = span.start.line() == span.end.line();
        let scalar = matches!(event, Event::Scalar(..) | Event::Alias(_));
        let width = if scalar && one_line { span.end.col().saturating_sub(span.start.col()) } else { 1 };
        let mark = self.mark(&span, width.max(1));
        if self.values > self.maximum {
            return self.stop(mark, &format!("more than {} values", self.maximum), "");
        }
        if depth > MAX_DEPTH {
            return self.stop(mark, &format!("nested more than {MAX_DEPTH} deep"), "");
        }
        let (tag, anchor) = match &event {
            Event::Scalar(_, _, anchor, tag) => (tag.clone(), *anchor),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => (tag.clone(), *anchor),
            _ => (None, 0),
        };
        if let Some(tag) = tag
            && !(tag.handle == "!" && tag.suffix.is_empty())
        {
            let shown = format!("{}{}", tag.handle, tag.suffix).replace("tag:yaml.org,2002:", "!!");
            self.refuse(&mark, &format!("the tag {} is not supported", quoted(&shown)));
        }
        let node = match event {
            Event::Alias(id) => return self.alias(id, mark),
            Event::Scalar(text, style, ..) => {
                let value = if style == ScalarStyle::Plain {
                    scalar_value(&text)
                } else {
                    Value::Text(text.to_string())
                };
                Node { mark, value, written: text.into_owned() }
            }
            Event::SequenceStart(..) => {
                self.open.push(mark.clone());
                let items = self.sequence(events, depth)?;
                self.open.pop();
                Node { mark, value: Value::List(items), written: String::new() }
            }
            Event::MappingStart(..) => {
                self.open.push(mark.clone());
                let entries = self.mapping(events, depth)?;
                self.open.pop();
                Node { mark, value: Value::Mapping(entries), written: String::new() }
            }
            _ => return self.stop(mark, "cannot be read", ""),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, mark: Mark) -> Result<Node, Stop> {
        let Some(node) = self.anchors.get(&id).cloned() else {
            return self.stop(mark, "an alias inside of what it names", "");
        };
        self.values += node.count();
        if self.values > self.maximum {
            return self.stop(
                mark,
                &format!("more than {} values once aliases are replaced", self.maximum),
                "",
            );
        }
        Ok(node)
    }

    fn sequence(&mut self, events: &mut Events<'_>, depth: usize) -> Result<Vec<Node>, Stop> {
        let mut items = Vec::new();
        loop {
            let next = self.next(events)?;
            if matches!(next.0, Event::SequenceEnd) {
                return Ok(items);
            }
            items.push(self.node(next, events, depth + 1)?);
        }
    }

    fn mapping(&mut self, events: &mut Events<'_>, depth: usize) -> Result<Vec<Entry>, Stop> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut merged: Vec<Node> = Vec::new();
        loop {
            let next = self.next(events)?;
            if matches!(next.0, Event::MappingEnd) {
                break;
            }
            let key = self.node(next, events, depth + 1)?;
            let next = self.next(events)?;
            let value = self.node(next, events, depth + 1)?;
            if matches!(key.value, Value::List(_) | Value::Mapping(_)) {
                self.refuse(&key.mark, "a key must be a word or a quantity");
                continue;
            }
            // Keys stay as written: `at: {20: ...}` must be reported: 20 has no unit.
            let name = key.written;
            // Between braces, `{rate:10 Mbit/s}` is a key without a value.
            if matches!(value.value, Value::Null)
                && value.written.is_empty()
                && let Some((word, text)) = glued(&name)
            {
                let width = word.chars().count() + 1;
                let at = Mark { width, ..key.mark };
                self.mistakes.push(at.mistake("", "", COLON, &format!("{word}: {text}")));
                continue;
            }
            if name == "<<" && matches!(value.value, Value::List(_) | Value::Mapping(_)) {
                match value.value {
                    Value::List(items) => merged.extend(items),
                    _ => merged.push(value),
                }
            } else if let Some(first) = entries.iter().find(|entry| entry.key == name) {
                let line = first.mark.line;
                let message = format!("duplicate key {} (first in line {line})", quoted(&name));
                let mistake = key.mark.mistake("", "", &message, "");
                self.duplicates.push(Duplicate { first: first.mark.clone(), mistake });
            } else {
                entries.push(Entry { key: name, mark: key.mark, value });
            }
        }
        for node in merged {
            match node.value {
                Value::Mapping(others) => {
                    for other in others {
                        if !entries.iter().any(|entry| entry.key == other.key) {
                            entries.push(other);
                        }
                    }
                }
                _ => self.refuse(&node.mark, "only mappings can be merged with `<<`"),
            }
        }
        Ok(entries)
    }

    fn mark(&self, span: &Span, width: usize) -> Mark {
        Mark { source: self.source.clone(), line: span.start.line(), column: span.start.col() + 1, width }
    }

    fn refuse(&mut self, mark: &Mark, message: &str) {
        self.mistakes.push(mark.mistake("", "", message, ""));
    }

    fn stop<T>(&mut self, mark: Mark, message: &str, suggestion: &str) -> Result<T, Stop> {
        self.mistakes.push(mark.mistake("", "", message, suggestion));
        Err(Stop)
    }

    /// The parser's words with what is missing first, and where the list or mapping begins that cannot be read.
    fn explained(&self, said: &str, at: &Mark) -> String {
        let Some((context, expected)) = said.split_once(", did not find expected ") else {
            return said.to_owned();
        };
        let got = self.source.line(at.line).chars().nth(at.column.saturating_sub(1));
        let got = got.map_or(String::new(), |c| format!(", but got '{c}'"));
        let begun = match self.open.last() {
            Some(begun) if begun.line != at.line => {
                format!(" that begins in line {}, column {}", begun.line, begun.column)
            }
            _ => String::new(),
        };
        format!("expected {expected}{got} ({context}{begun})")
    }

    /// Where a line reads `key:value` at or before the place that cannot be read, and what it should read.
    fn colon_without_space(&self, at: &Mark) -> Option<(Mark, String)> {
        let near = (1..=at.line).rev().filter(|&line| !self.source.line(line).trim().is_empty()).take(2);
        near.filter_map(|line| {
            let text = self.source.line(line).trim_end();
            let entry = text.trim_start().trim_start_matches("- ");
            let (key, value) = glued(entry)?;
            let column = text.chars().count() - entry.chars().count() + 1;
            let mark = Mark { source: self.source.clone(), line, column, width: key.chars().count() + 1 };
            Some((mark, format!("{key}: {value}")))
        })
        .next()
    }

    fn syntax_mistake(&self, error: &ScanError) -> Mistake {
        let at = error.marker();
        let mut mark =
            Mark { source: self.source.clone(), line: at.line().max(1), column: at.col() + 1, width: 1 };
        let line = self.source.line(mark.line);
        let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
        let message = if indent.contains('\t') {
            mark.column = indent.chars().position(|c| c == '\t').unwrap_or(0) + 1;
            "a tab cannot indent in YAML; use spaces".to_owned()
        } else if error.info().contains("valid YAML whitespace")
            && let Some((before, _)) = line.split_once(":\t")
        {
            mark.column = before.chars().count() + 2;
            "a tab cannot follow `:` between braces; use a space".to_owned()
        } else if error.info().contains("unknown anchor") {
            let rest: String = line.chars().skip(mark.column - 1).collect();
            let name: String = rest
                .trim_start_matches('*')
                .chars()
                .take_while(|c| !c.is_whitespace() && !",]}".contains(*c))
                .collect();
            mark.width = name.chars().count() + 1;
            format!("the anchor `{name}` is not defined above")
        } else if error.info().contains("recursion limit") {
            format!("nested more than {MAX_DEPTH} deep")
        } else if let Some((glued, suggestion)) = self.colon_without_space(&mark) {
            return glued.mistake("", "", COLON, &suggestion);
        } else {
            format!("not YAML: {}", self.explained(error.info(), &mark))
        };
        // The end of the file may lie a line beyond its last.
        while mark.line > 1 && self.source.lines.len() < mark.line {
            mark.line -= 1;
            mark.column = 1;
        }
        mark.mistake("", "", &message, "")
    }
}

/// The key and the value of `key:value`.
fn glued(entry: &str) -> Option<(&str, &str)> {
    let (key, value) = entry.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let follows = value.starts_with(|c: char| c.is_ascii_alphanumeric() || "[{\"'".contains(c));
    (is_key && follows).then_some((key, value))
}

/// A plain scalar by YAML 1.2's core schema (section 10.3.2).
fn scalar_value(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let whole = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    // A number of dozens of digits is none that anything here can be.
    if text.len() <= 40 {
        if whole(unsigned)
            && let Ok(number) = text.strip_prefix('+').unwrap_or(text).parse()
        {
            return Value::Int(number);
        }
        let radix =
            |prefix: &str, radix| text.strip_prefix(prefix).and_then(|d| i128::from_str_radix(d, radix).ok());
        if let Some(number) = radix("0o", 8).or_else(|| radix("0x", 16)) {
            return Value::Int(number);
        }
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mantissa_ok = if before.is_empty() {
            whole(after)
        } else {
            whole(before) && (after.is_empty() || whole(after))
        };
        if mantissa_ok
            && whole(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))
            && let Ok(number) = text.parse::<f64>()
        {
            return Value::Float(number);
        }
    }
    Value::Text(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_follow_the_core_schema() {
        let value = |text: &str| format!("{:?}", scalar_value(text));
        assert_eq!(value("12"), "Int(12)");
        assert_eq!(value("-0x1F"), "Text(\"-0x1F\")");
        assert_eq!(value("0x1F"), "Int(31)");
        assert_eq!(value("1.5e3"), "Float(1500.0)");
        assert_eq!(value(".5"), "Float(0.5)");
        assert_eq!(value("yes"), "Text(\"yes\")");
        assert_eq!(value("~"), "Null");
        assert_eq!(value("1e"), "Text(\"1e\")");
    }
}
