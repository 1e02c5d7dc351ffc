//! Random variation of the propagation delay.

use tcplab_units::{Span, Time};

use crate::config::{self, Distribution};
use crate::excursions::Excursions;
use crate::law::Law;
use crate::random::Draws;

/// Varies the delay: in time where packets keep their order, packet by packet where they need not.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    config: config::Jitter,
    excursions: Excursions,
    draws: Draws,
}

impl Jitter {
    /// Jitter from `now` on.
    pub(crate) fn new(config: config::Jitter, seed: u64, now: Time) -> Jitter {
        let excursions = Excursions::new(Law::new(config), config.correlation_time, seed, now);
        Jitter { config, excursions, draws: Draws::new(seed, "jitter") }
    }

    /// New settings from `now` on.
    pub(crate) fn set(&mut self, config: config::Jitter, now: Time) {
        self.config = config;
        self.excursions.set(Law::new(config), config.correlation_time, now);
    }

    /// `delay` as it is at `at`, never below zero; `at` must not go back from call to call.
    #[inline]
    pub(crate) fn at(&mut self, delay: Span, at: Time) -> Span {
        self.excursions.at(at).vary(delay)
    }

    /// `delay` with a variation of its own for packet `number` or its copy.
    pub(crate) fn independent(&self, delay: Span, number: u64, copy: bool) -> Span {
        // No packet has so high a number.
        let mut random = self.draws.stream(if copy { !number } else { number });
        Law::new(self.config).variation(&mut random).vary(delay)
    }

    /// The minimum delay that a packet can get out of `delay`.
    pub(crate) fn min_delay(&self, delay: Span) -> Span {
        match self.config.distribution {
            Distribution::Uniform => delay.saturating_sub(self.config.amount),
            Distribution::Normal => Span::ZERO,
            Distribution::Pareto => delay,
        }
    }
}
