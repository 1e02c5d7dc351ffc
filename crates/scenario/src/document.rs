//! A YAML text as plain data that remembers where each value stood.
//!
//! Values are built from the parser's events, so that every key and value keeps its line and column, and so that
//! what a hostile file can cost is bounded: size, depth and number of values are limited, aliases count with all
//! they contain, and only the scalars of YAML 1.2's core schema exist (no tags).

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use crate::error::{Mistake, Mistakes};
use crate::quantity::{Read, quoted};

const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 24;
const MAX_VALUES: usize = 100_000;

/// A text and what it is called in messages.
#[derive(Debug)]
pub struct Source {
    name: String,
    lines: Vec<String>,
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
    source: Arc<Source>,
    line: usize,
    column: usize,
    width: usize,
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

/// A step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// An item of a list.
    Item(usize),
    /// A key of a mapping.
    Key(String),
}

impl From<&str> for Step {
    fn from(key: &str) -> Step {
        Step::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(item: usize) -> Step {
        Step::Item(item)
    }
}

/// A key's place and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key, as written.
    pub key: String,
    /// Where the key stands.
    pub mark: Mark,
    /// What it maps to.
    pub value: Node,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`, or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order written.
    Mapping(Vec<Entry>),
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where.
    pub mark: Mark,
    /// What.
    pub value: Value,
    /// A scalar as written.
    pub written: String,
}

impl Node {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The entries of a mapping; none of anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// Whether it is a mapping.
    pub fn is_mapping(&self) -> bool {
        matches!(self.value, Value::Mapping(_))
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The value as messages quote it.
    pub fn read(&self) -> Read<'_> {
        match &self.value {
            Value::Null => Read::Nothing,
            Value::Bool(yes) => Read::Bool(*yes),
            Value::Int(number) => Read::Int(*number),
            Value::Float(number) => Read::Float(*number),
            Value::Text(text) => Read::Text(text),
            Value::List(_) => Read::List,
            Value::Mapping(_) => Read::Mapping,
        }
    }

    /// Moves it into another source, `by` columns to the right of where it stands.
    pub(crate) fn relocate(&mut self, source: &Arc<Source>, by: usize) {
        fn moved(mark: &mut Mark, source: &Arc<Source>, by: usize) {
            mark.source = source.clone();
            mark.column += if mark.line == 1 { by } else { 0 };
        }
        moved(&mut self.mark, source, by);
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.relocate(source, by)),
            Value::Mapping(entries) => {
                for entry in entries {
                    moved(&mut entry.mark, source, by);
                    entry.value.relocate(source, by);
                }
            }
            _ => {}
        }
    }

    /// What a person calls a list item: its `name`, or itself when it is a text.
    pub fn name(&self) -> Option<&str> {
        let named = if matches!(self.value, Value::Mapping(_)) { self.get("name")? } else { self };
        match &named.value {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    fn step(&self, step: &Step) -> Option<&Node> {
        match step {
            Step::Key(key) => self.get(key),
            Step::Item(index) => self.items().get(*index),
        }
    }

    /// How many values it holds, itself included.
    fn count(&self) -> usize {
        let inside: usize = match &self.value {
            Value::Mapping(entries) => entries.iter().map(|entry| entry.value.count()).sum(),
            Value::List(items) => items.iter().map(Node::count).sum(),
            _ => 0,
        };
        1 + inside
    }
}

/// A scenario's text, read.
#[derive(Clone, Debug)]
pub struct Document {
    /// The outermost value.
    pub root: Node,
}

impl Document {
    /// The document of a YAML text called `name`.
    pub fn parse(text: &[u8], name: &str) -> Result<Document, Mistakes> {
        Document::parse_at_most(text, name, MAX_BYTES, MAX_VALUES)
    }

    /// The same without bounds on its length: of a file that tcplab wrote.
    pub fn parse_unbounded(text: &str, name: &str) -> Result<Document, Mistakes> {
        Document::parse_at_most(text.as_bytes(), name, usize::MAX, usize::MAX)
    }

    fn parse_at_most(text: &[u8], name: &str, bytes: usize, most: usize) -> Result<Document, Mistakes> {
        if text.len() > bytes {
            let message = format!("the file has {} bytes; a scenario has at most {MAX_BYTES}", text.len());
            return Err(Mistakes::new(vec![Mistake {
                file: name.to_owned(),
                message,
                ..Mistake::default()
            }]));
        }
        let text = decoded(text, name)?;
        let source = Source::new(name, text);
        let mut builder = Builder {
            source: source.clone(),
            mistakes: Vec::new(),
            anchors: HashMap::new(),
            values: 0,
            most,
            open: Vec::new(),
        };
        let root = builder.document(text);
        match root {
            Some(root) if builder.mistakes.is_empty() => Ok(Document { root }),
            _ => Err(Mistakes::new(builder.mistakes)),
        }
    }

    /// The part of it at `path`, whose mistakes still say where they stand.
    pub fn part(&self, path: &[Step]) -> Option<Document> {
        Some(Document { root: self.node(path)?.clone() })
    }

    /// The value at `path`, if it is there.
    pub fn node(&self, path: &[Step]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, step| node.step(step))
    }

    /// The longest beginning of `path` that exists.
    pub fn known<'p>(&self, path: &'p [Step]) -> &'p [Step] {
        let mut node = &self.root;
        for (depth, step) in path.iter().enumerate() {
            match node.step(step) {
                Some(child) => node = child,
                None => return &path[..depth],
            }
        }
        path
    }

    /// Where the value at `path` stands, or the nearest value around it.
    pub fn value_mark(&self, path: &[Step]) -> &Mark {
        &self.node(self.known(path)).unwrap_or(&self.root).mark
    }

    /// Where the key of `path` stands; for a list item, the item.
    pub fn key_mark(&self, path: &[Step]) -> &Mark {
        let path = self.known(path);
        if let Some((Step::Key(key), around)) = path.split_last()
            && let Some(parent) = self.node(around)
            && let Some(entry) = parent.entries().iter().find(|entry| entry.key == *key)
        {
            return &entry.mark;
        }
        self.value_mark(path)
    }

    /// The path as a person writes it: list items by their name where they have one.
    pub fn dotted(&self, path: &[Step]) -> String {
        let mut parts = Vec::with_capacity(path.len());
        for (depth, step) in path.iter().enumerate() {
            parts.push(match step {
                Step::Key(key) => key.clone(),
                Step::Item(index) => {
                    let name = self.node(&path[..=depth]).and_then(Node::name);
                    name.map_or_else(|| index.to_string(), str::to_owned)
                }
            });
        }
        parts.join(".")
    }

    /// A mistake at `path`: at its value, or at its key where it concerns a whole mapping or list.
    pub fn mistake(&self, path: &[Step], message: &str, suggestion: &str, at_key: bool) -> Mistake {
        let node = self.node(path);
        let whole = node.is_some_and(|node| matches!(node.value, Value::Mapping(_) | Value::List(_)));
        let mark = if at_key || whole { self.key_mark(path) } else { self.value_mark(path) };
        mark.mistake(&self.dotted(path), node.map_or("", |node| &node.written), message, suggestion)
    }
}

fn decoded<'t>(text: &'t [u8], name: &str) -> Result<&'t str, Mistakes> {
    match std::str::from_utf8(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)) {
        Ok(text) => Ok(text),
        Err(error) => {
            let at = error.valid_up_to();
            let before = &text[..at];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            let column =
                at - before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1) + 1;
            let message = format!("byte {:#04x} is not UTF-8", text[at]);
            let file = name.to_owned();
            Err(Mistakes::new(vec![Mistake { file, line, column, message, ..Mistake::default() }]))
        }
    }
}

/// Builds nodes from events.
struct Builder {
    source: Arc<Source>,
    mistakes: Vec<Mistake>,
    anchors: HashMap<usize, Node>,
    values: usize,
    /// So many values at most.
    most: usize,
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
        if self.values > self.most {
            return self.stop(mark, &format!("more than {MAX_VALUES} values"), "");
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
            self.refuse(&mark, &format!("the tag {} has no meaning here", quoted(&shown)));
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
        if self.values > self.most {
            return self.stop(mark, &format!("more than {MAX_VALUES} values once aliases are replaced"), "");
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
            // Keys stay as written: `at: {20: ...}` must be told that 20 has no unit.
            let name = key.written;
            if name == "<<" && matches!(value.value, Value::List(_) | Value::Mapping(_)) {
                match value.value {
                    Value::List(items) => merged.extend(items),
                    _ => merged.push(value),
                }
            } else if let Some(first) = entries.iter().find(|entry| entry.key == name) {
                let line = first.mark.line;
                let message =
                    format!("the key {} stands here a second time (first in line {line})", quoted(&name));
                self.refuse(&key.mark, &message);
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

    fn syntax_mistake(&self, error: &ScanError) -> Mistake {
        let at = error.marker();
        let mut mark =
            Mark { source: self.source.clone(), line: at.line().max(1), column: at.col() + 1, width: 1 };
        let line = self.source.line(mark.line);
        let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
        let message = if indent.contains('\t') {
            mark.column = indent.chars().position(|c| c == '\t').unwrap_or(0) + 1;
            "a tab cannot indent in YAML; use spaces".to_owned()
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

    fn mistakes(text: &str) -> String {
        Document::parse(text.as_bytes(), "f.yaml").expect_err("a mistake").to_string()
    }

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

    #[test]
    fn a_key_given_twice_names_its_first_line() {
        assert!(mistakes("a: 1\nb: 2\na: 3\n").starts_with(
            "f.yaml:3:1: the key `a` stands here a second time (first in line 1)\n  3 | a: 3\n    | ^"
        ));
    }

    #[test]
    fn what_a_text_can_cost_is_bounded() {
        let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
        assert!(mistakes(&deep).contains("nested more than 24 deep"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..8 {
            bomb += &format!("a{n}: &a{n} [{}]\n", [format!("*a{}", n - 1).as_str(); 10].join(", "));
        }
        assert!(mistakes(&bomb).contains("values once aliases are replaced"));
    }

    #[test]
    fn empty_files_and_tabs_and_anchors_are_told() {
        assert!(mistakes("# nothing\n").contains("the file is empty"));
        assert!(mistakes("a:\n\tb: 1\n").contains(":2:1: a tab cannot indent in YAML; use spaces"));
        assert!(mistakes("a: *b\n").contains("the anchor `b` is not defined above"));
        assert!(mistakes("a: !!x {b: 1}\n").contains("the tag"));
    }
}
