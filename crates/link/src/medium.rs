//! A half-duplex medium that stations share: who may send, and when.
//!
//! The distributed coordination function of IEEE 802.11 (IEEE 802.11-2020, 10.3; its best-effort class, 10.23.2). A
//! station that has something to send waits until the medium has been idle for AIFS, then for a backoff of random
//! slots. The station counts the slots down only while the medium is idle. Stations whose backoffs end in the same
//! slot collide: nothing of theirs arrives, and they draw from twice as many slots. So each station has the same
//! chance of access, whatever its rate (M. Heusse et al., "Performance anomaly of 802.11b", INFOCOM 2003).
//!
//! Every station hears every other, at once. A collision takes as long as the longest of its transmissions and a wait for
//! the acknowledgment that does not come.

use tcplab_units::{Span, Time};

use crate::config;
use crate::random::Stream;

/// The directions of links that a medium carries, by their number.
pub trait Stations {
    /// When `direction` has something to send: no later than `now` where it has, `NEVER` where nothing waits.
    fn ready(&mut self, direction: u32, now: Time) -> Time;
    /// `direction` begins to send at `now` what one transmission holds. Returns how long its frames take; none: nothing
    /// may leave now.
    fn begin(&mut self, direction: u32, now: Time, medium: &config::Medium) -> Option<Span>;
    /// The transmission of `direction` ends at `now`. Returns whether anything of it arrived or was given up, so that
    /// the next backoff is drawn from the fewest slots.
    fn end(&mut self, direction: u32, now: Time, collided: bool, medium: &config::Medium) -> bool;
}

/// A medium and the stations that contend for it.
#[derive(Clone, Debug)]
pub struct Medium {
    settings: config::Medium,
    contenders: Vec<Contender>,
    phase: Phase,
}

/// A station: one node, with the directions by which it sends.
#[derive(Clone, Debug)]
struct Contender {
    directions: Vec<u32>,
    /// Which of them sent last; the next one's turn comes first.
    turn: usize,
    /// From when on it has something to send; `NEVER`: it has nothing.
    since: Time,
    /// Slots that it still has to wait while the medium is idle. It counts down also while it has nothing to send.
    backoff: u32,
    /// The next backoff is up to this many slots.
    window: u32,
    sending: Option<u32>,
    random: Stream,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nobody sends since then; somebody begins at `next`.
    Idle { since: Time, next: Time },
    /// Frames are being sent until then.
    Busy { end: Time },
}

impl Medium {
    /// An idle medium. `stations` are the directions by which each station sends; random streams derive from `seed`.
    pub fn new(settings: &config::Medium, stations: &[Vec<u32>], seed: u64) -> Medium {
        let contender = |(number, directions): (usize, &Vec<u32>)| Contender {
            directions: directions.clone(),
            turn: 0,
            since: Time::NEVER,
            backoff: 0,
            window: settings.cw_min,
            sending: None,
            random: Stream::new(seed, &format!("backoff {number}")),
        };
        Medium {
            contenders: stations.iter().enumerate().map(contender).collect(),
            settings: settings.clone(),
            phase: Phase::Idle { since: Time::ZERO, next: Time::NEVER },
        }
    }

    /// When `advance` wants calling next; `NEVER` if nobody has anything to send.
    pub fn next_event(&self) -> Time {
        match self.phase {
            Phase::Idle { next, .. } => next,
            Phase::Busy { end } => end,
        }
    }

    /// A packet was enqueued on `direction` at `now`, up to which the medium has been advanced.
    pub fn enqueued(&mut self, direction: u32, now: Time, stations: &mut impl Stations) {
        let is_idle = match self.phase {
            Phase::Idle { since, .. } => since + self.settings.aifs <= now,
            Phase::Busy { .. } => false,
        };
        let uses = |contender: &&mut Contender| contender.directions.contains(&direction);
        let Some(contender) = self.contenders.iter_mut().find(uses) else { return };
        let ready = stations.ready(direction, now);
        if contender.sending.is_some() || ready >= contender.since {
            return;
        }
        if !is_idle && contender.backoff == 0 {
            contender.draw();
        }
        contender.since = ready;
        self.plan();
    }

