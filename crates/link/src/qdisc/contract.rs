//! Rules that hold for every discipline, whatever its settings: the contract of the trait.

use std::collections::HashMap;

use proptest::prelude::*;
use tcplab_units::{Probability, Rate, Span, Time};

use super::testing::Unit;
use super::{Cause, Discipline, Qdisc, Queued, Sink};
use crate::config::{
    AckFilter, Band, Cake, Cells, Codel, Diffserv, Drr, Dualpi2, Fq, FqCodel, Isolation, Limit, Pie, Prio,
    Queue, Red, Tbf,
};
use crate::packet::{Ecn, Packet};
use crate::threshold::Threshold;

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

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0u64..20).prop_map(Limit::Packets),
        (0u64..30_000).prop_map(Limit::Bytes),
        (0u64..20_000).prop_map(|us| Limit::Time(Span::from_us(us))),
    ]
}

fn codels() -> impl Strategy<Value = Codel> {
    let ms = |range: std::ops::Range<u64>| range.prop_map(Span::from_ms);
    (limits(), ms(0..5), ms(0..20), any::<bool>(), prop::option::of(ms(0..5))).prop_map(
        |(limit, target, interval, ecn, ce_threshold)| Codel { limit, target, interval, ecn, ce_threshold },
    )
}

fn pies() -> impl Strategy<Value = Pie> {
    let ms = |range: std::ops::Range<u64>| range.prop_map(Span::from_ms);
    let times = (ms(0..5), ms(1..20), ms(0..20));
    (limits(), times, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(limit, (target, tupdate, max_burst), ecn, bytemode, docsis)| {
            // Sharp, so that it drops within a few packets.
            let (alpha, beta) = (2000, 20_000);
            Pie { limit, target, tupdate, alpha, beta, max_burst, ecn, bytemode, docsis }
        },
    )
}

fn reds() -> impl Strategy<Value = Red> {
    (limits(), limits(), limits(), 0u8..4, any::<[bool; 3]>()).prop_map(
        |(limit, min, max, wlog, [gentle, adaptive, ecn])| {
            let probability = Probability::from_ppb(100_000_000);
            Red { limit, min, max, probability, wlog, avpkt: 1000, gentle, adaptive, ecn }
        },
    )
}

fn dualpi2s() -> impl Strategy<Value = Dualpi2> {
    let ms = |range: std::ops::Range<u64>| range.prop_map(Span::from_ms);
    (limits(), ms(0..5), ms(1..20), 0u32..1_000_000_000).prop_map(|(limit, target, tupdate, share)| Dualpi2 {
        limit,
        target,
        tupdate,
        alpha: 4000,
        beta: 80_000,
        classic_protection: Probability::from_ppb(share),
        ..Dualpi2::default()
    })
}

fn fqs() -> impl Strategy<Value = Fq> {
    let sizes = (1u32..20, 1u32..4000, 1u32..20_000);
    let maxrate = prop::option::of((100_000u64..100_000_000).prop_map(|bits| rate(bits).expect("not zero")));
    let ce_threshold = prop::option::of((0u64..5).prop_map(Span::from_ms));
    (limits(), sizes, maxrate, ce_threshold).prop_map(
        |(limit, (flow_limit, quantum, initial_quantum), maxrate, ce_threshold)| Fq {
            limit,
            flow_limit,
            quantum,
            initial_quantum,
            maxrate,
            ce_threshold,
        },
    )
}

fn cakes() -> impl Strategy<Value = Cake> {
    let ways = (
        prop::sample::select(vec![
            Diffserv::Besteffort,
            Diffserv::Diffserv3,
            Diffserv::Diffserv4,
            Diffserv::Precedence,
        ]),
        prop::sample::select(vec![
            Isolation::Flowblind,
            Isolation::Hosts,
            Isolation::Flows,
            Isolation::TripleIsolate,
        ]),
        prop::sample::select(vec![AckFilter::Off, AckFilter::On, AckFilter::Aggressive]),
        prop::sample::select(vec![Cells::Noatm, Cells::Atm, Cells::Ptm]),
    );
    let bandwidth =
        prop::option::of((100_000u64..100_000_000).prop_map(|bits| rate(bits).expect("not zero")));
    (ways, bandwidth, (1u64..50).prop_map(Span::from_ms), 0u32..256, limits()).prop_map(
        |((diffserv, isolation, ack_filter, atm), bandwidth, rtt, overhead, memlimit)| Cake {
            bandwidth,
            rtt,
            diffserv,
            isolation,
            ack_filter,
            overhead: Some(overhead),
            mpu: overhead,
            atm,
            memlimit: Some(memlimit),
        },
    )
}

