//! The mean congestion window of a connection.

use tcplab_units::Time;

/// The mean congestion window over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeanWindow {
    /// Segments × nanoseconds up to `at`.
    area: u128,
    since: Time,
    at: Time,
    present: u32,
}

impl MeanWindow {
    /// The window is `window` segments from `now` on. The time before the first one does not count.
    #[inline]
    pub(crate) fn set(&mut self, window: u32, now: Time) {
        if self.present == 0 {
            (self.since, self.at) = (now, now);
        }
        if window != self.present {
            self.settle(now);
            self.present = window;
        }
    }

    fn settle(&mut self, now: Time) {
        self.area += u128::from(self.present) * u128::from(now.since(self.at).as_ns());
        self.at = now;
    }

    /// Its mean until `now`, in segments; none if no time has passed.
    pub(crate) fn mean(mut self, now: Time) -> Option<f64> {
        self.settle(now);
        let span = now.since(self.since).as_ns();
        (span > 0).then(|| self.area as f64 / span as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_weighted_by_time_from_the_first_on() {
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        let mut window = MeanWindow::default();
        window.set(10, at(100));
        assert_eq!(window.mean(at(100)), None);
        window.set(10, at(150));
        window.set(40, at(200));
        assert_eq!(window.mean(at(400)), Some(30.0));
    }
}
