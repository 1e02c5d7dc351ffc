//! Requests and responses: `kind: request`.

use schemars::JsonSchema;
use serde::Deserialize;
use tcplab_plan::Traffic;
use tcplab_units::Span;

use super::super::kinds;
use super::{Control, SocketSettings, Written, one};
use crate::expand::FlowEndpoints;

/// A client that asks, waits for the answer, thinks and asks again, on one TCP connection a stream.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Request {
    /// Number of parallel connections.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) streams: u32,
    /// Congestion control of both ends (default cubic).
    #[serde(default = "Control::cubic")]
    #[schemars(with = "Option<kinds::Control>")]
    pub(crate) cc: Control,
    /// Size of a request.
    #[schemars(with = "kinds::PositiveSize", extend("examples" = ["200 B"]))]
    pub(crate) request: u64,
    /// Size of a response.
    #[schemars(with = "kinds::PositiveSize", extend("examples" = ["100 kB"]))]
    pub(crate) response: u64,
    /// Pause between a response and the next request.
    #[serde(default)]
    #[schemars(with = "Option<kinds::TimeSpan>")]
    pub(crate) think: u64,
    /// Requests per stream; default: as many as the time allows.
    #[schemars(with = "Option<kinds::Count>")]
    pub(crate) count: Option<u64>,
    /// Its sockets.
    #[serde(flatten)]
    pub(crate) sockets: SocketSettings,
}

impl Written for Request {
    fn control(&self) -> Option<&Control> {
        Some(&self.cc)
    }

    fn sockets(&self) -> Option<&SocketSettings> {
        Some(&self.sockets)
    }

    fn streams(&self) -> u32 {
        self.streams
    }

    fn ends_by_itself(&self) -> bool {
        self.count.is_some()
    }

    fn plan(&self, ends: &FlowEndpoints<'_>) -> Traffic {
        Traffic::Request(tcplab_plan::Request {
            cc: ends.control(&self.cc),
            request: self.request,
            response: self.response,
            think: Span::from_ns(self.think),
            count: self.count,
            sender: ends.sender(&self.sockets),
            receiver: ends.receiver(&self.sockets),
        })
    }
}
