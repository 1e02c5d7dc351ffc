//! From words to a tree: recursive descent, one function a rule.

use std::fmt;
use std::net::IpAddr;

use super::token::{Token, tokens};
use super::{End, Node};

/// Parentheses and `not`s within one another: deeper than any person writes.
const DEEPEST: usize = 100;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

const TESTS: &str = "host, net, port, src, dst, tcp, udp, icmp, ip, ip6, flow, not or (";

/// A mistake in a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FilterError {
    /// Where it is, in characters from 0; the text's length: at its end.
    pub at: usize,
    /// How many characters are wrong; 0: something is missing there.
    pub len: usize,
    /// The mistake, and what could stand there.
    pub message: String,
}

pub(super) fn parse(text: &str) -> Result<Node, FilterError> {
    let mut parser = Parser { tokens: &tokens(text), end: text.chars().count(), depth: 0 };
    let root = parser.either()?;
    match parser.tokens.first() {
        None => Ok(root),
        Some(token) => Err(parser.wrong(*token, "expected `and`, `or` or the end")),
    }
}

struct Parser<'a> {
    /// The text that has not been read yet.
    tokens: &'a [Token<'a>],
    /// The text's length, characters.
    end: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn either(&mut self) -> Result<Node, FilterError> {
        let mut parts = vec![self.both()?];
        while self.accept(&["or", "||"]) {
            parts.push(self.both()?);
        }
        Ok(one_or(parts, Node::Or))
    }

    fn both(&mut self) -> Result<Node, FilterError> {
        let mut parts = vec![self.negated()?];
        while self.accept(&["and", "&&"]) {
            parts.push(self.negated()?);
        }
        Ok(one_or(parts, Node::And))
    }

    fn negated(&mut self) -> Result<Node, FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.missing(format!("more than {DEEPEST} levels of `not` and parentheses")));
        }
        let node = if self.accept(&["not", "!"]) {
            Node::Not(Box::new(self.negated()?))
        } else if self.accept(&["("]) {
            let inner = self.either()?;
            self.close()?;
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn close(&mut self) -> Result<(), FilterError> {
        if self.accept(&[")"]) {
            return Ok(());
        }
        Err(match self.tokens.first() {
            Some(token) => self.wrong(*token, "expected `and`, `or` or `)`"),
            None => self.missing("a `)` is missing".to_owned()),
        })
    }

    fn test(&mut self) -> Result<Node, FilterError> {
        let Some(&token) = self.tokens.first() else {
            return Err(self.missing(format!("something is missing here: {TESTS}")));
        };
        self.tokens = &self.tokens[1..];
        let protocol = match token.text {
            "tcp" => Node::Protocol(TCP),
            "udp" => Node::Protocol(UDP),
            "icmp" => Node::Or(vec![Node::Protocol(ICMP), Node::Protocol(ICMPV6)]),
            "ip" => Node::Version4,
            "ip6" => Node::Version6,
            "flow" => return Ok(Node::Flow(self.number("the number of a flow")?)),
            "src" => return self.of(End::Source),
            "dst" => return self.of(End::Destination),
            "host" | "net" | "port" => return self.kind(token.text, End::Either),
            _ => return Err(unknown(token)),
        };
        // As `tcp port 80`, which many are used to.
        let goes_on = self
            .tokens
            .first()
            .is_some_and(|next| matches!(next.text, "src" | "dst" | "host" | "net" | "port"));
        if goes_on {
            return Ok(Node::And(vec![protocol, self.test()?]));
        }
        Ok(protocol)
    }

    /// The operand of `src` or `dst`.
    fn of(&mut self, end: End) -> Result<Node, FilterError> {
        match self.tokens.first() {
            Some(&Token { text: kind @ ("host" | "net" | "port"), .. }) => {
                self.tokens = &self.tokens[1..];
                self.kind(kind, end)
            }
            Some(token) if token.text.parse::<IpAddr>().is_ok() => self.kind("host", end),
            Some(token) => Err(self.wrong(*token, "expected host, net, port or an address")),
            None => Err(self.missing("expected host, net, port or an address".to_owned())),
        }
    }

    fn kind(&mut self, kind: &str, end: End) -> Result<Node, FilterError> {
        match kind {
            "host" => {
                let token = self.next("an address, as 10.0.0.1 or fd00::1")?;
                match token.text.parse() {
                    Ok(address) => Ok(Node::Net(end, address, full(address))),
                    Err(_) => Err(self.wrong(token, "expected an address, as 10.0.0.1 or fd00::1")),
                }
            }
            "net" => self.net(end),
            _ => self.ports(end),
        }
    }

    fn net(&mut self, end: End) -> Result<Node, FilterError> {
        let expected = "expected a prefix, as 10.0.0.0/8 or fd00::/16";
        let token = self.next("a prefix, as 10.0.0.0/8 or fd00::/16")?;
        let (address, len) = match token.text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (token.text, None),
        };
        let Ok(address) = address.parse() else { return Err(self.wrong(token, expected)) };
        let longest = full(address);
        match len.map_or(Ok(longest), str::parse) {
            Ok(len) if len <= longest => Ok(Node::Net(end, address, len)),
            _ => Err(self.wrong(token, &format!("a prefix has 0 to {longest} bits"))),
        }
    }

    fn ports(&mut self, end: End) -> Result<Node, FilterError> {
        let expected = "expected a port from 0 to 65535, or a range such as 5201-5210";
        let token = self.next("a port such as 5201, or a range such as 5201-5210")?;
        let (low, high) = token.text.split_once('-').unwrap_or((token.text, token.text));
        match (low.parse(), high.parse()) {
            (Ok(low), Ok(high)) if low <= high => Ok(Node::Port(end, low, high)),
            (Ok(_), Ok(_)) => Err(self.wrong(token, "a range goes from the lower to the higher port")),
            _ => Err(self.wrong(token, expected)),
        }
    }

    fn number(&mut self, what: &str) -> Result<u64, FilterError> {
        let token = self.next(what)?;
        token.text.parse().map_err(|_| self.wrong(token, &format!("expected {what}, as 3")))
    }

    fn next(&mut self, what: &str) -> Result<Token<'a>, FilterError> {
        let Some((&token, rest)) = self.tokens.split_first() else {
            return Err(self.missing(format!("expected {what}")));
        };
        self.tokens = rest;
        Ok(token)
    }

    fn accept(&mut self, words: &[&str]) -> bool {
        let found = self.tokens.first().is_some_and(|token| words.contains(&token.text));
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn wrong(&self, token: Token<'_>, expected: &str) -> FilterError {
        let message = format!("{expected}, not `{}`", token.text);
        FilterError { at: token.at, len: token.text.chars().count(), message }
    }

    fn missing(&self, message: String) -> FilterError {
        FilterError { at: self.end, len: 0, message }
    }
}

/// The only part, or all of them together.
fn one_or(mut parts: Vec<Node>, together: fn(Vec<Node>) -> Node) -> Node {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            together(parts)
        }
    }
}

fn full(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// A word that begins no test; often one is merely missing in front of it.
fn unknown(token: Token<'_>) -> FilterError {
    struct Guess<'a>(&'a str);
    impl fmt::Display for Guess<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let word = self.0;
            if word.parse::<IpAddr>().is_ok() {
                write!(f, "did you mean `host {word}`?")
            } else if word.contains('/') {
                write!(f, "did you mean `net {word}`?")
            } else if word.parse::<u16>().is_ok() {
                write!(f, "did you mean `port {word}`?")
            } else {
                write!(f, "expected {TESTS}")
            }
        }
    }
    let message = format!("unknown filter primitive `{}`: {}", token.text, Guess(token.text));
    FilterError { at: token.at, len: token.text.chars().count(), message }
}
