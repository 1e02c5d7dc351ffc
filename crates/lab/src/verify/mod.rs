//! Whether links do what was asked of them, measured before traffic: one-way delay, rate, queue limit and loss.
//!
//! Every direction is measured at the same time as every other: first single frames, then a burst that fills the queue,
//! then frames at less than the rate. Bursts that the machine could not send fast enough are repeated, a few at a time.
//! Directions that are off are measured again in ever smaller groups, at last alone, within a budget of time. When
//! it is over, sixteen of those that were off once are still measured a second time; the rest is not verified. The spread
//! of the delays of single frames is what the machine adds, and widens every tolerance: a busy machine makes the
//! measurement coarser, not wrong. A rate is that between the frames of a burst that were least late.

mod budget;
mod probe;
mod verdict;

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_plan::{Direction, Limit, Loss, LossModel};

use budget::{Budget, Takes};
use probe::{Arrival, MIN_FRAME, Outcome, Probe, Train};
use verdict::{Finding, Verdict};

pub(crate) use probe::{receiver, sender};

/// Single frames, and the time between two.
const SINGLES: u32 = 15;
const APART: Duration = Duration::from_millis(10);
/// How long a burst may take to leave the queue, and the frames that look for losses to be sent, seconds.
const MAX_TIME: f64 = 0.6;
/// More would not find room in a device's own queue.
const MAX_FRAMES: f64 = 8000.0;
/// How long a burst takes that measures a rate alone, seconds.
const RATE_TIME: f64 = 0.1;
/// Frames that look for losses, and those of all directions together.
const LOSS_FRAMES: f64 = 2000.0;
const ALL_LOSS_FRAMES: f64 = 40_000.0;
const MIN_APART: f64 = 100e-6;
/// Directions whose bursts a machine sends at the same time once it was too slow for all of them.
const FEW: usize = 4;
/// Directions that are measured again when time is over, because they were off once.
const DOUBTFUL: usize = 16;
/// Reasons of a machine that is too slow.
const SENDS_NO_FASTER: &str = "this machine sends no faster";
const FILLS_TOO_SLOWLY: &str = "this machine sends too slowly to fill it";
const NO_TIME: &str = "no time was left to measure it";
const NOT_REPEATED: &str = "it was off once, and no time was left to measure it again";
/// Grace period after the last frame should have arrived, seconds.
const GRACE: f64 = 0.1;
/// The sender's time for a frame, seconds, on a slow machine.
const SENDING: f64 = 4e-6;

/// One direction of a link, and where it begins and ends.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    link: String,
    direction: String,
    /// Node and interface.
    pub(crate) from: (String, String),
    pub(crate) to: (String, String),
    mtu: u32,
    plan: Direction,
    /// netem makes it: its limit also counts what is under way.
    netem: bool,
}

/// Frames that are sent in a direction, in this order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Single frames, which measure the delay.
    Singles,
    /// A burst, which measures rate and queue limit.
    Burst,
    /// Frames at less than the rate, which measure losses.
    Paced,
}

impl Part {
    const ALL: [Part; 3] = [Part::Singles, Part::Burst, Part::Paced];

    fn measures(self, what: &str) -> bool {
        match self {
            Part::Singles => what == "delay",
            Part::Burst => ["rate", "queue limit"].contains(&what),
            Part::Paced => what == "loss",
        }
    }
}

/// A direction that is measured.
struct Measured<'a> {
    asked: &'a Asked,
    probe: Probe,
    /// Delay that the machine adds, seconds.
    noise: f64,
    findings: Vec<Finding>,
}

