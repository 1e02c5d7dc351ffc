//! FlowQueue-CoDel: flows in turn, CoDel in each (RFC 8290).

use std::cmp::Reverse;

use tcplab_units::{Rate, Time};

use super::codel::{Control, Law};
use super::counting::{Counting, Counts, Used};
use super::fifo::Fifo;
use super::{Backlog, Cause, Class, Gauge, Qdisc, Queued, Sink};
use crate::config::{self, Change};
use crate::packet::Packet;
use crate::random::Draws;
use crate::threshold::Threshold;

/// Queues that flows are hashed into, served by deficit round robin, those of new flows first.
#[derive(Clone, Debug)]
pub(crate) struct FqCodel<P> {
    flows: Box<[Flow<P>]>,
    /// The queues whose flow has just begun, and the other active ones (section 4.2).
    new_flows: Turns,
    old_flows: Turns,
    used: Used,
    backlog: Backlog,
    limit: Threshold,
    quantum: i64,
    law: Law,
    /// The salt of the hash (section 5.3: a random number chosen at initialisation).
    salt: Draws,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    queue: Fifo<P>,
    control: Control,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    /// It is in one of the lists.
    is_active: bool,
    /// The number of the flow behind it there, or `NONE`.
    next: u32,
    counts: Counts,
}

/// The numbers of the flows that take turns: the first and the last; each knows the one behind it.
#[derive(Clone, Copy, Debug)]
struct Turns {
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;

impl Turns {
    const EMPTY: Turns = Turns { first: NONE, last: NONE };

    fn is_empty(self) -> bool {
        self.first == NONE
    }

    #[inline]
    fn push<P>(&mut self, flows: &mut [Flow<P>], number: u32) {
        flows[number as usize].next = NONE;
        if self.first == NONE {
            self.first = number;
        } else {
            flows[self.last as usize].next = number;
        }
        self.last = number;
    }

    /// All, from the first on.
    fn iter<P>(self, flows: &[Flow<P>]) -> impl Iterator<Item = u32> {
        let there = |number: u32| (number != NONE).then_some(number);
        std::iter::successors(there(self.first), move |number| there(flows[*number as usize].next))
    }
}

/// How many packets at most one arrival beyond the limit drops (section 4.1).
const DROP_BATCH: u32 = 64;

impl<P: Packet> FqCodel<P> {
    pub(crate) fn new(config: &config::FqCodel, rate: Option<Rate>, seed: u64) -> FqCodel<P> {
        let flow = || Flow {
            queue: Fifo::new(),
            control: Control::default(),
            deficit: 0,
            is_active: false,
            next: NONE,
            counts: Counts::default(),
        };
        FqCodel {
            flows: (0..config.flows.max(1)).map(|_| flow()).collect(),
            new_flows: Turns::EMPTY,
            old_flows: Turns::EMPTY,
            used: Used::default(),
            backlog: Backlog::default(),
            limit: Threshold::new(Some(config.limit), rate),
            quantum: i64::from(config.quantum.max(1)),
            law: Law::new(config.target, config.interval, config.ecn, config.ce_threshold),
            salt: Draws::new(seed, "fq_codel"),
        }
    }

    /// The queue of the flow with this hash.
    #[inline]
    fn classify(&self, flow_hash: u32) -> u32 {
        let random = self.salt.at(u64::from(flow_hash)) >> 32;
        ((random * self.flows.len() as u64) >> 32) as u32
    }

    /// The numbers of the queues on the lists. Packets wait in no other.
    fn active(&self) -> impl Iterator<Item = u32> {
        self.new_flows.iter(&self.flows).chain(self.old_flows.iter(&self.flows))
    }

    /// Takes all queues off the lists.
    fn rest(&mut self) {
        for turns in [&mut self.new_flows, &mut self.old_flows] {
            let mut number = turns.first;
            while number != NONE {
                let flow = &mut self.flows[number as usize];
                flow.is_active = false;
                flow.control.rest();
                number = flow.next;
            }
            *turns = Turns::EMPTY;
        }
    }

