//! The time that a verification may take, and what is measured again in what is left of it.

use std::io;
use std::iter::Sum;
use std::time::{Duration, Instant};

/// Time for a network of a few links, and for each direction beyond them.
const FEW_LINKS: Duration = Duration::from_millis(2700);
const FEW_DIRECTIONS: usize = 20;
const EACH: Duration = Duration::from_millis(40);
/// How many directions are measured together again: fewer disturb each other less.
const GROUPS: [usize; 4] = [1, 4, 16, usize::MAX];

/// How long a measurement takes: what directions wait for at the same time, and what the machine does one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Takes {
    pub(super) waiting: Duration,
    pub(super) working: Duration,
}

impl Sum for Takes {
    /// One after another.
    fn sum<I: Iterator<Item = Takes>>(parts: I) -> Takes {
        parts.fold(Takes::default(), |sum, one| Takes {
            waiting: sum.waiting + one.waiting,
            working: sum.working + one.working,
        })
    }
}

/// Time of several at the same time.
fn together(all: impl IntoIterator<Item = Takes>) -> Duration {
    let sum = all.into_iter().fold(Takes::default(), |sum, one| Takes {
        waiting: sum.waiting.max(one.waiting),
        working: sum.working + one.working,
    });
    sum.waiting + sum.working
}

/// A direction that may have to be measured again.
pub(super) trait Direction {
    fn is_off(&self) -> bool;
    /// Time for what is off.
    fn takes(&self) -> Takes;
}

/// Time until everything must be measured, by a clock.
pub(super) struct Budget<C> {
    pub(super) until: Instant,
    clock: C,
}

impl<C: Fn() -> Instant> Budget<C> {
    pub(super) fn new(directions: usize, began: Instant, clock: C) -> Budget<C> {
        let more = directions.saturating_sub(FEW_DIRECTIONS).min(1 << 20);
        Budget { until: began + FEW_LINKS + EACH * more as u32, clock }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since((self.clock)())
    }

    /// The time that these take together, and as much again for a slow machine, from now on.
    pub(super) fn beyond<D: Direction>(&self, these: &[&mut D]) -> Budget<&C> {
        let time = together(these.iter().map(|one| one.takes()));
        Budget { until: (self.clock)() + 2 * time, clock: &self.clock }
    }

    /// There is time for these together.
    pub(super) fn has(&self, these: impl IntoIterator<Item = Takes>) -> bool {
        together(these) <= self.left()
    }

