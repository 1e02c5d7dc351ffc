//! A flow: as its packets while they are few, else as what the analysis makes of them.

use super::grown::Grown;
use super::key::Key;
use super::summary::{End, FlowSummary};
use super::young::Young;
use crate::parse::Segment;

#[derive(Debug)]
pub(super) struct Flow {
    pub key: Key,
    pub number: u64,
    pub first_packet: u64,
    /// It has closed, and was noted to have.
    pub ended: bool,
    /// How it ended, unless by itself.
    end: Option<End>,
    state: State,
}

#[derive(Debug)]
enum State {
    Young(Young),
    Grown(Box<Grown>),
    Finished(Box<FlowSummary>),
    Gone,
}

impl Flow {
    /// A flow without packets.
    pub fn new(key: Key, number: u64, first_packet: u64) -> Flow {
        Flow { key, number, first_packet, ended: false, end: None, state: State::Young(Young::default()) }
    }

    /// Stands where a flow was.
    pub fn gone() -> Flow {
        Flow { state: State::Gone, ..Flow::new(Key::default(), 0, 0) }
    }

    pub fn is_gone(&self) -> bool {
        matches!(self.state, State::Gone)
    }

    #[inline]
    pub fn is_young(&self) -> bool {
        matches!(self.state, State::Young(_))
    }

    /// Keeps a packet as it is; false if the flow must be analyzed from now on.
    #[inline]
    pub fn takes_young(&mut self, swapped: bool, segment: &Segment, time: i64) -> bool {
        match &mut self.state {
            State::Young(young) => young.takes(&self.key, swapped, segment, time),
            _ => false,
        }
    }

    /// The analysis of the packets so far.
    ///
    /// # Panics
    /// When the flow has finished.
    #[inline]
    pub fn grown(&mut self) -> &mut Grown {
        if let State::Young(young) = &self.state {
            self.state = State::Grown(Box::new(young.grow(&self.key)));
        }
        match &mut self.state {
            State::Grown(grown) => grown,
            _ => unreachable!("packets are taken by live flows"),
        }
    }

    #[inline]
    pub fn closed_at(&self) -> Option<i64> {
        match &self.state {
            State::Young(young) => young.closed_at(&self.key),
            State::Grown(grown) => grown.closed_at(),
            State::Finished(_) | State::Gone => None,
        }
    }

    pub fn closed_before(&self, time: i64) -> bool {
        self.closed_at().is_some_and(|closed| closed < time)
    }

    /// The time of its latest packet.
    pub fn last(&self) -> i64 {
        match &self.state {
            State::Young(young) => young.last(),
            State::Grown(grown) => grown.last(),
            State::Finished(summary) => summary.last,
            State::Gone => i64::MIN,
        }
    }

    /// Ends it: of one that was analyzed the summary remains. `end`: how, unless it has ended by itself.
    pub fn finish(&mut self, end: Option<End>) {
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Grown(grown) => {
                let summary = grown.into_summary(&self.key, self.number, self.first_packet, end);
                self.state = State::Finished(Box::new(summary));
            }
            other => {
                self.end = end;
                self.state = other;
            }
        }
    }

    /// Its summary, once it has finished.
    pub fn summary(&self) -> FlowSummary {
        match &self.state {
            State::Finished(summary) => FlowSummary { number: self.number, ..summary.as_ref().clone() },
            State::Young(young) => self.summary_of(young),
            State::Grown(_) | State::Gone => unreachable!("only finished flows are reported"),
        }
    }

    /// As [`Flow::summary`], without a copy.
    pub fn into_summary(self) -> FlowSummary {
        match self.state {
            State::Finished(summary) => *summary,
            _ => self.summary(),
        }
    }

    fn summary_of(&self, young: &Young) -> FlowSummary {
        young.grow(&self.key).into_summary(&self.key, self.number, self.first_packet, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million of them are held at once: a flood, a port scan.
    #[test]
    fn a_flow_of_one_packet_takes_144_bytes_and_nothing_beside() {
        assert!(size_of::<Flow>() <= 144, "{}", size_of::<Flow>());
    }
}
