//! Prints what one packet costs on a link, in nanoseconds of this machine.
//!
//! `cargo run --release -p tcplab-link --example link_speed`

use std::hint::black_box;
use std::time::Instant;

use tcplab_link::config::{Chance, Distribution, Jitter, Limit, Loss, LossModel, Overhead, Queue, Trace};
use tcplab_link::{Direction, Ecn, Link, Packet};
use tcplab_units::{Probability, Rate, Span, Time};

const PACKETS: u64 = 10_000_000;
const WINDOW: usize = 500;

/// As large as a simulated TCP segment with its addresses.
#[derive(Clone, Copy)]
struct Segment {
    len: u32,
    _fields: [u32; 23],
}

impl Packet for Segment {
    fn frame_len(&self) -> u32 {
        self.len
    }
    fn flow_hash(&self) -> u32 {
        0
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn dscp(&self) -> u8 {
        0
    }
    fn mark_ce(&mut self) {}
    fn corrupt(&mut self) {}
    fn duplicate(&self) -> Segment {
        *self
    }
}

fn main() {
    let plain = Direction {
        rate: Rate::from_bits_per_sec(100_000_000),
        queue: Queue::droptail(Some(Limit::Packets(625))),
        delay: Span::from_ms(25),
        jitter: None,
        reorder: None,
        loss: None,
        corrupt: None,
        duplicate: None,
        up: true,
        trace: None,
        overhead: Overhead::default(),
        policer: None,
        changes: Vec::new(),
    };
    let chance = Chance { rate: Probability::from_ppb(5_000_000), correlation: Probability::ZERO };
    let loss = Some(Loss { model: LossModel::Random { chance }, before_queue: false });
    let jitter = |distribution| {
        Some(Jitter { distribution, amount: Span::from_ms(5), correlation_time: Span::from_ms(100) })
    };
    let trace = Some(Trace { opportunities_ms: (1..=8000).map(|n| n * 121 / 1000).collect() });
    let cases = [
        ("droptail, rate, delay", plain.clone()),
        ("the same with random loss", Direction { loss: loss.clone(), ..plain.clone() }),
        (
            "the same with uniform jitter",
            Direction { jitter: jitter(Distribution::Uniform), ..plain.clone() },
        ),
        ("the same with normal jitter", Direction { jitter: jitter(Distribution::Normal), ..plain.clone() }),
        ("the same with Pareto jitter", Direction { jitter: jitter(Distribution::Pareto), ..plain.clone() }),
        ("droptail, trace, delay", Direction { trace, ..plain.clone() }),
        ("delay alone", Direction { rate: None, ..plain }),
    ];
    for (name, direction) in &cases {
        println!("{name:30} {:6.1} ns/packet", ns_per_packet(direction));
    }
}

/// A saturated link that always holds as much, as a TCP window does.
fn ns_per_packet(direction: &Direction) -> f64 {
    let mut link = Link::new(direction, 1);
    let packet = Segment { len: 1514, _fields: [0; 23] };
    for _ in 0..WINDOW {
        link.enqueue(packet, Time::ZERO, &mut ());
    }
    let started = Instant::now();
    let mut now = Time::ZERO;
    let mut offered = 0;
    while offered < PACKETS {
        now = now.max(link.next_event());
        if let Some(delivery) = link.poll(now, &mut ()) {
            black_box(delivery);
        }
        while link.held() < WINDOW {
            link.enqueue(black_box(packet), now, &mut ());
            offered += 1;
        }
    }
    started.elapsed().as_nanos() as f64 / PACKETS as f64
}
