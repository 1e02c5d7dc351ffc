//! Whether links do what was asked of them, measured before traffic: one-way delay, rate, queue limit and loss.
//!
//! Every direction is measured at the same time as every other: first single frames, then a burst that fills the queue,
//! then frames at less than the rate. Bursts that the machine could not send fast enough are repeated, a few at a time.
//! Directions that disagree are measured again in ever smaller groups, at last alone. The spread of the delays of single
//! frames is what the machine adds, and widens every tolerance: a busy machine makes the measurement coarser, not wrong.

mod probe;
mod verdict;

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_plan::{Direction, Limit, Loss, LossModel};

use probe::{MIN_FRAME, Outcome, Probe, Train};
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
/// How many directions that disagree are measured together again, time after time: fewer disturb each other less.
const AGAIN: [usize; 3] = [16, 4, 1];
/// Groups of them, each time; more directions than these have are taken to be off.
const MAX_ROUNDS: usize = 6;
/// Directions whose bursts a machine sends at the same time once it was too slow for all of them, and until when
/// such a group may begin.
const FEW: usize = 4;
const FEW_UNTIL: Duration = Duration::from_millis(1400);
/// Reasons of a machine that is too slow.
const SENDS_NO_FASTER: &str = "this machine sends no faster";
const FILLS_TOO_SLOWLY: &str = "this machine sends too slowly to fill it";
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

    fn is_off(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict == Verdict::Off)
    }
}

/// Measures directions, each with a socket at its beginning and one at its end.
pub(crate) fn verify(asked: &[Asked], sockets: Vec<(OwnedFd, OwnedFd)>) -> io::Result<Value> {
    let probes = sockets.into_iter().map(|(sender, receiver)| Probe::new(sender, receiver));
    let mut all: Vec<Measured> = asked
        .iter()
        .zip(probes)
        .map(|(asked, probe)| Measured { asked, probe, noise: 0.0, findings: Vec::new() })
        .collect();
    let began = Instant::now();
    measure(&mut all.iter_mut().collect::<Vec<_>>())?;
    let mut slow: Vec<_> = all.iter_mut().filter(|one| one.is_slow()).collect();
    for group in slow.chunks_mut(FEW) {
        if began.elapsed() < FEW_UNTIL {
            burst_again(group)?;
        }
    }
    for together in AGAIN {
        let mut off: Vec<_> = all.iter_mut().filter(|one| one.is_off()).collect();
        if off.len() <= MAX_ROUNDS * together {
            off.chunks_mut(together).try_for_each(measure)?;
        }
    }
    let directions = all.iter().map(
        |one| json!({"link": one.asked.link, "direction": one.asked.direction, "measured": one.findings}),
    );
    Ok(json!({"directions": directions.collect::<Vec<_>>()}))
}

/// Measures directions at the same time.
fn measure(ways: &mut [&mut Measured]) -> io::Result<()> {
    let asked: Vec<&Asked> = ways.iter().map(|way| way.asked).collect();
    let mut probes: Vec<&mut Probe> = ways.iter_mut().map(|way| &mut way.probe).collect();
    let trains: Vec<Train> = asked.iter().map(|asked| asked.singles()).collect();
    let singles = probe::exchange(&mut probes, &trains)?;
    let noise: Vec<f64> = asked.iter().zip(&singles).map(|(asked, outcome)| asked.noise(outcome)).collect();
    let bursts = burst(&asked, &mut probes)?;
    let paced: Vec<Train> = asked.iter().map(|one| one.paced(asked.len()).unwrap_or_default()).collect();
    let losses = probe::exchange(&mut probes, &paced)?;
    for (at, way) in ways.iter_mut().enumerate() {
        let (outcome, size) = &bursts[at];
        way.noise = noise[at];
        way.findings = way.asked.judge(&singles[at], outcome, *size, &losses[at], noise[at]);
    }
    Ok(())
}

/// The outcome of a burst in each direction, and the size of its frames.
fn burst(asked: &[&Asked], probes: &mut [&mut Probe]) -> io::Result<Vec<(Outcome, usize)>> {
    let trains: Vec<Train> = asked.iter().map(|asked| asked.burst().unwrap_or_default()).collect();
    let outcomes = probe::exchange(probes, &trains)?;
    Ok(outcomes.into_iter().zip(trains.iter().map(|train| train.size)).collect())
}

