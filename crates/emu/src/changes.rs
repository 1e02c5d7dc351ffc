//! Settings that change during a run: when, and in words.

use tcplab_link::Direction;
use tcplab_units::{Span, Time};

/// A change of one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) at: Time,
    pub(crate) way: usize,
    /// The new delay, if it changes.
    pub(crate) delay: Option<Span>,
    pub(crate) detail: String,
}

/// All changes of ways with these settings, two for each link, by time.
pub(crate) fn planned<'a>(ways: impl Iterator<Item = &'a Direction>) -> Vec<Planned> {
    let mut all = Vec::new();
    for (way, settings) in ways.enumerate() {
        let direction = if way % 2 == 0 { "forward" } else { "backward" };
        for change in &settings.changes {
            all.push(Planned {
                at: change.at,
                way,
                delay: change.delay,
                detail: format!("{direction}: {change}"),
            });
        }
    }
    all.sort_by_key(|planned| planned.at);
    all
}
