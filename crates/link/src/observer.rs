//! Who is told what happens to each packet.

use tcplab_units::Time;

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// It entered the queue, or the serialiser at once where nothing was ahead of it.
    Enqueue,
    /// The queue was full, or the link down.
    Drop,
    /// The queue set "congestion experienced" on it.
    Mark,
    /// Its last bit left the serialiser.
    Depart,
    /// The loss process struck it.
    Lose,
    /// Its bits were damaged; it travels on.
    Corrupt,
    /// A copy of it was made; the packet shown is the copy.
    Duplicate,
    /// It arrived at the far end.
    Deliver,
}

/// Is told of every event, at its exact logical time.
///
/// A link is advanced only when it is used, so the events of one link come in the order of its own
/// work, each with its own time, and may be told later than they happened.
pub trait Observer<P> {
    /// `event` happened to `packet` at `at`; `queue_packets` wait in the queue after it.
    fn on(&mut self, event: Event, at: Time, packet: &P, queue_packets: u32);
}

/// Nobody: costs nothing.
impl<P> Observer<P> for () {
    #[inline(always)]
    fn on(&mut self, _: Event, _: Time, _: &P, _: u32) {}
}
