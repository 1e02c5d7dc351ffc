//! Loss processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Probability;

use crate::Chance;

/// Which packets are lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The process that picks them.
    pub model: LossModel,
    /// Strike before the queue, so that a lost packet uses no capacity.
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
