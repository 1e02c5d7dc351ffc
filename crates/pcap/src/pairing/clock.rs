//! How one clock runs against another, from the delays that both together show.
//!
//! The skew is the slope of the line under the delays of one direction that lies closest to them. No packet is faster
//! than the path, so that line is the path's delay as two clocks measure it. Moon et al. find the line by linear
//! programming. Of all lines below the points, the one that minimises the sum of distances is the edge of their lower
//! convex hull at their mean time. Both directions are used, for they see the skew with opposite signs. Source: S.
//! Moon, P. Skelly and D. Towsley, "Estimation and Removal of Clock Skew from Network Delay Measurements" (INFOCOM
//! 1999).
//!
//! The offset cannot be distinguished from an asymmetry of the path. No delay is negative, so it lies in an interval as
//! wide as the shortest round trip. The middle, at which the minimum delays of both directions are equal, is taken, as
//! NTP does (RFC 5905 section 8). Where the hosts have exchanged the time, that narrows the interval.

/// The second clock's lead over the first: `offset` at `since`, growing by `skew` a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// The error of `offset` at most, ns; none where nothing bounds it.
    pub bound: Option<i64>,
    /// ns.
    pub offset: i64,
    /// ns per ns: 1e-6 is 1 ppm.
    pub skew: f64,
    /// The first clock's time of the offset (ns since 1970).
    pub since: i64,
}

impl Clock {
    /// The second clock's lead when the first showed `time` (ns).
    pub fn ahead(&self, time: i64) -> i64 {
        self.offset.saturating_add((self.skew * time.saturating_sub(self.since) as f64).round() as i64)
    }

    /// The time of the first clock when the second showed `time` (ns).
    pub fn by_first(&self, time: i64) -> i64 {
        // Off by the skew's square, which no clock's matters.
        time.saturating_sub(self.ahead(time.saturating_sub(self.offset)))
    }
}

/// Time and difference (second clock less first) of packets, by where they were sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Differences {
    /// Sent at the first capture: delay plus offset.
    pub from_first: Vec<(i64, i64)>,
    /// Sent at the second capture: offset less delay.
    pub from_second: Vec<(i64, i64)>,
}

/// Too few packets, or too short a time, give no skew.
const MIN_PACKETS: usize = 10;
const MIN_TIME: i64 = 1_000_000_000;

/// The estimate by the packets, and by what is known beside them.
pub(super) fn estimate(differences: &Differences, known: Option<Clock>) -> Clock {
    let all = || differences.from_first.iter().chain(&differences.from_second);
    let Some(since) = all().map(|point| point.0).min() else { return known.unwrap_or_default() };
    let below = points(&differences.from_first, since, 1);
    let above = points(&differences.from_second, since, -1);
    let slopes: Vec<f64> =
        [slope_below(&below), slope_below(&above).map(|slope| -slope)].into_iter().flatten().collect();
    let by_packets = if slopes.is_empty() { 0.0 } else { slopes.iter().sum::<f64>() / slopes.len() as f64 };
    let skew = known.map_or(by_packets, |known| known.skew);
    let minimum = |points: &[(f64, f64)], sign: f64| {
        points.iter().map(|&(x, y)| y - sign * skew * x).min_by(f64::total_cmp)
    };
    let (forward, reverse) = (minimum(&below, 1.0), minimum(&above, -1.0));
    let proven = |known: Clock| {
        let (offset, bound) = (known.ahead(since) as f64, known.bound? as f64);
        let low = reverse.map_or(f64::MIN, |reverse| -reverse).max(offset - bound);
        let high = forward.unwrap_or(f64::MAX).min(offset + bound);
        // Where the two contradict each other, a clock was set meanwhile.
        (low <= high).then_some((low, high))
    };
    let (offset, bound) = match (known.and_then(proven), forward, reverse) {
        (Some((low, high)), ..) => ((low + high) / 2.0, Some((high - low) / 2.0)),
        (None, Some(forward), Some(reverse)) => ((forward - reverse) / 2.0, Some((forward + reverse) / 2.0)),
        // One direction alone shows only changes of the delay: its minimum is set to 0.
        (None, Some(forward), None) => (forward, None),
        (None, None, Some(reverse)) => (-reverse, None),
        (None, None, None) => (0.0, None),
    };
    let bound = bound.map(|bound| bound.max(0.0).ceil() as i64);
    Clock { offset: offset.round() as i64, skew, since, bound }
}

