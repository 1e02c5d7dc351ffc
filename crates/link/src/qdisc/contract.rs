//! Rules that hold for every discipline, whatever its settings: the contract of the trait.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::strategy::Union;
use tcplab_units::{Rate, Span, Time};

use super::testing::{Unit, no_change};
use super::{Cause, Discipline, Qdisc, Queued, Sink, discipline};
use crate::config::{Change, Limit, Queue};
use crate::packet::{Ecn, Packet};
use crate::threshold::Threshold;

/// A discipline that the contract is tested with.
pub(super) trait Contract {
    /// Settings of all sorts, small enough to matter within a few packets; a queue inside it is one of `within`.
    fn settings(within: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue>;
}

/// Checks each step, and keeps count.
#[derive(Default)]
struct Ledger {
    waiting: i64,
    bytes: i64,
    refused: u64,
    dropped: u64,
}

impl Sink<Unit> for Ledger {
    fn enqueued(&mut self, packet: &Unit) {
        self.waiting += 1;
        self.bytes += i64::from(packet.len);
    }
    fn rejected(&mut self, _: &Unit, _: Cause) {
        self.refused += 1;
    }
    fn dropped(&mut self, packet: &Unit, _: Cause) {
        self.dropped += 1;
        self.waiting -= 1;
        self.bytes -= i64::from(packet.len);
    }
    fn marked(&mut self, packet: &Unit) {
        assert_eq!(packet.ecn(), Ecn::Ce);
    }
}

pub(super) fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0u64..20).prop_map(Limit::Packets),
        (0u64..30_000).prop_map(Limit::Bytes),
        (0u64..20_000).prop_map(|us| Limit::Time(Span::from_us(us))),
    ]
}

fn queues() -> BoxedStrategy<Queue> {
    let leaf = Just(Queue::droptail(Some(Limit::Packets(5)))).boxed();
    (0..3).fold(leaf, |within, _| Union::new(discipline::settings(&within)).boxed())
}

pub(super) fn rate(bits: u64) -> Option<Rate> {
    Rate::from_bits_per_sec(bits)
}

#[derive(Clone, Debug)]
enum Step {
    Offer(Unit),
    Take,
    /// A limit from now on.
    Limit(Limit),
    /// The link's rate from now on, bit/s.
    Rate(u64),
}

/// Time that passes, and what happens then.
fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let packet = (1u32..1515, 0u32..5, 0u8..4, 0u8..4).prop_map(|(len, flow, dscp, ecn)| Unit {
        len,
        // A flow keeps to one codepoint of ECN, as DualPI2 wants it.
        flow: flow << 29 | u32::from(ecn),
        ecn: Ecn::from_bits(ecn),
        dscp,
    });
    let gap = prop_oneof![Just(0), 0u64..100_000, 0u64..3_000_000];
    let step = prop_oneof![
        60 => packet.prop_map(Step::Offer),
        40 => Just(Step::Take),
        1 => limits().prop_map(Step::Limit),
        1 => (1_000_000u64..1_000_000_000).prop_map(Step::Rate),
    ];
    prop::collection::vec((gap, step), 1..150)
}

/// Of the link, bit/s.
const RATE: u64 = 10_000_000;

/// The rate by which a limit in time is counted in bytes, where the link has `rate`.
fn rate_of(queue: &Queue, link: Option<Rate>) -> Option<Rate> {
    match queue {
        Queue::Cake(cake) => cake.bandwidth.or(link),
        _ => link,
    }
}

fn limited(limit: Limit) -> Change {
    Change { limit: Some(limit), ..no_change() }
}

