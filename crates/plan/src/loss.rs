//! Loss processes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Probability;

use crate::Chance;
use crate::describe::ordinal;

mod netem;

pub use netem::effective_loss;

/// Which packets are lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The process that picks them.
    pub model: LossModel,
    /// Whether packets are lost before the queue, and so use no capacity.
    pub before_queue: bool,
}

/// Loss processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossModel {
    /// A two-state chain that keeps the mean rate: P(loss | loss) = p + c(1 − p), P(loss | none) = p(1 − c).
    Random {
        /// Mean rate p and correlation c.
        chance: Chance,
    },
    /// netem's recursion x' = (1 − c)·u + c·x on the uniform variate, which does not keep the rate asked for.
    Netem {
        /// The rate and correlation handed to netem.
        chance: Chance,
    },
    /// Gilbert-Elliott: a good and a bad state with their own loss probabilities.
    GilbertElliott {
        /// P(good → bad) per packet.
        p: Probability,
        /// P(bad → good) per packet.
        r: Probability,
        /// Loss probability in the bad state (1 − h).
        bad: Probability,
        /// Loss probability in the good state (1 − k).
        good: Probability,
    },
    /// Exactly these packets of this direction, ascending, counted from 1 as they come to the loss process.
    List {
        /// Packet numbers.
        packets: Vec<u64>,
    },
    /// One packet in every `packets`, starting with number `first`, counted as they come to the loss process.
    Every {
        /// The period.
        packets: u64,
        /// The first one lost, counted from 1.
        first: u64,
    },
}

impl LossModel {
    /// The share of packets lost in the long run; none of a list counts.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            LossModel::Random { chance } => chance.rate.as_f64(),
            LossModel::Netem { chance } => effective_loss(chance.rate.as_f64(), chance.correlation.as_f64()),
            LossModel::GilbertElliott { p, r, bad, good } => {
                let (into, out) = (p.as_f64(), r.as_f64());
                let share = if into + out > 0.0 { into / (into + out) } else { 0.0 };
                share * bad.as_f64() + (1.0 - share) * good.as_f64()
            }
            LossModel::List { .. } => 0.0,
            LossModel::Every { packets, .. } => 1.0 / *packets as f64,
        }
    }
}

/// Longer lists of packets end with "and more".
const LISTED: usize = 8;

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            LossModel::Random { chance } => write!(f, "{chance} lost at random")?,
            LossModel::Netem { chance } => write!(f, "{chance} lost by netem's recursion")?,
            LossModel::GilbertElliott { p, r, bad, good } => {
                write!(f, "Gilbert-Elliott loss (p {p}, r {r}, bad {bad}, good {good})")?;
            }
            LossModel::List { packets } => {
                let shown: Vec<String> = packets.iter().take(LISTED).map(u64::to_string).collect();
                let more = if packets.len() > LISTED { " and more" } else { "" };
                write!(f, "packets {}{more} lost", shown.join(", "))?;
            }
            LossModel::Every { packets, first } => {
                write!(f, "every {} packet lost, from number {first} on", ordinal(*packets))?;
            }
        }
        f.write_str(if self.before_queue { ", before the queue" } else { "" })
    }
}
