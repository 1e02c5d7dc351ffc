//! Packets that overtake others by skipping part of the delay.

use tcplab_units::Span;

use crate::config;
use crate::correlated_chance::CorrelatedChance;

/// Picks the packets that overtake.
#[derive(Clone, Debug)]
pub(crate) struct Reordering {
    chance: CorrelatedChance,
    by: Option<Span>,
}

impl Reordering {
    pub(crate) fn new(config: &config::Reorder, seed: u64) -> Reordering {
        Reordering { chance: CorrelatedChance::new(config.chance, seed, "reorder"), by: config.by }
    }

    /// New settings from the next packet on.
    pub(crate) fn set(&mut self, config: &config::Reorder) {
        self.chance.set(config.chance);
        self.by = config.by;
    }

    /// The part of `delay` that packet `number` still takes.
    pub(crate) fn shorten(&mut self, delay: Span, number: u64) -> Span {
        if !self.chance.hits(number) {
            return delay;
        }
        self.by.map_or(Span::ZERO, |by| delay.saturating_sub(by))
    }
}
