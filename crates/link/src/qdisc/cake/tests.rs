//! CAKE as a whole: its shaper, tins, fairness of hosts and flows, ACK filter and limit.

use proptest::prelude::*;
use tcplab_units::{Rate, Span, Time};

use super::Cake;
use crate::config::{self, AckFilter, Cells, Change, Diffserv, Isolation, Limit, Queue};
use crate::inside::{Acknowledgment, Inside};
use crate::qdisc::contract::{Contract, limits, rate};
use crate::qdisc::testing::{Notified, Unit, enqueue, no_change};
use crate::qdisc::{Cause, Qdisc, Queued, Sink};

/// 8 Mbit/s, 1000 bytes a millisecond.
fn cake(config: config::Cake) -> Cake<Unit> {
    Cake::new(&config::Cake { bandwidth: Rate::from_bits_per_sec(8_000_000), ..config }, None, 1)
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// Knows where flows go and which packets are acknowledgments. Flow `s * 100 + d * 10 + n` goes from host s to
/// host d. Packets of less than 100 bytes are acknowledgments of as many bytes as they have, from 70 to 79 with
/// ECE.
struct Wise(Vec<Notified>);

impl Sink<Unit> for Wise {
    fn enqueued(&mut self, packet: &Unit) {
        self.0.enqueued(packet);
    }
    fn rejected(&mut self, packet: &Unit, cause: Cause) {
        self.0.rejected(packet, cause);
    }
    fn dropped(&mut self, packet: &Unit, cause: Cause) {
        self.0.dropped(packet, cause);
    }
    fn marked(&mut self, packet: &Unit) {
        self.0.marked(packet);
    }
    fn inside(&self, packet: &Unit) -> Inside {
        let (source, destination) = (packet.flow / 100, packet.flow / 10 % 10);
        let ack = (packet.len < 100).then_some(Acknowledgment {
            number: packet.len,
            is_pure: true,
            ecn_flags: if packet.len / 10 == 7 { 0x40 } else { 0 },
            sack: [(0, 0); 4],
        });
        Inside { source, destination, ack }
    }
}

fn give(queue: &mut Cake<Unit>, packet: Unit, now: Time) -> Vec<Notified> {
    let mut sink = Wise(Vec::new());
    queue.enqueue(Queued { packet, number: 1, since: now }, now, &mut sink);
    sink.0
}

/// The bytes that leave by flow in so many seconds, in which every flow has twenty packets of 1000 bytes waiting.
fn shares(isolation: Isolation, flows: &[u32], seconds: u64) -> Vec<u64> {
    let mut queue = cake(config::Cake { isolation, ..config::Cake::default() });
    let mut bytes = vec![0; flows.len()];
    for &flow in flows {
        for _ in 0..20 {
            give(&mut queue, Unit { flow, ..Unit::new(1000) }, Time::ZERO);
        }
    }
    for at in 0..seconds * 1000 {
        let left = queue.dequeue(ms(at), &mut Wise(Vec::new())).expect("a packet a millisecond");
        let index = flows.iter().position(|flow| *flow == left.packet.flow).expect("a flow of ours");
        bytes[index] += 1000;
        give(&mut queue, left.packet, ms(at));
    }
    bytes
}

#[test]
fn the_shaper_sends_at_its_rate_and_saves_nothing_up() {
    let mut queue = cake(config::Cake::default());
    for _ in 0..3 {
        enqueue(&mut queue, Unit::new(1000), ms(500));
    }
    assert_eq!(queue.next_ready(ms(500)), ms(500));
    assert!(queue.dequeue(ms(500), &mut Vec::new()).is_some());
    assert!(queue.dequeue(ms(500), &mut Vec::new()).is_none());
    assert_eq!(queue.next_ready(ms(500)), ms(501));
    // Late, it makes up for what it missed.
    assert!(queue.dequeue(ms(503), &mut Vec::new()).is_some());
    assert!(queue.dequeue(ms(503), &mut Vec::new()).is_some());
    enqueue(&mut queue, Unit::new(1000), ms(503));
    assert_eq!(queue.next_ready(ms(503)), ms(503));
}

#[test]
fn the_shaper_counts_overhead() {
    let mut queue = cake(config::Cake { overhead: Some(38), mpu: 84, ..config::Cake::default() });
    enqueue(&mut queue, Unit::new(976), Time::ZERO);
    enqueue(&mut queue, Unit::new(54), Time::ZERO);
    enqueue(&mut queue, Unit::new(54), Time::ZERO);
    assert!(queue.dequeue(Time::ZERO, &mut Vec::new()).is_some());
    assert_eq!(queue.next_ready(Time::ZERO), ms(1));
    assert!(queue.dequeue(ms(1), &mut Vec::new()).is_some());
    assert_eq!(queue.next_ready(ms(1)), ms(1) + Span::from_us(84));
}

#[test]
fn flows_share_evenly_whatever_hosts_they_have_where_only_flows_count() {
    let bytes = shares(Isolation::Flows, &[110, 111, 112, 210], 20);
    assert!(bytes.iter().all(|bytes| bytes.abs_diff(5_000_000) < 100_000), "{bytes:?}");
}

#[test]
fn a_host_gets_no_more_for_having_more_flows() {
    // Host 1 has three flows and host 2 one, to the same destination.
    let bytes = shares(Isolation::DualSrchost, &[110, 111, 112, 210], 20);
    assert!(bytes[3].abs_diff(10_000_000) < 200_000, "{bytes:?}");
    assert!(bytes[..3].iter().all(|bytes| bytes.abs_diff(3_333_333) < 100_000), "{bytes:?}");
    // The same the other way round.
    let bytes = shares(Isolation::DualDsthost, &[110, 210, 310, 120], 20);
    assert!(bytes[3].abs_diff(10_000_000) < 200_000, "{bytes:?}");
}

#[test]
fn triple_isolation_finds_the_side_on_which_hosts_differ() {
    // As an uplink: sources 1 and 2, all destinations apart.
    let up = shares(Isolation::TripleIsolate, &[110, 120, 130, 240], 20);
    assert!(up[3].abs_diff(10_000_000) < 200_000, "{up:?}");
    // As a downlink.
    let down = shares(Isolation::TripleIsolate, &[110, 210, 310, 420], 20);
    assert!(down[3].abs_diff(10_000_000) < 200_000, "{down:?}");
}

#[test]
fn hosts_alone_share_where_flows_do_not_count() {
    let bytes = shares(Isolation::Srchost, &[110, 111, 210], 20);
    assert!((bytes[0] + bytes[1]).abs_diff(10_000_000) < 200_000, "{bytes:?}");
}

#[test]
fn a_sparse_flow_goes_first() {
    let mut queue = cake(config::Cake::default());
    for _ in 0..20 {
        give(&mut queue, Unit { flow: 110, ..Unit::new(1000) }, Time::ZERO);
    }
    for at in 0..3 {
        assert!(queue.dequeue(ms(at), &mut Wise(Vec::new())).is_some());
    }
    give(&mut queue, Unit { flow: 220, ..Unit::new(200) }, ms(3));
    let next = queue.dequeue(ms(3), &mut Wise(Vec::new())).map(|queued| queued.packet.flow);
    assert_eq!(next, Some(220));
}

#[test]
fn a_flow_that_sends_little_at_a_time_does_not_stay_first() {
    // One flow has twenty packets waiting, the other always one small one, far below its quantum.
    let mut queue = cake(config::Cake::default());
    let mut bytes = [0, 0];
    for _ in 0..20 {
        give(&mut queue, Unit { flow: 110, ..Unit::new(1000) }, Time::ZERO);
    }
    give(&mut queue, Unit { flow: 220, ..Unit::new(100) }, Time::ZERO);
    let mut now = Time::ZERO;
    while now < ms(1000) {
        let left = queue.dequeue(now, &mut Wise(Vec::new())).expect("a packet is due").packet;
        bytes[usize::from(left.flow == 220)] += u64::from(left.len);
        give(&mut queue, left, now);
        now = queue.next_ready(now);
    }
    assert!(bytes[0] > 450_000, "{bytes:?}");
}

/// The share of the rate that each codepoint gets of those that offer more than there is.
fn tin_shares(diffserv: Diffserv, dscps: &[u8]) -> Vec<f64> {
    let mut queue = cake(config::Cake { diffserv, ..config::Cake::default() });
    let unit = |number: usize| Unit { flow: number as u32, dscp: dscps[number], ..Unit::new(1000) };
    let mut packets = vec![0.0; dscps.len()];
    for _ in 0..20 {
        (0..dscps.len()).for_each(|number| _ = give(&mut queue, unit(number), Time::ZERO));
    }
    for at in 0..20_000 {
        let left = queue.dequeue(ms(at), &mut Wise(Vec::new())).expect("a packet a millisecond").packet;
        packets[left.flow as usize] += 1.0;
        give(&mut queue, left, ms(at));
    }
    packets.iter().map(|packets| packets / 20_000.0).collect()
}

#[test]
fn tins_go_first_up_to_their_thresholds() {
    // Bulk, best effort, voice: voice gets its quarter, bulk its sixteenth, best effort the rest.
    let found = tin_shares(Diffserv::Diffserv3, &[8, 0, 46]);
    for (share, expected) in found.iter().zip([1.0 / 16.0, 11.0 / 16.0, 0.25]) {
        assert!((share - expected).abs() < 0.01, "{found:?}");
    }
    // Bandwidth that no other tin wants, one may have.
    let lent = tin_shares(Diffserv::Diffserv3, &[46]);
    assert!((lent[0] - 1.0).abs() < 1e-9, "{lent:?}");
}

#[test]
fn without_a_shaper_no_tin_sends_more_than_two_frames_in_a_row() {
    let config = config::Cake { diffserv: Diffserv::Diffserv4, ..config::Cake::default() };
    let mut queue = Cake::new(&config, None, 1);
    for _ in 0..50 {
        for dscp in [0, 34] {
            enqueue(&mut queue, Unit { dscp, flow: u32::from(dscp), ..Unit::new(1514) }, Time::ZERO);
        }
    }
    let sent: Vec<u8> =
        (0..60).filter_map(|_| Some(queue.dequeue(Time::ZERO, &mut Vec::new())?.packet.dscp)).collect();
    let longest = sent.chunk_by(|one, next| one == next).map(<[u8]>::len).max();
    assert_eq!(longest, Some(2), "{sent:?}");
    // Best effort has twice the turn of video.
    assert_eq!(sent.iter().filter(|&&dscp| dscp == 0).count(), 40);
}

#[test]
fn the_oldest_redundant_acknowledgment_goes_if_another_waits_behind_it() {
    let mut queue = cake(config::Cake { ack_filter: AckFilter::On, ..config::Cake::default() });
    let dropped = Notified::Dropped(Cause::Redundant);
    let acks =
        [60, 61, 62, 63].map(|number| give(&mut queue, Unit { flow: 110, ..Unit::new(number) }, ms(1)));
    assert_eq!(acks[1], [Notified::Enqueued]);
    assert_eq!([&acks[2], &acks[3]], [&[Notified::Enqueued, dropped]; 2]);
    assert_eq!(rest(&mut queue), [62, 63]);
}

/// The sizes of the packets that wait, in the order in which they leave.
fn rest(queue: &mut Cake<Unit>) -> Vec<u32> {
    let next = |at| queue.dequeue(ms(at), &mut Wise(Vec::new())).map(|queued| queued.packet.len);
    (2..).map_while(next).collect()
}

#[test]
fn the_acknowledgment_before_a_change_of_ecn_flags_stays() {
    // By an aggressive filter none but these: each is right before the latest packet when that arrives.
    for (filter, left) in [(AckFilter::On, vec![60, 72, 81, 82]), (AckFilter::Aggressive, vec![60, 72, 82])] {
        let mut queue = cake(config::Cake { ack_filter: filter, ..config::Cake::default() });
        for number in [60, 70, 71, 72, 80, 81, 82] {
            give(&mut queue, Unit { flow: 110, ..Unit::new(number) }, ms(1));
        }
        assert_eq!(rest(&mut queue), left, "{filter:?}");
    }
}

#[test]
fn an_aggressive_filter_leaves_the_latest_alone() {
    let mut queue = cake(config::Cake { ack_filter: AckFilter::Aggressive, ..config::Cake::default() });
    for number in [60, 61, 62] {
        give(&mut queue, Unit { flow: 110, ..Unit::new(number) }, ms(1));
        // Of another connection, and data: both stay.
        give(&mut queue, Unit { flow: 120, ..Unit::new(1000) }, ms(1));
    }
    assert_eq!(queue.backlog().packets, 1 + 3);
    let gauges = queue.gauges(ms(1));
    assert_eq!(gauges.iter().find(|gauge| gauge.name == "ack_drop").map(|gauge| gauge.value), Some(2.0));
}

#[test]
fn beyond_the_memory_limit_the_longest_queue_loses_from_its_head() {
    let mut queue = cake(config::Cake { memlimit: Some(Limit::Bytes(10_000)), ..config::Cake::default() });
    for _ in 0..9 {
        assert_eq!(give(&mut queue, Unit { flow: 110, ..Unit::new(1000) }, ms(1)), [Notified::Enqueued]);
    }
    let notified = give(&mut queue, Unit { flow: 220, ..Unit::new(1500) }, ms(1));
    assert_eq!(notified, [Notified::Enqueued, Notified::Dropped(Cause::Overlimit)]);
    assert_eq!(queue.backlog().bytes, 9500);
}

#[test]
fn the_memory_limit_may_be_packets_or_time_at_the_rate_of_the_shaper() {
    let maximum = |memlimit| {
        let mut queue = cake(config::Cake { memlimit: Some(memlimit), ..config::Cake::default() });
        for _ in 0..20 {
            give(&mut queue, Unit { flow: 110, ..Unit::new(1000) }, ms(1));
        }
        queue.backlog().packets
    };
    assert_eq!([Limit::Packets(7), Limit::Time(Span::from_ms(5))].map(maximum), [7, 5]);
}

#[test]
fn a_lower_memory_limit_holds_from_the_next_arrival_on() {
    let mut queue = cake(config::Cake::default());
    for _ in 0..9 {
        give(&mut queue, Unit { flow: 110, ..Unit::new(1000) }, ms(1));
    }
    // 8 Mbit/s, not the link's rate.
    queue.change(&Change { limit: Some(Limit::Time(Span::from_ms(4))), ..no_change() }, rate(80_000_000));
    assert_eq!(queue.backlog().packets, 9);
    let notified = give(&mut queue, Unit { flow: 220, ..Unit::new(1000) }, ms(1));
    assert_eq!(notified.len(), 7);
    assert_eq!(queue.backlog().packets, 4);
}

#[test]
fn each_tin_counts_its_drops_by_cause() {
    let mut queue = cake(config::Cake { memlimit: Some(Limit::Packets(2)), ..config::Cake::default() });
    for _ in 0..5 {
        give(&mut queue, Unit { flow: 110, ..Unit::new(1000) }, ms(1));
    }
    queue.purge(Cause::Down, &mut Wise(Vec::new()));
    let drops = queue.classes()[0].drops;
    assert_eq!([Cause::Overlimit, Cause::Down, Cause::Early].map(|cause| drops.by(cause)), [3, 2, 0]);
    assert_eq!(drops.total(), 5);
}

#[test]
fn a_million_flows_take_no_more_room_than_one() {
    let mut queue: Cake<Unit> = Cake::new(&config::Cake::default(), None, 1);
    for flow in 0..1_000_000u32 {
        give(&mut queue, Unit { flow, ..Unit::new(100) }, Time::from_ns(u64::from(flow) * 1000));
        assert!(queue.dequeue(Time::from_ns(u64::from(flow) * 1000), &mut Wise(Vec::new())).is_some());
    }
    assert_eq!(queue.backlog().packets, 0);
    let way_cols = queue.gauges(ms(0)).iter().find(|gauge| gauge.name == "way_cols").map(|gauge| gauge.value);
    assert!(way_cols.is_some());
}

impl Contract for Cake<Unit> {
    fn settings(_: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
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
        (ways, bandwidth, (1u64..50).prop_map(Span::from_ms), 0u32..256, limits())
            .prop_map(|((diffserv, isolation, ack_filter, atm), bandwidth, rtt, overhead, memlimit)| {
                Queue::Cake(config::Cake {
                    bandwidth,
                    rtt,
                    diffserv,
                    isolation,
                    ack_filter,
                    overhead: Some(overhead),
                    mpu: overhead,
                    atm,
                    memlimit: Some(memlimit),
                })
            })
            .boxed()
    }
}
