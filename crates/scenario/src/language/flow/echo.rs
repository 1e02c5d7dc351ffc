//! Messages that come back: `kind: echo`.

use schemars::JsonSchema;
use serde::Deserialize;
use tcplab_plan::Traffic;
use tcplab_units::Span;

use super::super::kinds;
use super::{Control, SocketSettings, Written, one};
use crate::expand::FlowEndpoints;

/// Clients that send messages, size after size, and wait for each to come back, on a connection each.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Echo {
    /// Congestion control of both ends (default cubic).
    #[serde(default = "Control::cubic")]
    #[schemars(with = "Option<kinds::Control>")]
    pub(crate) cc: Control,
    /// Clients at the same time, each with a connection (default 1).
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) clients: u32,
    /// Sizes of messages: `1..65536` (doubling), a list, or one; a number is bytes (default 1..65536).
    #[serde(default = "powers_of_two")]
    #[schemars(with = "Option<kinds::Sizes>")]
    pub(crate) sizes: Vec<u32>,
    /// Messages of each size (default 1000).
    #[serde(default = "thousand")]
    #[schemars(with = "Option<kinds::Count>")]
    pub(crate) iterations: u64,
    /// How many of the first messages of each size are left out of the statistics (default none).
    #[serde(default)]
    #[schemars(with = "Option<kinds::Warmup>")]
    pub(crate) warmup: u64,
    /// Minimum time from one message to the next (default none: at once).
    #[serde(default)]
    #[schemars(with = "Option<kinds::TimeSpan>")]
    pub(crate) interval: u64,
    /// How long a message may take to come back where it is real (default 15 min: about as long as TCP tries).
    #[serde(default = "quarter_of_an_hour")]
    #[schemars(with = "Option<kinds::PositiveMoment>")]
    pub(crate) timeout: u64,
    /// Both ends poll instead of sleeping where they are real (default off).
    #[serde(default)]
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) busy_poll: bool,
    /// Its sockets.
    #[serde(flatten)]
    pub(crate) sockets: SocketSettings,
}

fn powers_of_two() -> Vec<u32> {
    (0..=16).map(|power| 1 << power).collect()
}

fn thousand() -> u64 {
    1000
}

fn quarter_of_an_hour() -> u64 {
    900_000_000_000
}

impl Written for Echo {
    fn control(&self) -> Option<&Control> {
        Some(&self.cc)
    }

    fn sockets(&self) -> Option<&SocketSettings> {
        Some(&self.sockets)
    }

    fn streams(&self) -> u32 {
        self.clients
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn plan(&self, ends: &FlowEndpoints<'_>) -> Traffic {
        Traffic::Echo(tcplab_plan::Echo {
            cc: ends.control(&self.cc),
            sizes: self.sizes.clone(),
            iterations: self.iterations,
            warmup: self.warmup,
            interval: Span::from_ns(self.interval),
            timeout: Span::from_ns(self.timeout),
            busy_poll: self.busy_poll,
            sender: ends.sender(&self.sockets),
            receiver: ends.receiver(&self.sockets),
        })
    }
}
