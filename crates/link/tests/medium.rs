//! A medium that stations share, against the theory of 802.11's distributed coordination function.

use crate::common::{Numbered, Recorder, at, chance, loss, nothing, rate};
use proptest::prelude::*;
use tcplab_link::config::{Aggregation, Change, LossModel, Medium as Settings};
use tcplab_link::{Direction, Event, Link, Medium, Stations};
use tcplab_units::{Span, Time};

const LEN: u32 = 1500;

/// AIFS 43 us, slots of 9 us, 0 to 15 of them, preamble 36 us, acknowledgment 48 us.
fn settings(frames: u32) -> Settings {
    let aggregation = Aggregation { frames, ..Aggregation::default() };
    Settings {
        name: "wifi".to_owned(),
        aifs: Span::from_us(43),
        slot: Span::from_us(9),
        cw_min: 15,
        cw_max: 1023,
        preamble: Span::from_us(36),
        ack: Span::from_us(48),
        aggregation,
        retries: 7,
    }
}

/// The overhead of a transmission on average, beside its frames, with a mean backoff of 7.5 slots, in seconds.
const OVERHEAD: f64 = 43e-6 + 7.5 * 9e-6 + 36e-6 + 48e-6;

struct Directions {
    links: Vec<Link<Numbered>>,
    recorders: Vec<Recorder>,
}

impl Stations for Directions {
    fn ready(&mut self, direction: u32, now: Time) -> Time {
        self.links[direction as usize].ready(now, &mut self.recorders[direction as usize])
    }
    fn begin(&mut self, direction: u32, now: Time, medium: &Settings) -> Option<Span> {
        let recorder = &mut self.recorders[direction as usize];
        self.links[direction as usize].begin_transmission(medium, now, recorder)
    }
    fn end(&mut self, direction: u32, now: Time, collided: bool, medium: &Settings) -> bool {
        let recorder = &mut self.recorders[direction as usize];
        self.links[direction as usize].end_transmission(collided, medium, now, recorder)
    }
}

struct Air {
    medium: Medium,
    directions: Directions,
    /// Numbers of the packets that arrived, by direction.
    arrived: Vec<Vec<u64>>,
    offered: u64,
}

impl Air {
    fn new(settings: &Settings, stations: &[Vec<u32>], links: &[Direction]) -> Air {
        let link = |(number, direction): (usize, &Direction)| Link::on_medium(direction, number as u64);
        Air {
            medium: Medium::new(settings, stations, 1),
            directions: Directions {
                links: links.iter().enumerate().map(link).collect(),
                recorders: links.iter().map(|_| Recorder::default()).collect(),
            },
            arrived: vec![Vec::new(); links.len()],
            offered: 0,
        }
    }

    /// A medium of stations that each have one direction at one of these rates, and `packets` to send from the start.
    fn saturated(settings: &Settings, rates: &[u64], packets: u64) -> Air {
        let stations: Vec<Vec<u32>> = (0..rates.len() as u32).map(|direction| vec![direction]).collect();
        let links: Vec<Direction> = rates.iter().map(|&bits| direction(bits)).collect();
        let mut air = Air::new(settings, &stations, &links);
        for _ in 0..packets {
            (0..rates.len()).for_each(|direction| air.offer(direction, LEN, Time::ZERO));
        }
        air
    }

    fn offer(&mut self, direction: usize, len: u32, now: Time) {
        self.medium.advance(now, &mut self.directions);
        self.offered += 1;
        let packet = Numbered::new(self.offered, len);
        self.directions.links[direction].enqueue(packet, now, &mut self.directions.recorders[direction]);
        self.medium.enqueued(direction as u32, now, &mut self.directions);
    }

    fn run(&mut self, until: Time) {
        self.medium.advance(until, &mut self.directions);
        let Directions { links, recorders } = &mut self.directions;
        for ((link, recorder), arrived) in links.iter_mut().zip(recorders).zip(&mut self.arrived) {
            arrived
                .extend(std::iter::from_fn(|| link.poll(until, recorder)).map(|(_, packet)| packet.number));
        }
    }

    /// Frames that arrived within the first `seconds`, by direction.
    fn count(&mut self, seconds: u64) -> Vec<f64> {
        self.run(Time::ZERO + Span::from_secs(seconds));
        self.arrived.iter().map(|arrived| arrived.len() as f64).collect()
    }

    fn gauge(&mut self, direction: usize, name: &str) -> f64 {
        let gauges = self.directions.links[direction].gauges(Time::ZERO, &mut ());
        gauges.iter().find(|gauge| gauge.name == name).map_or(0.0, |gauge| gauge.value)
    }
}

fn direction(bits: u64) -> Direction {
    Direction { rate: Some(rate(bits)), ..nothing() }
}

fn air_time(bits: u64, frames: u32) -> f64 {
    f64::from(frames * LEN * 8) / bits as f64
}