    /// Half of the longest queue goes, from its head, at most `DROP_BATCH` packets (section 4.1).
    #[cold]
    fn drop_from_longest(&mut self, sink: &mut impl Sink<P>) {
        // Of equals that of the smallest number.
        let bytes = |number: &u32| (self.flows[*number as usize].queue.bytes(), Reverse(*number));
        let Some(longest) = self.active().max_by_key(bytes) else { return };
        let longest = &mut self.flows[longest as usize];
        let half = longest.queue.bytes() / 2;
        let (mut packets, mut bytes) = (0, 0);
        while packets < DROP_BATCH
            && (packets == 0 || bytes < half)
            && let Some(head) = longest.queue.pop()
        {
            packets += 1;
            bytes += u64::from(head.packet.frame_len());
            longest.counts.count_drop(Cause::Overlimit);
            sink.dropped(&head.packet, Cause::Overlimit);
        }
        longest.control.add_drops(packets);
        self.backlog.packets -= packets;
        self.backlog.bytes -= bytes;
    }
}

impl<P: Packet> Qdisc<P> for FqCodel<P> {
    #[inline]
    fn enqueue(&mut self, packet: Queued<P>, _now: Time, sink: &mut impl Sink<P>) {
        let number = self.classify(packet.packet.flow_hash());
        let flow = &mut self.flows[number as usize];
        if !flow.is_active {
            flow.is_active = true;
            flow.deficit = self.quantum;
            self.used.joins(number, &flow.counts);
            self.new_flows.push(&mut self.flows, number);
        }
        self.backlog = self.backlog.and(packet.packet.frame_len());
        sink.enqueued(&packet.packet);
        self.flows[number as usize].queue.push(packet);
        // Half of the longest queue can be less than this packet brought, where the limit counts bytes.
        while self.limit.is_exceeded(u64::from(self.backlog.packets), self.backlog.bytes) {
            self.drop_from_longest(sink);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let number = list.first;
            if number == NONE {
                return None;
            }
            let flow = &mut self.flows[number as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.first = flow.next;
                self.old_flows.push(&mut self.flows, number);
                continue;
            }
            let before = flow.queue.backlog();
            // As on Linux, one packet is enough to wait in all queues together, not in each (RFC 8289 knows one only).
            let others = self.backlog.bytes - before.bytes;
            let counting = &mut Counting { counts: &mut flow.counts, sink };
            flow.control.signal_at_head(&mut flow.queue, others, &mut self.law, now, counting);
            let packet = flow.queue.pop();
            let after = flow.queue.backlog();
            self.backlog.packets -= before.packets - after.packets;
            self.backlog.bytes -= before.bytes - after.bytes;
            let Some(sent) = &packet else {
                list.first = flow.next;
                // Where others wait, an empty new queue takes its turn among them, or it would be new all the time.
                if is_new && !self.old_flows.is_empty() {
                    self.old_flows.push(&mut self.flows, number);
                } else {
                    flow.is_active = false;
                }
                continue;
            };
            flow.deficit -= i64::from(sent.packet.frame_len());
            flow.counts.count_out(&sent.packet);
            return packet;
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn head_since(&self) -> Option<Time> {
        let head = |number| self.flows[number as usize].queue.head();
        self.active().filter_map(head).map(|head| head.since).min()
    }

    /// The queues in use so far.
    fn classes(&self) -> Vec<Class> {
        let class = |number: u32| {
            let flow = &self.flows[number as usize];
            let head = flow.queue.head().map(|head| head.since);
            flow.counts.class(format!("flow {number}"), flow.queue.backlog(), head)
        };
        self.used.iter().map(class).collect()
    }

    fn gauges(&self, _now: Time) -> Vec<Gauge> {
        let drops = |number| self.flows[number as usize].control.drops_in_a_row();
        let dropping: Vec<u32> = self.active().filter_map(drops).collect();
        vec![
            Gauge::plain("new_flows", self.new_flows.iter(&self.flows).count() as f64),
            Gauge::plain("old_flows", self.old_flows.iter(&self.flows).count() as f64),
            Gauge::plain("dropping_flows", dropping.len() as f64),
            Gauge::plain("count", dropping.iter().max().copied().unwrap_or(0).into()),
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
        for flow in &mut self.flows {
            flow.queue.purge(cause, &mut Counting { counts: &mut flow.counts, sink });
        }
        self.backlog = Backlog::default();
        self.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Queue};
    use crate::qdisc::contract::{Contract, limits};
    use crate::qdisc::testing::{Notified, Unit, enqueue};
    use proptest::prelude::*;
    use tcplab_units::Span;

    impl Contract for FqCodel<Unit> {
        fn settings(_: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            let ms = |range: std::ops::Range<u64>| range.prop_map(Span::from_ms);
            let codel = (limits(), ms(0..5), ms(0..20), any::<bool>(), prop::option::of(ms(0..5)));
            (codel, 1u32..8, 1u32..4000)
                .prop_map(|((limit, target, interval, ecn, ce_threshold), flows, quantum)| {
                    let settings =
                        config::FqCodel { limit, flows, quantum, target, interval, ecn, ce_threshold };
                    Queue::FqCodel(settings)
                })
                .boxed()
        }
    }

    fn fq_codel(config: config::FqCodel) -> FqCodel<Unit> {
        FqCodel::new(&config, None, 1)
    }

    fn of(flow: u32, len: u32) -> Unit {
        Unit { flow, ..Unit::new(len) }
    }

    fn next(queue: &mut FqCodel<Unit>, now: Time) -> Option<Unit> {
        queue.dequeue(now, &mut Vec::new()).map(|queued| queued.packet)
    }

    #[test]
    fn flows_get_the_same_bytes_whatever_their_packets_size() {
        let mut queue = fq_codel(config::FqCodel::default());
        for _ in 0..1000 {
            enqueue(&mut queue, of(1, 1514), Time::ZERO);
            enqueue(&mut queue, of(2, 500), Time::ZERO);
        }
        let mut bytes = [0; 3];
        for _ in 0..600 {
            let packet = next(&mut queue, Time::ZERO).expect("more waits");
            bytes[packet.flow as usize] += i64::from(packet.len);
        }
        assert!((bytes[1] - bytes[2]).abs() <= 2 * 1514, "{bytes:?}");
    }

    #[test]
    fn a_new_flow_goes_before_those_that_have_a_queue() {
        let mut queue = fq_codel(config::FqCodel::default());
        for _ in 0..20 {
            enqueue(&mut queue, of(1, 1514), Time::ZERO);
        }
        next(&mut queue, Time::ZERO);
        next(&mut queue, Time::ZERO);
        enqueue(&mut queue, of(2, 100), Time::ZERO);
        assert_eq!(next(&mut queue, Time::ZERO).map(|packet| packet.flow), Some(2));
    }

    #[test]
    fn a_flow_that_comes_back_at_once_is_not_new() {
        let mut queue = fq_codel(config::FqCodel::default());
        for _ in 0..20 {
            enqueue(&mut queue, of(1, 1514), Time::ZERO);
        }
        // A flow that always has one packet waiting cannot keep the other from its turn (section 4.2).
        let mut sent = [0; 3];
        for _ in 0..10 {
            enqueue(&mut queue, of(2, 1514), Time::ZERO);
            sent[next(&mut queue, Time::ZERO).expect("more waits").flow as usize] += 1;
        }
        assert!(sent[1] >= 4, "{sent:?}");
    }

    #[test]
    fn a_flow_is_not_new_before_the_link_has_found_nothing_to_send() {
        for (asks, first) in [(false, 2), (true, 1)] {
            let mut queue = fq_codel(config::FqCodel::default());
            enqueue(&mut queue, of(1, 1514), Time::ZERO);
            assert!(next(&mut queue, Time::ZERO).is_some());
            if asks {
                assert!(next(&mut queue, Time::ZERO).is_none());
            }
            enqueue(&mut queue, of(1, 1514), Time::ZERO);
            enqueue(&mut queue, of(2, 1514), Time::ZERO);
            assert_eq!(next(&mut queue, Time::ZERO).map(|packet| packet.flow), Some(first));
        }
    }

    #[test]
    fn a_flow_of_rare_packets_that_all_wait_too_long_loses_the_second() {
        let mut queue = fq_codel(config::FqCodel::default());
        let mut sent = Vec::new();
        for at in [0, 600] {
            let now = |after: u64| Time::ZERO + Span::from_ms(at + after);
            enqueue(&mut queue, of(2, 100), now(0));
            for _ in 0..5 {
                enqueue(&mut queue, of(1, 1514), now(0));
            }
            sent.extend(std::iter::from_fn(|| next(&mut queue, now(10))).map(|packet| packet.flow));
        }
        assert_eq!(sent.iter().filter(|&&flow| flow == 2).count(), 1, "{sent:?}");
    }

    #[test]
    fn beyond_the_limit_the_longest_queue_loses_from_its_head() {
        let mut queue =
            fq_codel(config::FqCodel { limit: Limit::Packets(100), ..config::FqCodel::default() });
        for number in 0..99 {
            enqueue(&mut queue, of(1, 1000 + number), Time::ZERO);
        }
        assert_eq!(enqueue(&mut queue, of(2, 100), Time::ZERO), [Notified::Enqueued]);
        let notified = enqueue(&mut queue, of(2, 100), Time::ZERO);
        // Half of flow 1's 103,851 bytes are in its 51 oldest packets.
        assert_eq!(
            notified.iter().filter(|notified| **notified == Notified::Dropped(Cause::Overlimit)).count(),
            51
        );
        assert_eq!(queue.backlog().packets, 50);
        let rest: Vec<Unit> = std::iter::from_fn(|| next(&mut queue, Time::ZERO)).collect();
        assert_eq!(rest.iter().filter(|packet| packet.flow == 2).count(), 2);
        assert_eq!(rest.iter().filter(|packet| packet.flow == 1).map(|packet| packet.len).min(), Some(1051));
    }

    #[test]
    fn a_limit_in_bytes_holds_where_half_of_the_longest_queue_is_too_little() {
        let mut queue = fq_codel(config::FqCodel { limit: Limit::Bytes(4000), ..config::FqCodel::default() });
        for number in 1..=4 {
            enqueue(&mut queue, of(number, 1000), Time::ZERO);
        }
        enqueue(&mut queue, of(5, 1514), Time::ZERO);
        assert!(queue.backlog().bytes <= 4000, "{:?}", queue.backlog());
    }

    #[test]
    fn each_flow_has_a_codel_of_its_own() {
        let mut queue = fq_codel(config::FqCodel::default());
        let mut dropped = [0; 3];
        for ms in 0..2000 {
            let now = Time::ZERO + Span::from_ms(ms);
            // A greedy flow, and one that sends a packet every 20 ms through the same link.
            enqueue(&mut queue, of(1, 1514), now);
            enqueue(&mut queue, of(1, 1514), now);
            if ms % 20 == 0 {
                enqueue(&mut queue, of(2, 200), now);
            }
            next(&mut queue, now);
        }
        for class in queue.classes() {
            dropped[usize::from(class.packets_out < 200) + 1] = class.drops.by(Cause::Early);
        }
        let gauges = queue.gauges(Time::ZERO + Span::from_secs(2));
        let shown = |name: &str| gauges.iter().find(|gauge| gauge.name == name).map(|gauge| gauge.value);
        assert_eq!(shown("dropping_flows"), Some(1.0));
        assert!(shown("count") > Some(1.0), "{gauges:?}");
        assert!(dropped[1] > 10 && dropped[2] == 0, "{dropped:?}");
    }

    #[test]
    fn the_queues_that_packets_have_joined_are_shown_by_number() {
        let mut queue = fq_codel(config::FqCodel { flows: 65_536, ..config::FqCodel::default() });
        let mut used: Vec<u32> = (0..20).map(|flow| queue.classify(flow)).collect();
        for flow in (0..20).chain(5..8) {
            enqueue(&mut queue, of(flow, 100), Time::ZERO);
            assert!(next(&mut queue, Time::ZERO).is_some());
        }
        used.sort_unstable();
        let names: Vec<String> = used.iter().map(|number| format!("flow {number}")).collect();
        let classes = queue.classes();
        assert_eq!(
            classes.iter().map(|class| &class.name).collect::<Vec<_>>(),
            names.iter().collect::<Vec<_>>()
        );
        assert_eq!(classes.iter().map(|class| class.packets_out).sum::<u64>(), 23);
    }

    #[test]
    fn a_million_flows_take_no_more_room_than_one() {
        let mut queue = fq_codel(config::FqCodel::default());
        let mut used = std::collections::HashSet::new();
        for flow in 0..1_000_000 {
            used.insert(queue.classify(flow));
            enqueue(&mut queue, of(flow, 100), Time::ZERO);
            assert!(next(&mut queue, Time::ZERO).is_some());
        }
        assert_eq!((queue.flows.len(), used.len()), (1024, 1024));
        let active = [queue.new_flows, queue.old_flows].map(|turns| turns.iter(&queue.flows).count());
        assert!(active[0] + active[1] <= 1024);
        assert!(queue.flows.iter().all(|flow| flow.queue.capacity() <= 16));
    }
}
