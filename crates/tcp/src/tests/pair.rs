//! Two endpoints joined by a channel that loses, reorders, duplicates and marks.

use std::collections::BTreeMap;

use tcplab_control::Control;
use tcplab_units::{Span, Time};

use crate::connection::State;
use crate::segment::Segment;
use crate::{Config, Connection, Notice};

/// The impairments of one direction, in 1/1000 of the packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub loss: u64,
    pub duplicate: u64,
    pub reorder: u64,
    pub mark: u64,
    /// Time between two packets on the wire; 0: no bottleneck.
    pub per_packet_us: u64,
    /// Maximum packets waiting at the bottleneck.
    pub queue: u64,
}

/// A small deterministic generator (splitmix64).
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn hits(&mut self, per_mille: u64) -> bool {
        self.roll() % 1000 < per_mille
    }
}

/// An application that reads so many bytes every so often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowReader {
    pub every: Span,
    pub bytes: u64,
}

pub(crate) struct Pair {
    pub ends: [Connection; 2],
    reader: Option<SlowReader>,
    next_read: Time,
    /// Segments that the ends expect take the short way.
    pub predicts: bool,
    /// Segments that did.
    pub expected: u64,
    pub now: Time,
    pub one_way: Span,
    pub faults: [Faults; 2],
    pub dice: Dice,
    busy_until: [Time; 2],
    wire: BTreeMap<(Time, u64), (usize, Segment)>,
    serial: u64,
    pub notices: [Vec<Notice>; 2],
    pub delivered: u64,
}

pub(crate) fn control(name: &str) -> Control {
    Control::new(name, []).expect("a built-in control")
}

impl Pair {
    /// Two ends whose SYN has been delivered; from then on `faults` hold.
    pub(crate) fn new(configs: [&Config; 2], name: &str, isn: [u32; 2], one_way: Span, seed: u64) -> Pair {
        let mut client = Connection::connect(configs[0], control(name), isn[0], Time::ZERO);
        let syn = client.poll_transmit(Time::ZERO).expect("the SYN");
        let now = Time::ZERO + one_way;
        let server = Connection::accept(configs[1], control(name), isn[1], &syn, now);
        Pair {
            ends: [client, server],
            reader: None,
            next_read: Time::NEVER,
            predicts: false,
            expected: 0,
            now,
            one_way,
            faults: [Faults::default(); 2],
            dice: Dice(seed),
            busy_until: [Time::ZERO; 2],
            wire: BTreeMap::new(),
            serial: 0,
            notices: [Vec::new(), Vec::new()],
            delivered: 0,
        }
    }

    /// Both applications read slowly from now on.
    pub(crate) fn read_slowly(&mut self, reader: SlowReader) {
        self.reader = Some(reader);
        self.next_read = self.now + reader.every;
        for end in &mut self.ends {
            end.read_at_once(false);
        }
    }

    fn read(&mut self) {
        let Some(reader) = self.reader else { return };
        for end in &mut self.ends {
            end.read(reader.bytes, self.now);
        }
        // Once both ends are done there is nothing to wait for.
        let done = self.finished(0) && self.finished(1);
        self.next_read = if done { Time::NEVER } else { self.now + reader.every };
    }

    fn put(&mut self, from: usize, mut segment: Segment) {
        let faults = self.faults[from];
        if faults.per_packet_us > 0 {
            let wait = self.busy_until[from].since(self.now).as_us();
            if wait > faults.queue * faults.per_packet_us {
                return;
            }
            let start = if self.busy_until[from] > self.now { self.busy_until[from] } else { self.now };
            self.busy_until[from] = start + Span::from_us(faults.per_packet_us);
        } else {
            self.busy_until[from] = self.now;
        }
        if self.dice.hits(faults.loss) {
            return;
        }
        if segment.ecn != 0 && self.dice.hits(faults.mark) {
            segment.ecn = 3;
        }
        let copies = 1 + u64::from(self.dice.hits(faults.duplicate));
        for _ in 0..copies {
            let late =
                if self.dice.hits(faults.reorder) { self.dice.roll() % self.one_way.as_ns() } else { 0 };
            let at = self.busy_until[from] + self.one_way + Span::from_ns(late);
            self.serial += 1;
            self.wire.insert((at, self.serial), (1 - from, segment));
        }
    }

    pub(crate) fn flush(&mut self) {
        for from in 0..2 {
            while let Some(segment) = self.ends[from].poll_transmit(self.now) {
                self.put(from, segment);
            }
            while let Some(notice) = self.ends[from].poll_notice() {
                self.notices[from].push(notice);
            }
            self.ends[from].verify();
        }
    }

    /// Goes to the next event; false if there is none before `until`.
    pub(crate) fn step(&mut self, until: Time) -> bool {
        self.flush();
        let arrival = self.wire.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        let timer = self.ends[0].poll_timeout().min(self.ends[1].poll_timeout());
        let next = arrival.min(timer).min(self.next_read);
        if arrival.min(timer) == Time::NEVER && self.ends.iter().all(|end| end.rcv.unread == 0) {
            return false;
        }
        if next == Time::NEVER || next > until {
            return false;
        }
        assert!(next >= self.now, "time does not go back: {next} after {}", self.now);
        self.now = next;
        if self.next_read == next {
            self.read();
        } else if arrival == next {
            if let Some((_, (to, segment))) = self.wire.pop_first() {
                self.delivered += 1;
                let end = &mut self.ends[to];
                let takes = self.predicts
                    && (end.expects_data() && end.receive_expected_data(&segment, false, next)
                        || end.expects_acks() && end.receive_expected_ack(&segment, next));
                self.expected += u64::from(takes);
                if !takes {
                    end.handle_segment(&segment, next);
                }
            }
        } else {
            for end in &mut self.ends {
                if end.poll_timeout() <= next {
                    end.handle_timeout(next);
                }
            }
        }
        self.flush();
        true
    }

    /// Runs to the end of both ends; panics if that takes more than `maximum` events.
    pub(crate) fn run_to_the_end(&mut self, maximum: u64) {
        let mut events = 0;
        while self.step(Time::NEVER) {
            events += 1;
            assert!(events < maximum, "no end after {events} events: {self:?}");
        }
    }

    pub(crate) fn finished(&self, end: usize) -> bool {
        matches!(self.ends[end].state, State::Closed | State::Aborted)
    }
}

impl core::fmt::Debug for Pair {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b] = &self.ends;
        write!(
            f,
            "at {}: {:?} {:?} and {:?} {:?}",
            self.now,
            a.state,
            a.info(self.now),
            b.state,
            b.info(self.now)
        )
    }
}
