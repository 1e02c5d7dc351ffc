//! Header prediction (V. Jacobson, 1990; Linux `tcp_rcv_established`): most segments of a transfer are the ones that were
//! expected, for which most checks come out as they did for the last one.

use tcplab_units::Time;

use crate::Connection;
use crate::connection::State;
use crate::ecn::EcnFeedback;
use crate::segment::{ACK, PSH, Segment};
use crate::seq::before;

impl Connection {
    /// Whether it only receives, and all that has arrived was in order and has been read.
    #[inline]
    pub fn expects_data(&self) -> bool {
        self.only_receives()
            && self.rcv.is_in_step()
            && self.ecn_feedback() == EcnFeedback::None
            && !self.snd.buffer.writer_waits()
            && !self.merges
            && self.timers.only_delays_ack()
    }

    /// Takes in data that arrived at `now` if that is what was expected: a full segment, next in sequence. Whether it was; if
    /// not, nothing has changed.
    ///
    /// `expects_data` has to hold, and does so afterwards. `again`: of the segment before, which was expected, it differs in no
    /// more than its sequence number. The effects are those of `handle_segment`.
    #[inline(always)]
    pub fn receive_expected_data(&mut self, segment: &Segment, again: bool, now: Time) -> bool {
        let is_expected = segment.seq == self.rcv.nxt
            && (again || self.is_usual(segment))
            && self.rcv.window.left(self.rcv.nxt) > 0
            && self.timers.delayed_ack > now;
        if !is_expected {
            return false;
        }
        self.set_now(now);
        self.note_echo(segment);
        self.take_timestamp(segment);
        self.snd.wl1 = segment.seq;
        self.measure_receiver_rtt_by_timestamp(segment.len);
        self.queue_expected(segment.len, segment.flags);
        self.acknowledge_expected();
        self.read_expected(segment.len);
        true
    }

    /// Whether it is established and has sent what may be acknowledged.
    #[inline]
    pub fn expects_acks(&self) -> bool {
        self.state == State::Established && self.sk.packets_out > 0 && !self.merges
    }

    /// Takes in an ACK without data that arrived at `now`, next in sequence. Whether it was one; if not, nothing has changed.
    ///
    /// The effects are those of `handle_segment`.
    #[inline(always)]
    pub fn receive_expected_ack(&mut self, segment: &Segment, now: Time) -> bool {
        if !self.is_expected_ack(segment) {
            return false;
        }
        self.set_now(now);
        self.note_echo(segment);
        self.take_timestamp(segment);
        self.accecn_on_arrival(segment, 0);
        if self.process_ack(segment) {
            self.push_pending();
            self.check_send_space();
            self.finish_if_closed();
        } else {
            self.send_ack();
        }
        true
    }

    #[inline(always)]
    fn is_expected_ack(&self, segment: &Segment) -> bool {
        segment.flags == ACK
            && segment.len == 0
            && segment.seq == self.rcv.nxt
            && segment.has_timestamp == self.timestamps_ok
            && !before(segment.ts_val, self.rcv.ts_recent)
            && self.rcv.unread == 0
            && !self.rcv.delack.is_scheduled()
            && !self.rcv.delack.is_due_now()
    }

    /// Whether it is a full segment of data, with nothing else that is new.
    #[inline(always)]
    fn is_usual(&self, segment: &Segment) -> bool {
        segment.flags & !PSH == ACK
            && segment.len == self.rcv.delack.segment_size()
            && segment.ack == self.sk.snd_una
            && segment.sack_count == 0
            && u32::from(segment.window) << self.snd.wscale == self.snd.wnd
            && segment.has_timestamp == self.timestamps_ok
            && !before(segment.ts_val, self.rcv.ts_recent)
    }
}
