//! Whatever the network does, what is written arrives exactly once and the connection ends.

use proptest::prelude::*;
use tcplab_units::{Span, Time};

use super::pair::{Faults, Pair, SlowReader};
use crate::Config;
use crate::Connection;
use crate::Ecn;
use crate::connection::State;

#[derive(Clone, Debug)]
struct Case {
    config: Config,
    control: &'static str,
    isn: [u32; 2],
    writes: [u64; 2],
    faults: [Faults; 2],
    reader: Option<SlowReader>,
    one_way_us: u64,
    seed: u64,
}

fn faults() -> impl Strategy<Value = Faults> {
    let rate = prop_oneof![3 => Just(0u64), 2 => 1..20u64, 1 => 50..300u64];
    let wire = prop_oneof![Just((0, 0)), (50..2_000u64, 3..200u64)];
    (rate.clone(), rate.clone(), rate.clone(), rate, wire).prop_map(
        |(loss, duplicate, reorder, mark, (per_packet_us, queue))| Faults {
            loss,
            duplicate,
            reorder,
            mark,
            per_packet_us,
            queue,
        },
    )
}

fn config() -> impl Strategy<Value = Config> {
    let buffer = prop_oneof![3 => Just(None), 1 => (3_000..200_000u64).prop_map(Some)];
    let flags = prop::array::uniform8(any::<bool>());
    (flags, buffer.clone(), buffer, 500..9_000u32).prop_map(|(f, receive_buffer, send_buffer, mss)| Config {
        sack: f[0] || f[1],
        timestamps: f[2],
        gro: f[3] && f[4],
        pacing: f[5],
        nagle: f[6],
        tso: f[7],
        delayed_ack: f[0] || f[7],
        ecn: match (f[4], f[5]) {
            (true, true) => Ecn::Accecn,
            (true, false) => Ecn::On,
            _ => Ecn::Passive,
        },
        receive_buffer,
        send_buffer,
        mss: if f[3] { 1460 } else { mss },
        ..Config::default()
    })
}

fn case() -> impl Strategy<Value = Case> {
    let isn = prop_oneof![any::<u32>(), Just(0), 0xffff_0000..=u32::MAX];
    let bytes = prop_oneof![Just(0u64), 1..5_000u64, 10_000..1_000_000u64];
    let control = prop_oneof![Just("reno"), Just("cubic"), Just("bbr1"), Just("prague")];
    let reader = prop_oneof![
        3 => Just(None),
        1 => (1..300u64, 1_000..200_000u64)
            .prop_map(|(ms, bytes)| Some(SlowReader { every: Span::from_ms(ms), bytes })),
    ];
    let isns = [isn.clone(), isn];
    let wire = ([faults(), faults()], 10..100_000u64, any::<u64>());
    (config(), control, isns, [bytes.clone(), bytes], reader, wire).prop_map(
        |(config, control, isn, writes, reader, (faults, one_way_us, seed))| Case {
            config,
            control,
            isn,
            writes,
            faults,
            reader,
            one_way_us,
            seed,
        },
    )
}

fn begin(case: &Case) -> Pair {
    let one_way = Span::from_us(case.one_way_us);
    let mut pair = Pair::new([&case.config, &case.config], case.control, case.isn, one_way, case.seed);
    pair.faults = case.faults;
    if let Some(reader) = case.reader {
        pair.read_slowly(reader);
    }
    for (end, bytes) in pair.ends.iter_mut().zip(case.writes) {
        end.write(bytes, pair.now);
        end.close(pair.now);
    }
    pair
}

fn transfer(case: &Case) -> Pair {
    let mut pair = begin(case);
    pair.run_to_the_end(3_000_000);
    pair
}

/// State of both ends, and when they want to be called.
fn state(pair: &Pair) -> String {
    let of = |end: &Connection| format!("{:?} {:?} {:?}", end.info(pair.now), end.rcv, end.timers);
    pair.ends.each_ref().map(of).concat()
}

proptest! {
    #[test]
    fn everything_written_arrives_exactly_once(case in case()) {
        let pair = transfer(&case);
        let aborted = pair.ends.iter().any(|end| end.state == State::Aborted);
        for (i, end) in pair.ends.iter().enumerate() {
            // An end whose peer gave up may wait for ever for what will not come, but not with work left.
            let waits = aborted && end.info(pair.now).inflight == 0;
            prop_assert!(pair.finished(i) || waits, "{pair:?}");
        }
        for from in 0..2 {
            let (sender, receiver) = (&pair.ends[from], &pair.ends[1 - from]);
            if sender.state == State::Closed && receiver.state == State::Closed {
                prop_assert_eq!(receiver.bytes_received(), case.writes[from]);
                prop_assert_eq!(sender.bytes_acked(), case.writes[from]);
                prop_assert_eq!(sender.info(pair.now).bytes_sent, case.writes[from]);
            } else {
                prop_assert!(receiver.bytes_received() <= case.writes[from]);
            }
        }
        let hopeless = case.faults.iter().any(|f| f.loss >= 50 || f.per_packet_us > 0);
        if !hopeless {
            prop_assert!(pair.ends.iter().all(|end| end.state == State::Closed), "{pair:?}");
        }
    }
}

proptest! {
    #[test]
    fn segments_that_are_expected_have_the_effects_of_all_others(case in case(), one_way in any::<bool>()) {
        let case = Case { writes: if one_way { [case.writes[0], 0] } else { case.writes }, ..case };
        let (mut short, mut long) = (begin(&case), begin(&case));
        short.predicts = true;
        for step in 0..2_000 {
            let goes_on = [short.step(Time::NEVER), long.step(Time::NEVER)];
            prop_assert_eq!(short.now, long.now);
            prop_assert_eq!(short.delivered, long.delivered);
            if step % 16 == 0 || goes_on != [true; 2] {
                prop_assert_eq!(state(&short), state(&long));
            }
            if goes_on != [true; 2] {
                prop_assert_eq!(goes_on, [false; 2]);
                break;
            }
        }
    }
}

/// Nearly all segments of a transfer are expected.
#[test]
fn most_segments_are_expected() {
    let config = Config::default();
    let mut pair = Pair::new([&config; 2], "cubic", [1, 2], Span::from_ms(25), 3);
    pair.predicts = true;
    pair.ends[0].write(5_000_000, pair.now);
    pair.run_to_the_end(1_000_000);
    assert!(pair.expected > pair.delivered * 99 / 100, "{} of {}", pair.expected, pair.delivered);
}

/// Losses without reordering cost exactly as many retransmissions: none is spurious.
#[test]
fn only_what_was_lost_is_retransmitted() {
    for (control, loss) in [("reno", 20), ("cubic", 50), ("bbr1", 140)] {
        let config = Config::default();
        let mut pair = Pair::new([&config; 2], control, [1, 2], Span::from_ms(25), 3);
        pair.faults[0] = Faults { loss, per_packet_us: 121, queue: 600, ..Faults::default() };
        pair.ends[0].write(5_000_000, pair.now);
        pair.ends[0].close(pair.now);
        pair.ends[1].close(pair.now);
        pair.run_to_the_end(1_000_000);
        let info = pair.ends[0].info(pair.now);
        assert_eq!(pair.ends[1].bytes_received(), 5_000_000);
        assert_eq!(pair.ends[0].snd.dsack_segments, 0, "{control}: duplicates arrived");
        assert!(info.retransmits >= info.losses_detected, "{control}: {info:?}");
    }
}
