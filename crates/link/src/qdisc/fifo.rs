//! Packets in the order of their arrival, and their bytes: what disciplines are built from.

use std::collections::VecDeque;

use super::{Backlog, Cause, Queued, Sink};
use crate::packet::Packet;

/// A queue without a limit.
#[derive(Clone, Debug)]
pub(super) struct Fifo<P> {
    packets: VecDeque<Queued<P>>,
    bytes: u64,
}

impl<P: Packet> Fifo<P> {
    pub(super) fn new() -> Fifo<P> {
        Fifo { packets: VecDeque::new(), bytes: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, packet: Queued<P>) {
        self.bytes += u64::from(packet.packet.frame_len());
        self.packets.push_back(packet);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Queued<P>> {
        let head = self.packets.pop_front()?;
        self.bytes -= u64::from(head.packet.frame_len());
        Some(head)
    }

    #[inline]
    pub(super) fn head(&self) -> Option<&Queued<P>> {
        self.packets.front()
    }

    #[inline]
    pub(super) fn head_mut(&mut self) -> Option<&mut Queued<P>> {
        self.packets.front_mut()
    }

    /// All packets, from the head on.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Queued<P>> {
        self.packets.iter()
    }

    /// Takes the packet out that waits behind `index` others.
    pub(super) fn remove(&mut self, index: usize) -> Option<Queued<P>> {
        let packet = self.packets.remove(index)?;
        self.bytes -= u64::from(packet.packet.frame_len());
        Some(packet)
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    #[inline]
    pub(super) fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u32, bytes: self.bytes }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.packets.capacity()
    }

    /// Drops all packets.
    pub(super) fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        self.bytes = 0;
        for waiting in self.packets.drain(..) {
            sink.dropped(&waiting.packet, cause);
        }
    }
}