fn assert_near(measured: f64, expected: f64, tolerance: f64) {
    assert!((measured / expected - 1.0).abs() < tolerance, "{measured}, expected {expected}");
}

#[test]
fn a_saturated_station_sends_a_transmission_each_overhead_and_airtime() {
    for bits in [6_000_000, 54_000_000, 300_000_000] {
        let count = Air::saturated(&settings(1), &[bits], 60_000).count(10)[0];
        // The mean of n uniform backoffs deviates by 41.5 us / sqrt(n): 0.3 % of a cycle at the most.
        assert_near(count, 10.0 / (OVERHEAD + air_time(bits, 1)), 0.005);
    }
}

#[test]
fn aggregation_shares_the_overhead_within_each_limit() {
    let bits = 150_000_000;
    let limited = |bytes, time| {
        let aggregation = Aggregation { frames: 64, bytes, time: Span::from_us(time) };
        Settings { aggregation, ..settings(64) }
    };
    for (settings, frames) in [
        (settings(10), 10),
        // 43 frames are 64,500 bytes; 1 ms holds 12.5 frames of 80 us.
        (limited(65_535, 4000), 43),
        (limited(1 << 30, 4000), 50),
        (limited(65_535, 1000), 12),
    ] {
        let count = Air::saturated(&settings, &[bits], 130_000).count(10)[0];
        assert_near(count, 10.0 * f64::from(frames) / (OVERHEAD + air_time(bits, frames)), 0.005);
    }
}

#[test]
fn without_aggregation_a_slow_station_slows_all_to_its_pace() {
    let counts = Air::saturated(&settings(1), &[54_000_000, 6_000_000], 20_000).count(20);
    assert_near(counts[0], counts[1], 0.05);
    // Each has a turn in the time of one frame of both: far below half of what the fast station has alone.
    let both = air_time(54_000_000, 1) + air_time(6_000_000, 1);
    let alone = 20.0 / (OVERHEAD + air_time(54_000_000, 1));
    assert!(counts[0] < 20.0 / both && counts[0] < 0.25 * alone, "{counts:?}, alone {alone}");
    assert!(counts[0] > 0.8 * 20.0 / (both + 2.0 * OVERHEAD), "{counts:?}");
}

#[test]
fn aggregation_up_to_a_time_gives_stations_equal_airtime() {
    let mut air = Air::saturated(&settings(64), &[100_000_000, 12_000_000], 80_000);
    let counts = air.count(20);
    // 4 ms hold 33 frames of 120 us or 4 of 1 ms.
    assert_near(counts[0] / 33.0, counts[1] / 4.0, 0.06);
    assert_near(air.gauge(0, "airtime"), air.gauge(1, "airtime"), 0.06);
}

#[test]
fn stations_collide_about_as_often_as_in_bianchis_model() {
    for stations in [2, 5, 10] {
        let rates = vec![54_000_000; stations];
        let mut air = Air::saturated(&settings(1), &rates, 30_000);
        let delivered: f64 = air.count(20).iter().sum();
        let sent: f64 = (0..stations).map(|station| air.gauge(station, "transmissions")).sum();
        let collided = 1.0 - delivered / sent;
        assert_near(collided, bianchi(stations as i32), 0.15);
    }
}

/// The probability that a transmission collides, with 16 slots at first and 6 doublings (G. Bianchi, "Performance analysis
/// of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3), 2000, equations 7 and 9).
fn bianchi(stations: i32) -> f64 {
    let (slots, doublings) = (16.0, 6);
    let (mut low, mut high) = (0.0_f64, 0.49);
    for _ in 0..60 {
        let p = (low + high) / 2.0;
        let tau = 2.0 * (1.0 - 2.0 * p)
            / ((1.0 - 2.0 * p) * (slots + 1.0) + p * slots * (1.0 - (2.0 * p).powi(doublings)));
        if 1.0 - (1.0 - tau).powi(stations - 1) > p { low = p } else { high = p }
    }
    low
}

fn lossy(percent: u32, retries: u32, frames: u32) -> Air {
    let loss = loss(LossModel::Random { chance: chance(percent * 10_000, 0) });
    let link = Direction { loss, ..direction(54_000_000) };
    let mut air = Air::new(&Settings { retries, ..settings(frames) }, &[vec![0]], &[link]);
    for _ in 0..20_000 {
        air.offer(0, LEN, Time::ZERO);
    }
    air
}

