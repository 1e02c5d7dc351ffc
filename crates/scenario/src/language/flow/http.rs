//! Web traffic: `kind: http`.

use schemars::JsonSchema;
use serde::Deserialize;
use tcplab_plan::{Popularity, Traffic, Web};
use tcplab_units::Span;

use super::super::kinds;
use super::{Control, SocketSettings, Written, one};
use crate::expand::FlowEndpoints;

/// A client that loads pages, one after the other, over persistent HTTP/1.1 connections.
///
/// It asks for all objects of a page at once, as far as it has connections, and thinks when all have come.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Http {
    /// Connections to the server, which stay open (default 6).
    #[serde(default = "six")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) connections: u32,
    /// Congestion control of both ends (default cubic).
    #[serde(default = "Control::cubic")]
    #[schemars(with = "Option<kinds::Control>")]
    pub(crate) cc: Control,
    /// Objects that the server has (default 1000).
    #[serde(default = "thousand")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) objects: u32,
    /// Sizes of objects: each object has one of them, and a size that stands twice is twice as likely.
    #[schemars(with = "Vec<kinds::PositiveSize>", length(min = 1), extend("examples" = [["10 kB", "100 kB"]]))]
    pub(crate) sizes: Vec<u64>,
    /// How often each object is asked for: by Zipf's law (default), or all equally often.
    #[serde(default)]
    #[schemars(with = "Option<Popularity>")]
    pub(crate) popularity: Popularity,
    /// Objects of a page (default 1).
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) page: u32,
    /// Ranges that an object is divided into, fetched in parallel as far as there are connections (default 1).
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) ranges: u32,
    /// Pause between a page and the next (default none).
    #[serde(default)]
    #[schemars(with = "Option<kinds::TimeSpan>")]
    pub(crate) think: u64,
    /// Pages; default: as many as the time allows.
    #[schemars(with = "Option<kinds::Count>")]
    pub(crate) count: Option<u64>,
    /// How long a cache may answer with an object before it asks the server again (max-age; default 1 hour).
    #[serde(default = "hour")]
    #[schemars(with = "Option<kinds::TimeSpan>")]
    pub(crate) max_age: u64,
    /// Its sockets.
    #[serde(flatten)]
    pub(crate) sockets: SocketSettings,
}

fn six() -> u32 {
    6
}

fn thousand() -> u32 {
    1000
}

fn hour() -> u64 {
    3_600_000_000_000
}

impl Written for Http {
    fn control(&self) -> Option<&Control> {
        Some(&self.cc)
    }

    fn sockets(&self) -> Option<&SocketSettings> {
        Some(&self.sockets)
    }

    fn streams(&self) -> u32 {
        self.connections
    }

    fn ends_by_itself(&self) -> bool {
        self.count.is_some()
    }

    fn plan(&self, ends: &FlowEndpoints<'_>) -> Traffic {
        Traffic::Http(tcplab_plan::Http {
            cc: ends.control(&self.cc),
            web: Web {
                objects: self.objects,
                sizes: self.sizes.clone(),
                popularity: self.popularity,
                page: self.page,
                ranges: self.ranges,
                think: Span::from_ns(self.think),
                count: self.count,
                max_age: Span::from_ns(self.max_age),
            },
            sender: ends.sender(&self.sockets),
            receiver: ends.receiver(&self.sockets),
        })
    }
}
