//! The size of frames on the wire, and a policer's verdicts.

use crate::common::{Recorder, droptail, loss, nothing, numbers, offer, rate};
use tcplab_link::config::{Limit, LossModel, Overhead, Policer, Trace};
use tcplab_link::qdisc::Cause;
use tcplab_link::{Direction, Event, Link};
use tcplab_units::Span;

/// 1000 bytes take 1 ms.
fn eight_mbit() -> Direction {
    Direction { rate: Some(rate(8_000_000)), ..nothing() }
}

fn policed(bits: u64, burst: u64) -> Direction {
    Direction { policer: Some(Policer { rate: rate(bits), burst }), ..nothing() }
}

#[test]
fn overhead_takes_time_and_is_in_no_count_of_bytes() {
    let overhead = Overhead { bytes: 24, minimum: 84, atm: false };
    let mut link = Link::new(&Direction { overhead, ..eight_mbit() }, 1);
    let mut recorder = Recorder::default();
    offer(&mut link, 2, 976, Span::ZERO, &mut recorder);
    assert_eq!(recorder.times(Event::Depart), [1_000_000, 2_000_000]);
    assert_eq!((link.stats().bytes_serialized, link.stats().capacity_used), (2 * 976, 2 * 1000));

    let mut link = Link::new(&Direction { overhead, ..eight_mbit() }, 1);
    let mut recorder = Recorder::default();
    offer(&mut link, 1, 40, Span::ZERO, &mut recorder);
    assert_eq!(recorder.times(Event::Depart), [84_000]);
    assert_eq!(link.stats().capacity_used, 84);
}

#[test]
fn a_frame_takes_of_a_trace_what_its_packet_has() {
    let trace = Some(Trace { opportunities_ms: vec![1] });
    let overhead = Overhead { bytes: 24, ..Overhead::default() };
    let mut link = Link::new(&Direction { trace, overhead, ..nothing() }, 1);
    offer(&mut link, 15, 90, Span::ZERO, &mut ());
    // 15 packets of 76 B and 24 B of overhead fill an opportunity.
    assert_eq!((link.stats().bytes_serialized, link.stats().capacity_used), (15 * 90, 1500));
}

#[test]
fn a_queue_limit_counts_frames_without_overhead() {
    let overhead = Overhead { bytes: 1000, ..Overhead::default() };
    let queue = droptail(Limit::Bytes(2000));
    let mut link = Link::new(&Direction { overhead, queue, ..eight_mbit() }, 1);
    // One is sent, two wait.
    assert_eq!(numbers(&offer(&mut link, 5, 1000, Span::ZERO, &mut ())), [1, 2, 3]);
}

#[test]
fn a_policer_drops_without_delaying() {
    // 1000 bytes a millisecond, and a bucket of two packets.
    let mut link = Link::new(&policed(8_000_000, 2000), 1);
    let deliveries = offer(&mut link, 6, 1000, Span::from_us(500), &mut ());
    let times: Vec<(u64, u64)> = deliveries.iter().map(|(at, packet)| (packet.number, at / 1000)).collect();
    // A packet takes two gaps' tokens: after the burst, every second one passes.
    assert_eq!(times, [(1, 0), (2, 500), (3, 1000), (5, 2000)]);
    assert_eq!((link.stats().dropped, link.stats().dropped_by(Cause::Policed)), (2, 2));
}

#[test]
fn what_is_lost_before_the_queue_takes_no_tokens() {
    let mut lossy = loss(LossModel::List { packets: vec![1] });
    lossy.iter_mut().for_each(|loss| loss.before_queue = true);
    let mut link = Link::new(&Direction { loss: lossy, ..policed(8_000_000, 1000) }, 1);
    assert_eq!(numbers(&offer(&mut link, 3, 1000, Span::ZERO, &mut ())), [2]);
}