#[test]
fn a_lost_frame_is_retransmitted_up_to_the_retries() {
    for frames in [1, 64] {
        let mut air = lossy(50, 2, frames);
        air.run(Time::ZERO + Span::from_secs(1000));
        // Lost three times in a row: one in eight. Sent 1 + 1/2 + 1/4 times.
        assert_near(air.arrived[0].len() as f64, 0.875 * 20_000.0, 0.01);
        assert_near(air.gauge(0, "retransmitted"), 0.75 * 20_000.0, 0.02);
        let stats = *air.directions.links[0].stats();
        assert_eq!(stats.delivered + stats.lost, 20_000);
        assert_eq!(air.directions.links[0].held(), 0);
        assert_eq!(air.directions.recorders[0].numbers(Event::Lose).len() as u64, stats.lost);
    }
}

#[test]
fn a_transmission_lost_as_a_whole_doubles_the_backoff() {
    let mut air = lossy(20, 7, 1);
    let count = air.count(10)[0];
    // A frame's i-th transmission follows a mean backoff of (16 * 2^i - 1) / 2 slots, and is needed 20 % ^ i times.
    let stage =
        |i: i32| 0.2_f64.powi(i) * (OVERHEAD + air_time(54_000_000, 1) + 8.0 * 9e-6 * (2_f64.powi(i) - 1.0));
    assert_near(count, 10.0 / (0..8).map(stage).sum::<f64>(), 0.01);
}

#[test]
fn an_idle_medium_is_used_at_once_and_a_busy_one_after_a_backoff() {
    let mut air =
        Air::new(&settings(1), &[vec![0], vec![1]], &[direction(12_000_000), direction(12_000_000)]);
    let begin = Time::ZERO + Span::from_ms(1);
    air.offer(0, LEN, begin);
    assert_eq!(air.medium.next_event(), begin);
    air.run(begin);
    assert_eq!(air.medium.next_event(), begin + Span::from_us(36 + 1000));
    air.offer(1, LEN, begin + Span::from_us(1));
    air.run(begin + Span::from_us(1036));
    assert_eq!(air.arrived[0], [1]);
    let earliest = begin + Span::from_us(1036 + 48 + 43);
    let access = air.medium.next_event();
    assert!(access >= earliest && access <= earliest + Span::from_us(15 * 9), "{access}");
    assert_eq!(access.since(earliest).as_ns() % 9000, 0);
}

#[test]
fn a_station_with_several_directions_has_one_turn_as_the_others_do() {
    let links = [direction(54_000_000), direction(54_000_000), direction(54_000_000)];
    let mut air = Air::new(&settings(1), &[vec![0, 1], vec![2]], &links);
    for _ in 0..20_000 {
        (0..3).for_each(|direction| air.offer(direction, LEN, Time::ZERO));
    }
    let counts = air.count(10);
    let turns = [0, 1].map(|direction| air.gauge(direction, "transmissions"));
    assert!((turns[0] - turns[1]).abs() <= 1.0, "{turns:?}");
    assert_near(counts[0] + counts[1], counts[2], 0.05);
}

#[test]
fn a_link_that_goes_down_drops_what_was_not_acknowledged() {
    let link = Direction { changes: vec![Change { up: Some(false), ..at(100) }], ..direction(6_000_000) };
    let mut air = Air::new(&settings(64), &[vec![0], vec![1]], &[link, direction(6_000_000)]);
    for _ in 0..200 {
        (0..2).for_each(|direction| air.offer(direction, LEN, Time::ZERO));
    }
    air.run(Time::ZERO + Span::from_secs(2));
    let stats = air.directions.links[0].stats();
    assert_eq!(stats.delivered + stats.dropped, 200);
    assert!(stats.dropped > 150, "{stats:?}");
    assert_eq!(air.arrived[1].len(), 200, "the other station goes on");
}

proptest! {
    #[test]
    fn nothing_is_reordered_or_forgotten_on_a_lossy_medium(
        offers in proptest::collection::vec((0usize..4, 40u32..1515, 0u64..2_000), 1..300),
        percent in 0u32..90,
        frames in 1u32..70,
        retries in 0u32..8,
    ) {
        let chance = chance(percent * 10_000, 0);
        let link = |bits| Direction { loss: loss(LossModel::Random { chance }), ..direction(bits) };
        let links = [link(6_000_000), link(54_000_000), link(6_000_000), link(300_000_000)];
        let medium = Settings { retries, ..settings(frames) };
        let mut air = Air::new(&medium, &[vec![0, 2], vec![1], vec![3]], &links);
        let mut now = Time::ZERO;
        for (direction, len, wait) in offers {
            now += Span::from_us(wait);
            air.offer(direction, len, now);
        }
        air.run(Time::ZERO + Span::from_secs(100_000));
        prop_assert_eq!(air.medium.next_event(), Time::NEVER);
        for (link, arrived) in air.directions.links.iter().zip(&air.arrived) {
            let stats = link.stats();
            prop_assert_eq!(stats.packets_in, stats.delivered + stats.lost);
            prop_assert_eq!((stats.dropped, link.held()), (0, 0));
            prop_assert!(arrived.is_sorted());
        }
    }
}
