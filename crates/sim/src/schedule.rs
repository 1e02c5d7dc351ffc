//! The event queue: each component's next wake-up, ordered by time, then by sequence number.
//!
//! A component (a link direction, a timer of a stream, a sampler) waits for at most one thing at a time, so the queue
//! is a tournament among components (D. Knuth, "The Art of Computer Programming", volume 3, section 5.4.1) and holds
//! no event per packet. Of two neighbours the one that wakes up first plays on; the winner of all is next. A new time
//! replays one component's matches up to the first whose winner stays, which for most timers is an early one.

use tcplab_units::Time;

use crate::end_timers::EndTimers;

/// A component's number.
pub(crate) type Slot = u32;

/// When a component wakes up. Time is in the upper half. The sequence number below it breaks ties at one time in the
/// order in which wake-ups were asked for. The lowest bits are the component. One number is compared faster than three.
pub(crate) type Key = u128;

/// Its lower half.
pub(crate) type Order = u64;

/// A component that waits for nothing.
pub(crate) const ABSENT: Key = Key::MAX;
/// Room for 16 million components and, at ten million events a second, for a day's wake-ups.
const SLOT_BITS: u32 = 24;
const SEQUENCE_BITS: u32 = 64 - SLOT_BITS;

/// So many components play few matches each.
const FEW: usize = 16;

/// No component.
const NONE: Slot = Slot::MAX;

/// Who wakes up when.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The first components, which wake up most often. Being few, they play fewer matches.
    busy: Tournament,
    others: Tournament,
    end_timers: EndTimers,
    /// The first key but those of the busy ones.
    beside: Key,
    sequence: u64,
    now: Time,
    /// The current component, which has not said yet when it wants to wake up next. Its entry stays until then:
    /// most go straight back into the schedule, which replays their matches once, not twice.
    current: Slot,
    /// The slot whose first rival of the busy ones is known, and when that wakes up; `NONE`: a wake-up has changed since.
    compared: Slot,
    rival: Time,
}

impl Schedule {
    /// Maximum components of a schedule.
    pub(crate) const SLOTS_MAX: u32 = 1 << SLOT_BITS;

    /// A schedule of `busy` components, which come first, and `others`, none of which waits for anything; none: there
    /// are too many.
    pub(crate) fn new(busy: usize, others: usize) -> Option<Schedule> {
        (busy + others <= Schedule::SLOTS_MAX as usize).then(|| Schedule {
            busy: Tournament::new(busy),
            others: Tournament::new(others),
            end_timers: EndTimers::default(),
            beside: ABSENT,
            sequence: 0,
            now: Time::ZERO,
            current: NONE,
            compared: NONE,
            rival: Time::NEVER,
        })
    }

    /// Room for `more` components before `slot`, one of the others: their numbers grow by as many from there on.
    pub(crate) fn insert(&mut self, slot: Slot, more: Slot) {
        let mut others = Tournament::new(self.others.size + more as usize);
        for other in 0..self.others.size {
            let (key, moves) = (self.others.key(other), other + self.busy.size >= slot as usize);
            let by = if moves { more } else { 0 };
            let key = if key == ABSENT { key } else { key + Key::from(by) };
            others.replay(other + by as usize, key);
        }
        self.others = others;
        self.note_beside();
        if self.current != NONE && self.current >= slot {
            self.current += more;
        }
    }

    /// The present: when the last component woke up.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// When the next component wakes up or timer of an endpoint fires; `Time::NEVER` if none does.
    #[inline]
    pub(crate) fn next_time(&mut self) -> Time {
        time_of(self.next())
    }

    /// Moves the present to the next wake-up, and returns whose it is; none: there is none by `end`. After that of a timer of an
    /// endpoint, `fire_end_timer` has to follow.
    #[inline(always)]
    pub(crate) fn pop(&mut self, end: Time) -> Option<Slot> {
        let next = self.next();
        let time = time_of(next);
        if time > end || next == ABSENT {
            return None;
        }
        assert!(time >= self.now, "time went back from {} to {time}", self.now);
        self.now = time;
        self.current = slot_of(next as Order);
        Some(self.current)
    }

    /// Whether `slot` is that of a timer of an endpoint.
    #[inline]
    pub(crate) fn is_end_timer(&self, slot: Slot) -> bool {
        slot as usize >= self.busy.size + self.others.size
    }

