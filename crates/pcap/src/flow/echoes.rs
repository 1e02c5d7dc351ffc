//! How far a side is, by the timestamps that it echoes (RFC 7323): of connections whose handshake was not captured.

use crate::parse::Segment;

/// The way to one side and back, by timestamps of the other side.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    /// The latest timestamp that the other side sent.
    latest: Option<u32>,
    /// One whose echo is awaited, and when it was first seen (ns).
    awaited: Option<(u32, i64)>,
    /// The shortest time to an echo (ns).
    pub minimum: Option<i64>,
}

impl Echoes {
    /// A segment of the other side: its timestamp counts from when it was first seen, which is not known of the first.
    #[inline]
    pub fn sent(&mut self, segment: &Segment, time: i64) {
        let timestamp = segment.options.timestamp;
        if self.latest.is_some_and(|latest| timestamp.wrapping_sub(latest) as i32 <= 0) {
            return;
        }
        if self.latest.replace(timestamp).is_some() {
            self.awaited.get_or_insert((timestamp, time));
        }
    }

    /// A segment of this side.
    #[inline]
    pub fn echoed(&mut self, segment: &Segment, time: i64) {
        let Some((timestamp, since)) = self.awaited else { return };
        let later = segment.options.timestamp_echo.wrapping_sub(timestamp) as i32;
        if later == 0 {
            let round_trip = time.saturating_sub(since).max(0);
            self.minimum = Some(self.minimum.map_or(round_trip, |minimum| minimum.min(round_trip)));
        }
        if later >= 0 {
            self.awaited = None;
        }
    }
}
