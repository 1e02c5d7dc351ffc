//! A client's record of its round trips, in memory that does not grow with their number.

use std::sync::atomic::{AtomicU64, Ordering};

use tcplab_tables::EchoTally;

/// Round trips that are handed on at a time.
const CHUNK: usize = 65_536;

/// One round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Its number at its size, from 0.
    pub iteration: u64,
    /// When its message was given to the kernel, ns since the run's start.
    pub time: u64,
    /// Until the last byte of the answer was read, ns.
    pub rtt: u64,
}

/// Which round trips are kept one by one, and which in a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The first so many at each size one by one; `u64::MAX`: all.
    pub rounds: u64,
    /// From this one on in a tally; `u64::MAX`: none.
    pub tally_from: u64,
}

impl Keep {
    /// Every round trip one by one.
    pub const ALL: Keep = Keep { rounds: u64::MAX, tally_from: u64::MAX };

    /// The first `head` one by one, the others in a tally.
    pub fn head(head: u64) -> Keep {
        Keep { rounds: head, tally_from: head }
    }
}

/// How far a client has come, for those who watch. Its thread alone writes, which costs what a store costs.
#[derive(Debug, Default)]
pub struct Live {
    /// Place of the present size in the list.
    pub place: AtomicU64,
    /// Round trips at that size.
    pub done: AtomicU64,
    /// Sum of their times, ns.
    pub sum: AtomicU64,
    /// The longest, ns.
    pub max: AtomicU64,
    /// Payload received at all sizes, bytes.
    pub bytes: AtomicU64,
}

/// The record of one client at one size.
pub(crate) struct Record<'a> {
    keep: Keep,
    rounds: Vec<Round>,
    tally: EchoTally,
    live: &'a Live,
    size: u64,
    done: u64,
    sum: u64,
    max: u64,
}

impl<'a> Record<'a> {
    /// For series of `iterations` round trips.
    pub fn new(keep: Keep, iterations: u64, live: &'a Live) -> Record<'a> {
        let room = keep.rounds.min(iterations).min(CHUNK as u64) as usize;
        Record {
            keep,
            rounds: Vec::with_capacity(room),
            tally: EchoTally::default(),
            live,
            size: 0,
            done: 0,
            sum: 0,
            max: 0,
        }
    }

    /// The client turns to another size, the one at `place`.
    pub fn turn_to(&mut self, place: usize, size: u32) {
        self.rounds.clear();
        self.tally.clear();
        (self.size, self.done, self.sum, self.max) = (u64::from(size), 0, 0, 0);
        self.live.done.store(0, Ordering::Relaxed);
        self.live.sum.store(0, Ordering::Relaxed);
        self.live.max.store(0, Ordering::Relaxed);
        self.live.place.store(place as u64, Ordering::Release);
    }

    /// Keeps a round trip; true when [`Record::rounds`] must be handed on before the next.
    #[inline]
    pub fn take(&mut self, round: Round) -> bool {
        if round.iteration >= self.keep.tally_from {
            self.tally.record(round.iteration, round.time, round.rtt);
        }
        if round.iteration < self.keep.rounds {
            self.rounds.push(round);
        }
        self.done += 1;
        self.sum += round.rtt;
        self.max = self.max.max(round.rtt);
        self.live.sum.store(self.sum, Ordering::Relaxed);
        self.live.max.store(self.max, Ordering::Relaxed);
        self.live.done.store(self.done, Ordering::Relaxed);
        let bytes = self.live.bytes.load(Ordering::Relaxed);
        self.live.bytes.store(bytes + self.size, Ordering::Relaxed);
        self.rounds.len() == CHUNK
    }

    /// Those kept one by one since the last [`Record::forget`].
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// They have been handed on.
    pub fn forget(&mut self) {
        self.rounds.clear();
    }

    /// Round trips at this size so far.
    pub fn done(&self) -> u64 {
        self.done
    }

    pub fn tally(&self) -> &EchoTally {
        &self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(iteration: u64, rtt: u64) -> Round {
        Round { iteration, time: 0, rtt }
    }

    fn live(live: &Live) -> [u64; 5] {
        [&live.place, &live.done, &live.sum, &live.max, &live.bytes]
            .map(|count| count.load(Ordering::Relaxed))
    }

    #[test]
    fn those_who_watch_see_the_present_size_and_the_bytes_of_all() {
        let watched = Live::default();
        let mut record = Record::new(Keep::ALL, 10, &watched);
        record.turn_to(0, 100);
        [30, 50, 20].iter().zip(0..).for_each(|(rtt, at)| _ = record.take(round(at, *rtt)));
        assert_eq!(live(&watched), [0, 3, 100, 50, 300]);
        record.turn_to(1, 7);
        assert_eq!(live(&watched), [1, 0, 0, 0, 300]);
        record.take(round(0, 5));
        assert_eq!(live(&watched), [1, 1, 5, 5, 307]);
        assert_eq!((record.done(), record.rounds()), (1, &[round(0, 5)][..]));
    }

    #[test]
    fn round_trips_are_handed_on_in_chunks_of_a_fixed_size() {
        let watched = Live::default();
        let mut record = Record::new(Keep::ALL, u64::MAX, &watched);
        record.turn_to(0, 1);
        for at in 0..2 * CHUNK as u64 {
            let full = record.take(round(at, 1));
            assert_eq!(full, (at + 1) % CHUNK as u64 == 0);
            if full {
                assert_eq!(record.rounds().len(), CHUNK);
                record.forget();
            }
        }
        assert_eq!(record.done(), 2 * CHUNK as u64);
    }
}