/// Points as floating-point numbers from `since` on, sorted by time.
fn points(differences: &[(i64, i64)], since: i64, sign: i64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = differences
        .iter()
        .map(|&(time, difference)| (time.saturating_sub(since) as f64, (sign as f64) * difference as f64))
        .collect();
    points.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    points
}

/// The slope of the lower convex hull's edge at the mean time.
fn slope_below(points: &[(f64, f64)]) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    if points.len() < MIN_PACKETS || last.0 - first.0 < MIN_TIME as f64 {
        return None;
    }
    let mean = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &point in points {
        while let [.., a, b] = hull[..]
            && (b.0 - a.0) * (point.1 - a.1) <= (point.0 - a.0) * (b.1 - a.1)
        {
            hull.pop();
        }
        hull.push(point);
    }
    let edge = hull.windows(2).find(|edge| edge[1].0 >= mean)?;
    let run = edge[1].0 - edge[0].0;
    (run > 0.0).then(|| (edge[1].1 - edge[0].1) / run)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays of at least 10 ms under a clock that is `offset` ahead and runs `skew` too fast.
    fn differences(offset: i64, skew: f64) -> Differences {
        let mut differences = Differences::default();
        for n in 0..5000i64 {
            let time = n * 10_000_000;
            let queue = (n * 7_919 % 1000) * 20_000;
            let ahead = offset + (skew * time as f64) as i64;
            differences.from_first.push((time, 10_000_000 + queue + ahead));
            differences.from_second.push((time + 5_000_000, ahead - 10_000_000 - queue / 3));
        }
        differences
    }

    #[test]
    fn offset_and_skew_are_found_under_queueing() {
        for (offset, skew) in [(0, 0.0), (3_000_000_000, 20e-6), (-77_000_000, -150e-6)] {
            let clock = estimate(&differences(offset, skew), None);
            assert!((clock.skew - skew).abs() < 1e-7, "{} for {skew}", clock.skew);
            assert!((clock.offset - offset).abs() < 10_000, "{} for {offset}", clock.offset);
            // Half the round trip.
            assert!((clock.bound.unwrap() - 10_000_000).abs() < 10_000, "{:?}", clock.bound);
        }
    }

    #[test]
    fn exchanges_of_the_time_see_an_asymmetry_that_packets_do_not() {
        let mut asymmetric = differences(3_000_000_000, 0.0);
        for (_, difference) in &mut asymmetric.from_second {
            *difference -= 40_000_000;
        }
        let by_packets = estimate(&asymmetric, None);
        assert_eq!(by_packets.offset, 3_000_000_000 - 20_000_000);
        assert_eq!(by_packets.bound, Some(30_000_000));
        let known = Clock { offset: 2_999_900_000, skew: 0.0, since: 0, bound: Some(200_000) };
        let both = estimate(&asymmetric, Some(known));
        assert_eq!((both.offset, both.bound), (2_999_900_000, Some(200_000)));
    }

    #[test]
    fn packets_narrow_what_exchanges_leave_open() {
        let known = Clock { offset: 15_000_000, skew: 0.0, since: 0, bound: Some(20_000_000) };
        let both = estimate(&differences(0, 0.0), Some(known));
        // Exchanges: from -5 to 35 ms; packets: from -10 to 10 ms.
        assert_eq!((both.offset, both.bound), (2_500_000, Some(7_500_000)));
    }

    #[test]
    fn exchanges_that_packets_contradict_count_for_nothing() {
        let known = Clock { offset: 500_000_000, skew: 0.0, since: 0, bound: Some(1_000) };
        assert_eq!(estimate(&differences(0, 0.0), Some(known)).offset, 0);
    }

    #[test]
    fn few_packets_tell_no_skew() {
        let mut few = differences(5_000_000, 100e-6);
        few.from_first.truncate(3);
        few.from_second.truncate(3);
        let clock = estimate(&few, None);
        assert_eq!(clock.skew, 0.0);
    }

    #[test]
    fn no_packets_tell_nothing() {
        assert_eq!(estimate(&Differences::default(), None), Clock::default());
    }
}