impl Measured<'_> {
    /// The machine was too slow for its burst.
    fn is_slow(&self) -> bool {
        self.findings.iter().any(|finding| [SENDS_NO_FASTER, FILLS_TOO_SLOWLY].contains(&finding.reason))
    }

    /// A property was off once, and has not been measured again.
    fn is_doubtful(&self) -> bool {
        self.findings.iter().any(Finding::is_doubtful)
    }

    /// A property that the part measures is off. Single frames are part of every repetition: they show how busy the machine is.
    fn wants_again(&self, part: Part) -> bool {
        let mut off = self.findings.iter().filter(|finding| finding.verdict == Verdict::Off);
        off.any(|finding| part == Part::Singles || part.measures(finding.what))
    }

    fn note(&mut self, part: Part, outcome: Option<&Outcome>, size: usize) {
        if part == Part::Singles {
            self.noise = outcome.map_or(0.0, |outcome| self.asked.noise(outcome));
        }
        for finding in self.asked.findings(part, outcome, size, self.noise) {
            match self.findings.iter_mut().find(|known| known.what == finding.what) {
                Some(known) => *known = known.repeated(finding),
                None => self.findings.push(finding),
            }
        }
    }
}

impl budget::Direction for Measured<'_> {
    fn is_off(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict == Verdict::Off)
    }

    fn takes(&self) -> Takes {
        let again = Part::ALL.into_iter().filter(|part| self.wants_again(*part));
        again.map(|part| self.asked.train(part, 1).takes()).sum()
    }
}

