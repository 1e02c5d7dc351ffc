//! Linux's fq: flows in turn, each of them no faster than `maxrate` (`sch_fq.c`).

use std::collections::{BTreeMap, VecDeque};

use tcplab_units::{Rate, Span, Time};

use super::counting::Counts;
use super::fifo::Fifo;
use super::{Backlog, Cause, Class, Gauge, Qdisc, Queued, Sink};
use crate::config::{self, Change};
use crate::packet::Packet;
use crate::threshold::Threshold;

/// Flows by their hash, and the lists of those that have their turn, new ones first.
#[derive(Clone, Debug)]
pub(crate) struct Fq<P> {
    flows: BTreeMap<u32, Flow<P>>,
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    /// Flows that wait for their rate, by the time when they may go on.
    throttled: BTreeMap<(Time, u32), ()>,
    backlog: Backlog,
    limit: Threshold,
    config: config::Fq,
    /// So many flows are known before those that have ended are forgotten.
    most_known: usize,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    queue: Fifo<P>,
    /// Bytes that it may still send in this turn.
    credit: i64,
    /// It is in one of the lists, or throttled.
    is_active: bool,
    /// When it last ran empty.
    idle_since: Time,
    /// At `maxrate`, its next packet leaves no earlier.
    next_packet: Time,
    counts: Counts,
}

/// A flow that was idle for so long gets a whole quantum again (`refill_delay`).
const REFILL_DELAY: Span = Span::from_ms(40);
/// A flow that was idle for so long is forgotten (`FQ_GC_AGE`).
const FORGOTTEN_AFTER: Span = Span::from_ms(3000);
/// From that rate on pacing counts whole quanta, below it packets (`low_rate_threshold`), bit/s.
const LOW_RATE: u64 = 550_000;

impl<P: Packet> Fq<P> {
    pub(crate) fn new(config: &config::Fq, rate: Option<Rate>, _seed: u64) -> Fq<P> {
        Fq {
            flows: BTreeMap::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            throttled: BTreeMap::new(),
            backlog: Backlog::default(),
            limit: Threshold::new(Some(config.limit), rate),
            config: config::Fq { quantum: config.quantum.max(1), ..*config },
            most_known: 1024,
        }
    }

    /// The flow with this hash, which may be new; ended ones are forgotten when there are many.
    fn flow(&mut self, hash: u32, now: Time) -> &mut Flow<P> {
        if self.flows.len() >= self.most_known && !self.flows.contains_key(&hash) {
            self.flows.retain(|_, flow| flow.is_active || now.since(flow.idle_since) < FORGOTTEN_AFTER);
            self.most_known = 1024.max(2 * self.flows.len());
        }
        let credit = i64::from(self.config.initial_quantum);
        self.flows.entry(hash).or_insert_with(|| Flow {
            queue: Fifo::new(),
            credit,
            is_active: false,
            idle_since: now,
            next_packet: Time::ZERO,
            counts: Counts::default(),
        })
    }

    /// Flows whose time has come take turns again.
    fn release(&mut self, now: Time) {
        while let Some((&(at, hash), ())) = self.throttled.first_key_value()
            && at <= now
        {
            self.throttled.pop_first();
            self.old_flows.push_back(hash);
        }
    }

    /// When a flow that has just sent `len` bytes may send the next packet. A flow waits only once its credit
    /// is used up. So it sends a quantum at once, and then waits as long as the quantum takes.
    fn pace(flow: &mut Flow<P>, config: &config::Fq, len: u32, now: Time) {
        let Some(rate) = config.maxrate else { return };
        let bits = rate.bits_per_sec();
        let bytes = if bits <= LOW_RATE {
            flow.credit = 0;
            len
        } else if flow.credit > 0 {
            return;
        } else {
            len.max(config.quantum)
        };
        let ns = u64::from(bytes) * 8_000_000_000 / bits;
        // A packet that left late, for other flows' sake, makes up for it, by half at most.
        let late = now.since(flow.next_packet).as_ns();
        let late = if flow.next_packet == Time::ZERO { 0 } else { late.min(ns / 2) };
        flow.next_packet = now + Span::from_ns(ns - late);
    }
}

