use super::*;
use crate::{Band, Codel, Distribution, Droptail, Limit, LossModel, Overhead, Policer, Prio, Queue, Tbf};
use tcplab_units::{Probability, Time};

fn direction() -> Direction {
    Direction {
        rate: Rate::from_bits_per_sec(10_000_000),
        overhead: Overhead::default(),
        policer: None,
        queue: Queue::droptail(None),
        delay: Span::from_ms(50),
        jitter: None,
        reorder: None,
        loss: None,
        corrupt: None,
        duplicate: None,
        up: true,
        trace: None,
        changes: Vec::new(),
    }
}

fn chance(ppb: u32, correlation: u32) -> Chance {
    Chance { rate: Probability::from_ppb(ppb), correlation: Probability::from_ppb(correlation) }
}

fn lost(model: LossModel) -> String {
    Loss { model, before_queue: false }.to_string()
}

#[test]
fn losses() {
    let random = LossModel::Random { chance: chance(5_000_000, 250_000_000) };
    assert_eq!(lost(random), "0.5 % (correlation 25 %) lost at random");
    let bursts = LossModel::GilbertElliott {
        p: Probability::from_ppb(1_000_000),
        r: Probability::from_ppb(500_000_000),
        bad: Probability::ONE,
        good: Probability::ZERO,
    };
    assert_eq!(lost(bursts), "Gilbert-Elliott loss (p 0.1 %, r 50 %, bad 100 %, good 0 %)");
    assert_eq!(lost(LossModel::List { packets: vec![3, 9] }), "packets 3, 9 lost");
    let many = LossModel::List { packets: (1..=9).collect() };
    assert_eq!(lost(many), "packets 1, 2, 3, 4, 5, 6, 7, 8 and more lost");
    for (packets, words) in [(2, "2nd"), (11, "11th"), (113, "113th"), (1001, "1001st")] {
        let every = LossModel::Every { packets, first: 1 };
        assert_eq!(lost(every), format!("every {words} packet lost, from number 1 on"));
    }
}

#[test]
fn queues() {
    let droptail = |limit, mark_above| Queue::Droptail(Droptail { limit, mark_above }).to_string();
    assert_eq!(droptail(Some(Limit::Packets(100)), None), "droptail of 100 packets");
    assert_eq!(droptail(Some(Limit::Bytes(200_000)), None), "droptail of 200 kB");
    assert_eq!(droptail(None, None), "droptail without limit");
    let marking = droptail(Some(Limit::Time(Span::from_ms(40))), Some(Limit::Packets(65)));
    assert_eq!(marking, "droptail of 40 ms (marks above 65 packets)");
    let codel = Queue::Codel(Codel::default());
    assert_eq!(codel.to_string(), "codel of 1000 packets (target 5 ms, interval 100 ms)");
    let shaper = Tbf {
        rate: Rate::from_bits_per_sec(8_000_000).expect("not zero"),
        burst: 15_000,
        peak: None,
        queue: Box::new(codel.clone()),
    };
    assert_eq!(Queue::Tbf(shaper).to_string(), format!("tbf at 8 Mbit/s with bursts of 15 kB ({codel})"));
    let bands = vec![
        Band { dscp: vec![46, 48], queue: Queue::droptail(Some(Limit::Packets(1))) },
        Band { dscp: Vec::new(), queue: codel.clone() },
    ];
    let prio = format!("prio (DSCP 46, 48: droptail of 1 packet; others: {codel})");
    assert_eq!(Queue::Prio(Prio { bands }).to_string(), prio);
}

#[test]
fn impairments_stand_in_the_order_in_which_packets_meet_them() {
    let all = Direction {
        policer: Some(Policer { rate: Rate::from_bits_per_sec(5_000_000).expect("not zero"), burst: 15_000 }),
        overhead: Overhead { bytes: 24, minimum: 0, atm: true },
        loss: Some(Loss { model: LossModel::List { packets: vec![1] }, before_queue: true }),
        corrupt: Some(chance(10_000_000, 0)),
        duplicate: Some(chance(10_000_000, 0)),
        jitter: Some(Jitter {
            distribution: Distribution::Normal,
            amount: Span::from_ms(2),
            correlation_time: Span::from_ms(100),
        }),
        reorder: Some(Reorder { chance: chance(100_000_000, 0), by: Some(Span::from_ms(3)) }),
        up: false,
        ..direction()
    };
    let words = all.describe();
    let expected = [
        "down at the start",
        "24 B of overhead a frame, in ATM cells",
        "policed to 5 Mbit/s with bursts of 15 kB",
        "packets 1 lost, before the queue",
        "1 % corrupted",
        "1 % duplicated",
        "normal jitter of 2 ms (independent from packet to packet)",
        "10 % reordered by 3 ms",
    ];
    assert_eq!(words.impairments, expected);
    assert_eq!(
        words.line,
        format!("10 Mbit/s, 50 ms delay, droptail without limit, {}", expected.join(", "))
    );
}

#[test]
fn changes_say_when_and_what() {
    let change = |ms: u64, rate: u64| Change {
        at: Time::from_ns(ms * 1_000_000),
        rate: Rate::from_bits_per_sec(rate),
        loss: None,
        corrupt: None,
        duplicate: None,
        reorder: None,
        jitter: None,
        up: None,
        limit: None,
        mark_above: None,
        delay: None,
    };
    let once =
        Direction { changes: vec![Change { up: Some(true), ..change(20_000, 20_000_000) }], ..direction() };
    assert_eq!(once.describe().changes, ["from 20 s: rate 20 Mbit/s, up"]);
    let often = Direction { changes: (1..=6).map(|ms| change(ms, 1000)).collect(), ..direction() };
    let line = often.describe().line;
    assert!(line.ends_with("from 4 ms: rate 1 kbit/s, and 2 more changes"), "{line}");
}

#[test]
fn a_trace_has_a_mean_rate() {
    let trace = Trace { opportunities_ms: vec![1, 2, 3, 7] };
    assert_eq!(trace.to_string(), "rate of a delivery trace (mean 6.86 Mbit/s)");
    assert_eq!(Trace { opportunities_ms: Vec::new() }.to_string(), "rate of a delivery trace");
}