    /// The timers of TCP endpoints.
    #[inline]
    pub(crate) fn end_timers(&mut self) -> &mut EndTimers {
        &mut self.end_timers
    }

    /// Those of the endpoints of `place` will be set soon.
    #[inline]
    pub(crate) fn prefetch_end_timers(&self, place: u32) {
        self.end_timers.prefetch(place);
    }

    /// The first timer of an endpoint fires at `due`, or now if that has passed, whatever was said of its timers before;
    /// `Time::NEVER` stops it. Whether another timer may be the first now.
    #[inline]
    pub(crate) fn set_end_timer(&mut self, place: u32, end: usize, due: Time) -> bool {
        let is_earlier = self.end_timers.set(place, end, due, self.now, &mut self.sequence);
        if is_earlier {
            self.note_beside();
        }
        is_earlier
    }

    /// The endpoint whose timer fires now, by place and end; none: it was put off.
    pub(crate) fn fire_end_timer(&mut self) -> Option<(u32, usize)> {
        self.current = NONE;
        let fired = self.end_timers.fire(&mut self.sequence);
        self.note_beside();
        fired
    }

    #[inline]
    fn note_beside(&mut self) {
        self.beside = self.others.first().min(self.end_timers.first());
    }

    /// Moves the present to `time` for the component that woke up last.
    #[inline]
    pub(crate) fn move_to(&mut self, time: Time) {
        self.now = time;
    }

    /// When the first component but `slot` wakes up: of the busy ones, to which `slot` belongs, and of all else.
    #[inline]
    pub(crate) fn rivals(&mut self, slot: Slot) -> (Time, Time) {
        if self.compared != slot {
            self.compared = slot;
            self.rival = time_of(self.busy.first_but(slot as usize));
        }
        (self.rival, time_of(self.beside))
    }

    /// The first of all keys. The entry of a component that did not ask for another wake-up is taken off.
    #[inline(always)]
    fn next(&mut self) -> Key {
        if self.current != NONE {
            self.replay(self.current, ABSENT);
            self.current = NONE;
        }
        self.busy.first().min(self.beside)
    }

    /// Moves the present to `time`, which nothing that is still scheduled comes before.
    pub(crate) fn finish_at(&mut self, time: Time) {
        let next = self.next_time();
        assert!(time >= self.now && time <= next, "events before {time} are left");
        self.now = time;
    }

    /// `slot` wakes up at `time` and not at any other; `Time::NEVER` cancels.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: Slot, time: Time) {
        if slot == self.current || self.time(slot) != time {
            self.change(slot, time);
        }
    }

    /// `slot` wakes up at `time`, before all others at that time.
    pub(crate) fn set_first(&mut self, slot: Slot, time: Time) {
        if slot == self.current {
            self.current = NONE;
        }
        let key = if time == Time::NEVER { ABSENT } else { Key::from(time.as_ns()) << 64 | Key::from(slot) };
        self.replay(slot, key);
    }

    /// `slot` wakes up at `time` or earlier: an earlier wake-up stays. For timers that are mostly put off:
    /// one that fires too early is put off then, which is cheaper than moving it with every packet.
    #[inline]
    pub(crate) fn set_no_later(&mut self, slot: Slot, time: Time) {
        if slot == self.current || time < self.time(slot) {
            self.change(slot, time);
        }
    }

    #[inline]
    fn time(&self, slot: Slot) -> Time {
        let others = (slot as usize).checked_sub(self.busy.size);
        time_of(others.map_or_else(|| self.busy.key(slot as usize), |other| self.others.key(other)))
    }

    #[inline(never)]
    fn change(&mut self, slot: Slot, time: Time) {
        if slot == self.current {
            self.current = NONE;
        }
        if time == Time::NEVER {
            return self.replay(slot, ABSENT);
        }
        let order = next_order(slot, &mut self.sequence);
        self.replay(slot, key(time.max(self.now), order));
    }

    #[inline]
    fn replay(&mut self, slot: Slot, key: Key) {
        match (slot as usize).checked_sub(self.busy.size) {
            None => {
                self.compared = NONE;
                self.busy.replay(slot as usize, key);
            }
            Some(other) => {
                self.others.replay(other, key);
                self.note_beside();
            }
        }
    }
}

