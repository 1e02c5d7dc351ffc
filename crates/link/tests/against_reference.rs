//! The link delivers exactly what a naive model of one packet after another delivers.
//!
//! The model knows no laziness: it walks through time from instant to instant, keeps plain lists, does
//! its serialization in whole fractions from the start of a busy period, and burns a trace's
//! opportunities one by one.

use crate::common::{Numbered, chance, drain, nothing, rate};
use proptest::prelude::*;
use tcplab_link::config::{Change, Droptail, Limit, Loss, LossModel, Queue, Reorder, Trace};
use tcplab_link::{Direction, Link};
use tcplab_units::{Span, Time};

/// Delivery time in ns, packet number, marked, corrupted, copy.
type Delivery = (u64, u64, bool, bool, bool);

/// The naive model.
struct Reference {
    now: Direction,
    changes: Vec<Change>,
    waiting: Vec<Numbered>,
    sending: Option<Numbered>,
    /// End of what is being sent at a rate.
    end: u64,
    /// Since when there is one rate without a gap, and what was to be sent since, in 10^−9 bits.
    busy_since: u64,
    work: i128,
    /// Bytes of what is being sent on a trace that are still to go.
    left: u32,
    opportunity: usize,
    offered: u64,
    seen: u64,
    /// When it departs, its delay, and whether it may overtake.
    in_flight: Vec<(u64, u64, Numbered, bool)>,
    lost: Vec<u64>,
    dropped: Vec<u64>,
    marked: u64,
}

impl Reference {
    fn new(config: &Direction) -> Reference {
        let mut changes = config.changes.clone();
        changes.sort_by_key(|change| change.at);
        Reference {
            now: config.clone(),
            changes,
            waiting: Vec::new(),
            sending: None,
            end: 0,
            busy_since: 0,
            work: 0,
            left: 0,
            opportunity: 0,
            offered: 0,
            seen: 0,
            in_flight: Vec::new(),
            lost: Vec::new(),
            dropped: Vec::new(),
            marked: 0,
        }
    }

    fn opportunity_at(&self) -> Option<u64> {
        let times = &self.now.trace.as_ref()?.opportunities_ms;
        let repetition = (self.opportunity / times.len()) as u64;
        Some((repetition * times[times.len() - 1] + times[self.opportunity % times.len()]) * 1_000_000)
    }

    /// The next instant at which something happens inside.
    fn next_instant(&self) -> u64 {
        let change = self.changes.first().map_or(u64::MAX, |change| change.at.as_ns());
        let service = match self.opportunity_at() {
            Some(at) => at,
            None if self.sending.is_some() => self.end,
            None => u64::MAX,
        };
        change.min(service)
    }

    fn run_until(&mut self, now: u64) {
        while self.next_instant() <= now {
            let at = self.next_instant();
            if self.changes.first().is_some_and(|change| change.at.as_ns() == at) {
                let change = self.changes.remove(0);
                self.change(change, at);
            } else if self.now.trace.is_some() {
                self.burn_opportunity(at);
            } else {
                let sent = self.sending.take().expect("being sent");
                self.depart(sent, at);
                self.begin_next(at);
            }
        }
    }

    fn change(&mut self, change: Change, at: u64) {
        if let (Some(rate), None) = (change.rate, &self.now.trace) {
            let before = self.now.rate.replace(rate).map_or(0, |rate| rate.bits_per_sec());
            if self.sending.is_some() {
                self.work -= i128::from(at - self.busy_since) * i128::from(before);
                self.busy_since = at;
                self.end = self.end_of_work();
            }
        }
        let Queue::Droptail(Droptail { limit, mark_above }) = self.now.queue else {
            unreachable!("the reference is of droptail")
        };
        self.now.queue = Queue::Droptail(Droptail {
            limit: change.limit.or(limit),
            mark_above: change.mark_above.or(mark_above),
        });
        self.now.delay = change.delay.unwrap_or(self.now.delay);
        self.now.reorder = change.reorder.or(self.now.reorder);
        self.now.corrupt = change.corrupt.or(self.now.corrupt);
        self.now.duplicate = change.duplicate.or(self.now.duplicate);
        self.now.loss = change.loss.or(self.now.loss.take());
        self.now.up = change.up.unwrap_or(self.now.up);
        if !self.now.up {
            self.dropped.extend(self.sending.take().map(|packet| packet.number));
            self.dropped.extend(self.waiting.drain(..).map(|packet| packet.number));
            self.left = 0;
        }
    }

