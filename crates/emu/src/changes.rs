//! Settings that change during a run: when, and in words.

use tcplab_link::Direction;
use tcplab_link::config::Change;
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
                detail: format!("{direction}: {}", words(change)),
            });
        }
    }
    all.sort_by_key(|planned| planned.at);
    all
}

fn words(change: &Change) -> String {
    let mut words = Vec::new();
    if let Some(up) = change.up {
        words.push(if up { "up".to_owned() } else { "down".to_owned() });
    }
    if let Some(rate) = change.rate {
        words.push(format!("rate {rate}"));
    }
    if let Some(delay) = change.delay {
        words.push(format!("delay {delay}"));
    }
    for (name, changed) in [
        ("limit", change.limit.is_some()),
        ("jitter", change.jitter.is_some()),
        ("reorder", change.reorder.is_some()),
        ("loss", change.loss.is_some()),
        ("corrupt", change.corrupt.is_some()),
        ("duplicate", change.duplicate.is_some()),
    ] {
        if changed {
            words.push(name.to_owned());
        }
    }
    words.join(", ")
}
