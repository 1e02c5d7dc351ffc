//! Settings that change during a run: when, and in words.

use tcplab_link::Direction;
use tcplab_link::config::Change;
use tcplab_units::{Span, Time};

/// A change of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) at: Time,
    pub(crate) number: usize,
    /// The new delay, if it changes.
    pub(crate) delay: Option<Span>,
    /// Whether the link goes up or down.
    pub(crate) up: Option<bool>,
    pub(crate) detail: String,
}

impl Planned {
    pub(crate) fn new(number: usize, change: &Change) -> Planned {
        let direction = if number.is_multiple_of(2) { "forward" } else { "backward" };
        Planned {
            at: change.at,
            number,
            delay: change.delay,
            up: change.up,
            detail: format!("{direction}: {change}"),
        }
    }
}

/// All changes of directions with these settings, two for each link, by time.
pub(crate) fn planned<'a>(directions: impl Iterator<Item = &'a Direction>) -> Vec<Planned> {
    let mut all = Vec::new();
    for (number, settings) in directions.enumerate() {
        all.extend(settings.changes.iter().map(|change| Planned::new(number, change)));
    }
    all.sort_by_key(|planned| planned.at);
    all
}
