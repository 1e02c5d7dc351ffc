//! Deficit round robin: flows take turns, each with as many bytes as the others.
//!
//! M. Shreedhar, G. Varghese, "Efficient fair queuing using deficit round robin", 1996. Beyond the limit the flow that
//! takes up the most room loses its last packet, which the paper calls buffer stealing (section 3).

use std::collections::VecDeque;

use tcplab_units::{Rate, Time};

use super::counting::{Counts, Used};
use super::{Backlog, Cause, Class, Gauge, Qdisc, Queued, Sink};
use crate::config::{self, Change};
use crate::packet::Packet;
use crate::threshold::Threshold;

/// Flows and whose turn it is.
#[derive(Clone, Debug)]
pub(crate) struct Drr<P> {
    flows: Vec<Flow<P>>,
    /// Flows in which packets wait; the first has its turn.
    active: VecDeque<u32>,
    used: Used,
    /// The first of `active` has had the quantum of this turn.
    granted: bool,
    quantum: u64,
    limit: Threshold,
    backlog: Backlog,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    packets: VecDeque<Queued<P>>,
    bytes: u64,
    deficit: u64,
    counts: Counts,
}

impl<P: Packet> Drr<P> {
    pub(crate) fn new(config: &config::Drr, rate: Option<Rate>, _seed: u64) -> Drr<P> {
        let flow = || Flow { packets: VecDeque::new(), bytes: 0, deficit: 0, counts: Counts::default() };
        Drr {
            flows: std::iter::repeat_with(flow).take(config.flows.max(1) as usize).collect(),
            active: VecDeque::new(),
            used: Used::default(),
            granted: false,
            quantum: u64::from(config.quantum.max(1)),
            limit: Threshold::new(config.limit, rate),
            backlog: Backlog::default(),
        }
    }

    /// Whether `len` more bytes make the flow `arriving` the one with the most; of equals the arriving one yields.
    fn would_be_longest(&self, arriving: u32, len: u32) -> bool {
        let bytes = self.flows[arriving as usize].bytes + u64::from(len);
        self.longest()
            .is_none_or(|longest| longest == arriving || self.flows[longest as usize].bytes <= bytes)
    }

    /// The active flow with the most bytes.
    fn longest(&self) -> Option<u32> {
        self.active.iter().copied().max_by_key(|&flow| self.flows[flow as usize].bytes)
    }

    /// Takes the last packet of `index` out.
    fn drop_last(&mut self, index: u32, sink: &mut impl Sink<P>) {
        let flow = &mut self.flows[index as usize];
        let Some(last) = flow.packets.pop_back() else { return };
        let len = u64::from(last.packet.frame_len());
        flow.bytes -= len;
        flow.counts.count_drop(Cause::Overlimit);
        self.backlog.packets -= 1;
        self.backlog.bytes -= len;
        if flow.packets.is_empty() {
            flow.deficit = 0;
            self.granted &= self.active.front() != Some(&index);
            self.active.retain(|&active| active != index);
        }
        sink.dropped(&last.packet, Cause::Overlimit);
    }

    fn is_full(&self, len: u32) -> bool {
        let Backlog { packets, bytes } = self.backlog;
        self.limit.is_exceeded(u64::from(packets) + 1, bytes + u64::from(len))
    }
}

impl<P: Packet> Qdisc<P> for Drr<P> {
    fn enqueue(&mut self, packet: Queued<P>, _now: Time, sink: &mut impl Sink<P>) {
        let len = packet.packet.frame_len();
        // The high bits of the product spread any hash evenly over the flows.
        let index = ((u64::from(packet.packet.flow_hash()) * self.flows.len() as u64) >> 32) as u32;
        let flow = &self.flows[index as usize];
        if flow.packets.is_empty() {
            self.used.joins(index, &flow.counts);
        }
        while self.is_full(len) {
            if self.would_be_longest(index, len) {
                self.flows[index as usize].counts.count_drop(Cause::Overlimit);
                return sink.rejected(&packet.packet, Cause::Overlimit);
            }
            if let Some(longest) = self.longest() {
                self.drop_last(longest, sink);
            }
        }
        let flow = &mut self.flows[index as usize];
        if flow.packets.is_empty() {
            self.active.push_back(index);
        }
        flow.bytes += u64::from(len);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(len);
        sink.enqueued(&packet.packet);
        flow.packets.push_back(packet);
    }

