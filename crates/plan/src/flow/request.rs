//! Requests and responses over TCP.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use super::{Connections, Flow, Kind, Traits};
use crate::describe::Bytes;
use crate::estimate::{self, Carried, Count, Fluid, Paths};
use crate::{Cc, TcpSettings};

/// A client that asks, waits for the answer, thinks, and asks again on one connection a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Congestion control.
    pub cc: Cc,
    /// Bytes of a request.
    pub request: u64,
    /// Bytes of a response.
    pub response: u64,
    /// Pause between a response and the next request.
    pub think: Span,
    /// Requests per stream; none: as many as the time allows.
    pub count: Option<u64>,
    /// The client's settings.
    pub sender: Box<TcpSettings>,
    /// The server's settings.
    pub receiver: Box<TcpSettings>,
}

impl Request {
    pub(super) const TRAITS: Traits = Traits {
        name: "request",
        connected: true,
        both_ways: true,
        mostly_back: true,
        served: true,
        moves_payload: true,
        bulk: false,
        round_trips: true,
    };
}

impl Kind for Request {
    fn traits(&self) -> Traits {
        Request::TRAITS
    }

    fn connections(&self) -> Option<Connections<'_>> {
        Some(Connections { cc: &self.cc, sender: &self.sender, receiver: &self.receiver })
    }

    fn fluid(&self, flow: &Flow, paths: &Paths<'_>) -> Option<Fluid> {
        let (server, client) = (&self.receiver, &self.sender);
        let one = estimate::connection_rate(&self.cc, server, client, paths, &paths.reverse);
        // Slow start from ten segments, on a connection that stays (RFC 6928).
        let rounds = 1.0 + (1.0 + self.response as f64 / f64::from(server.mss) / 10.0).log2();
        let each = self.think.as_secs_f64() + rounds * paths.rtt();
        let one = one.min((self.response * 8) as f64 / each);
        let all = self.count.map(|count| count.saturating_mul(self.response));
        Some(Fluid {
            maximum: estimate::framed_rate(one, flow.streams, server.mss),
            wanted: estimate::framed(all, flow.streams, client.mss),
            yields: true,
            responses: true,
        })
    }

    fn count(&self, _flow: &Flow, _ways: &Paths<'_>, carried: Carried, _time: f64) -> Count {
        let mss = f64::from(self.sender.mss);
        let framed = self.response as f64 * (1.0 + f64::from(estimate::HEADERS) / mss);
        let trips = carried.bits / 8.0 / framed;
        let segments = trips * (self.response as f64 / mss).ceil();
        // The responses' segments go back; requests and ACKs go forward.
        let requests = trips * (self.request as f64 / mss).ceil();
        Count { forward: requests + segments / 2.0, reverse: segments, trips, carried }
    }

    fn trip_rows(&self, _flow: &Flow, trips: f64) -> Option<(&'static str, f64)> {
        Some(("echoes", trips))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "requests of {}, responses of {}", Bytes(self.request), Bytes(self.response))?;
        if self.think != Span::ZERO {
            write!(f, ", pauses of {}", self.think)?;
        }
        self.count.map_or(Ok(()), |count| write!(f, ", {count} times"))
    }
}
