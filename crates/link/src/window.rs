//! The packets that a direction of a shared medium has taken from its queue and not brought across: the window of its
//! block acknowledgments (IEEE 802.11-2020, 10.25).
//!
//! Lost frames are retransmitted in later transmissions, before new ones. The receiver holds back those that came
//! after them, so that all arrive in the order in which they left the queue. A frame that is given up holds nothing back.

use std::collections::VecDeque;

use tcplab_units::{Rate, Span};

use crate::config::{Aggregation, Overhead};
use crate::packet::Packet;
use crate::qdisc::{Gauge, Queued};

/// Frames from the oldest that has not arrived on.
#[derive(Clone, Debug)]
pub(crate) struct Window<P> {
    frames: VecDeque<Frame<P>>,
    /// Frames sent since the start, retransmissions included.
    transmitted: u64,
    /// Of these the retransmissions.
    retransmitted: u64,
    /// Transmissions since the start, and how long their frames took.
    transmissions: u64,
    airtime: Span,
}

#[derive(Clone, Debug)]
struct Frame<P> {
    packet: Queued<P>,
    len: u64,
    state: State,
    /// Transmissions of it that were lost.
    losses: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    OnAir,
    Received,
    GivenUp,
}

impl<P: Packet> Window<P> {
    pub(crate) fn new() -> Window<P> {
        Window {
            frames: VecDeque::new(),
            transmitted: 0,
            retransmitted: 0,
            transmissions: 0,
            airtime: Span::ZERO,
        }
    }

    /// Packets in it.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether a frame waits to be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        self.frames.iter().any(|frame| frame.state == State::Waits)
    }

    /// Counts since the start: transmissions, retransmitted frames, and how long frames took. Nothing where it
    /// has done nothing.
    pub(crate) fn gauges(&self) -> Vec<Gauge> {
        if self.transmissions == 0 {
            return Vec::new();
        }
        let count =
            |name: &'static str, value: u64, unit| Gauge { name: name.into(), value: value as f64, unit };
        vec![
            count("transmissions", self.transmissions, ""),
            count("retransmitted", self.retransmitted, "packets"),
            Gauge { name: "airtime".into(), value: self.airtime.as_secs_f64() * 1e3, unit: "ms" },
        ]
    }

    /// Begins a transmission of what waits and of what `next` takes from the queue, and returns how long its frames take;
    /// none: there is nothing to send. A packet that does not fit in any more waits for the next one.
    pub(crate) fn begin(
        &mut self,
        maximum: &Aggregation,
        rate: Rate,
        overhead: Overhead,
        mut next: impl FnMut() -> Option<Queued<P>>,
    ) -> Option<Span> {
        let (mut count, mut bytes, mut is_full) = (0, 0, false);
        for frame in self.frames.iter_mut().filter(|frame| frame.state == State::Waits) {
            if !maximum.has_room(count, bytes, frame.len, rate) {
                is_full = true;
                break;
            }
            (count, bytes) = (count + 1, bytes + frame.len);
            frame.state = State::OnAir;
            self.retransmitted += u64::from(frame.losses > 0);
        }
        while !is_full && self.frames.len() < maximum.frames as usize {
            let Some(packet) = next() else { break };
            let len = u64::from(overhead.len_on_wire(packet.packet.frame_len()));
            is_full = !maximum.has_room(count, bytes, len, rate);
            let state = if is_full { State::Waits } else { State::OnAir };
            if !is_full {
                (count, bytes) = (count + 1, bytes + len);
            }
            self.frames.push_back(Frame { packet, len, state, losses: 0 });
        }
        if count == 0 {
            return None;
        }
        let time = rate.time_to_send(bytes);
        self.transmissions += 1;
        self.airtime += time;
        Some(time)
    }

    /// Ends the transmission: `lose` says for each frame's number, counting transmitted frames, whether it is lost. Returns
    /// whether any frame arrived or was given up.
    pub(crate) fn end(&mut self, retries: u32, mut lose: impl FnMut(u64) -> bool) -> bool {
        let mut is_done = false;
        for frame in self.frames.iter_mut().filter(|frame| frame.state == State::OnAir) {
            self.transmitted += 1;
            let is_lost = lose(self.transmitted);
            frame.losses += u32::from(is_lost);
            frame.state = match is_lost {
                false => State::Received,
                true if frame.losses > retries => State::GivenUp,
                true => State::Waits,
            };
            is_done |= frame.state != State::Waits;
        }
        is_done
    }

    /// The next packet that nothing holds back any more, and whether it was given up.
    pub(crate) fn pop(&mut self) -> Option<(Queued<P>, bool)> {
        let is_given_up = match self.frames.front()?.state {
            State::Received => false,
            State::GivenUp => true,
            State::Waits | State::OnAir => return None,
        };
        self.frames.pop_front().map(|frame| (frame.packet, is_given_up))
    }

    /// Empties it.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = P> {
        self.frames.drain(..).map(|frame| frame.packet.packet)
    }
}