    fn burn_opportunity(&mut self, at: u64) {
        self.opportunity += 1;
        let mut bytes = 1500;
        while bytes > 0 {
            if self.sending.is_none() {
                if self.waiting.is_empty() {
                    return;
                }
                let packet = self.waiting.remove(0);
                self.left = (packet.len - 14).max(1);
                self.sending = Some(packet);
            }
            let sent = bytes.min(self.left);
            bytes -= sent;
            self.left -= sent;
            if self.left == 0 {
                let packet = self.sending.take().expect("being sent");
                self.depart(packet, at);
            }
        }
    }

    fn begin_next(&mut self, at: u64) {
        if self.waiting.is_empty() {
            return;
        }
        let packet = self.waiting.remove(0);
        self.begin(packet, at);
    }

    fn begin(&mut self, packet: Numbered, at: u64) {
        self.work += i128::from(packet.len) * 8_000_000_000;
        self.end = self.end_of_work();
        assert!(self.end >= at);
        self.sending = Some(packet);
    }

    /// None of it may be left where a change of the rate finds a packet that ends in the same nanosecond.
    fn end_of_work(&self) -> u64 {
        let bits_per_sec = u128::from(self.now.rate.expect("a rate").bits_per_sec());
        self.busy_since + self.work.max(0).unsigned_abs().div_ceil(bits_per_sec) as u64
    }

    fn offer(&mut self, packet: Numbered, at: u64) {
        self.run_until(at);
        self.offered += 1;
        if !self.now.up {
            return self.dropped.push(packet.number);
        }
        if self.now.loss.as_ref().is_some_and(|loss| loss.before_queue) && self.loses() {
            return self.lost.push(packet.number);
        }
        if self.now.trace.is_none() && self.now.rate.is_none() {
            return self.depart(packet, at);
        }
        if self.now.trace.is_none() && self.sending.is_none() {
            (self.busy_since, self.work) = (at, 0);
            return self.begin(packet, at);
        }
        let bytes: u64 = self.waiting.iter().map(|waiting| u64::from(waiting.len)).sum();
        let packets = self.waiting.len() as u64;
        let Queue::Droptail(Droptail { limit, mark_above }) = self.now.queue else {
            unreachable!("the reference is of droptail")
        };
        if self.is_within(limit, packets + 1, bytes + u64::from(packet.len)) {
            let marked = packet.number % 2 == 1 && !self.is_within(mark_above, packets, bytes);
            self.marked += u64::from(marked);
            self.waiting.push(Numbered { marked, ..packet });
        } else {
            self.dropped.push(packet.number);
        }
    }

    /// Whether this many packets and bytes are no more than `limit`.
    fn is_within(&self, limit: Option<Limit>, packets: u64, bytes: u64) -> bool {
        match limit {
            None => true,
            Some(Limit::Packets(maximum)) => packets <= maximum,
            Some(Limit::Bytes(maximum)) => bytes <= maximum,
            Some(Limit::Time(span)) => {
                let mean = self.now.trace.as_ref().and_then(Trace::mean_rate);
                let rate = mean.or(self.now.rate).expect("a rate");
                u128::from(bytes) * 8_000_000_000
                    <= u128::from(rate.bits_per_sec()) * u128::from(span.as_ns())
            }
        }
    }

    fn loses(&mut self) -> bool {
        self.seen += 1;
        match self.now.loss.as_ref().map(|loss| &loss.model) {
            Some(LossModel::List { packets }) => packets.contains(&self.seen),
            Some(LossModel::Every { packets, first }) => {
                self.seen >= *first && (self.seen - first).is_multiple_of(*packets)
            }
            other => panic!("the model does not draw: {other:?}"),
        }
    }

