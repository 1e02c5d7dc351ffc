//! The outbox of an endpoint: segments to send, and notices.

use tcplab_units::Span;

use crate::connection::Notice;
use crate::segment::Segment;
use crate::tray::Tray;

/// Maximum notices kept for a caller who does not fetch them.
const NOTICES: usize = 1_024;

/// Segments to send and notices of an endpoint, for its caller. It is empty between calls: a caller of many endpoints lends each
/// the same one, so that they write to memory which is in the processor's cache.
#[derive(Debug, Default)]
pub struct Outbox {
    runs: Tray<Run>,
    /// A sample of the RTT that is older than all notices: most ACKs have no other.
    rtt: Option<Span>,
    notices: Tray<Notice>,
}

/// Segments of a burst that are alike, each of which begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Segment,
    count: u32,
}

impl Outbox {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.rtt.is_none() && self.notices.is_empty()
    }

    #[inline]
    pub(crate) fn has_segments(&self) -> bool {
        !self.runs.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, segment: Segment) {
        self.runs.push(Run { first: segment, count: 1 });
    }

    /// Sends `count` segments like `first`, which is returned to be changed: a copy right after a narrower store stalls.
    #[inline]
    pub(crate) fn push_run(&mut self, first: &Segment, count: u32) -> &mut Segment {
        &mut self.runs.push(Run { first: *first, count }).first
    }

    /// Takes the first segment.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Segment> {
        let run = self.runs.first_mut()?;
        let segment = run.first;
        if run.count > 1 {
            run.count -= 1;
            run.first.seq = segment.seq.wrapping_add(segment.len);
        } else {
            self.runs.pop();
        }
        Some(segment)
    }

    /// Hands all segments to `send`: the first of each run, and how many the run has.
    #[inline]
    pub(crate) fn take_runs(&mut self, mut send: impl FnMut(&Segment, u32)) {
        while let Some(run) = self.runs.first() {
            send(&run.first, run.count);
            self.runs.pop();
        }
    }

    /// Keeps a sample of the RTT as a notice.
    #[inline]
    pub(crate) fn note_rtt(&mut self, rtt: Span) {
        if self.rtt.is_none() && self.notices.is_empty() {
            self.rtt = Some(rtt);
        } else {
            self.note(Notice::RttSample(rtt));
        }
    }

    /// Keeps a notice. The oldest is forgotten where there are too many.
    #[inline]
    pub(crate) fn note(&mut self, notice: Notice) {
        if self.notices.len() >= NOTICES {
            self.notices.pop();
        }
        self.notices.push(notice);
    }

    /// Takes the oldest notice.
    #[inline]
    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.rtt.take().map(Notice::RttSample).or_else(|| self.notices.pop())
    }
}
