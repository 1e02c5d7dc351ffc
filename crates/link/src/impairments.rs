//! Impairments behind the serializer: loss, corruption, duplication, and each packet's delay.

use tcplab_units::{Span, Time};

use crate::config::{Change, Direction};
use crate::correlated_chance::CorrelatedChance;
use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::reorder::Reordering;

/// The impairments of a channel. Packets are known by their number, as offered to the link and counted from 1.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    loss: Option<Loss>,
    corrupt: Option<CorrelatedChance>,
    duplicate: Option<CorrelatedChance>,
    delay: Span,
    jitter: Option<Jitter>,
    reorder: Option<Reordering>,
    seed: u64,
}

impl Impairments {
    /// The impairments of `config`, whose random streams derive from `seed`.
    pub(crate) fn new(config: &Direction, seed: u64) -> Impairments {
        Impairments {
            loss: config.loss.as_ref().map(|loss| Loss::new(loss, seed)),
            corrupt: config.corrupt.map(|chance| CorrelatedChance::new(chance, seed, "corrupt")),
            duplicate: config.duplicate.map(|chance| CorrelatedChance::new(chance, seed, "duplicate")),
            delay: config.delay,
            jitter: config.jitter.map(|jitter| Jitter::new(jitter, seed, Time::ZERO)),
            reorder: config.reorder.map(|reorder| Reordering::new(&reorder, seed)),
            seed,
        }
    }

    /// Whether packet `number` is lost before the queue.
    #[inline]
    pub(crate) fn lose_before_queue(&mut self, number: u64) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.before_queue() && loss.takes(number))
    }

    /// Whether packet `number` is lost on its way.
    #[inline]
    pub(crate) fn lose(&mut self, number: u64) -> bool {
        self.loss.as_mut().is_some_and(|loss| !loss.before_queue() && loss.takes(number))
    }

    /// Whether packet `number` is damaged.
    #[inline]
    pub(crate) fn corrupt(&mut self, number: u64) -> bool {
        self.corrupt.as_mut().is_some_and(|corrupt| corrupt.hits(number))
    }

    /// Whether packet `number` is delivered twice.
    #[inline]
    pub(crate) fn duplicate(&mut self, number: u64) -> bool {
        self.duplicate.as_mut().is_some_and(|duplicate| duplicate.hits(number))
    }

    /// Whether packets arrive in the order in which they left.
    #[inline]
    pub(crate) fn keep_order(&self) -> bool {
        self.reorder.is_none()
    }

    /// The delay of what leaves at `at` and keeps its order; `at` must not go back from call to call.
    #[inline]
    pub(crate) fn delay_in_order(&mut self, at: Time) -> Span {
        self.jitter.as_mut().map_or(self.delay, |jitter| jitter.at(self.delay, at))
    }

    /// The delay of packet `number`, or of its copy, where packets overtake.
    pub(crate) fn own_delay(&mut self, number: u64, copy: bool) -> Span {
        let varied = |jitter: &Jitter| jitter.independent(self.delay, number, copy);
        let delay = self.jitter.as_ref().map_or(self.delay, varied);
        self.reorder.as_mut().map_or(delay, |reorder| reorder.shorten(delay, number))
    }

    /// No packet that keeps its order takes less.
    #[inline]
    pub(crate) fn min_delay(&self) -> Span {
        self.jitter.as_ref().map_or(self.delay, |jitter| jitter.min_delay(self.delay))
    }

    /// New settings from the change's time on.
    pub(crate) fn change(&mut self, change: &Change) {
        let seed = self.seed;
        self.delay = change.delay.unwrap_or(self.delay);
        if let Some(loss) = &change.loss {
            self.loss.get_or_insert_with(|| Loss::new(loss, seed)).set(loss);
        }
        for (chance, present, name) in [
            (change.corrupt, &mut self.corrupt, "corrupt"),
            (change.duplicate, &mut self.duplicate, "duplicate"),
        ] {
            if let Some(chance) = chance {
                present.get_or_insert_with(|| CorrelatedChance::new(chance, seed, name)).set(chance);
            }
        }
        if let Some(jitter) = change.jitter {
            match &mut self.jitter {
                Some(present) => present.set(jitter, change.at),
                absent => *absent = Some(Jitter::new(jitter, seed, change.at)),
            }
        }
        if let Some(reorder) = change.reorder {
            self.reorder.get_or_insert_with(|| Reordering::new(&reorder, seed)).set(&reorder);
        }
    }
}
