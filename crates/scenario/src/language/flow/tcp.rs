//! Bulk transfers: `kind: tcp`.

use schemars::JsonSchema;
use serde::Deserialize;
use tcplab_plan::{Generator, Traffic};

use super::super::kinds;
use super::{Control, Pattern, SocketSettings, Written, one};
use crate::expand::FlowEndpoints;

/// A bulk transfer over TCP.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Tcp {
    /// Number of parallel connections.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) streams: u32,
    /// Congestion control (default cubic).
    #[serde(default = "Control::cubic")]
    #[schemars(with = "Option<kinds::Control>")]
    pub(crate) cc: Control,
    /// Bytes per stream; default: as many as the time allows.
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) bytes: Option<u64>,
    /// Pauses.
    pub(crate) pattern: Option<Pattern>,
    /// Program that makes the traffic where it is real.
    #[serde(default)]
    #[schemars(with = "Option<Generator>")]
    pub(crate) generator: Generator,
    /// Its sockets.
    #[serde(flatten)]
    pub(crate) sockets: SocketSettings,
}

impl Written for Tcp {
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
        self.bytes.is_some()
    }

    fn plan(&self, ends: &FlowEndpoints<'_>) -> Traffic {
        Traffic::Tcp(tcplab_plan::Tcp {
            cc: ends.control(&self.cc),
            bytes: self.bytes,
            pattern: self.pattern.as_ref().map(Pattern::plan),
            sender: ends.sender(&self.sockets),
            receiver: ends.receiver(&self.sockets),
            generator: self.generator,
        })
    }
}
