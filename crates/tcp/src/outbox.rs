//! What an endpoint has for its caller: segments to send, and notices.

use crate::connection::Notice;
use crate::segment::Segment;
use crate::tray::Tray;

/// Maximum notices kept for a caller who does not fetch them.
const NOTICES: usize = 1_024;

/// Segments to send and notices of an endpoint, for its caller. It is empty between calls: a caller of many endpoints lends each
/// the same one, so that they write to memory which is in the processor's cache.
#[derive(Debug, Default)]
pub struct Outbox {
    bursts: Tray<Burst>,
    notices: Tray<Notice>,
}

/// Segments that leave together, as a super-packet which the interface splits (GSO).
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// That of the first segment. Its length is that of all.
    header: Segment,
    cut: Cut,
    /// Payload bytes of the segments that are gone.
    gone: u32,
}

/// How a burst becomes segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Payload bytes of each segment but the last, which has as many or fewer.
    pub size: u32,
    /// Flags that the last one carries besides.
    pub last: u8,
    /// Flags of the first one that no other carries.
    pub first_only: u8,
}

impl Cut {
    /// One segment.
    const WHOLE: Cut = Cut { size: u32::MAX, last: 0, first_only: 0 };
}

/// A segment to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a>(&'a Burst);

impl Outgoing<'_> {
    /// Payload bytes.
    #[inline]
    fn len(self) -> u32 {
        (self.0.header.len - self.0.gone).min(self.0.cut.size)
    }

    /// Writes it to `place`.
    ///
    /// What differs within a burst is written last, and not to a copy: to copy what was just written in narrower pieces stalls
    /// the processor.
    #[inline]
    pub fn write_to(self, place: &mut Segment) {
        let Burst { header, cut, gone } = self.0;
        let len = self.len();
        *place = *header;
        place.seq = header.seq.wrapping_add(*gone);
        place.len = len;
        place.more = len < header.len - gone;
        place.flags = header.flags & if *gone > 0 { !cut.first_only } else { !0 }
            | if place.more { 0 } else { cut.last };
    }

    /// The segment.
    #[inline]
    pub fn segment(self) -> Segment {
        let mut segment = self.0.header;
        self.write_to(&mut segment);
        segment
    }
}

impl Outbox {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bursts.is_empty() && self.notices.is_empty()
    }

    /// Whether there is a segment.
    #[inline]
    pub(crate) fn has_segment(&self) -> bool {
        !self.bursts.is_empty()
    }

    /// Adds one segment.
    #[inline]
    pub(crate) fn push(&mut self, segment: Segment) {
        self.push_burst(segment, Cut::WHOLE);
    }

    /// Adds the segments that `header` becomes, whose length is that of all.
    #[inline]
    pub(crate) fn push_burst(&mut self, header: Segment, cut: Cut) {
        self.bursts.push(Burst { header, cut, gone: 0 });
    }

    /// The oldest segment.
    #[inline]
    pub(crate) fn first(&self) -> Option<Outgoing<'_>> {
        self.bursts.first().map(Outgoing)
    }

    /// The oldest segment is gone; its payload bytes.
    #[inline]
    pub(crate) fn pop(&mut self) -> u32 {
        let Some(burst) = self.bursts.first_mut() else { return 0 };
        let len = Outgoing(burst).len();
        burst.gone += len;
        if burst.gone == burst.header.len {
            self.bursts.pop();
        }
        len
    }

    /// Adds a notice.
    #[inline]
    pub(crate) fn note(&mut self, notice: Notice) {
        if self.notices.len() >= NOTICES {
            self.notices.pop();
        }
        self.notices.push(notice);
    }

    /// Takes the oldest notice.
    #[inline]
    pub(crate) fn pop_notice(&mut self) -> Option<Notice> {
        self.notices.pop()
    }
}
