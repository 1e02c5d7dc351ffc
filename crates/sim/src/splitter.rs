//! The limits of an accelerator, over all connections that it splits, and its death.

use tcplab_units::Time;

use crate::plan::{Accelerator, Load, WhenFull};

/// An accelerator's connections, added up.
#[derive(Debug)]
pub(crate) struct Splitter {
    settings: Accelerator,
    connections: u64,
    held: u64,
    /// New connections pass.
    passing: bool,
    counts: SplitCounts,
}

/// New connections of an accelerator by their fate, until it dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitCounts {
    /// Split.
    pub accepted: u64,
    /// Reset, because it was full.
    pub refused: u64,
    /// Left unsplit, because it was full.
    pub passed: u64,
}

/// The fate of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is split.
    Split,
    /// It passes.
    Pass,
    /// It is accepted and reset.
    Reset,
}

impl Splitter {
    pub(crate) fn new(settings: Accelerator) -> Splitter {
        Splitter { settings, connections: 0, held: 0, passing: false, counts: SplitCounts::default() }
    }

    /// When it dies.
    pub(crate) fn kill_at(&self) -> Time {
        self.settings.kill_at.unwrap_or(Time::NEVER)
    }

    pub(crate) fn counts(&self) -> SplitCounts {
        self.counts
    }

    /// Takes a new connection, or not.
    pub(crate) fn admit(&mut self, now: Time) -> Admission {
        if now >= self.kill_at() {
            return Admission::Pass;
        }
        let full = self.settings.load(self.connections, self.held) == Load::Full;
        match self.settings.when_full {
            WhenFull::Pass if self.passing => {
                self.counts.passed += 1;
                return Admission::Pass;
            }
            WhenFull::Reset if full => {
                self.counts.refused += 1;
                return Admission::Reset;
            }
            _ => {}
        }
        self.counts.accepted += 1;
        self.connections += 1;
        self.note();
        Admission::Split
    }

    /// A connection holds so much in place of what it held before, bytes.
    pub(crate) fn hold(&mut self, before: u64, held: u64) {
        if before != held {
            self.held = self.held + held - before;
            self.note();
        }
    }

    /// A connection has ended, and holds nothing more.
    pub(crate) fn leave(&mut self) {
        self.connections -= 1;
        self.note();
    }

    fn note(&mut self) {
        match self.settings.load(self.connections, self.held) {
            Load::Full => self.passing = true,
            Load::High => {}
            Load::Low => self.passing = false,
        }
    }
}
