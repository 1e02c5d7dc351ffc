//! Windowed minimum by the three best samples (Kathleen Nichols' algorithm, as in Linux `lib/win_minmax.c`).

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at_us: u64,
    value: u32,
}

/// The minimum over a sliding window of time.
#[derive(Debug)]
pub(crate) struct RunningMin {
    window_us: u64,
    /// Best, second and third best, each later than the one before.
    best: [Sample; 3],
    empty: bool,
}

impl RunningMin {
    pub(crate) fn new(window_us: u64) -> RunningMin {
        RunningMin { window_us, best: [Sample::default(); 3], empty: true }
    }

    /// Takes a sample and returns the minimum of the window.
    #[inline(always)]
    pub(crate) fn update(&mut self, at_us: u64, value: u32) -> u32 {
        let new = Sample { at_us, value };
        if self.empty || value <= self.best[0].value || at_us - self.best[2].at_us > self.window_us {
            self.begin(new);
            return value;
        }
        if value <= self.best[2].value || at_us - self.best[0].at_us > self.window_us / 4 {
            self.replace(new);
        }
        self.best[0].value
    }

    /// Updates the best three with `new`, and ages them.
    #[cold]
    fn replace(&mut self, new: Sample) {
        if new.value <= self.best[1].value {
            self.best[1] = new;
            self.best[2] = new;
        } else if new.value <= self.best[2].value {
            self.best[2] = new;
        }
        self.age(new);
    }

    /// Starts again with `new` as the only sample.
    #[cold]
    fn begin(&mut self, new: Sample) {
        self.best = [new; 3];
        self.empty = false;
    }

    /// Drops what has left the window; takes a second and third best after a quarter and a half of it.
    fn age(&mut self, new: Sample) {
        let age = new.at_us - self.best[0].at_us;
        if age > self.window_us {
            self.best = [self.best[1], self.best[2], new];
            if new.at_us - self.best[0].at_us > self.window_us {
                self.best = [self.best[1], new, new];
            }
        } else if self.best[1].at_us == self.best[0].at_us && age > self.window_us / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].at_us == self.best[1].at_us && age > self.window_us / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_forgotten_when_it_leaves_the_window() {
        let mut min = RunningMin::new(100);
        assert_eq!(min.update(0, 10), 10);
        assert_eq!(min.update(60, 20), 10);
        assert_eq!(min.update(99, 30), 10);
        assert_eq!(min.update(101, 30), 20);
    }

    #[test]
    fn a_lower_sample_replaces_everything() {
        let mut min = RunningMin::new(100);
        min.update(0, 10);
        assert_eq!(min.update(1, 5), 5);
        assert_eq!(min.update(100, 7), 5);
    }
}