proptest! {
    #[test]
    fn no_packet_is_made_lost_unseen_or_reordered_within_its_flow(config in queues(), steps in steps()) {
        let mut queue = Discipline::new(&config, rate(RATE), 1);
        let mut ledger = Ledger::default();
        let mut now = Time::ZERO;
        let (mut limit, mut link) = (config.limit(), rate(RATE));
        let (mut offered, mut left) = (0, 0);
        // Of each flow and codepoint, the number that left last.
        let mut last: HashMap<(u32, u8), u64> = HashMap::new();
        let mut take = |queue: &mut Discipline<Unit>, ledger: &mut Ledger, now: Time| {
            let ready = queue.next_ready(now);
            let Some(next) = queue.dequeue(now, ledger) else {
                assert!(queue.next_ready(now) > now, "nothing left although it was ready");
                return 0;
            };
            assert!(ready <= now, "a packet left before the queue was ready");
            ledger.waiting -= 1;
            ledger.bytes -= i64::from(next.packet.len);
            let before = last.insert((next.packet.flow, next.packet.dscp), next.number);
            assert!(before.is_none_or(|before| before < next.number), "order is kept");
            1
        };
        for (gap, step) in steps {
            now += Span::from_ns(gap);
            let before = queue.backlog();
            match step {
                Step::Offer(packet) => {
                    offered += 1;
                    let notified = ledger.waiting + ledger.dropped as i64 + ledger.refused as i64;
                    queue.enqueue(Queued { packet, number: offered, since: now }, now, &mut ledger);
                    prop_assert_eq!(ledger.waiting + ledger.dropped as i64 + ledger.refused as i64, notified + 1);
                }
                Step::Take => left += take(&mut queue, &mut ledger, now),
                Step::Limit(new) => {
                    limit = limit.and(Some(new));
                    queue.change(&limited(new), link);
                }
                Step::Rate(new) => {
                    link = rate(new);
                    queue.set_rate(link);
                }
            }
            let backlog = queue.backlog();
            prop_assert_eq!((i64::from(backlog.packets), backlog.bytes as i64), (ledger.waiting, ledger.bytes));
            let (packets, bytes) = (u64::from(backlog.packets), backlog.bytes);
            // Packets that wait when a limit is lowered stay, and nothing joins them.
            let is_exceeded = Threshold::new(limit, rate_of(&config, link)).is_exceeded(packets, bytes);
            prop_assert!(!is_exceeded || packets <= u64::from(before.packets) && bytes <= before.bytes);
            prop_assert_eq!(queue.next_ready(now) == Time::NEVER, backlog.packets == 0);
            prop_assert_eq!(queue.head_since().is_some(), backlog.packets > 0);
            prop_assert!(queue.head_since().is_none_or(|since| since <= now));
            // Whatever waits in one that does not shape can leave at once.
            if !config.shapes() && backlog.packets > 0 {
                prop_assert!(queue.next_ready(now) <= now);
            }
        }
        while queue.backlog().packets > 0 {
            let ready = queue.next_ready(now);
            prop_assert!(ready < Time::NEVER);
            now = now.max(ready);
            left += take(&mut queue, &mut ledger, now);
        }
        prop_assert_eq!(offered, left + ledger.dropped + ledger.refused);
    }

    #[test]
    fn a_purge_drops_all_that_waits(config in queues(), packets in steps()) {
        let mut queue = Discipline::new(&config, rate(RATE), 1);
        let mut ledger = Ledger::default();
        for (number, (_, step)) in (1..).zip(packets) {
            match step {
                Step::Offer(packet) => queue.enqueue(Queued { packet, number, since: Time::ZERO }, Time::ZERO, &mut ledger),
                Step::Take => ledger.waiting -= i64::from(queue.dequeue(Time::ZERO, &mut ledger).is_some()),
                Step::Limit(limit) => queue.change(&limited(limit), rate(RATE)),
                Step::Rate(new) => queue.set_rate(rate(new)),
            }
        }
        queue.purge(Cause::Down, &mut ledger);
        prop_assert_eq!(ledger.waiting, 0);
        prop_assert_eq!(queue.backlog(), super::Backlog::default());
        prop_assert_eq!(queue.next_ready(Time::ZERO), Time::NEVER);
    }
}
