//! A capture's packets handed out to several threads, each of which analyses its share of the flows.
//!
//! One thread at a time walks on through the capture: whichever finds that too little waits for it. It looks at each
//! packet's addresses and ports only, and notes where the packet lies for the thread whose flow it is. So the walk is
//! made once, and a thread whose flows have fewer packets does more of it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::flow::{Counts, Division, Flows, Options, Share};
use crate::parse::FourTuple;
use crate::read::{Bytes, Place, Reader};

/// Packets walked through at once: few enough to be still in a core's cache when they are analysed.
const PIECE: usize = 2048;
/// A thread walks on when less than this many pieces wait for it.
const FEW: usize = 2;
/// A thread does not walk on if so many wait for another, until half of them do. So few pieces wait even if all
/// packets are of one flow. To be woken for each piece would take longer than to walk through it.
const MANY: usize = 32;

/// A packet for a share to look at.
struct Handed {
    place: Place,
    /// The latest time that any packet had up to this one.
    latest: i64,
    /// The fast path could not read its endpoints.
    to_all: bool,
}

/// The packets of a piece that one share gets.
type Batch = Vec<Handed>;

pub(crate) struct Distributor<'r> {
    bytes: Bytes,
    division: Division,
    state: Mutex<State<'r>>,
    changed: Condvar,
}

struct State<'r> {
    /// None while somebody walks.
    walker: Option<Walker<'r>>,
    /// For each share.
    waiting: Vec<VecDeque<Batch>>,
    /// Empty ones, to be filled again.
    spare: Vec<Batch>,
    /// A thread has panicked.
    abandoned: bool,
}

struct Walker<'r> {
    reader: &'r mut Reader,
    latest: i64,
}

enum Task<'r> {
    Walk(Walker<'r>, Vec<Batch>),
    Analyse(Batch),
}

impl<'r> Distributor<'r> {
    pub(crate) fn new(reader: &'r mut Reader, bytes: Bytes, division: Division) -> Distributor<'r> {
        let waiting = division.shares().map(|_| VecDeque::new()).collect();
        let walker = Some(Walker { reader, latest: i64::MIN });
        let state = State { walker, waiting, spare: Vec::new(), abandoned: false };
        Distributor { bytes, division, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Does a share's work, and walks when it is time to: its flows, and what it has counted.
    pub(crate) fn work(&self, share: Share, options: Options) -> (Flows, Counts) {
        let _panic_ends_all = PanicEndsAll(self);
        let mut analysis = share.analysis(options);
        let mut done = None;
        while let Some(task) = self.next_task(share.index(), done.take()) {
            match task {
                Task::Walk(mut walker, mut batches) => {
                    self.walk(&mut walker, &mut batches);
                    self.distribute(walker, batches);
                }
                Task::Analyse(mut batch) => {
                    for Handed { place, latest, to_all } in batch.drain(..) {
                        let packet = self.bytes.packet(&place);
                        analysis.has_reached(latest);
                        if to_all {
                            share.shown_to_all(&mut analysis, &packet);
                        } else {
                            analysis.packet(&packet);
                        }
                    }
                    done = Some(batch);
                }
            }
        }
        share.finish(analysis)
    }

    /// The next work for a thread; none when all is done. `done` is a batch it has emptied.
    fn next_task(&self, index: usize, done: Option<Batch>) -> Option<Task<'r>> {
        let mut state = self.lock();
        state.spare.extend(done);
        loop {
            if state.abandoned {
                return None;
            }
            let ended = state.walker.as_ref().is_some_and(|walker| walker.reader.ending().is_some());
            if !ended
                && state.waiting[index].len() < FEW
                && state.waiting.iter().all(|waiting| waiting.len() < MANY)
                && let Some(walker) = state.walker.take()
            {
                let batches = state.waiting.len();
                let batches = (0..batches).map(|_| state.spare.pop().unwrap_or_default()).collect();
                return Some(Task::Walk(walker, batches));
            }
            let waiting = &mut state.waiting[index];
            if let Some(batch) = waiting.pop_front() {
                if waiting.len() == MANY / 2 {
                    self.changed.notify_all();
                }
                return Some(Task::Analyse(batch));
            }
            if ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Goes on by a piece.
    fn walk(&self, walker: &mut Walker<'_>, batches: &mut [Batch]) {
        for _ in 0..PIECE {
            let Some(place) = walker.reader.next_place() else { return };
            let packet = self.bytes.packet(&place);
            walker.latest = walker.latest.max(packet.time);
            let latest = walker.latest;
            match FourTuple::from_fixed_headers(packet.link, packet.bytes) {
                Some(ends) => {
                    batches[self.division.part(&ends)].push(Handed { place, latest, to_all: false });
                }
                None => {
                    for batch in &mut *batches {
                        batch.push(Handed { place, latest, to_all: true });
                    }
                }
            }
        }
    }

    fn distribute(&self, walker: Walker<'r>, batches: Vec<Batch>) {
        let mut state = self.lock();
        let State { waiting, spare, .. } = &mut *state;
        for (waiting, batch) in waiting.iter_mut().zip(batches) {
            if batch.is_empty() { spare.push(batch) } else { waiting.push_back(batch) }
        }
        state.walker = Some(walker);
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<'r>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The others must not wait for a thread that has panicked.
struct PanicEndsAll<'h, 'r>(&'h Distributor<'r>);

impl Drop for PanicEndsAll<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().abandoned = true;
            self.0.changed.notify_all();
        }
    }
}