impl<P: Packet> Qdisc<P> for Fq<P> {
    fn enqueue(&mut self, packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
        let after = self.backlog.and(packet.packet.frame_len());
        let is_full = self.limit.is_exceeded(u64::from(after.packets), after.bytes);
        let (flow_limit, quantum) = (self.config.flow_limit, i64::from(self.config.quantum));
        let hash = packet.packet.flow_hash();
        let flow = self.flow(hash, now);
        if is_full || flow.queue.backlog().packets >= flow_limit {
            flow.counts.count_drop(Cause::Overlimit);
            return sink.rejected(&packet.packet, Cause::Overlimit);
        }
        sink.enqueued(&packet.packet);
        flow.queue.push(packet);
        if !flow.is_active {
            flow.is_active = true;
            if now.since(flow.idle_since) > REFILL_DELAY {
                flow.credit = flow.credit.max(quantum);
            }
            self.new_flows.push_back(hash);
        }
        self.backlog = after;
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        if self.backlog.packets == 0 {
            // As in Linux, flows keep their places meanwhile.
            return None;
        }
        self.release(now);
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let hash = *list.front()?;
            let flow = self.flows.get_mut(&hash)?;
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum);
                list.pop_front();
                self.old_flows.push_back(hash);
                continue;
            }
            if !flow.queue.is_empty() && flow.next_packet > now {
                list.pop_front();
                self.throttled.insert((flow.next_packet, hash), ());
                continue;
            }
            let Some(mut packet) = flow.queue.pop() else {
                list.pop_front();
                // Where others wait, it takes its turn among them, or it would be new all the time.
                if is_new && !self.old_flows.is_empty() {
                    self.old_flows.push_back(hash);
                } else {
                    flow.is_active = false;
                    flow.idle_since = now;
                }
                continue;
            };
            let len = packet.packet.frame_len();
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(len);
            flow.credit -= i64::from(len);
            Self::pace(flow, &self.config, len, now);
            flow.counts.count_out(&packet.packet);
            let waited = now.since(packet.since);
            if self.config.ce_threshold.is_some_and(|maximum| waited > maximum) && packet.packet.is_ect() {
                packet.packet.mark_ce();
                flow.counts.count_mark();
                sink.marked(&packet.packet);
            }
            return Some(packet);
        }
    }

    fn next_ready(&self, now: Time) -> Time {
        if self.backlog.packets == 0 {
            return Time::NEVER;
        }
        if !self.new_flows.is_empty() || !self.old_flows.is_empty() {
            return now;
        }
        self.throttled.first_key_value().map_or(now, |(&(at, _), ())| at)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn head_since(&self) -> Option<Time> {
        self.flows.values().filter_map(|flow| flow.queue.head()).map(|head| head.since).min()
    }

    /// The flows that are known, by their hash.
    fn classes(&self) -> Vec<Class> {
        let class = |(hash, flow): (&u32, &Flow<P>)| {
            let head = flow.queue.head().map(|head| head.since);
            flow.counts.class(format!("flow {hash:08x}"), flow.queue.backlog(), head)
        };
        self.flows.iter().map(class).collect()
    }

    fn gauges(&self, _now: Time) -> Vec<Gauge> {
        vec![
            Gauge::plain("flows", self.flows.len() as f64),
            Gauge::plain("throttled_flows", self.throttled.len() as f64),
        ]
    }

    fn change(&mut self, change: &Change, rate: Option<Rate>) {
        if change.limit.is_some() {
            self.limit = Threshold::new(change.limit, rate);
        }
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.limit = self.limit.at_rate(rate);
    }

    fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        for flow in self.flows.values_mut() {
            flow.queue.purge(cause, sink);
            flow.is_active = false;
        }
        self.new_flows.clear();
        self.old_flows.clear();
        self.throttled.clear();
        self.backlog = Backlog::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Queue};
    use crate::packet::Ecn;
    use crate::qdisc::contract::{Contract, limits, rate};
    use crate::qdisc::testing::{Notified, Unit, enqueue};
    use proptest::prelude::*;

    impl Contract for Fq<Unit> {
        fn settings(_: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            let sizes = (1u32..20, 1u32..4000, 1u32..20_000);
            let maxrate =
                prop::option::of((100_000u64..100_000_000).prop_map(|bits| rate(bits).expect("not zero")));
            let ce_threshold = prop::option::of((0u64..5).prop_map(Span::from_ms));
            (limits(), sizes, maxrate, ce_threshold)
                .prop_map(|(limit, (flow_limit, quantum, initial_quantum), maxrate, ce_threshold)| {
                    Queue::Fq(config::Fq {
                        limit,
                        flow_limit,
                        quantum,
                        initial_quantum,
                        maxrate,
                        ce_threshold,
                    })
                })
                .boxed()
        }
    }

    fn fq(config: config::Fq) -> Fq<Unit> {
        Fq::new(&config, None, 1)
    }

    fn of(flow: u32, len: u32) -> Unit {
        Unit { flow, ..Unit::new(len) }
    }

    fn drain(queue: &mut Fq<Unit>, now: Time) -> Vec<u32> {
        let next = || queue.dequeue(now, &mut Vec::new()).map(|queued| queued.packet.flow);
        std::iter::from_fn(next).collect()
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn a_new_flow_sends_its_initial_quantum_and_then_takes_turns() {
        let mut queue = fq(config::Fq { quantum: 1000, initial_quantum: 3000, ..config::Fq::default() });
        for flow in [1, 2] {
            for _ in 0..5 {
                enqueue(&mut queue, of(flow, 1000), Time::ZERO);
            }
        }
        assert_eq!(drain(&mut queue, Time::ZERO), [1, 1, 1, 2, 2, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn limits_hold_for_each_flow_and_for_all() {
        let config = config::Fq { limit: Limit::Packets(3), flow_limit: 2, ..config::Fq::default() };
        let mut queue = fq(config);
        let notified: Vec<Notified> = [1, 1, 1, 2, 2]
            .into_iter()
            .flat_map(|flow| enqueue(&mut queue, of(flow, 100), Time::ZERO))
            .collect();
        let refused = Notified::Rejected(Cause::Overlimit);
        assert_eq!(notified, [Notified::Enqueued, Notified::Enqueued, refused, Notified::Enqueued, refused]);
    }

    #[test]
    fn no_flow_exceeds_the_maximum_rate() {
        // 8 Mbit/s is 1000 bytes a millisecond.
        let maxrate = Rate::from_bits_per_sec(8_000_000);
        let mut queue =
            fq(config::Fq { quantum: 1000, initial_quantum: 1000, maxrate, ..config::Fq::default() });
        for flow in [1, 1, 1, 2, 2, 2] {
            enqueue(&mut queue, of(flow, 1000), Time::ZERO);
        }
        assert_eq!(drain(&mut queue, ms(0)), [1, 2]);
        assert_eq!(queue.next_ready(ms(0)), ms(1));
        assert_eq!(drain(&mut queue, ms(1)), [1, 2]);
        assert_eq!(drain(&mut queue, ms(2)), [1, 2]);
        assert_eq!(queue.next_ready(ms(2)), Time::NEVER);
    }

    #[test]
    fn a_packet_that_waited_is_marked() {
        let mut queue = fq(config::Fq { ce_threshold: Some(Span::from_ms(2)), ..config::Fq::default() });
        for ecn in [Ecn::Ect1, Ecn::NotEct, Ecn::Ect1] {
            enqueue(&mut queue, Unit { ecn, ..Unit::new(100) }, Time::ZERO);
        }
        let mut notified = Vec::new();
        for at in [2, 3, 4] {
            queue.dequeue(ms(at), &mut notified);
        }
        assert_eq!(notified, [Notified::Marked]);
    }

    #[test]
    fn flows_that_have_ended_are_forgotten() {
        let mut queue = fq(config::Fq::default());
        for flow in 0..100_000 {
            let now = ms(u64::from(flow) * 10);
            enqueue(&mut queue, of(flow, 100), now);
            assert_eq!(drain(&mut queue, now), [flow]);
        }
        assert!(queue.flows.len() <= 1024, "{}", queue.flows.len());
    }
}
