//! Common parts of a link's tests: a numbered packet, plain settings, and a driver.

use tcplab_link::config::{Chance, Change, Limit, Loss, LossModel, Overhead, Queue};
use tcplab_link::{Direction, Ecn, Event, Link, Observer, Packet};
use tcplab_units::{Probability, Rate, Span, Time};

/// A packet that remembers what was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub number: u64,
    pub len: u32,
    pub marked: bool,
    pub corrupted: bool,
    pub copy: bool,
}

impl Numbered {
    pub fn new(number: u64, len: u32) -> Numbered {
        Numbered { number, len, marked: false, corrupted: false, copy: false }
    }
}

impl Packet for Numbered {
    fn frame_len(&self) -> u32 {
        self.len
    }
    /// Those with odd numbers can be marked.
    fn ecn(&self) -> Ecn {
        if self.number % 2 == 1 { Ecn::Ect0 } else { Ecn::NotEct }
    }
    fn flow_hash(&self) -> u32 {
        0
    }
    fn dscp(&self) -> u8 {
        0
    }
    fn mark_ce(&mut self) {
        self.marked = true;
    }
    fn corrupt(&mut self) {
        self.corrupted = true;
    }
    fn duplicate(&self) -> Numbered {
        Numbered { copy: true, ..self.clone() }
    }
}

/// Writes every event down.
#[derive(Default)]
pub struct Recorder(pub Vec<(Event, Time, u64, u32)>);

impl Recorder {
    /// Numbers of the packets that `event` happened to, in order.
    pub fn numbers(&self, event: Event) -> Vec<u64> {
        self.0.iter().filter(|record| record.0 == event).map(|record| record.2).collect()
    }

    /// Times at which `event` happened, in ns.
    pub fn times(&self, event: Event) -> Vec<u64> {
        self.0.iter().filter(|record| record.0 == event).map(|record| record.1.as_ns()).collect()
    }
}

impl Observer<Numbered> for Recorder {
    fn on(&mut self, event: Event, at: Time, packet: &Numbered, queue_packets: u32) {
        self.0.push((event, at, packet.number, queue_packets));
    }
}

/// A link without rate, limit, delay or impairment.
pub fn nothing() -> Direction {
    Direction {
        rate: None,
        queue: Queue::droptail(None),
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
    }
}

/// A change of nothing at `ms`.
pub fn at(ms: u64) -> Change {
    Change {
        at: Time::from_ns(ms * 1_000_000),
        rate: None,
        limit: None,
        mark_above: None,
        delay: None,
        jitter: None,
        reorder: None,
        loss: None,
        corrupt: None,
        duplicate: None,
        up: None,
    }
}

pub fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_sec(bits).expect("not zero")
}

pub fn droptail(limit: Limit) -> Queue {
    Queue::droptail(Some(limit))
}

/// `rate` and `correlation` in parts per million.
pub fn chance(rate: u32, correlation: u32) -> Chance {
    Chance {
        rate: Probability::from_ppb(rate * 1000),
        correlation: Probability::from_ppb(correlation * 1000),
    }
}

/// Loss behind the queue.
pub fn loss(model: LossModel) -> Option<Loss> {
    Some(Loss { model, before_queue: false })
}

/// Everything that is delivered, polled only when the link asks for it.
pub fn drain(link: &mut Link<Numbered>, observer: &mut impl Observer<Numbered>) -> Vec<(u64, Numbered)> {
    let mut deliveries = Vec::new();
    while link.next_event() != Time::NEVER {
        let now = link.next_event();
        while let Some((at, packet)) = link.poll(now, observer) {
            assert_eq!(at, now, "the link asks in time");
            deliveries.push((at.as_ns(), packet));
        }
        assert!(link.next_event() > now, "no progress at {now}");
    }
    deliveries
}

/// Offers `packets` packets of `len` bytes, one every `gap`, and returns all deliveries in order.
pub fn offer(
    link: &mut Link<Numbered>,
    packets: u64,
    len: u32,
    gap: Span,
    observer: &mut impl Observer<Numbered>,
) -> Vec<(u64, Numbered)> {
    let mut deliveries = Vec::new();
    for number in 1..=packets {
        let now = Time::ZERO + gap * (number - 1);
        while let Some((at, packet)) = link.poll(now, observer) {
            deliveries.push((at.as_ns(), packet));
        }
        link.enqueue(Numbered::new(number, len), now, observer);
    }
    deliveries.extend(drain(link, observer));
    deliveries
}

/// The numbers of what was delivered.
pub fn numbers(deliveries: &[(u64, Numbered)]) -> Vec<u64> {
    deliveries.iter().map(|(_, packet)| packet.number).collect()
}
