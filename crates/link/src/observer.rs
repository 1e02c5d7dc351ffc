//! Observers: notified of what happens to each packet.

use tcplab_units::Time;

use crate::inside::Inside;

/// An event in the life of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// It entered the queue, or the serializer at once where nothing was ahead of it.
    Enqueue,
    /// The queue was full, or the link down.
    Drop,
    /// The queue set "congestion experienced" on it.
    Mark,
    /// Its last bit left the serializer.
    Depart,
    /// The loss process hit it.
    Lose,
    /// Its bits were damaged; it travels on.
    Corrupt,
    /// A copy of it was made; the packet shown is the copy.
    Duplicate,
    /// It arrived at the far end.
    Deliver,
}

impl Event {
    /// Every event, in the order of declaration.
    pub const ALL: [Event; 8] = [
        Event::Enqueue,
        Event::Drop,
        Event::Mark,
        Event::Depart,
        Event::Lose,
        Event::Corrupt,
        Event::Duplicate,
        Event::Deliver,
    ];

    /// Its name in the table of packets.
    pub const fn name(self) -> &'static str {
        match self {
            Event::Enqueue => "enqueue",
            Event::Drop => "drop",
            Event::Mark => "mark",
            Event::Depart => "depart",
            Event::Lose => "lose",
            Event::Corrupt => "corrupt",
            Event::Duplicate => "duplicate",
            Event::Deliver => "deliver",
        }
    }
}

/// Notified of every event, at its exact logical time.
///
/// A link is advanced only when it is used. So the events of one link come in the order of its own
/// work, each with its own time, and may be notified later than they happened.
pub trait Observer<P> {
    /// `event` happened to `packet` at `at`; `queue_packets` wait in the queue after it.
    fn on(&mut self, event: Event, at: Time, packet: &P, queue_packets: u32);

    /// The contents of `packet`, for a discipline that looks into it; empty where they are not known.
    fn inside(&self, _packet: &P) -> Inside {
        Inside::default()
    }
}

/// No observer: costs nothing.
impl<P> Observer<P> for () {
    #[inline(always)]
    fn on(&mut self, _: Event, _: Time, _: &P, _: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_can_be_counted_by_their_number() {
        for (index, event) in Event::ALL.iter().enumerate() {
            assert_eq!(*event as usize, index);
        }
    }
}
