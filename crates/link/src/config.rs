//! The settings of one link direction, as they stand in a plan.

use std::fmt;

use serde::{Deserialize, Serialize};
use tcplab_units::{Probability, Rate, Span, Time};

/// Everything that one direction of a link does to a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Serialisation rate; none: packets leave the queue at once.
    pub rate: Option<Rate>,
    /// The queue in front of the serialiser.
    pub queue: Queue,
    /// One-way propagation delay.
    pub delay: Span,
    /// Variation added to the delay.
    pub jitter: Option<Jitter>,
    /// Packets sent ahead of their turn; without it, order is kept whatever the jitter. With it, each packet
    /// arrives after a delay of its own, so that jitter makes packets overtake too.
    pub reorder: Option<Reorder>,
    /// Which packets vanish.
    pub loss: Option<Loss>,
    /// Packets whose bits are damaged; the receiver's checksum discards them.
    pub corrupt: Option<Chance>,
    /// Packets delivered twice.
    pub duplicate: Option<Chance>,
    /// A down link drops what is offered to it and what it holds in its queue.
    pub up: bool,
    /// A delivery trace that replaces `rate`.
    pub trace: Option<Trace>,
    /// Settings that change during the run, by time.
    pub changes: Vec<Change>,
}

/// A queue discipline and its limit. The limit counts what waits, not what is being sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Queue {
    /// First in, first out; arrivals beyond the limit are dropped.
    Droptail {
        /// How much may wait; none: no limit.
        limit: Option<Limit>,
        /// A packet that can carry a mark gets one ("congestion experienced") when more than this waits as it
        /// arrives; none: nothing is marked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark_above: Option<Limit>,
    },
}

/// How much may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Packets, whatever their size.
    Packets(u64),
    /// Frame bytes (IP length + 14).
    Bytes(u64),
    /// Time to drain at the link's present rate, or at the mean rate of its trace.
    Time(Span),
}

/// An event that strikes packets at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chance {
    /// The mean share of packets struck.
    pub rate: Probability,
    /// How much one packet's fate resembles its predecessor's, 0 to 1; the mean rate is kept.
    pub correlation: Probability,
}

/// Random variation of the delay: a process in time, which keeps packets in order, or with `reorder`
/// independent from packet to packet. Mean and spread are the same at any packet rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// How the variation is distributed.
    pub distribution: Distribution,
    /// Half width (uniform), standard deviation (normal), or mean excess (Pareto).
    pub amount: Span,
    /// Time in which the autocorrelation of the delay falls to 1/e. It has no meaning with `reorder`.
    pub correlation_time: Span,
}

/// Shapes of jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Evenly within ± amount.
    Uniform,
    /// Gaussian with this standard deviation; never below zero delay.
    Normal,
    /// Heavy-tailed (shape 3), only lengthens the delay.
    Pareto,
}

/// Packets that overtake others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of packets that skip `by` of the delay.
    pub chance: Chance,
    /// How much of the delay they skip; none: all of it.
    pub by: Option<Span>,
}

/// Which packets are lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The process that picks them.
    pub model: LossModel,
    /// Strike before the queue, so that a lost packet uses no capacity.
    pub before_queue: bool,
}

/// Loss processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// Delivery opportunities in mahimahi's format, already read: the trace repeats for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Milliseconds at which one 1500-byte delivery opportunity occurs, ascending, the last one the period.
    pub opportunities_ms: Vec<u64>,
}

/// New settings from a time on. An absent one stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When.
    pub at: Time,
    /// New rate, at which also the rest of the packet being sent leaves; a link with a trace keeps to the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// New queue limit, for arrivals; what waits already stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// New marking threshold, for arrivals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_above: Option<Limit>,
    /// New one-way delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// New jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// New reordering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// New loss process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// New corruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<Chance>,
    /// New duplication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Chance>,
    /// Link goes up or down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

/// What changes, in words: `rate 20 Mbit/s, loss`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if let Some(up) = self.up {
            words.push(if up { "up".to_owned() } else { "down".to_owned() });
        }
        if let Some(rate) = self.rate {
            words.push(format!("rate {rate}"));
        }
        if let Some(delay) = self.delay {
            words.push(format!("delay {delay}"));
        }
        for (name, changed) in [
            ("limit", self.limit.is_some()),
            ("marking threshold", self.mark_above.is_some()),
            ("jitter", self.jitter.is_some()),
            ("reorder", self.reorder.is_some()),
            ("loss", self.loss.is_some()),
            ("corrupt", self.corrupt.is_some()),
            ("duplicate", self.duplicate.is_some()),
        ] {
            if changed {
                words.push(name.to_owned());
            }
        }
        f.write_str(&words.join(", "))
    }
}
