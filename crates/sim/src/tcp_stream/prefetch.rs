//! A connection's memory, asked for before it is read (`look_ahead.rs` says when).

use std::mem::offset_of;

use tcplab_units::{prefetch_part, prefetch_start};

use super::{CLIENT, SERVER, TcpStream};
use crate::histogram::Histogram;

impl TcpStream {
    /// A segment will arrive soon: asks for the memory that it will need of this, whatever it brings.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_start(self);
    }

    /// The same, for the end that it is sent to, and for what an ACK needs besides.
    #[inline]
    pub(crate) fn prefetch_end(&self, forward: bool) {
        let brings_acks = self.brings_acks(forward);
        if brings_acks {
            prefetch_part::<
                { offset_of!(TcpStream, window) },
                { offset_of!(TcpStream, rtt) + Histogram::RECENT },
            >(self);
        }
        if let Some(end) = &self.ends[usize::from(forward)] {
            end.prefetch(!brings_acks);
        }
    }

    /// The same, for what the end points to, where it is not data that arrive.
    #[inline]
    pub(crate) fn prefetch_behind_end(&self, forward: bool) {
        if self.brings_acks(forward)
            && let Some(end) = &self.ends[usize::from(forward)]
        {
            end.prefetch_behind();
        }
    }

    /// The counters of the ends that send payload will be read soon.
    pub(crate) fn prefetch_counters(&self) {
        for end in [CLIENT, SERVER].into_iter().filter(|end| self.sends(*end)) {
            if let Some(connection) = &self.ends[end] {
                connection.prefetch_counters();
            }
        }
    }
}
