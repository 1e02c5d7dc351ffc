//! The streams of a run: each is made when it starts, and is gone once it has ended, but for its row in the table of flows.
//! Memory grows with those at work, not with all that ever were.

use std::collections::BTreeSet;

use tcplab_units::Time;

use crate::build::Source;
use crate::look_ahead::look_ahead_at_counters;
use crate::plan::Plan;
use crate::recorder::NOWHERE;
use crate::samplers;
use crate::sim_context::{NEXT_START, SimContext};
use crate::stream::{Stream, StreamKind};

/// Places there are from the beginning, if there are as many streams.
const PLACES: u32 = 1024;
/// Streams that must have finished before it is worth a look whose places are free.
const FINISHED: usize = 64;

/// All streams.
pub(crate) struct Streams {
    /// Their sources, by the flow's place in the plan.
    sources: Vec<Source>,
    /// Flows by when they start, and of the first of these how many streams have started.
    to_start: Vec<u32>,
    started: u32,
    /// Those at work and those that have ended since their places were last looked for.
    by_place: Vec<Stream>,
    /// Number and place of each of them, in the order of numbers.
    at_work: Vec<(u32, u32)>,
    free: Vec<u32>,
    /// Places of streams that have finished.
    finished: Vec<u32>,
    /// How many there must be before the next look.
    look_at: usize,
    /// Streams that are not finished, those that have not started included.
    unfinished: usize,
    /// The streams that are gone and whose rows are still there, in the order of their rows.
    gone: Vec<u32>,
    /// Payload that they delivered, by the flow's place in the plan.
    delivered: Vec<u64>,
}

impl Streams {
    /// None of them has started.
    pub(crate) fn new(sources: Vec<Source>, plan: &Plan) -> Streams {
        let mut to_start: Vec<u32> = (0..plan.flows.len() as u32).collect();
        // The next one is the last.
        to_start.sort_by_key(|&flow| std::cmp::Reverse((plan.flows[flow as usize].start, flow)));
        to_start.retain(|&flow| plan.flows[flow as usize].streams > 0);
        // One that has nothing to do is finished before it starts.
        let idle = |source: &&Source| source.make(plan, 0).finished();
        let count = |source: &Source| plan.flows[source.flow()].streams as usize;
        let idle: usize = sources.iter().filter(|source| count(source) > 0).filter(idle).map(count).sum();
        Streams {
            unfinished: total(plan) as usize - idle,
            delivered: vec![0; plan.flows.len()],
            sources,
            to_start,
            started: 0,
            by_place: Vec::new(),
            at_work: Vec::new(),
            free: Vec::new(),
            finished: Vec::new(),
            look_at: FINISHED,
            gone: Vec::new(),
        }
    }

    /// Places that a run of `plan` begins with.
    pub(crate) fn places(plan: &Plan) -> u32 {
        total(plan).min(PLACES)
    }

    /// When the next one starts.
    pub(crate) fn next_start(&self, plan: &Plan) -> Time {
        self.to_start.last().map_or(Time::NEVER, |&flow| plan.flows[flow as usize].start)
    }

    /// The next one starts: its place.
    pub(crate) fn start(&mut self, plan: &Plan, sim: &mut SimContext) -> Option<u32> {
        let flow = *self.to_start.last()?;
        let mut stream = self.sources[flow as usize].make(plan, self.started);
        self.started += 1;
        if self.started == plan.flows[flow as usize].streams {
            self.to_start.pop();
            self.started = 0;
        }
        stream.done = stream.finished();
        let number = stream.endpoints.stream;
        let place = self.place(plan, sim);
        stream.endpoints.place = place;
        match self.by_place.get_mut(place as usize) {
            Some(left) => *left = stream,
            None => self.by_place.push(stream),
        }
        let at = self.at_work.partition_point(|&(other, _)| other < number);
        self.at_work.insert(at, (number, place));
        sim.recorder.enter(number, place);
        Some(place)
    }

    /// A free place.
    fn place(&mut self, plan: &Plan, sim: &mut SimContext) -> u32 {
        if self.free.is_empty() && self.finished.len() >= self.look_at {
            self.release(plan, sim);
        }
        self.free.pop().unwrap_or_else(|| {
            let place = self.by_place.len() as u32;
            sim.make_room(place + 1, total(plan));
            place
        })
    }

