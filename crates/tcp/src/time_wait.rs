//! The state of a connection that both ends have closed (RFC 9293, section 3.3.2: TIME-WAIT).

use tcplab_units::Time;

use crate::connection::{State, timestamp_at};
use crate::segment::{FIN, RST};
use crate::{Connection, Segment};

/// A closed end: it answers what the peer retransmits, and knows no more than that takes.
#[derive(Clone, Copy, Debug)]
pub struct TimeWait {
    ack: Segment,
}

impl TimeWait {
    /// The answer to `segment`, if it draws one.
    pub fn answer(&self, segment: &Segment, now: Time) -> Option<Segment> {
        let draws = segment.flags & RST == 0 && (segment.len > 0 || segment.flags & FIN != 0);
        draws.then(|| {
            let ts_val = if self.ack.has_timestamp { timestamp_at(now) } else { 0 };
            Segment { ts_val, ..self.ack }
        })
    }
}

impl Connection {
    /// Whether `time_wait` can take this end's place: it is closed, and nothing is under way inside.
    pub fn is_at_rest(&self) -> bool {
        self.state == State::Closed
            && self.poll_timeout() == Time::NEVER
            && self.is_drained()
            && !self.config.gro
            && !self.rcv.held.anything_to_report()
    }

    /// The state that answers in this end's place from now on, if it `is_at_rest`.
    pub fn time_wait(mut self) -> TimeWait {
        TimeWait { ack: self.header() }
    }
}

#[cfg(test)]
mod tests {
    use tcplab_units::Span;

    use super::*;
    use crate::Config;
    use crate::segment::ACK;
    use crate::tests::pair::Pair;

    /// The client of a connection that has carried 100 kB and is closed at both ends.
    fn closed() -> (Connection, Time) {
        let config = Config::default();
        let mut pair = Pair::new([&config; 2], "cubic", [1, 2], Span::from_ms(5), 1);
        pair.ends[0].write(100_000, pair.now);
        for end in 0..2 {
            let now = pair.now;
            pair.ends[end].close(now);
        }
        pair.run_to_the_end(10_000);
        let [client, _] = pair.ends;
        (client, pair.now + Span::from_ms(30))
    }

    #[test]
    fn a_retransmitted_fin_draws_the_ack_that_the_connection_would_have_sent() {
        let (mut client, now) = closed();
        assert!(client.is_at_rest());
        let (mut twin, _) = closed();
        let fin = Segment { seq: twin.rcv.nxt.wrapping_sub(1), flags: FIN | ACK, ..twin.header() };
        client.handle_segment(&fin, now);
        let answer = client.poll_transmit(now);
        assert!(answer.is_some_and(|ack| ack.ack == client.rcv.nxt));
        assert_eq!(client.time_wait().answer(&fin, now), answer);
    }

    #[test]
    fn an_ack_and_a_reset_draw_no_answer() {
        let (mut client, now) = closed();
        let ack = client.header();
        let rest = client.time_wait();
        assert_eq!(rest.answer(&ack, now), None);
        assert_eq!(rest.answer(&Segment { flags: RST, len: 1, ..ack }, now), None);
    }
}