/// Measures directions, each with a socket at its beginning and one at its end. A property that is not measured within the
/// time that they may take since they `began` is not verified.
pub(crate) fn verify(asked: &[Asked], sockets: Vec<(OwnedFd, OwnedFd)>, began: Instant) -> io::Result<Value> {
    let probes = sockets.into_iter().map(|(sender, receiver)| Probe::new(sender, receiver));
    let mut all: Vec<Measured> = asked
        .iter()
        .zip(probes)
        .map(|(asked, probe)| Measured { asked, probe, noise: 0.0, findings: Vec::new() })
        .collect();
    let budget = Budget::new(asked.len(), began, Instant::now);
    measure(&mut all.iter_mut().collect::<Vec<_>>(), |_, _| true, &budget)?;
    let again = |group: &mut [&mut Measured<'_>]| measure(group, |way, part| way.wants_again(part), &budget);
    budget.repeat(&mut all, again)?;
    let mut slow: Vec<_> = all.iter_mut().filter(|one| one.is_slow()).collect();
    for group in slow.chunks_mut(FEW) {
        if budget.has(group.iter().map(|one| one.asked.train(Part::Burst, 1).takes())) {
            measure(group, |_, part| part == Part::Burst, &budget)?;
        }
    }
    budget.repeat(&mut all, again)?;
    // A link that is off stops the run: that is worth more time, for as many as are measured well together.
    let mut doubtful: Vec<_> = all.iter_mut().filter(|one| one.is_doubtful()).take(DOUBTFUL).collect();
    let beyond = budget.beyond(&doubtful);
    measure(&mut doubtful, |way, part| way.wants_again(part), &beyond)?;
    let directions = all.iter().map(|one| {
        let measured: Vec<_> = one.findings.iter().map(|finding| finding.concluded(NOT_REPEATED)).collect();
        json!({"link": one.asked.link, "direction": one.asked.direction, "measured": measured})
    });
    let certificate = json!({"directions": directions.collect::<Vec<_>>()});
    probe::close(all.into_iter().map(|one| one.probe).collect());
    Ok(certificate)
}

/// Measures the parts that directions want, at the same time.
fn measure<C: Fn() -> Instant>(
    ways: &mut [&mut Measured],
    wants: impl Fn(&Measured, Part) -> bool,
    budget: &Budget<C>,
) -> io::Result<()> {
    for part in Part::ALL {
        let mut ways: Vec<_> = ways.iter_mut().filter(|way| wants(way, part)).collect();
        let trains: Vec<Train> = ways.iter().map(|way| way.asked.train(part, ways.len())).collect();
        let fits: Vec<bool> = trains.iter().map(|train| budget.has([train.takes()])).collect();
        let sent: Vec<Train> = trains
            .iter()
            .zip(&fits)
            .map(|(train, fits)| if *fits { *train } else { Train::default() })
            .collect();
        let mut probes: Vec<&mut Probe> = ways.iter_mut().map(|way| &mut way.probe).collect();
        let outcomes = probe::exchange(&mut probes, &sent, budget.until)?;
        for (((way, train), fits), outcome) in ways.iter_mut().zip(trains).zip(fits).zip(outcomes) {
            way.note(part, Some(&outcome).filter(|outcome| fits && !outcome.cut), train.size);
        }
    }
    Ok(())
}

impl Asked {
    /// The frames of a part, of a direction among so many; none where there is nothing to measure.
    fn train(&self, part: Part, of: usize) -> Train {
        let train = match part {
            Part::Singles => Some(self.singles()),
            Part::Burst => self.burst(),
            Part::Paced => self.paced(of),
        };
        train.filter(|_| self.plan.up).unwrap_or_default()
    }

    /// Findings by the outcome of a part; none: there was no time for it.
    fn findings(&self, part: Part, outcome: Option<&Outcome>, size: usize, noise: f64) -> Vec<Finding> {
        match part {
            Part::Singles if !self.plan.up => {
                vec![Finding::unknown("delay", "the link is down at the start")]
            }
            _ if !self.plan.up => Vec::new(),
            Part::Singles => vec![self.delay(outcome, noise)],
            Part::Burst => {
                self.rate(outcome, size, noise).into_iter().chain(self.queue(outcome, size, noise)).collect()
            }
            Part::Paced => vec![self.loss(outcome)],
        }
    }

    /// Seconds that a frame takes at the rate.
    fn frame_time(&self, size: usize) -> Option<f64> {
        let bits = 8.0 * f64::from(self.plan.overhead.len_on_wire(size as u32));
        (self.plan.trace.is_none()).then_some(())?;
        self.plan.rate.map(|rate| bits / rate.bits_per_sec() as f64)
    }

    fn full_frame(&self) -> usize {
        self.mtu as usize + 14
    }

    /// How long a frame may be under way beside its time in the queue, seconds.
    fn under_way(&self) -> f64 {
        let jitter = self.plan.jitter.as_ref().map_or(0.0, |jitter| 4.0 * seconds(jitter.amount.as_ns()));
        seconds(self.plan.delay.as_ns()) + jitter + GRACE
    }

    fn singles(&self) -> Train {
        let waits = f64::from(SINGLES) * self.frame_time(MIN_FRAME).unwrap_or(0.0);
        let patience = Duration::from_secs_f64(self.under_way() + waits.min(1.0));
        Train { frames: SINGLES, size: MIN_FRAME, apart: APART, patience }
    }

    /// Spread of the delays that the link does not explain, seconds.
    fn noise(&self, singles: &Outcome) -> f64 {
        let delays = singles.arrivals.iter().map(Arrival::delay);
        let (min, max) = delays.fold((f64::MAX, 0.0_f64), |(min, max), one| (min.min(one), max.max(one)));
        if self.varies() || max < min { 0.0 } else { max - min }
    }

    /// The delay is not the same for each packet.
    fn varies(&self) -> bool {
        self.plan.jitter.is_some() || self.plan.reorder.is_some() || self.plan.trace.is_some()
    }

    fn delay(&self, singles: Option<&Outcome>, noise: f64) -> Finding {
        let asked = seconds(self.plan.delay.as_ns());
        if self.varies() {
            return Finding::unknown("delay", "it varies by itself");
        }
        let Some(singles) = singles else { return Finding::unknown("delay", NO_TIME) };
        let own = self.frame_time(MIN_FRAME).unwrap_or(0.0);
        let delays = singles.arrivals.iter().map(|one| one.delay() - own);
        let Some(measured) = delays.min_by(f64::total_cmp) else {
            if self.plan.loss.is_some() {
                return Finding::unknown("delay", "every probe was lost");
            }
            return Finding::nothing_came("delay", asked);
        };
        Finding::compare("delay", asked, measured, (0.02 * asked).max(0.5e-3) + noise)
    }

    /// Frames that a FIFO queue of this limit has room for.
    fn room(&self, size: usize) -> Option<f64> {
        let limit = self.plan.queue.tail_drop_limit()?;
        let frame_time = self.frame_time(size)?;
        Some(match limit {
            Limit::Packets(packets) => packets as f64,
            Limit::Bytes(bytes) => (bytes / size as u64) as f64,
            Limit::Time(time) => (seconds(time.as_ns()) / frame_time).floor(),
        })
    }

    /// Frames that its queue holds; none where a burst does not show it.
    fn holds(&self, size: usize) -> Option<f64> {
        let known = !self.netem && self.plan.policer.is_none() && self.plan.loss.is_none();
        self.room(size).filter(|_| known)
    }

    /// The size of the frames that fill the queue, and how many: none where that takes too long or they come too slowly.
    fn filling(&self) -> Option<(usize, f64)> {
        [self.full_frame(), MIN_FRAME.max(60)].into_iter().find_map(|size| {
            let (holds, frame_time) = (self.holds(size)?, self.frame_time(size)?);
            // Those that leave while they come must be made up for.
            let frames = (1.1 * holds + 20.0) / (1.0 - SENDING / frame_time).max(0.0);
            (frames <= MAX_FRAMES && holds * frame_time <= MAX_TIME).then_some((size, frames))
        })
    }

    fn burst(&self) -> Option<Train> {
        let (size, frames) = self.filling().or_else(|| {
            let size = self.full_frame();
            let frames = (RATE_TIME / self.frame_time(size)?).clamp(12.0, MAX_FRAMES / 4.0);
            // Where frames are lost on the way, those that find no room cannot be distinguished from them.
            let room = self.room(size).filter(|_| self.plan.loss.is_some());
            Some((size, frames.min(room.unwrap_or(frames))))
        })?;
        let drain = frames * self.frame_time(size)?;
        let patience = Duration::from_secs_f64(self.under_way() + drain.min(2.0));
        Some(Train { frames: frames as u32, size, apart: Duration::ZERO, patience })
    }

    /// The longest part of a burst in which each frame was sent before the one ahead had left. Where its sender was held
    /// up, the link rests.
    fn waited<'a>(&self, burst: &'a Outcome) -> &'a [Arrival] {
        let left = |arrival: &Arrival| arrival.came.saturating_sub(self.plan.delay.as_ns());
        let parts = burst.arrivals.chunk_by(|ahead, behind| behind.sent < left(ahead));
        parts.max_by_key(|part| part.len()).unwrap_or_default()
    }

    fn rate(&self, burst: Option<&Outcome>, size: usize, noise: f64) -> Option<Finding> {
        let asked = self.plan.rate?.bits_per_sec() as f64;
        let frame_time = self.frame_time(size)?;
        if self.plan.policer.is_some() || self.plan.queue.shapes() || self.varies() {
            return Some(Finding::unknown("rate", "something else than the rate spaces packets"));
        }
        let Some(burst) = burst else { return Some(Finding::unknown("rate", NO_TIME)) };
        if burst.arrivals.is_empty() {
            return Some(Finding::nothing_came("rate", asked));
        }
        let sent_at = f64::from(burst.sent) / burst.sending.max(1e-9);
        let no_faster = sent_at < 1.2 / frame_time && burst.arrivals.len() == burst.sent as usize;
        let waited = self.waited(burst);
        if waited.is_empty() || no_faster {
            return Some(Finding::unknown("rate", SENDS_NO_FASTER));
        }
        // A frame that was lost on the way has used its time, one that found no room has not.
        let places = waited.iter().enumerate().map(|(place, arrival)| {
            let place = if self.plan.loss.is_some() { arrival.number as usize } else { place };
            (place as f64 * frame_time, arrival.came as f64 / 1e9)
        });
        let frames: Vec<(f64, f64)> = places.collect();
        let third = frames.len() / 3;
        let (first, last) = (least_late(&frames[..third]), least_late(&frames[frames.len() - third..]));
        let (due, took) = (last.0 - first.0, last.1 - first.1);
        if frames.len() < 6 || took <= 0.0 || noise > 0.3 * took {
            return Some(Finding::unknown("rate", "the burst that the queue holds is too short"));
        }
        Some(Finding::compare("rate", asked, asked * due / took, asked * (0.03 + noise / took)))
    }

    /// In frames.
    fn queue(&self, burst: Option<&Outcome>, size: usize, noise: f64) -> Option<Finding> {
        self.plan.rate?;
        let Some((_, _)) = self.filling() else {
            return Some(Finding::unknown("queue limit", "a burst does not show it, or takes too long"));
        };
        let (asked, frame_time) = (self.holds(size)?, self.frame_time(size)?);
        let Some(burst) = burst else { return Some(Finding::unknown("queue limit", NO_TIME)) };
        if burst.arrivals.len() == burst.sent as usize {
            let spare = f64::from(burst.sent) - asked;
            if burst.sending < 0.5 * spare * frame_time {
                return Some(Finding::compare(
                    "queue limit",
                    asked,
                    f64::from(burst.sent),
                    0.03 * asked + 3.0,
                ));
            }
            return Some(Finding::unknown("queue limit", FILLS_TOO_SLOWLY));
        }
        // One is being sent, and some have left while others came: fewer than could, if the link rested meanwhile.
        let (held, left) = (burst.arrivals.len() as f64 - 1.0, burst.sending / frame_time);
        let tolerance = 3.0 + 0.03 * asked + noise / frame_time;
        let found = Finding::compare("queue limit", asked, held - left, tolerance);
        let may_be = found.verdict == Verdict::Off && (held - left..=held + tolerance).contains(&asked);
        Some(if may_be { Finding::unknown("queue limit", FILLS_TOO_SLOWLY) } else { found })
    }

    /// The share of packets that are lost at random; none where it is not a matter of chance alone.
    fn lost(&self) -> Option<f64> {
        match &self.plan.loss {
            _ if self.plan.corrupt.is_some() => None,
            None => Some(0.0),
            Some(Loss { model: LossModel::Random { chance }, .. }) if chance.correlation.is_zero() => {
                Some(chance.rate.as_f64())
            }
            Some(_) => None,
        }
    }

    /// One of so many directions.
    fn paced(&self, of: usize) -> Option<Train> {
        self.lost()?;
        let apart = (1.5 * self.frame_time(MIN_FRAME).unwrap_or(0.0)).max(MIN_APART);
        let max = (ALL_LOSS_FRAMES / of as f64).clamp(20.0, LOSS_FRAMES);
        let frames = (MAX_TIME / apart).clamp(10.0, max);
        let patience = Duration::from_secs_f64(self.under_way());
        Some(Train {
            frames: frames as u32,
            size: MIN_FRAME,
            apart: Duration::from_secs_f64(apart),
            patience,
        })
    }

    fn loss(&self, paced: Option<&Outcome>) -> Finding {
        let Some(asked) = self.lost() else {
            return Finding::unknown("loss", "which packets are lost is not a matter of single chances");
        };
        if self.plan.policer.is_some() {
            return Finding::unknown("loss", "the policer drops packets too");
        }
        let Some(paced) = paced else { return Finding::unknown("loss", NO_TIME) };
        let sent = f64::from(paced.sent);
        let measured = 1.0 - paced.arrivals.len() as f64 / sent.max(1.0);
        if asked > 0.0 && asked * sent < 10.0 {
            return Finding::unknown("loss", "so small a share does not show in the time there is");
        }
        // Four standard deviations of a binomial share.
        Finding::compare("loss", asked, measured, 4.0 * (asked * (1.0 - asked) / sent).sqrt())
    }
}

