//! Offers packets to links and says when each one left: our side of the witness in `tests/witness`.
//!
//! `cargo run -p tcplab-link --example offer <CASES >RESULTS`
//!
//! A case is `{name, seed, rate, queue, arrivals}`, its queue as in a plan, its arrivals as in `tests/witness/guest.py`.
//! Results hold by name `left`, when each packet's last bit left in ns (null: it was dropped), and `tos`, as it left.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tcplab_link::config::{Overhead, Queue};
use tcplab_link::{Acknowledgment, Direction, Ecn, Event, Inside, Link, Observer, Packet};
use tcplab_units::{Rate, Span, Time};

#[derive(Deserialize)]
struct Case {
    name: String,
    seed: u64,
    /// None where the queue itself shapes.
    rate: Option<Rate>,
    queue: Queue,
    arrivals: Vec<Arrival>,
}

/// When it arrives, its flow, the bytes of its frame and its traffic class; and what it acknowledges.
#[derive(Deserialize)]
#[serde(untagged)]
enum Arrival {
    Udp(Time, u32, u32, u8),
    Tcp(Time, u32, u32, u8, Ack),
}

#[derive(Deserialize)]
struct Ack {
    number: u32,
    sack: Vec<(u32, u32)>,
    ece: bool,
    time: Option<u32>,
}

impl Ack {
    /// Bytes of the frame of a segment without payload.
    fn frame_len(&self) -> u32 {
        let blocks = self.sack.len() as u32;
        let sack = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        54 + sack + if self.time.is_some() { 12 } else { 0 }
    }

    fn acknowledgment(&self, frame_len: u32) -> Acknowledgment {
        let mut sack = [(0, 0); 4];
        sack[..self.sack.len()].copy_from_slice(&self.sack);
        let ecn_flags = if self.ece { 0x40 } else { 0 };
        Acknowledgment { number: self.number, is_pure: frame_len == self.frame_len(), ecn_flags, sack }
    }
}

#[derive(Serialize)]
struct Fates {
    left: Vec<Option<Time>>,
    tos: Vec<Option<u8>>,
}

fn main() -> Result<(), serde_json::Error> {
    let cases: Vec<Case> = serde_json::from_reader(std::io::stdin().lock())?;
    let fates: BTreeMap<String, Fates> = cases.iter().map(|case| (case.name.clone(), offer(case))).collect();
    serde_json::to_writer(std::io::stdout().lock(), &fates)
}

fn offer(case: &Case) -> Fates {
    let direction = Direction {
        rate: case.rate,
        queue: case.queue.clone(),
        delay: Span::ZERO,
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
    let mut link = Link::new(&direction, case.seed);
    let packets = case.arrivals.len();
    let mut fates = Fates { left: vec![None; packets], tos: vec![None; packets] };
    for (index, arrival) in case.arrivals.iter().enumerate() {
        let (at, flow, len, tos, ack) = match arrival {
            Arrival::Udp(at, flow, len, tos) => (*at, *flow, *len, *tos, None),
            Arrival::Tcp(at, flow, len, tos, ack) => (*at, *flow, *len, *tos, Some(ack.acknowledgment(*len))),
        };
        while link.poll(at, &mut fates).is_some() {}
        link.enqueue(Offered { index, flow, len, tos, ack }, at, &mut fates);
    }
    while link.poll(Time::from_ns(u64::MAX / 2), &mut fates).is_some() {}
    fates
}

impl Observer<Offered> for Fates {
    fn on(&mut self, event: Event, at: Time, packet: &Offered, _: u32) {
        if event == Event::Depart {
            self.left[packet.index] = Some(at);
            self.tos[packet.index] = Some(packet.tos);
        }
    }

    /// The addresses that `tests/witness/guest.py` gives to a flow.
    fn inside(&self, packet: &Offered) -> Inside {
        Inside { source: ((packet.flow >> 8) << 8) | (packet.flow % 250), destination: 0, ack: packet.ack }
    }
}

#[derive(Clone, Copy)]
struct Offered {
    index: usize,
    flow: u32,
    len: u32,
    tos: u8,
    ack: Option<Acknowledgment>,
}

impl Packet for Offered {
    fn frame_len(&self) -> u32 {
        self.len
    }
    /// Spread over all bits, as `drr` goes by the high ones.
    fn flow_hash(&self) -> u32 {
        self.flow.wrapping_mul(0x9E37_79B9)
    }
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.tos)
    }
    fn dscp(&self) -> u8 {
        self.tos >> 2
    }
    fn mark_ce(&mut self) {
        self.tos |= 3;
    }
    fn corrupt(&mut self) {}
    fn duplicate(&self) -> Offered {
        *self
    }
}
