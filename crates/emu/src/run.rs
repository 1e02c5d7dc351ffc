//! A run: when it begins and ends, and what is recorded at which time.

use std::collections::BTreeMap;

use tcplab_link::{Link, Sampled, component_seed};
use tcplab_units::{Span, Time};

use crate::at_once::at_once;
use crate::capture::Captures;
use crate::changes::{self, Planned};
use crate::clock;
use crate::config::{LinkDirection, LiveChange, Start, What};
use crate::direction::Direction;
use crate::event_loop::{EventLoop, HOLD};
use crate::frame::Keep;
use crate::lateness::Lateness;
use crate::media::Media;
use crate::recording::DirectionObserver;
use crate::report::{DirectionStats, LinkStats, Progress, RunStats};
use crate::streams::Streams;
use crate::writer::WriterCommand;

/// How often records are written and progress is reported.
const REPORT_INTERVAL: Span = Span::from_secs(1);
/// Rows of packets, and bytes of captures, that are written before that.
const ROWS: usize = 1 << 16;
const CAPTURED: usize = 1 << 20;

/// A run, begun or not.
pub(crate) struct Run {
    start: Start,
    begun: bool,
    next_sample: Time,
    next_report: Time,
    changes: Vec<Planned>,
    changes_done: usize,
    /// By direction, at present.
    delays: Vec<Span>,
    /// By direction, whether it is up.
    up: Vec<bool>,
    before: Before,
}

/// Counters when the run began.
#[derive(Clone, Copy, Default)]
struct Before {
    cpu: u64,
    overflows: u64,
    malformed: u64,
    unstamped: u64,
}

impl EventLoop {
    /// A run will begin.
    pub(crate) fn prepare(&mut self, start: Start) {
        let directions = || self.setup.links.iter().flat_map(|link| [&link.forward, &link.backward]);
        let timed = !start.rehearsal;
        let changes = if timed { changes::planned(directions()) } else { Vec::new() };
        let delays = directions().map(|direction| direction.delay).collect();
        let sample = self.setup.sample.queues;
        self.duty = start.at;
        self.run = Some(Run {
            start,
            begun: false,
            next_sample: sample.filter(|_| timed).map_or(Time::NEVER, |interval| Time::ZERO + interval),
            next_report: if timed { Time::ZERO + REPORT_INTERVAL } else { Time::NEVER },
            changes,
            changes_done: 0,
            delays,
            up: directions().map(|direction| direction.up).collect(),
            before: Before::default(),
        });
    }

    /// Settings change now; without a run there are none to change.
    pub(crate) fn change(&mut self, order: LiveChange) {
        let Some(run) = self.run.as_mut().filter(|run| run.begun) else { return };
        let LiveChange { link, direction, mut change } = order;
        let Some(link) = self.setup.links.iter().position(|known| known.name == link) else { return };
        let number = 2 * link + usize::from(direction == LinkDirection::Backward);
        change.at = Time::from_ns(clock::now().saturating_sub(self.zero));
        let later = run.changes[run.changes_done..].partition_point(|other| other.at <= change.at);
        run.changes.insert(run.changes_done + later, Planned::new(number, &change));
        if let Some(link) = self.directions[number].link() {
            link.change(change);
        }
        self.due[number] = 0;
        // Records of it are duties of the run.
        self.duty = 0;
    }

    /// Ends the run now, if need be at its beginning: whoever stops it waits until it is done.
    pub(crate) fn stop(&mut self) {
        let Some(mut run) = self.run.take() else { return };
        if run.start.rehearsal {
            self.zero = 0;
            self.directions.iter_mut().for_each(Direction::end);
            self.media = Media::default();
            return;
        }
        if !run.begun {
            run.start.at = clock::now();
            self.begin(&mut run);
        }
        self.finish(run, Time::from_ns(clock::now().saturating_sub(self.zero)));
    }

    /// There will be no more orders.
    pub(crate) fn end(mut self) {
        self.stop();
        // The kernel waits for RCU with each device that goes, and with its packet socket.
        at_once(self.taps, drop);
    }

    /// Does what is due at `now`, and returns when the next is (both CLOCK_MONOTONIC, ns).
    #[cold]
    pub(crate) fn do_duty(&mut self, now: u64) -> u64 {
        let Some(mut run) = self.run.take() else { return u64::MAX };
        if !run.begun {
            self.begin(&mut run);
        }
        let now = Time::from_ns(now - self.zero);
        let end = run.start.end();
        self.sample(&mut run, now.min(end));
        self.note_changes(&mut run, now.min(end));
        if now >= end {
            self.finish(run, end);
            return u64::MAX;
        }
        if now >= run.next_report {
            self.notify(now);
            run.next_report = now + REPORT_INTERVAL;
        }
        let next_change = run.changes.get(run.changes_done).map_or(Time::NEVER, |change| change.at);
        let next = run.next_sample.min(run.next_report).min(next_change).min(end);
        self.run = Some(run);
        next.as_ns().saturating_add(self.zero)
    }