    fn dequeue(&mut self, _now: Time, _sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        loop {
            let index = *self.active.front()?;
            let flow = &mut self.flows[index as usize];
            if !self.granted {
                flow.deficit += self.quantum;
                self.granted = true;
            }
            let fits = |head: &Queued<P>| u64::from(head.packet.frame_len()) <= flow.deficit;
            if !flow.packets.front().is_some_and(fits) {
                self.active.rotate_left(1);
                self.granted = false;
                continue;
            }
            let head = flow.packets.pop_front()?;
            let len = u64::from(head.packet.frame_len());
            flow.deficit -= len;
            flow.bytes -= len;
            flow.counts.count_out(&head.packet);
            self.backlog.packets -= 1;
            self.backlog.bytes -= len;
            if flow.packets.is_empty() {
                flow.deficit = 0;
                self.active.pop_front();
                self.granted = false;
            }
            return Some(head);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Of the flow that has its turn.
    fn head_since(&self) -> Option<Time> {
        let flow = self.active.front()?;
        self.flows[*flow as usize].packets.front().map(|head| head.since)
    }

    /// The flows that packets have joined, called by their number.
    fn classes(&self) -> Vec<Class> {
        let class = |index: u32| {
            let flow = &self.flows[index as usize];
            let backlog = Backlog { packets: flow.packets.len() as u32, bytes: flow.bytes };
            let head = flow.packets.front().map(|head| head.since);
            flow.counts.class(format!("flow {index}"), backlog, head)
        };
        self.used.iter().map(class).collect()
    }

    fn gauges(&self, _now: Time) -> Vec<Gauge> {
        vec![Gauge::plain("active_flows", self.active.len() as f64)]
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
        self.backlog = Backlog::default();
        self.granted = false;
        for index in self.active.drain(..) {
            let flow = &mut self.flows[index as usize];
            (flow.bytes, flow.deficit) = (0, 0);
            for waiting in flow.packets.drain(..) {
                flow.counts.count_drop(cause);
                sink.dropped(&waiting.packet, cause);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Queue};
    use crate::qdisc::contract::{Contract, limits};
    use crate::qdisc::testing::{Notified, Unit, enqueue};
    use proptest::prelude::*;

    impl Contract for Drr<Unit> {
        fn settings(_: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            (prop::option::of(limits()), 1u32..4000, 1u32..8)
                .prop_map(|(limit, quantum, flows)| Queue::Drr(config::Drr { limit, quantum, flows }))
                .boxed()
        }
    }

    fn drr(limit: Option<Limit>, quantum: u32) -> Drr<Unit> {
        Drr::new(&config::Drr { limit, quantum, flows: 16 }, None, 1)
    }

    /// A packet of one of 16 flows, none of which share a queue.
    fn of(flow: u32, len: u32) -> Unit {
        Unit { flow: flow << 28, ..Unit::new(len) }
    }

    fn drain(queue: &mut Drr<Unit>) -> Vec<u32> {
        let next = || queue.dequeue(Time::ZERO, &mut Vec::new()).map(|queued| queued.packet.flow >> 28);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn flows_take_turns() {
        let mut queue = drr(None, 100);
        for flow in [1, 1, 1, 2, 2, 3] {
            enqueue(&mut queue, of(flow, 100), Time::ZERO);
        }
        assert_eq!(drain(&mut queue), [1, 2, 3, 1, 2, 1]);
    }

    #[test]
    fn a_flow_of_small_packets_sends_as_many_bytes_as_one_of_large_packets() {
        let mut queue = drr(None, 500);
        for _ in 0..4 {
            enqueue(&mut queue, of(1, 1000), Time::ZERO);
        }
        for _ in 0..20 {
            enqueue(&mut queue, of(2, 200), Time::ZERO);
        }
        // 500 bytes a turn: two small ones, then three with what was left over; a large one every other turn.
        let order = drain(&mut queue);
        assert_eq!(&order[..6], &[2, 2, 1, 2, 2, 2]);
        assert_eq!(order.iter().filter(|&&flow| flow == 1).count(), 4);
    }

    #[test]
    fn beyond_the_limit_the_longest_flow_loses_its_last_packet() {
        let mut queue = drr(Some(Limit::Packets(4)), 100);
        for _ in 0..4 {
            enqueue(&mut queue, of(1, 100), Time::ZERO);
        }
        let notified = enqueue(&mut queue, of(2, 100), Time::ZERO);
        assert_eq!(notified, [Notified::Dropped(Cause::Overlimit), Notified::Enqueued]);
        assert_eq!(enqueue(&mut queue, of(1, 100), Time::ZERO), [Notified::Rejected(Cause::Overlimit)]);
        assert_eq!(drain(&mut queue), [1, 2, 1, 1]);
    }

    proptest! {
        /// Theorem 4.2 of the paper bounds the unfairness of two flows that always have packets waiting.
        #[test]
        fn while_two_flows_wait_their_bytes_differ_by_less_than_a_quantum_and_two_packets(
            lengths in prop::collection::vec((1u32..1515, 1u32..1515), 50..200), quantum in 100u32..4000,
        ) {
            let mut queue = drr(None, quantum);
            for &(one, two) in &lengths {
                enqueue(&mut queue, of(1, one), Time::ZERO);
                enqueue(&mut queue, of(2, two), Time::ZERO);
            }
            let mut sent = [0i64; 16];
            let both_wait = |queue: &Drr<Unit>| queue.active.len() == 2;
            while both_wait(&queue) {
                let next = queue.dequeue(Time::ZERO, &mut Vec::new()).expect("packets wait");
                sent[(next.packet.flow >> 28) as usize] += i64::from(next.packet.len);
                prop_assert!((sent[1] - sent[2]).abs() <= i64::from(quantum) + 2 * 1514);
            }
        }
    }
}