/// Finds the first of many keys.
#[derive(Debug)]
struct Tournament {
    /// The players of each match. Place `n` of the tree, half of a pair, is the winner between places `2n` and
    /// `2n + 1`; the winner of all is at 1. The last places are the components themselves.
    matches: Vec<[Key; 2]>,
    size: usize,
}

impl Tournament {
    fn new(size: usize) -> Tournament {
        Tournament { matches: vec![[ABSENT; 2]; size.max(1)], size }
    }

    /// The first key of all.
    #[inline]
    fn first(&self) -> Key {
        self.matches[0][1]
    }

    /// The first key of all components but this one.
    #[inline]
    fn first_but(&self, component: usize) -> Key {
        let mut place = self.size + component;
        let mut first = ABSENT;
        while place > 1 {
            first = first.min(self.matches[place / 2][(place % 2) ^ 1]);
            place /= 2;
        }
        first
    }

    #[inline]
    fn key(&self, component: usize) -> Key {
        let place = self.size + component;
        self.matches[place / 2][place % 2]
    }

    /// A component has this key from now on: its matches are played again. Among few components all are: the processor
    /// predicts their number.
    #[inline]
    fn replay(&mut self, component: usize, mut key: Key) {
        if self.size > FEW {
            return self.replay_changed(component, key);
        }
        let mut place = self.size + component;
        loop {
            let pair = &mut self.matches[place / 2];
            pair[place % 2] = key;
            if place == 1 {
                return;
            }
            key = pair[0].min(pair[1]);
            place /= 2;
        }
    }

    /// Replays the matches up to the first whose winner stays.
    #[inline(never)]
    fn replay_changed(&mut self, component: usize, mut key: Key) {
        let mut place = self.size + component;
        loop {
            let pair = &mut self.matches[place / 2];
            if pair[place % 2] == key {
                return;
            }
            pair[place % 2] = key;
            if place == 1 {
                return;
            }
            key = pair[0].min(pair[1]);
            place /= 2;
        }
    }
}

/// The order of the next wake-up that is asked for.
#[inline]
pub(crate) fn next_order(slot: Slot, sequence: &mut u64) -> Order {
    *sequence += 1;
    assert!(*sequence >> SEQUENCE_BITS == 0, "more wake-ups than can be distinguished");
    *sequence << SLOT_BITS | u64::from(slot)
}

#[inline(always)]
pub(crate) fn key(time: Time, order: Order) -> Key {
    Key::from(time.as_ns()) << 64 | Key::from(order)
}

/// The time of a key; `Time::NEVER` for none.
#[inline(always)]
pub(crate) fn time_of(key: Key) -> Time {
    Time::from_ns((key >> 64) as u64)
}