    fn depart(&mut self, mut packet: Numbered, at: u64) {
        if self.now.loss.as_ref().is_some_and(|loss| !loss.before_queue) && self.loses() {
            return self.lost.push(packet.number);
        }
        packet.corrupted = self.now.corrupt.is_some_and(|chance| !chance.rate.is_zero());
        let copies = self.now.duplicate.is_some_and(|chance| !chance.rate.is_zero());
        for copy in [false, true].into_iter().take(1 + usize::from(copies)) {
            let delay = match self.now.reorder {
                Some(Reorder { chance, by }) if !chance.rate.is_zero() => {
                    by.map_or(Span::ZERO, |by| self.now.delay.saturating_sub(by))
                }
                _ => self.now.delay,
            };
            let packet = Numbered { copy, ..packet.clone() };
            self.in_flight.push((at, delay.as_ns(), packet, self.now.reorder.is_some()));
        }
    }

    /// Everything that arrives by `now`, in order.
    fn deliveries(&self, now: u64) -> Vec<Delivery> {
        // Of the last packet that keeps order.
        let (mut departed, mut arrived) = (0, 0);
        let mut deliveries = Vec::new();
        for (at, delay, packet, may_overtake) in &self.in_flight {
            let mut arrival = at + delay;
            if !may_overtake {
                arrival = arrival.max(arrived + (at - departed) / 2);
                (departed, arrived) = (*at, arrival);
            }
            let at = arrival;
            deliveries.push((at, packet.number, packet.marked, packet.corrupted, packet.copy));
        }
        deliveries.sort_by_key(|delivery| delivery.0);
        deliveries.retain(|delivery| delivery.0 <= now);
        deliveries
    }
}

/// Packets to offer: gap since the one before in ns, frame bytes.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![Just(0), 0u64..200_000, 0u64..5_000_000, Just(1_000_000)];
    let len = prop_oneof![Just(1514u32), 60u32..1515, 14u32..9015];
    prop::collection::vec((gap, len), 1..120)
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0u64..20).prop_map(Limit::Packets),
        (0u64..30_000).prop_map(Limit::Bytes),
        (0u64..20_000).prop_map(|us| Limit::Time(Span::from_us(us))),
    ]
}

fn certain() -> impl Strategy<Value = tcplab_link::config::Chance> {
    any::<bool>().prop_map(|always| chance(if always { 1_000_000 } else { 0 }, 0))
}

fn reorders() -> impl Strategy<Value = Reorder> {
    (certain(), prop::option::of((0u64..20_000).prop_map(Span::from_us)))
        .prop_map(|(chance, by)| Reorder { chance, by })
}

fn losses() -> impl Strategy<Value = Loss> {
    let model = prop_oneof![
        prop::collection::btree_set(1u64..100, 0..20)
            .prop_map(|packets| LossModel::List { packets: packets.into_iter().collect() }),
        (1u64..20, 1u64..20).prop_map(|(packets, first)| LossModel::Every { packets, first }),
    ];
    (model, any::<bool>()).prop_map(|(model, before_queue)| Loss { model, before_queue })
}

fn rates() -> impl Strategy<Value = tcplab_units::Rate> {
    prop_oneof![Just(10_000_000), 100_000u64..1_000_000_000].prop_map(rate)
}

fn delays() -> impl Strategy<Value = Span> {
    (0u64..30_000_000).prop_map(Span::from_ns)
}

fn traces() -> impl Strategy<Value = Trace> {
    prop::collection::vec(0u64..4, 1..20).prop_map(|gaps| {
        let mut at = 0;
        let mut opportunities_ms: Vec<u64> = gaps
            .iter()
            .map(|gap| {
                at += gap;
                at
            })
            .collect();
        opportunities_ms.push(at.max(1));
        Trace { opportunities_ms }
    })
}

