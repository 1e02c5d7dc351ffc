//! Where clients wait for each other before each size, so that all of them always echo the same size.

use std::sync::{Condvar, Mutex, PoisonError};

use super::framed_io::Limit;
use crate::socket::ATTENTION;

/// A barrier that members may leave for good.
#[derive(Debug)]
pub(crate) struct Barrier {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug)]
struct State {
    members: u32,
    waiting: u32,
    round: u64,
}

impl Barrier {
    pub fn new(members: u32) -> Barrier {
        Barrier { state: Mutex::new(State { members, waiting: 0, round: 0 }), opened: Condvar::new() }
    }

    /// Waits until all members do; false if all is over first.
    pub fn wait(&self, limit: &Limit) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let round = state.round;
        state.waiting += 1;
        state.open_if_complete(&self.opened);
        while state.round == round {
            if limit.over() {
                return false;
            }
            let woken = self.opened.wait_timeout(state, ATTENTION);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        !limit.over()
    }

    /// A member that is not waiting goes: nobody waits for it any more.
    pub fn leave(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.members = state.members.saturating_sub(1);
        state.open_if_complete(&self.opened);
    }
}

impl State {
    fn open_if_complete(&mut self, opened: &Condvar) {
        if self.waiting > 0 && self.waiting >= self.members {
            self.waiting = 0;
            self.round += 1;
            opened.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    #[test]
    fn the_others_go_on_when_one_leaves() {
        let (barrier, stop, passed) = (Barrier::new(3), AtomicBool::new(false), AtomicU32::new(0));
        let limit = Limit { stop: &stop, end: u64::MAX };
        std::thread::scope(|scope| {
            for member in 0..3 {
                let (barrier, passed) = (&barrier, &passed);
                scope.spawn(move || {
                    for round in 0..10 {
                        if member == 0 && round == 4 {
                            break;
                        }
                        assert!(barrier.wait(&limit));
                        passed.fetch_add(1, Ordering::Relaxed);
                    }
                    barrier.leave();
                });
            }
        });
        assert_eq!(passed.load(Ordering::Relaxed), 4 + 10 + 10);
    }

    #[test]
    fn a_stop_ends_the_waiting() {
        let (barrier, stop) = (Barrier::new(2), AtomicBool::new(true));
        assert!(!barrier.wait(&Limit { stop: &stop, end: u64::MAX }));
    }
}
