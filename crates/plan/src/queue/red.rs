//! RED and adaptive RED, with the names of `tc-red(8)`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Probability, Rate};

use super::{Discipline, Limit};

/// Random early detection: drops arrivals at random, the more often the longer the queue was lately (S. Floyd and
/// V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993; RFC 2309).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-rule" = "red"))]
pub struct Red {
    /// Maximum that may wait; arrivals beyond it are dropped. Default: 240 kB.
    #[schemars(extend("x-tcplab" = "positive-amount"))]
    pub limit: Limit,
    /// Average queue from which arrivals are dropped at random. Default: 20 kB.
    #[schemars(extend("x-tcplab" = "positive-amount"))]
    pub min: Limit,
    /// Average queue at which `probability` is reached; beyond it all are dropped. Default: 60 kB.
    #[schemars(extend("x-tcplab" = "positive-amount"))]
    pub max: Limit,
    /// Probability at `max`. Default: 2 %.
    pub probability: Probability,
    /// The average forgets by 2^−`wlog` with each arrival. Default: 9, which is about Floyd's 0.002.
    #[schemars(range(min = 1, max = 31))]
    pub wlog: u8,
    /// Size of a packet in frame bytes, by which an idle time counts. Default: 1000.
    #[schemars(range(max = 65_536), extend("x-tcplab" = "positive-size"))]
    pub avpkt: u32,
    /// Between `max` and twice `max`, raise the probability to 1 bit by bit (Floyd, 2000). Default: off.
    pub gentle: bool,
    /// Change `probability` every 500 ms so that the average stays in the middle between `min` and `max` (S. Floyd,
    /// R. Gummadi, S. Shenker, "Adaptive RED", 2001). Default: off.
    pub adaptive: bool,
    /// Mark packets of ECN-capable flows instead of dropping them. Default: off.
    pub ecn: bool,
}

impl Default for Red {
    fn default() -> Red {
        Red {
            limit: Limit::Bytes(240_000),
            min: Limit::Bytes(20_000),
            max: Limit::Bytes(60_000),
            probability: Probability::from_ppb(20_000_000),
            wlog: 9,
            avpkt: 1000,
            gentle: false,
            adaptive: false,
            ecn: false,
        }
    }
}

impl Discipline for Red {
    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn cautions(&self, rate: Option<Rate>) -> Vec<String> {
        let full = format!(
            "`limit` of {} is not above `max` of {}: arrivals are dropped at the limit first",
            self.limit, self.max
        );
        self.limit.is_at_most(self.max, rate).then_some(full).into_iter().collect()
    }
}

impl fmt::Display for Red {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "red of {} ({} from {} to {}", self.limit, self.probability, self.min, self.max)?;
        for (on, word) in [(self.gentle, "gentle"), (self.adaptive, "adaptive"), (self.ecn, "marks")] {
            if on {
                write!(f, ", {word}")?;
            }
        }
        f.write_str(")")
    }
}
