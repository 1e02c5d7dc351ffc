//! The event queue: each component's next wake-up, ordered by time, then by sequence number.
//!
//! A component (a link direction, a timer of a stream, a sampler) waits for at most one thing at a time, so
//! the queue is an indexed heap over components and holds no event per packet.

use tcplab_units::Time;

/// A component's number.
pub(crate) type Slot = u32;

const ABSENT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Time in the upper half; in the lower the sequence number, which breaks ties at one time in the order in
    /// which wake-ups were asked for. One number is compared faster than two.
    key: u128,
    slot: Slot,
}

impl Entry {
    #[inline(always)]
    fn new(time: Time, sequence: u64, slot: Slot) -> Entry {
        Entry { key: u128::from(time.as_ns()) << 64 | u128::from(sequence), slot }
    }
    #[inline(always)]
    fn time(&self) -> Time {
        Time::from_ns((self.key >> 64) as u64)
    }
    #[inline(always)]
    fn before(&self, other: &Entry) -> bool {
        self.key < other.key
    }
}

/// Who wakes up when.
#[derive(Debug)]
pub(crate) struct Schedule {
    heap: Vec<Entry>,
    place: Vec<u32>,
    sequence: u64,
    now: Time,
    /// The component that is awake and has not said yet when it wants to wake up next. Its entry stays at the
    /// top until then: most go straight back into the schedule, which moves their entry once, not twice.
    awake: Slot,
}

/// No component.
const NOBODY: Slot = Slot::MAX;

impl Schedule {
    /// A schedule of `slots` components, none of which waits for anything.
    pub(crate) fn new(slots: usize) -> Schedule {
        Schedule {
            heap: Vec::with_capacity(slots),
            place: vec![ABSENT; slots],
            sequence: 0,
            now: Time::ZERO,
            awake: NOBODY,
        }
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
        self.heap.first().map_or(Time::NEVER, Entry::time)
    }

    /// Moves the present to the next wake-up and takes it off the schedule.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Slot> {
        self.put_to_sleep();
        let first = *self.heap.first()?;
        let time = first.time();
        assert!(time >= self.now, "time went back from {} to {time}", self.now);
        self.now = time;
        self.awake = first.slot;
        Some(first.slot)
    }

    /// Takes the entry of a component off that did not ask for another wake-up.
    #[inline]
    fn put_to_sleep(&mut self) {
        if self.awake != NOBODY {
            let place = self.place[self.awake as usize];
            self.awake = NOBODY;
            self.remove(place as usize);
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
        let place = self.place[slot as usize];
        if place == ABSENT {
            if time != Time::NEVER {
                self.insert(slot, time);
            }
        } else if self.heap[place as usize].time() != time || slot == self.awake {
            self.change(place as usize, time);
        }
    }

    /// `slot` wakes up at `time` or earlier: an earlier wake-up stays. For timers that are mostly put off:
    /// one that fires too early is put off then, which is cheaper than moving it with every packet.
    #[inline]
    pub(crate) fn set_no_later(&mut self, slot: Slot, time: Time) {
        let place = self.place[slot as usize];
        if place == ABSENT {
            if time != Time::NEVER {
                self.insert(slot, time);
            }
        } else if time < self.heap[place as usize].time() || slot == self.awake {
            self.change(place as usize, time);
        }
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn insert(&mut self, slot: Slot, time: Time) {
        let sequence = self.next_sequence();
        self.heap.push(Entry::new(time.max(self.now), sequence, slot));
        let place = self.heap.len() - 1;
        self.place[slot as usize] = place as u32;
        self.rise(place);
    }

    fn change(&mut self, place: usize, time: Time) {
        if self.heap[place].slot == self.awake {
            self.awake = NOBODY;
        }
        if time == Time::NEVER {
            return self.remove(place);
        }
        let before = self.heap[place];
        let entry = Entry::new(time.max(self.now), self.next_sequence(), before.slot);
        self.heap[place] = entry;
        if entry.before(&before) { self.rise(place) } else { self.sink(place) }
    }

    fn remove(&mut self, place: usize) {
        let entry = self.heap.swap_remove(place);
        self.place[entry.slot as usize] = ABSENT;
        if place < self.heap.len() {
            self.place[self.heap[place].slot as usize] = place as u32;
            self.sink(place);
            self.rise(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let mut child = 2 * place + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1].before(&self.heap[child]) {
                child += 1;
            }
            if !self.heap[child].before(&entry) {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    #[inline(always)]
    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.place[entry.slot as usize] = place as u32;
    }
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
        let mut schedule = Schedule::new(3);
        for slot in [2, 0, 1] {
            schedule.set(slot, at(5));
        }
        schedule.set(0, at(5));
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop()).collect();
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn a_wake_up_can_be_put_off_brought_forward_and_cancelled() {
        let mut schedule = Schedule::new(3);
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
        let mut schedule = Schedule::new(1);
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
            let mut schedule = Schedule::new(6);
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