    fn begin(&mut self, run: &mut Run) {
        run.begun = true;
        self.zero = run.start.at;
        let mut number = 0;
        for link in &self.setup.links {
            for (name, direction) in [("forward", &link.forward), ("backward", &link.backward)] {
                let seed = component_seed(self.setup.seed, &format!("link.{}.{name}", link.name));
                self.directions[number].begin(match link.medium {
                    Some(_) => Link::on_medium(direction, seed),
                    None => Link::new(direction, seed),
                });
                // Changes, too, happen in the model by themselves.
                self.due[number] = 0;
                number += 1;
            }
        }
        self.media = Media::new(&self.setup);
        self.set_rtts(run);
        if run.start.rehearsal {
            return;
        }
        for link in 0..self.setup.links.len() {
            self.set_carrier(run, link);
        }
        run.before = Before {
            cpu: clock::thread_cpu(),
            overflows: self.taps.iter().map(|tap| tap.overflows()).sum(),
            malformed: self.malformed,
            unstamped: self.unstamped,
        };
        let captures = self.captures();
        self.recording.begin(Streams::new(&run.start.streams, self.setup.sample.flows), captures);
    }

    fn captures(&mut self) -> Option<Captures> {
        let keep = match self.setup.capture? {
            What::Headers => Keep::Headers,
            What::Full => Keep::Full,
        };
        let dir = self.setup.dir.clone()?;
        let (mut names, mut paths, mut by_end) = (Vec::new(), Vec::new(), Vec::new());
        for link in &self.setup.links {
            for end in &link.ends {
                by_end.push(end.capture.then_some(paths.len()));
                if end.capture {
                    let file = format!("{}-{}.pcapng", end.node, link.name);
                    paths.push(dir.join(&file));
                    names.push([link.name.clone(), file]);
                }
            }
        }
        let by_direction = (0..by_end.len()).map(|number| [by_end[number], by_end[number ^ 1]]).collect();
        let epoch = clock::since_1970().wrapping_add(self.zero).wrapping_sub(clock::now());
        let captures = Captures::new(keep, &names, by_direction, epoch).ok()?;
        let _ = self.work.send(WriterCommand::Begin(paths));
        Some(captures)
    }

    fn set_rtts(&mut self, run: &Run) {
        for (number, direction) in self.directions.iter_mut().enumerate() {
            direction.set_rtt(run.delays[number] + run.delays[number ^ 1]);
        }
    }

    /// Samples the queues as they were at each time of the schedule until `now`.
    fn sample(&mut self, run: &mut Run, now: Time) {
        let Some(interval) = self.setup.sample.queues else { return };
        while run.next_sample <= now {
            self.sample_at(run.next_sample);
            run.next_sample += interval;
        }
    }

    /// Samples them once more where the schedule has no sample at the end: their last counts are those of the run.
    fn sample_last(&mut self, run: &mut Run, now: Time) {
        self.sample(run, now);
        if self.setup.sample.queues.is_some_and(|interval| run.next_sample < now + interval) {
            self.sample_at(now);
        }
    }

    fn sample_at(&mut self, time: Time) {
        self.advance_media(time);
        for (number, direction) in self.directions.iter_mut().enumerate() {
            let Some(link) = direction.link() else { continue };
            let mut observer = DirectionObserver {
                arena: &mut self.arena,
                recording: &mut self.recording,
                direction: number,
            };
            let queue = link.sample(time, &mut observer);
            let (classes, gauges) = (link.classes(), link.gauges(time, &mut observer));
            let (names, stats) = (self.recording.names(number), link.stats());
            let sampled = Sampled { time, names, queue, stats, classes: &classes, gauges: &gauges };
            self.recording.queues().push(&sampled);
        }
    }

    fn note_changes(&mut self, run: &mut Run, now: Time) {
        while let Some(change) = run.changes.get(run.changes_done).filter(|change| change.at <= now) {
            self.recording.change(change.at, change.number, &change.detail);
            if let Some(delay) = change.delay {
                run.delays[change.number] = delay;
            }
            if let Some(up) = change.up {
                run.up[change.number] = up;
                self.set_carrier(run, change.number / 2);
            }
            run.changes_done += 1;
            self.set_rtts(run);
        }
    }

    fn set_carrier(&mut self, run: &Run, link: usize) {
        if self.setup.links[link].carrier {
            let is_up = run.up[2 * link] || run.up[2 * link + 1];
            self.taps[2 * link..2 * link + 2].iter_mut().for_each(|tap| tap.set_carrier(is_up));
        }
    }

