//! Sends packets of eight flows through a queue discipline, to count the instructions that one packet costs.
//!
//! `valgrind --tool=callgrind target/release/examples/queue_cost KIND PACKETS`; the difference between two numbers of
//! packets leaves out what the start costs. 40 packets wait all the time; nothing is dropped or marked.

use std::hint::black_box;

use tcplab_link::config::{Cake, Codel, Dualpi2, FqCodel, Overhead, Pie, Queue, Red};
use tcplab_link::{Direction, Ecn, Link, Packet};
use tcplab_units::{Rate, Span, Time};

/// As large as a simulated TCP segment with its addresses.
#[derive(Clone, Copy)]
struct Segment {
    flow: u32,
    _fields: [u32; 23],
}

impl Packet for Segment {
    fn frame_len(&self) -> u32 {
        1514
    }
    fn flow_hash(&self) -> u32 {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        Ecn::Ect0
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
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let packets: u64 = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(100_000);
    let queue = match kind.as_str() {
        "droptail" => Queue::droptail(None),
        "codel" => Queue::Codel(Codel::default()),
        "fq_codel" => Queue::FqCodel(FqCodel::default()),
        "pie" => Queue::Pie(Pie::default()),
        "red" => Queue::Red(Red::default()),
        "dualpi2" => Queue::Dualpi2(Dualpi2::default()),
        "cake" => Queue::Cake(Cake::default()),
        _ => return eprintln!("usage: queue_cost droptail|codel|fq_codel|pie|red|dualpi2|cake PACKETS"),
    };
    let direction = Direction {
        rate: Rate::from_bits_per_sec(1_000_000_000),
        queue,
        delay: Span::from_ms(1),
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
    let mut link = Link::new(&direction, 1);
    let gap = 1514 * 8;
    let mut delivered = 0;
    for number in 0..packets + 40 {
        let now = Time::from_ns(number.saturating_sub(40) * gap);
        while let Some(packet) = link.poll(now, &mut ()) {
            black_box(packet);
            delivered += 1;
        }
        link.enqueue(Segment { flow: (number % 8) as u32 * 0x1234_5678, _fields: [0; 23] }, now, &mut ());
    }
    println!("{kind}: {delivered} delivered, {} dropped", link.stats().dropped);
}