/// The component that an order is of.
#[inline(always)]
pub(crate) fn slot_of(order: Order) -> Slot {
    order as Slot & (Schedule::SLOTS_MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn timers_of_endpoints_and_components_wake_up_in_the_order_in_which_they_asked() {
        let mut schedule = Schedule::new(0, 2).expect("few components");
        schedule.end_timers().grow(1);
        schedule.set(0, at(5));
        schedule.set_end_timer(0, 1, at(5));
        schedule.set(1, at(5));
        schedule.set_end_timer(0, 0, at(4));
        let order: Vec<_> = std::iter::from_fn(|| {
            let slot = schedule.pop(Time::NEVER)?;
            Some(if schedule.is_end_timer(slot) { Err(schedule.fire_end_timer()) } else { Ok(slot) })
        })
        .collect();
        assert_eq!(order, [Err(Some((0, 0))), Ok(0), Err(Some((0, 1))), Ok(1)]);
    }

    #[test]
    fn a_timer_keeps_its_order_until_its_slice_of_time_comes() {
        let mut schedule = Schedule::new(0, 1).expect("few components");
        schedule.end_timers().grow(2);
        schedule.set_end_timer(1, 0, at(5));
        schedule.set_end_timer(0, 0, at(11_000_000));
        schedule.set(0, at(11_000_000));
        assert!(schedule.pop(Time::NEVER).is_some_and(|slot| schedule.is_end_timer(slot)));
        assert_eq!(schedule.fire_end_timer(), Some((1, 0)));
        assert!(schedule.pop(Time::NEVER).is_some_and(|slot| schedule.is_end_timer(slot)));
        assert_eq!(schedule.fire_end_timer(), Some((0, 0)));
        assert_eq!(schedule.pop(Time::NEVER), Some(0));
    }

    #[test]
    fn a_timer_of_an_endpoint_is_a_rival() {
        let mut schedule = Schedule::new(2, 1).expect("few components");
        schedule.end_timers().grow(1);
        for (slot, time) in [(0, 3), (1, 9), (2, 8)] {
            schedule.set(slot, at(time));
        }
        assert_eq!(schedule.rivals(0), (at(9), at(8)));
        schedule.set_end_timer(0, 0, at(6));
        assert_eq!(schedule.rivals(0), (at(9), at(6)));
    }

    #[test]
    fn at_one_time_the_first_to_ask_goes_first() {
        let mut schedule = Schedule::new(1, 2).expect("few components");
        for slot in [2, 0, 1] {
            schedule.set(slot, at(5));
        }
        schedule.set(0, at(5));
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop(Time::NEVER)).collect();
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn a_wake_up_can_be_put_off_brought_forward_and_cancelled() {
        let mut schedule = Schedule::new(1, 2).expect("few components");
        schedule.set(0, at(1));
        schedule.set(1, at(2));
        schedule.set(2, at(3));
        schedule.set(0, at(9));
        schedule.set(2, at(1));
        schedule.set(1, Time::NEVER);
        let order: Vec<_> =
            std::iter::from_fn(|| schedule.pop(Time::NEVER).map(|slot| (slot, schedule.now()))).collect();
        assert_eq!(order, [(2, at(1)), (0, at(9))]);
    }

    #[test]
    fn an_early_wake_up_is_not_put_off_by_set_no_later() {
        let mut schedule = Schedule::new(0, 1).expect("few components");
        schedule.set_no_later(0, at(4));
        schedule.set_no_later(0, at(7));
        assert_eq!(schedule.next_time(), at(4));
        schedule.set_no_later(0, at(2));
        assert_eq!(schedule.next_time(), at(2));
    }

    #[test]
    fn some_go_first_whoever_asked_before() {
        let mut schedule = Schedule::new(0, 2).expect("few components");
        schedule.set(0, at(5));
        schedule.set_first(1, at(5));
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop(Time::NEVER)).collect();
        assert_eq!(order, [1, 0]);
    }

    #[test]
    fn components_that_come_between_change_no_wake_up() {
        let mut schedule = Schedule::new(1, 2).expect("few components");
        for (slot, time) in [(0, 3), (1, 9), (2, 4)] {
            schedule.set(slot, at(time));
        }
        assert_eq!(schedule.pop(Time::NEVER), Some(0));
        schedule.insert(2, 3);
        schedule.set(2, at(6));
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop(Time::NEVER)).collect();
        assert_eq!(order, [5, 2, 1]);
    }

    #[test]
    fn the_component_at_work_may_be_moved() {
        let mut schedule = Schedule::new(0, 1).expect("few components");
        schedule.set(0, at(3));
        assert_eq!(schedule.pop(Time::NEVER), Some(0));
        schedule.insert(0, 4);
        schedule.set(4, at(3));
        assert_eq!(schedule.pop(Time::NEVER), Some(4));
        assert_eq!(schedule.pop(Time::NEVER), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_list(
            busy in 0usize..7,
            operations in proptest::collection::vec((0u32..6, 0u64..50, any::<bool>()), 1..200),
        ) {
            let mut schedule = Schedule::new(busy, 6 - busy).expect("few components");
            let mut model: Vec<(u64, u64, u32)> = Vec::new();
            let mut sequence = 0;
            for (slot, ns, pop) in operations {
                if pop {
                    model.sort();
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(schedule.pop(Time::NEVER), expected.map(|(_, _, slot)| slot));
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
                let first = |these: &mut dyn Iterator<Item = u32>| {
                    let earliest = these.filter_map(|slot| model.iter().find(|entry| entry.2 == slot)).map(|entry| entry.0).min();
                    earliest.map_or(Time::NEVER, at)
                };
                schedule.next_time();
                for slot in 0..busy as u32 {
                    let of_busy = first(&mut (0..busy as u32).filter(|&other| other != slot));
                    prop_assert_eq!(schedule.rivals(slot), (of_busy, first(&mut (busy as u32..6))));
                }
            }
        }
    }
}
