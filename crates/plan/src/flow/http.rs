//! Web traffic: what a server has, and what its clients ask for.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use super::{Connections, Flow, Kind, Request, Traits};
use crate::describe::Bytes;
use crate::estimate::{Carried, Count, Fluid, Paths};
use crate::{Cc, TcpSettings};

/// A client that loads pages over persistent HTTP/1.1 connections; a stream is a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Http {
    /// Congestion control of both ends.
    pub cc: Cc,
    /// The objects requested.
    pub web: Web,
    /// The client's settings.
    pub sender: Box<TcpSettings>,
    /// The server's settings.
    pub receiver: Box<TcpSettings>,
}

impl Http {
    pub(super) const TRAITS: Traits = Traits {
        name: "http",
        connected: true,
        both_ways: true,
        mostly_back: true,
        served: true,
        moves_payload: true,
        bulk: false,
        round_trips: false,
    };

    /// As requests of the mean size, as many on each of its `streams` connections.
    fn requests(&self, streams: u32) -> Request {
        let Web { page, ranges, think, count, .. } = self.web;
        let fetches = u64::from(page) * u64::from(ranges);
        let mean = self.web.sizes.iter().sum::<u64>() as f64 / self.web.sizes.len() as f64;
        // Connections that find no work wait for the others.
        let waiting = u64::from(streams).min(fetches);
        let think = u128::from(think.as_ns()) * u128::from(waiting) / u128::from(fetches.max(1));
        Request {
            cc: self.cc.clone(),
            request: REQUEST_BYTES,
            response: RESPONSE_HEAD_BYTES + (mean / f64::from(ranges)).ceil() as u64,
            think: Span::from_ns(u64::try_from(think).unwrap_or(u64::MAX)),
            count: count.map(|count| (count as f64 * fetches as f64 / f64::from(streams)).ceil() as u64),
            sender: self.sender.clone(),
            receiver: self.receiver.clone(),
        }
    }
}

impl Kind for Http {
    fn traits(&self) -> Traits {
        Http::TRAITS
    }

    fn connections(&self) -> Option<Connections<'_>> {
        Some(Connections { cc: &self.cc, sender: &self.sender, receiver: &self.receiver })
    }

    fn fluid(&self, flow: &Flow, paths: &Paths<'_>) -> Option<Fluid> {
        self.requests(flow.streams).fluid(flow, paths)
    }

    fn count(&self, flow: &Flow, paths: &Paths<'_>, carried: Carried, time: f64) -> Count {
        self.requests(flow.streams).count(flow, paths, carried, time)
    }

    fn trip_rows(&self, _flow: &Flow, trips: f64) -> Option<(&'static str, f64)> {
        Some(("fetches", trips))
    }
}

impl fmt::Display for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.web.fmt(f)
    }
}

/// Bytes of a request and of the head of a response, in every engine: about what curl and nginx send.
pub const REQUEST_BYTES: u64 = 100;
/// See [`REQUEST_BYTES`].
pub const RESPONSE_HEAD_BYTES: u64 = 250;

/// Pages that a client loads one after the other, and the objects they are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Web {
    /// Objects that the server has.
    pub objects: u32,
    /// Bytes of an object: one of these, each as likely as the others.
    pub sizes: Vec<u64>,
    /// How often each object is asked for.
    pub popularity: Popularity,
    /// Objects of a page.
    pub page: u32,
    /// Ranges that an object is divided into, each with a request of its own (RFC 9110, section 14).
    pub ranges: u32,
    /// Pause between a page and the next.
    pub think: Span,
    /// Pages; none: as many as the time allows.
    pub count: Option<u64>,
    /// How long a cache may answer with an object before it asks the server again (RFC 9111, max-age).
    #[serde(default = "one_hour")]
    pub max_age: Span,
}

/// One object of 100 kB, asked for as often as the time allows.
impl Default for Web {
    fn default() -> Web {
        Web {
            objects: 1,
            sizes: vec![100_000],
            popularity: Popularity::Zipf,
            page: 1,
            ranges: 1,
            think: Span::ZERO,
            count: None,
            max_age: one_hour(),
        }
    }
}

fn one_hour() -> Span {
    Span::from_ms(3_600_000)
}

impl fmt::Display for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minimum = Bytes(self.sizes.iter().min().copied().unwrap_or(0));
        let maximum = Bytes(self.sizes.iter().max().copied().unwrap_or(0));
        f.write_str("http, ")?;
        self.count.map_or(Ok(()), |count| write!(f, "{count} "))?;
        write!(f, "pages of {} of {} objects of ", self.page, self.objects)?;
        if minimum.0 != maximum.0 {
            write!(f, "{minimum} to ")?;
        }
        write!(f, "{maximum}")?;
        if self.ranges > 1 {
            write!(f, ", {} ranges each", self.ranges)?;
        }
        if self.think == Span::ZERO { Ok(()) } else { write!(f, ", pauses of {}", self.think) }
    }
}

/// How often each object is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Popularity {
    /// The n-th most popular 1/n as often as the most popular (Zipf's law).
    #[default]
    Zipf,
    /// All equally often.
    Uniform,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_words() {
        let mut web = Web { objects: 100, sizes: vec![50_000, 1000], page: 10, ..Web::default() };
        assert_eq!(web.to_string(), "http, pages of 10 of 100 objects of 1 kB to 50 kB");
        (web.count, web.ranges, web.think) = (Some(3), 2, Span::from_ms(500));
        assert_eq!(
            web.to_string(),
            "http, 3 pages of 10 of 100 objects of 1 kB to 50 kB, 2 ranges each, pauses of 500 ms"
        );
    }
}