/// Measures again what a burst tells.
fn burst_again(ways: &mut [&mut Measured]) -> io::Result<()> {
    let asked: Vec<&Asked> = ways.iter().map(|way| way.asked).collect();
    let mut probes: Vec<&mut Probe> = ways.iter_mut().map(|way| &mut way.probe).collect();
    let bursts = burst(&asked, &mut probes)?;
    for (way, (outcome, size)) in ways.iter_mut().zip(&bursts) {
        let rate = way.asked.rate(outcome, *size, way.noise);
        for finding in rate.into_iter().chain(way.asked.queue(outcome, *size, way.noise)) {
            if let Some(known) = way.findings.iter_mut().find(|known| known.what == finding.what) {
                *known = finding;
            }
        }
    }
    Ok(())
}

impl Asked {
    fn judge(
        &self,
        singles: &Outcome,
        burst: &Outcome,
        size: usize,
        paced: &Outcome,
        noise: f64,
    ) -> Vec<Finding> {
        if !self.plan.up {
            return vec![Finding::unknown("delay", "the link is down at the start")];
        }
        let mut found = vec![self.delay(singles, noise)];
        found.extend(self.rate(burst, size, noise));
        found.extend(self.queue(burst, size, noise));
        found.push(self.loss(paced));
        found
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
        let delays = singles.arrivals.iter().map(probe::Arrival::delay);
        let (min, max) = delays.fold((f64::MAX, 0.0_f64), |(min, max), one| (min.min(one), max.max(one)));
        if self.varies() || max < min { 0.0 } else { max - min }
    }

    /// The delay is not the same for each packet.
    fn varies(&self) -> bool {
        self.plan.jitter.is_some() || self.plan.reorder.is_some() || self.plan.trace.is_some()
    }

    fn delay(&self, singles: &Outcome, noise: f64) -> Finding {
        let asked = seconds(self.plan.delay.as_ns());
        if self.varies() {
            return Finding::unknown("delay", "it varies by itself");
        }
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

    /// Frames that its queue holds; none where a burst does not tell.
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

    fn rate(&self, burst: &Outcome, size: usize, noise: f64) -> Option<Finding> {
        let asked = self.plan.rate?.bits_per_sec() as f64;
        let frame_time = self.frame_time(size)?;
        if self.plan.policer.is_some() || self.plan.queue.shapes() || self.varies() {
            return Some(Finding::unknown("rate", "something else than the rate spaces packets"));
        }
        let (Some(first), Some(last)) = (burst.arrivals.first(), burst.arrivals.last()) else {
            return Some(Finding::nothing_came("rate", asked));
        };
        // A frame that was lost on the way has used its time, one that found no room has not.
        let frames = if self.plan.loss.is_some() {
            f64::from(last.number - first.number)
        } else {
            burst.arrivals.len() as f64 - 1.0
        };
        let span = last.came.saturating_sub(first.came) as f64 / 1e9;
        let sent_at = f64::from(burst.sent) / burst.sending.max(1e-9);
        if frames < 5.0 || noise > 0.3 * span {
            return Some(Finding::unknown("rate", "the burst that the queue holds is too short"));
        }
        if sent_at < 1.2 / frame_time && burst.arrivals.len() == burst.sent as usize {
            return Some(Finding::unknown("rate", SENDS_NO_FASTER));
        }
        let measured = asked * frames * frame_time / span;
        Some(Finding::compare("rate", asked, measured, asked * (0.03 + noise / span)))
    }

    /// In frames.
    fn queue(&self, burst: &Outcome, size: usize, noise: f64) -> Option<Finding> {
        self.plan.rate?;
        let Some((_, _)) = self.filling() else {
            return Some(Finding::unknown("queue limit", "a burst does not tell it, or takes too long"));
        };
        let (asked, frame_time) = (self.holds(size)?, self.frame_time(size)?);
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
        // One is being sent, and some have left while others came.
        let measured = burst.arrivals.len() as f64 - 1.0 - burst.sending / frame_time;
        let tolerance = 3.0 + 0.03 * asked + noise / frame_time;
        Some(Finding::compare("queue limit", asked, measured, tolerance))
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

    fn loss(&self, paced: &Outcome) -> Finding {
        let Some(asked) = self.lost() else {
            return Finding::unknown("loss", "which packets are lost is not a matter of single chances");
        };
        if self.plan.policer.is_some() {
            return Finding::unknown("loss", "the policer drops packets too");
        }
        let sent = f64::from(paced.sent);
        let measured = 1.0 - paced.arrivals.len() as f64 / sent.max(1.0);
        if asked > 0.0 && asked * sent < 10.0 {
            return Finding::unknown("loss", "so small a share does not show in the time there is");
        }
        // Four standard deviations of a binomial share.
        Finding::compare("loss", asked, measured, 4.0 * (asked * (1.0 - asked) / sent).sqrt())
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