/// The frame that the machine delivered least late, of some with the time of each at the rate that was asked for and that of
/// its arrival. A machine delivers late, and never early: this one shows the link, the others the machine too.
fn least_late(frames: &[(f64, f64)]) -> (f64, f64) {
    let late = |(due, came): &(f64, f64)| came - due;
    frames.iter().copied().min_by(|one, other| late(one).total_cmp(&late(other))).unwrap_or_default()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A direction of 100 Mbit/s and 1 ms.
    fn asked() -> Asked {
        let plan = json!({
            "up": true, "changes": [], "rate": 100_000_000, "delay": 1_000_000, "queue": {"kind": "droptail", "limit": {"packets": 10_000}}
        });
        serde_json::from_value(json!({
            "link": "l", "direction": "forward", "from": ["a", "x"], "to": ["b", "x"], "mtu": 1500, "netem": false,
            "plan": plan,
        }))
        .unwrap()
    }

    /// A burst over that direction; after its first 10 frames the sender is held up for 8 ms.
    fn held_up(frames: u32) -> Outcome {
        let mut free = 0;
        let arrivals = (0..frames).map(|number| {
            let sent = u64::from(number) * 4_000 + if number < 10 { 0 } else { 8_000_000 };
            free = sent.max(free) + 121_120;
            Arrival { number, sent, came: free + 1_000_000 }
        });
        let arrivals: Vec<Arrival> = arrivals.collect();
        let sending = arrivals[frames as usize - 1].sent as f64 / 1e9;
        Outcome { sent: frames, arrivals, sending, cut: false }
    }

    #[test]
    fn a_sender_that_is_held_up_does_not_make_a_link_slow() {
        let finding = asked().rate(Some(&held_up(200)), 1514, 0.0).unwrap();
        let measured = json!(finding)["measured"].as_f64().unwrap();
        assert_eq!(finding.verdict, Verdict::Ok, "{measured}");
        assert!((measured - 100e6).abs() < 1e4, "{measured}");
    }

    #[test]
    fn frames_that_the_machine_delivers_late_do_not_make_a_link_slow_or_fast() {
        let verdict = |rate: f64, late: [u32; 3]| {
            let arrivals = (0..12).map(|number| {
                let due = (f64::from(number + 1) * 121_120.0 / rate) as u64;
                // Each for longer than a frame takes.
                let held_up = if late.contains(&number) { 150_000 } else { 0 };
                Arrival { number, sent: 0, came: 1_000_000 + due + held_up }
            });
            let burst = Outcome { sent: 30, arrivals: arrivals.collect(), sending: 1e-6, cut: false };
            asked().rate(Some(&burst), 1514, 0.0).unwrap().verdict
        };
        for late in [[0, 1, 2], [9, 10, 11], [0, 1, 11], [0, 10, 11], [4, 5, 6]] {
            assert_eq!(verdict(1.0, late), Verdict::Ok, "{late:?}");
            assert_eq!(verdict(0.9, late), Verdict::Off, "{late:?}");
            assert_eq!(verdict(1.1, late), Verdict::Off, "{late:?}");
        }
    }

    #[test]
    fn a_short_queue_is_off_unless_the_burst_was_sent_too_slowly_to_tell() {
        let mut asked = asked();
        asked.plan.queue = tcplab_plan::Queue::droptail(Some(Limit::Packets(100)));
        let verdict = |came: u32, sending: f64| {
            let arrivals = held_up(came).arrivals;
            asked
                .queue(Some(&Outcome { sent: 130, arrivals, sending, cut: false }), 1514, 0.0)
                .unwrap()
                .verdict
        };
        assert_eq!(verdict(102, 0.0001), Verdict::Ok);
        assert_eq!(verdict(50, 0.0001), Verdict::Off);
        assert_eq!(verdict(110, 0.008), Verdict::NotVerified);
        assert_eq!(verdict(50, 0.008), Verdict::Off);
    }

    #[test]
    fn a_burst_that_is_sent_as_slowly_as_the_link_tells_nothing() {
        let finding = asked().rate(Some(&held_up(12)), 1514, 0.0).unwrap();
        assert_eq!((finding.verdict, finding.reason), (Verdict::NotVerified, SENDS_NO_FASTER));
    }
}