fn changes() -> impl Strategy<Value = Change> {
    let at = (0u64..100_000_000).prop_map(Time::from_ns);
    let settings = (
        prop::option::weighted(0.3, rates()),
        prop::option::weighted(0.3, limits()),
        prop::option::weighted(0.3, limits()),
        prop::option::weighted(0.3, delays()),
        prop::option::weighted(0.1, reorders()),
        prop::option::weighted(0.2, losses()),
        prop::option::weighted(0.2, certain()),
        prop::option::weighted(0.2, certain()),
        prop::option::weighted(0.3, any::<bool>()),
    );
    (at, settings).prop_map(
        |(at, (rate, limit, mark_above, delay, reorder, loss, corrupt, duplicate, up))| Change {
            at,
            rate,
            limit,
            mark_above,
            delay,
            jitter: None,
            reorder,
            loss,
            corrupt,
            duplicate,
            up,
        },
    )
}

fn directions() -> impl Strategy<Value = Direction> {
    let path = (
        prop::option::weighted(0.8, rates()),
        prop::option::of(limits()),
        prop::option::of(limits()),
        delays(),
        prop::option::weighted(0.2, traces()),
    );
    let impairments = (
        prop::option::weighted(0.2, reorders()),
        prop::option::of(losses()),
        prop::option::weighted(0.2, certain()),
        prop::option::weighted(0.2, certain()),
        prop::collection::vec(changes(), 0..4),
    );
    (path, impairments).prop_map(
        |((rate, limit, mark_above, delay, trace), (reorder, loss, corrupt, duplicate, changes))| Direction {
            rate,
            queue: Queue::Droptail(Droptail { limit, mark_above }),
            delay,
            trace,
            reorder,
            loss,
            corrupt,
            duplicate,
            changes,
            ..nothing()
        },
    )
}

fn summary((at, packet): (u64, Numbered)) -> Delivery {
    (at, packet.number, packet.marked, packet.corrupted, packet.copy)
}

/// As the simulator drives it: polled whenever the link asks for it.
fn eagerly(direction: &Direction, arrivals: &[(u64, u32)]) -> (Link<Numbered>, Vec<Delivery>) {
    let mut link = Link::new(direction, 1);
    let mut deliveries = Vec::new();
    let mut now = 0;
    for (number, &(gap, len)) in (1..).zip(arrivals) {
        now += gap;
        while link.next_event() <= Time::from_ns(now) {
            let due = link.next_event();
            while let Some((at, packet)) = link.poll(due, &mut ()) {
                assert_eq!(at, due, "the link asks in time");
                deliveries.push(summary((at.as_ns(), packet)));
            }
        }
        link.enqueue(Numbered::new(number, len), Time::from_ns(now), &mut ());
    }
    deliveries.extend(drain(&mut link, &mut ()).into_iter().map(summary));
    (link, deliveries)
}

/// As a process that slept too long: everything is offered, then all of it polled at the end.
fn lazily(direction: &Direction, arrivals: &[(u64, u32)]) -> Vec<Delivery> {
    let mut link = Link::new(direction, 1);
    let mut now = 0;
    for (number, &(gap, len)) in (1..).zip(arrivals) {
        now += gap;
        link.enqueue(Numbered::new(number, len), Time::from_ns(now), &mut ());
    }
    let late = Time::from_ns(now) + Span::from_secs(1000);
    std::iter::from_fn(|| link.poll(late, &mut ()))
        .map(|(at, packet)| summary((at.as_ns(), packet)))
        .collect()
}

proptest! {
    #[test]
    fn deliveries_are_those_of_the_naive_model(direction in directions(), arrivals in arrivals()) {
        let mut reference = Reference::new(&direction);
        let mut now = 0;
        for (number, &(gap, len)) in (1..).zip(&arrivals) {
            now += gap;
            reference.offer(Numbered::new(number, len), now);
        }
        let late = now + 100_000_000_000;
        reference.run_until(late);
        let expected = reference.deliveries(late);

        let (link, deliveries) = eagerly(&direction, &arrivals);
        prop_assert_eq!(&deliveries, &expected);
        prop_assert_eq!(link.stats().marked, reference.marked);
        prop_assert_eq!(link.stats().dropped, reference.dropped.len() as u64);
        prop_assert_eq!(link.stats().lost, reference.lost.len() as u64);
        prop_assert_eq!(link.held(), 0);
        prop_assert_eq!(lazily(&direction, &arrivals), expected);
    }
}