    /// Advances all links to `now`. Events before the returned time are final.
    fn advance(&mut self, now: Time) -> Time {
        self.advance_media(now);
        let mut settled = now.min(self.media.next_event());
        for (number, direction) in self.directions.iter_mut().enumerate() {
            let Some(link) = direction.link() else { continue };
            let mut observer = DirectionObserver {
                arena: &mut self.arena,
                recording: &mut self.recording,
                direction: number,
            };
            link.advance(now, &mut observer);
            settled = settled.min(link.next_event());
        }
        settled
    }

    /// Writes the captures up to the last final event.
    pub(crate) fn settle(&mut self, now: u64) {
        let now = now.saturating_sub(self.zero);
        let settled = self.advance(Time::from_ns(now)).min(Time::from_ns(now.saturating_sub(HOLD)));
        if let Some(captures) = &mut self.recording.captures
            && (captures.settle(settled).is_err() || captures.waiting() > CAPTURED)
        {
            self.hand_over();
        }
        if self.recording.waiting() > ROWS {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        // A writer that is gone has said why.
        let _ = self.work.send(WriterCommand::Rows(Box::new(self.recording.take())));
        if let Some(captures) = &mut self.recording.captures {
            for (file, bytes) in captures.take() {
                let _ = self.work.send(WriterCommand::Captured(file, bytes));
            }
        }
    }

    fn notify(&mut self, now: Time) {
        self.recording.settle_losses(Time::from_ns(now.as_ns().saturating_sub(HOLD)), Time::NEVER);
        self.hand_over();
        let mut lateness = Lateness::new();
        let mut delivered = BTreeMap::new();
        let mut held = 0;
        for (number, direction) in self.directions.iter_mut().enumerate() {
            lateness.add(direction.lateness());
            let link = direction.link();
            held += link.as_ref().map_or(0, |link| link.held() as u64);
            let bytes = link.map_or(0, |link| link.stats().bytes_delivered);
            let name = &self.setup.links[number / 2].name;
            delivered.entry(name.clone()).or_insert([0; 2])[number % 2] = bytes;
        }
        let late_share = lateness.verdict().late_share;
        let progress = Progress { time: now.as_ns(), delivered, late_share, held };
        let _ = self.work.send(WriterCommand::Progress(progress));
    }

    /// The run is over at `now`; its links go on as they are.
    fn finish(&mut self, mut run: Run, now: Time) {
        self.sample_last(&mut run, now);
        self.advance(now);
        if let Some(captures) = &mut self.recording.captures {
            // Memory takes all that is written to it.
            let _ = captures.finish();
        }
        self.recording.on = false;
        self.recording.settle_losses(Time::NEVER, now);
        let facts = self.facts(&run.before);
        self.hand_over();
        self.recording.captures = None;
        let _ = self.work.send(WriterCommand::Done(Box::new(facts)));
    }

    fn facts(&mut self, before: &Before) -> RunStats {
        let mut total = Lateness::new();
        let mut directions = Vec::new();
        for direction in &mut self.directions {
            total.add(direction.lateness());
            let (lateness, undeliverable) = (direction.lateness().verdict(), direction.undeliverable());
            let Some(link) = direction.link() else { continue };
            let stats = link.stats();
            directions.push(DirectionStats {
                packets_in: stats.packets_in,
                bytes_in: stats.bytes_in,
                dropped: stats.dropped,
                marked: stats.marked,
                lost: stats.lost,
                corrupted: stats.corrupted,
                duplicated: stats.duplicated,
                delivered: stats.delivered,
                bytes_delivered: stats.bytes_delivered,
                held: link.held() as u64,
                undeliverable,
                lateness,
            });
        }
        let names = self.setup.links.iter().map(|link| link.name.clone());
        let links = names.zip(directions.chunks_exact(2));
        let links = links
            .map(|(name, directions)| (name, LinkStats { forward: directions[0], backward: directions[1] }))
            .collect();
        let overflows = self.taps.iter().map(|tap| tap.overflows()).sum::<u64>() - before.overflows;
        let lateness = total.verdict();
        // Each packet that found no room is one too many.
        let excess =
            if overflows > 0 { lateness.excess() + 1.0 + overflows as f64 } else { lateness.excess() };
        let captures = self.recording.captures.as_ref();
        RunStats {
            links,
            lateness,
            overloaded: excess > 1.0,
            excess,
            overflows,
            malformed: self.malformed - before.malformed,
            unstamped: self.unstamped - before.unstamped,
            losses: self.recording.streams.losses().to_vec(),
            cpu: (clock::thread_cpu() - before.cpu) as f64 / 1e9,
            memory: self.arena.size(),
            rows: BTreeMap::new(),
            captures: captures.map(Captures::counts).unwrap_or_default(),
        }
    }
}
