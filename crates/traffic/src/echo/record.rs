//! What a client keeps of its round trips, in memory that does not grow with their number.

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
