//! The kind of a packet in its flow, in a word or two.

use crate::flow::{Cause, Kind, Observer, Seen};
use crate::parse::flag;

/// The properties of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Note {
    pub(super) flow: Option<u64>,
    pub(super) text: &'static str,
}

/// Keeps what the analysis said of the last packet.
#[derive(Debug, Default)]
pub(super) struct ListObserver(Note);

impl ListObserver {
    /// Forgets the packet before: not every packet belongs to a flow.
    pub(super) fn begin(&mut self) {
        self.0 = Note::default();
    }

    pub(super) fn note(&self) -> Note {
        self.0
    }
}

impl Observer for ListObserver {
    fn seen(&mut self, seen: &Seen<'_>) {
        self.0 = Note { flow: Some(seen.flow), text: word(seen) };
    }
}

fn word(seen: &Seen<'_>) -> &'static str {
    match seen.kind {
        Kind::Retransmission(Cause::Fast) => "fast retransmission",
        Kind::Retransmission(Cause::Timeout) => "retransmission after timeout",
        Kind::Retransmission(Cause::Probe) => "tail loss probe",
        Kind::Retransmission(Cause::Unknown) => "retransmission",
        Kind::OutOfOrder => "out of order",
        Kind::Duplicate => "duplicated by the network",
        Kind::KeepAlive => "keep-alive or window probe",
        Kind::OutOfWindow => "outside the window",
        Kind::AfterGap => "previous segment not captured",
        Kind::Control | Kind::New => {
            let tcp = seen.ack.is_some() || seen.segment.flags != 0;
            if tcp && seen.window == 0 && seen.segment.flags & flag::RST == 0 {
                "zero window"
            } else if seen.duplicate_ack {
                "duplicate ACK"
            } else {
                ""
            }
        }
    }
}