    /// Measures those that are off again, in the smallest groups for which there is time, until groups are no smaller.
    pub(super) fn repeat<D: Direction>(
        &self,
        all: &mut [D],
        measure: impl Fn(&mut [&mut D]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut sizes = &GROUPS[..];
        loop {
            let mut off: Vec<&mut D> = all.iter_mut().filter(|one| one.is_off()).collect();
            let takes: Vec<Takes> = off.iter().map(|one| one.takes()).collect();
            let time = |size: usize| takes.chunks(size).map(|group| together(group.iter().copied())).sum();
            let left = self.left();
            let Some(at) = sizes.iter().position(|size| left >= time(*size)) else { return Ok(()) };
            for group in off.chunks_mut(sizes[at]) {
                // Those before may have taken longer than they should.
                if self.has(group.iter().map(|one| one.takes())) {
                    measure(group)?;
                }
            }
            sizes = &sizes[..at];
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Off until it has been measured in a group of at most so many.
    struct Fake {
        name: usize,
        off: bool,
        right_in: usize,
    }

    impl Direction for Fake {
        fn is_off(&self) -> bool {
            self.off
        }

        fn takes(&self) -> Takes {
            Takes { waiting: 500 * MS, working: MS }
        }
    }

    fn fakes(how_many: usize, right_in: usize) -> Vec<Fake> {
        (0..how_many).map(|name| Fake { name, off: true, right_in }).collect()
    }

    /// The groups that are measured again when so much of the budget is left, and how long all takes.
    /// Each group takes `slower` times what it should.
    fn groups(all: &mut [Fake], left: Duration, slower: u32) -> (Vec<Vec<usize>>, Duration) {
        let began = Instant::now();
        let now = Cell::new(began);
        let budget = Budget { until: began + left, clock: || now.get() };
        let groups = RefCell::new(Vec::new());
        let measured = budget.repeat(all, |group| {
            now.set(now.get() + slower * together(group.iter().map(|one| one.takes())));
            groups.borrow_mut().push(group.iter().map(|one| one.name).collect());
            let size = group.len();
            group.iter_mut().for_each(|one| one.off = size > one.right_in);
            Ok(())
        });
        assert!(measured.is_ok());
        (groups.into_inner(), now.get() - began)
    }

    #[test]
    fn few_are_measured_alone() {
        let (groups, _) = groups(&mut fakes(2, 1), 1100 * MS, 1);
        assert_eq!(groups, [[0], [1]]);
    }

    #[test]
    fn more_are_measured_in_the_smallest_groups_for_which_there_is_time() {
        assert_eq!(groups(&mut fakes(6, 4), 1100 * MS, 1).0, [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(groups(&mut fakes(6, 16), 600 * MS, 1).0, [[0, 1, 2, 3, 4, 5]]);
        assert_eq!(groups(&mut fakes(40, 40), 600 * MS, 1).0, [(0..40).collect::<Vec<_>>()]);
    }

    #[test]
    fn nothing_begins_for_which_there_is_no_time() {
        let mut all = fakes(1, 1);
        assert_eq!(groups(&mut all, 500 * MS, 1), (vec![], Duration::ZERO));
        assert!(all[0].off);
    }

    #[test]
    fn those_that_stay_off_are_measured_in_smaller_groups_and_never_without_end() {
        let (groups, _) = groups(&mut fakes(5, 0), 10_000 * MS, 1);
        assert_eq!(groups, [[0], [1], [2], [3], [4]]);
        let (groups, took) = self::groups(&mut fakes(5, 0), 3700 * MS, 1);
        assert_eq!(groups, [[0], [1], [2], [3], [4]]);
        assert!(took <= 3700 * MS);
        let (groups, _) = self::groups(&mut fakes(17, 0), 4000 * MS, 1);
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 4, 4, 1]);
    }

    #[test]
    fn beyond_the_budget_there_is_time_for_one_more_measurement() {
        let began = Instant::now();
        let over = began + Duration::from_secs(60);
        let budget = Budget::new(4, began, || over);
        let mut all = fakes(4, 4);
        let takes = all[0].takes();
        assert!(!budget.has([takes]));
        let beyond = budget.beyond(&all.iter_mut().collect::<Vec<_>>());
        assert!(beyond.has([takes; 4]));
        assert_eq!(beyond.left(), 1008 * MS);
        assert_eq!(budget.beyond::<Fake>(&[]).left(), Duration::ZERO);
    }

    #[test]
    fn a_slow_machine_begins_no_group_too_late() {
        for (directions, left, slower) in (1..40).flat_map(|many| {
            (0..30).flat_map(move |time| (1..5).map(move |slower| (many, 100 * time * MS, slower)))
        }) {
            let mut all = fakes(directions, directions % 5);
            let (groups, took) = groups(&mut all, left, slower);
            // The last group that began had its time; what it takes beyond, the machine does.
            let last = groups.last().map_or(Duration::ZERO, |group| 500 * MS + MS * group.len() as u32);
            assert!(took <= left + last * (slower - 1), "{directions} {left:?} {slower}");
        }
    }

    #[test]
    fn ten_links_have_less_than_three_seconds_and_larger_networks_more() {
        let began = Instant::now();
        let time = |directions| Budget::new(directions, began, || began).left();
        assert_eq!(time(2), time(20));
        assert!(time(20) < 3000 * MS);
        assert_eq!(time(100), time(20) + 3200 * MS);
    }
}