    /// Frees the places of streams of which nothing can come any more. Such streams have closed, no packet of them is
    /// on its way, and all of their rows can be written.
    fn release(&mut self, plan: &Plan, sim: &mut SimContext) {
        let on_their_way: BTreeSet<u32> = sim.bodies.streams().collect();
        let now = sim.now();
        let finished = std::mem::take(&mut self.finished);
        for place in finished {
            let stream = &mut self.by_place[place as usize];
            let number = stream.endpoints.stream;
            if on_their_way.contains(&number) || !samplers::is_settled(stream, sim, now) {
                self.finished.push(place);
                continue;
            }
            samplers::flow(plan, stream, sim, (now, false), true);
            self.gone.push(number);
            self.delivered[stream.flow] += stream.bytes_received();
            stream.kind = StreamKind::Gone;
            sim.cancel_timers(place);
            sim.recorder.leave(number);
            self.free.push(place);
        }
        self.at_work.retain(|&(number, _)| sim.recorder.place(number) != NOWHERE);
        // So that a look costs no more than what has happened since the last one.
        self.look_at = 2 * self.finished.len() + FINISHED.max(sim.bodies.room() / 4);
    }

    /// The stream at `place`.
    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut Stream> {
        self.by_place.get_mut(place as usize)
    }

    /// Those at their places.
    #[inline]
    pub(crate) fn by_place(&self) -> &[Stream] {
        &self.by_place
    }

    /// Those that have started and are not gone, in the order of their numbers.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &Stream> {
        self.at_work.iter().map(|&(_, place)| &self.by_place[place as usize])
    }

    /// Does `each` to them in that order.
    pub(crate) fn for_each(&mut self, mut each: impl FnMut(&mut Stream)) {
        for (number, &(_, place)) in self.at_work.iter().enumerate() {
            look_ahead_at_counters(|ahead| {
                self.at_work.get(number + ahead).and_then(|&(_, place)| self.by_place.get(place as usize))
            });
            each(&mut self.by_place[place as usize]);
        }
    }

    /// Counts the stream at `place` off those that are unfinished if it has finished; whether it has.
    #[inline]
    pub(crate) fn note_finished(&mut self, place: u32) -> bool {
        let Some(stream) = self.by_place.get_mut(place as usize) else { return false };
        if !stream.done && stream.finished() {
            stream.done = true;
            self.count_finished(place);
            return true;
        }
        stream.done
    }

    #[cold]
    fn count_finished(&mut self, place: u32) {
        self.unfinished -= 1;
        self.finished.push(place);
    }

    /// Whether all have finished.
    #[inline]
    pub(crate) fn all_finished(&self) -> bool {
        self.unfinished == 0
    }

    /// Payload delivered so far, by the flow's place in the plan.
    pub(crate) fn delivered(&self) -> Vec<u64> {
        let mut delivered = self.delivered.clone();
        for stream in self.in_order() {
            delivered[stream.flow] += stream.bytes_received();
        }
        delivered
    }

    /// The rows of streams that are gone were taken.
    pub(crate) fn forget_rows(&mut self) {
        self.gone.clear();
    }

    /// Fills the table of flows at the run's end: one row for each stream whose row was not taken, in the order of their numbers.
    pub(crate) fn finish(
        mut self,
        plan: &Plan,
        sim: &mut SimContext,
        (end, ended): (Time, bool),
        is_drained: impl Fn(u32) -> bool,
    ) {
        let mut rows = self.gone;
        let mut row = |stream: &mut Stream, sim: &mut SimContext| {
            let number = stream.endpoints.stream;
            samplers::flow(plan, stream, sim, (end, ended), is_drained(number));
            rows.push(number);
        };
        for &(_, place) in &self.at_work {
            row(&mut self.by_place[place as usize], sim);
        }
        // Those that have not started.
        while let Some(flow) = self.to_start.pop() {
            for stream in self.started..plan.flows[flow as usize].streams {
                row(&mut self.sources[flow as usize].make(plan, stream), sim);
            }
            self.started = 0;
        }
        if !rows.is_sorted() {
            let mut places: Vec<u32> = (0..rows.len() as u32).collect();
            places.sort_unstable_by_key(|&place| rows[place as usize]);
            sim.recorder.tables.flows.reorder(&places);
        }
    }

    /// Wakes the starts' slot when the next one starts.
    pub(crate) fn schedule_start(&self, plan: &Plan, sim: &mut SimContext) {
        let slot = sim.clock(NEXT_START);
        sim.schedule.set_first(slot, self.next_start(plan));
    }
}

/// How many streams a plan has.
fn total(plan: &Plan) -> u32 {
    plan.flows.iter().map(|flow| flow.streams).sum()
}