    /// Does all that happens up to and including `now`, each at its own time.
    pub fn advance(&mut self, now: Time, stations: &mut impl Stations) {
        while self.next_event() <= now && self.next_event() != Time::NEVER {
            match self.phase {
                Phase::Idle { since, next } => self.begin(since, next, stations),
                Phase::Busy { end } => self.end(end, stations),
            }
        }
    }

    /// Everyone whose backoff ends at `now` begins to send.
    fn begin(&mut self, idle_since: Time, now: Time, stations: &mut impl Stations) {
        let settings = &self.settings;
        let counting = idle_since + settings.aifs;
        let mut longest = None;
        for contender in &mut self.contenders {
            if contender.access(counting, settings.slot) <= now {
                longest = longest.max(contender.begin(now, settings, stations));
            }
        }
        // Otherwise what waited was dropped, or may not leave yet.
        let Some(time) = longest else { return self.plan() };
        let slots = now.since(counting).as_ns() / settings.slot.as_ns().max(1);
        for contender in &mut self.contenders {
            contender.backoff -= slots.min(u64::from(contender.backoff)) as u32;
        }
        self.phase = Phase::Busy { end: now + settings.preamble + time };
    }

    /// The transmission in progress ends at `now`.
    fn end(&mut self, now: Time, stations: &mut impl Stations) {
        let collided = self.contenders.iter().filter(|contender| contender.sending.is_some()).count() > 1;
        for contender in &mut self.contenders {
            contender.end(now, collided, &self.settings, stations);
        }
        self.phase = Phase::Idle { since: now + self.settings.ack, next: Time::NEVER };
        self.plan();
    }

    /// Settles when somebody begins, where nobody sends.
    fn plan(&mut self) {
        if let Phase::Idle { since, next } = &mut self.phase {
            let (counting, slot) = (*since + self.settings.aifs, self.settings.slot);
            let access = self.contenders.iter().map(|contender| contender.access(counting, slot));
            *next = access.min().unwrap_or(Time::NEVER);
        }
    }
}

impl Contender {
    /// When it may send, while the medium is idle and backoffs are counted since `counting`.
    fn access(&self, counting: Time, slot: Span) -> Time {
        self.since.max(counting + slot * u64::from(self.backoff))
    }

    fn draw(&mut self) {
        self.backoff = self.random.below(u64::from(self.window) + 1) as u32;
    }

    /// Sends from the direction whose turn it is; how long that takes.
    fn begin(&mut self, now: Time, settings: &config::Medium, stations: &mut impl Stations) -> Option<Span> {
        for step in 1..=self.directions.len() {
            let turn = (self.turn + step) % self.directions.len();
            if let Some(time) = stations.begin(self.directions[turn], now, settings) {
                (self.turn, self.sending) = (turn, Some(self.directions[turn]));
                return Some(time);
            }
        }
        self.since = self.ready(now, stations);
        None
    }

    fn end(&mut self, now: Time, collided: bool, settings: &config::Medium, stations: &mut impl Stations) {
        let Some(direction) = self.sending.take() else { return };
        let is_done = stations.end(direction, now, collided, settings);
        let doubled = self.window.saturating_mul(2).saturating_add(1);
        self.window =
            if is_done { settings.cw_min } else { doubled.min(settings.cw_max.max(settings.cw_min)) };
        self.draw();
        self.since = self.ready(now, stations);
    }

    /// When one of its directions has something to send.
    fn ready(&self, now: Time, stations: &mut impl Stations) -> Time {
        let times = self.directions.iter().map(|&direction| stations.ready(direction, now));
        times.min().unwrap_or(Time::NEVER)
    }
}