fn queues() -> impl Strategy<Value = Queue> {
    let leaf = prop_oneof![
        (prop::option::of(limits()), prop::option::of(limits()))
            .prop_map(|(limit, mark_above)| Queue::Droptail { limit, mark_above }),
        (prop::option::of(limits()), 1u32..4000, 1u32..8)
            .prop_map(|(limit, quantum, flows)| Queue::Drr(Drr { limit, quantum, flows })),
        codels().prop_map(Queue::Codel),
        pies().prop_map(Queue::Pie),
        reds().prop_map(Queue::Red),
        dualpi2s().prop_map(Queue::Dualpi2),
        fqs().prop_map(Queue::Fq),
        cakes().prop_map(Queue::Cake),
        (codels(), 1u32..8, 1u32..4000).prop_map(|(codel, flows, quantum)| {
            let Codel { limit, target, interval, ecn, ce_threshold } = codel;
            Queue::FqCodel(FqCodel { limit, flows, quantum, target, interval, ecn, ce_threshold })
        }),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        let band = (prop::collection::vec(0u8..4, 0..3), inner.clone())
            .prop_map(|(dscp, queue)| Band { dscp, queue });
        let rates = || (1_000_000u64..1_000_000_000).prop_map(|bits| rate(bits).expect("not zero"));
        let tbf = (rates(), 0u64..10_000, prop::option::of(rates()), inner).prop_map(
            |(rate, burst, peak, queue)| Queue::Tbf(Tbf { rate, burst, peak, queue: Box::new(queue) }),
        );
        prop_oneof![prop::collection::vec(band, 1..4).prop_map(|bands| Queue::Prio(Prio { bands })), tbf]
    })
}

fn rate(bits: u64) -> Option<Rate> {
    Rate::from_bits_per_sec(bits)
}

/// Time that passes, and a packet to offer or none to take one out.
fn steps() -> impl Strategy<Value = Vec<(u64, Option<Unit>)>> {
    let packet = (1u32..1515, 0u32..5, 0u8..4, 0u8..4).prop_map(|(len, flow, dscp, ecn)| Unit {
        len,
        // A flow keeps to one codepoint of ECN, as DualPI2 wants it.
        flow: flow << 29 | u32::from(ecn),
        ecn: Ecn::from_bits(ecn),
        dscp,
    });
    let gap = prop_oneof![Just(0), 0u64..100_000, 0u64..3_000_000];
    prop::collection::vec((gap, prop::option::weighted(0.6, packet)), 1..150)
}

/// Whether every packet that waits can leave at once.
fn conserves_work(queue: &Queue) -> bool {
    match queue {
        Queue::Droptail { .. } | Queue::Drr(_) | Queue::Codel(_) | Queue::FqCodel(_) => true,
        Queue::Pie(_) | Queue::Red(_) | Queue::Dualpi2(_) => true,
        Queue::Prio(prio) => prio.bands.iter().all(|band| conserves_work(&band.queue)),
        Queue::Fq(fq) => fq.maxrate.is_none(),
        Queue::Cake(cake) => cake.bandwidth.is_none(),
        Queue::Tbf(_) => false,
    }
}

/// The limit of all that waits.
fn limit_of(queue: &Queue) -> Option<Limit> {
    match queue {
        Queue::Droptail { limit, .. } => *limit,
        Queue::Drr(drr) => drr.limit,
        Queue::Codel(codel) => Some(codel.limit),
        Queue::Pie(pie) => Some(pie.limit),
        Queue::Red(red) => Some(red.limit),
        Queue::Dualpi2(dualpi2) => Some(dualpi2.limit),
        Queue::Fq(fq) => Some(fq.limit),
        Queue::Cake(cake) => Some(cake.limit()),
        Queue::FqCodel(fq_codel) => Some(fq_codel.limit),
        // Their limits are those of the queues within.
        Queue::Prio(_) | Queue::Tbf(_) => None,
    }
}

/// Of the link, bit/s.
const RATE: u64 = 10_000_000;

/// The rate by which a limit in time is counted in bytes.
fn rate_of(queue: &Queue) -> Option<Rate> {
    match queue {
        Queue::Cake(cake) => cake.bandwidth.or(rate(RATE)),
        _ => rate(RATE),
    }
}

proptest! {
    #[test]
    fn no_packet_is_made_lost_unseen_or_reordered_within_its_flow(config in queues(), steps in steps()) {
        let mut queue = Discipline::new(&config, rate(RATE), 1);
        let mut ledger = Ledger::default();
        let mut now = Time::ZERO;
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
            match step {
                Some(packet) => {
                    offered += 1;
                    let notified = ledger.waiting + ledger.dropped as i64 + ledger.refused as i64;
                    queue.enqueue(Queued { packet, number: offered, since: now }, now, &mut ledger);
                    prop_assert_eq!(ledger.waiting + ledger.dropped as i64 + ledger.refused as i64, notified + 1);
                }
                None => left += take(&mut queue, &mut ledger, now),
            }
            let backlog = queue.backlog();
            prop_assert_eq!((i64::from(backlog.packets), backlog.bytes as i64), (ledger.waiting, ledger.bytes));
            let (packets, bytes) = (u64::from(backlog.packets), backlog.bytes);
            prop_assert!(!Threshold::new(limit_of(&config), rate_of(&config)).is_exceeded(packets, bytes));
            prop_assert_eq!(queue.next_ready(now) == Time::NEVER, backlog.packets == 0);
            prop_assert_eq!(queue.head_since().is_some(), backlog.packets > 0);
            prop_assert!(queue.head_since().is_none_or(|since| since <= now));
            if conserves_work(&config) && backlog.packets > 0 {
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
        for (number, (_, packet)) in (1..).zip(packets) {
            match packet {
                Some(packet) => queue.enqueue(Queued { packet, number, since: Time::ZERO }, Time::ZERO, &mut ledger),
                None => ledger.waiting -= i64::from(queue.dequeue(Time::ZERO, &mut ledger).is_some()),
            }
        }
        queue.purge(Cause::Down, &mut ledger);
        prop_assert_eq!(ledger.waiting, 0);
        prop_assert_eq!(queue.backlog(), super::Backlog::default());
        prop_assert_eq!(queue.next_ready(Time::ZERO), Time::NEVER);
    }
}
