//! The event queue: each component's next wake-up, ordered by time, then by sequence number.
//!
//! A component (a link direction, a timer of a stream, a sampler) waits for at most one thing at a time, so the queue
//! is a tournament among components (D. Knuth, "The Art of Computer Programming", volume 3, section 5.4.1) and holds
//! no event per packet. Of two neighbours the one that wakes up first plays on; the winner of all is next. A new time
//! replays one component's matches up to the first whose winner stays, which for most timers is an early one.

use tcplab_units::Time;

/// A component's number.
pub(crate) type Slot = u32;

/// When a component wakes up. Time is in the upper half. The sequence number below it breaks ties at one time in the
/// order in which wake-ups were asked for. The lowest bits are the component. One number is compared faster than three.
type Key = u128;

/// A component that waits for nothing.
const ABSENT: Key = Key::MAX;
/// Room for 16 million components and, at ten million events a second, for a day's wake-ups.
const SLOT_BITS: u32 = 24;
const SEQUENCE_BITS: u32 = 64 - SLOT_BITS;

/// No component.
const NOBODY: Slot = Slot::MAX;

/// Who wakes up when.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The matches, as a tree: that at `n` is between those at `2n` and `2n + 1`, and the winner of all is at 1. The
    /// upper half are the components themselves.
    keys: Vec<Key>,
    slots: usize,
    sequence: u64,
    now: Time,
    /// The component that is awake and has not said yet when it wants to wake up next. Its entry stays until then:
    /// most go straight back into the schedule, which replays their matches once, not twice.
    awake: Slot,
}

impl Schedule {
    /// Most components of a schedule.
    pub(crate) const SLOTS_MAX: u32 = 1 << SLOT_BITS;

    /// A schedule of `slots` components, none of which waits for anything; none: there are too many.
    pub(crate) fn new(slots: usize) -> Option<Schedule> {
        (slots <= Schedule::SLOTS_MAX as usize).then(|| Schedule {
            keys: vec![ABSENT; 2 * slots.max(1)],
            slots: slots.max(1),
            sequence: 0,
            now: Time::ZERO,
            awake: NOBODY,
        })
    }

    /// The present: when the last component woke up.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// When the next component wakes up; `Time::NEVER` if none does.
    #[inline]
    pub(crate) fn next_time(&mut self) -> Time {
        self.put_to_sleep();
        time_of(self.keys[1])
    }

    /// Moves the present to the next wake-up, and returns whose it is.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Slot> {
        self.put_to_sleep();
        let first = self.keys[1];
        if first == ABSENT {
            return None;
        }
        let time = time_of(first);
        assert!(time >= self.now, "time went back from {} to {time}", self.now);
        self.now = time;
        self.awake = first as Slot & ((1 << SLOT_BITS) - 1);
        Some(self.awake)
    }

    /// Takes the entry of a component off that did not ask for another wake-up.
    #[inline]
    fn put_to_sleep(&mut self) {
        if self.awake != NOBODY {
            self.replay(self.awake, ABSENT);
            self.awake = NOBODY;
        }
    }

    /// Moves the present to `time`, which nothing that is still scheduled comes before.
    pub(crate) fn finish_at(&mut self, time: Time) {
        let next = self.next_time();
        assert!(time >= self.now && time <= next, "events before {time} are left");
        self.now = time;
    }

    /// `slot` wakes up at `time` and not at any other; `Time::NEVER` cancels.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, time: Time) {
        if time_of(self.keys[self.slots + slot as usize]) != time || slot == self.awake {
            self.change(slot, time);
        }
    }

    /// `slot` wakes up at `time` or earlier: an earlier wake-up stays. For timers that are mostly put off:
    /// one that fires too early is put off then, which is cheaper than moving it with every packet.
    #[inline]
    pub(crate) fn set_no_later(&mut self, slot: Slot, time: Time) {
        if time < time_of(self.keys[self.slots + slot as usize]) || slot == self.awake {
            self.change(slot, time);
        }
    }

    fn change(&mut self, slot: Slot, time: Time) {
        if slot == self.awake {
            self.awake = NOBODY;
        }
        if time == Time::NEVER {
            return self.replay(slot, ABSENT);
        }
        self.sequence += 1;
        assert!(self.sequence >> SEQUENCE_BITS == 0, "more wake-ups than can be told apart");
        let order = self.sequence << SLOT_BITS | u64::from(slot);
        self.replay(slot, Key::from(time.max(self.now).as_ns()) << 64 | Key::from(order));
    }

    /// `slot` has this key from now on: its matches are played again, up to the first that it changes nothing of.
    #[inline]
    fn replay(&mut self, slot: Slot, key: Key) {
        let mut place = self.slots + slot as usize;
        self.keys[place] = key;
        while place > 1 {
            let winner = self.keys[place].min(self.keys[place ^ 1]);
            place /= 2;
            if self.keys[place] == winner {
                return;
            }
            self.keys[place] = winner;
        }
    }
}

/// The time of a key; `Time::NEVER` for none.
#[inline(always)]
fn time_of(key: Key) -> Time {
    Time::from_ns((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn at_one_time_the_first_to_ask_goes_first() {
        let mut schedule = Schedule::new(3).expect("few components");
        for slot in [2, 0, 1] {
            schedule.set(slot, at(5));
        }
        schedule.set(0, at(5));
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop()).collect();
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn a_wake_up_can_be_put_off_brought_forward_and_cancelled() {
        let mut schedule = Schedule::new(3).expect("few components");
        schedule.set(0, at(1));
        schedule.set(1, at(2));
        schedule.set(2, at(3));
        schedule.set(0, at(9));
        schedule.set(2, at(1));
        schedule.set(1, Time::NEVER);
        let order: Vec<_> =
            std::iter::from_fn(|| schedule.pop().map(|slot| (slot, schedule.now()))).collect();
        assert_eq!(order, [(2, at(1)), (0, at(9))]);
    }

    #[test]
    fn an_early_wake_up_is_not_put_off_by_set_no_later() {
        let mut schedule = Schedule::new(1).expect("few components");
        schedule.set_no_later(0, at(4));
        schedule.set_no_later(0, at(7));
        assert_eq!(schedule.next_time(), at(4));
        schedule.set_no_later(0, at(2));
        assert_eq!(schedule.next_time(), at(2));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_list(
            operations in proptest::collection::vec((0u32..6, 0u64..50, any::<bool>()), 1..200),
        ) {
            let mut schedule = Schedule::new(6).expect("few components");
            let mut model: Vec<(u64, u64, u32)> = Vec::new();
            let mut sequence = 0;
            for (slot, ns, pop) in operations {
                if pop {
                    model.sort();
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(schedule.pop(), expected.map(|(_, _, slot)| slot));
                } else {
                    let time = schedule.now().as_ns() + ns;
                    let known = model.iter().find(|entry| entry.2 == slot).map(|entry| entry.0);
                    if known != Some(time) {
                        sequence += 1;
                        model.retain(|entry| entry.2 != slot);
                        model.push((time, sequence, slot));
                    }
                    schedule.set(slot, at(time));
                }
            }
        }
    }
}
