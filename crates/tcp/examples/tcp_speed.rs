//! How long a data packet takes through both ends: two endpoints joined by a fixed delay and a rate.
//!
//! `cargo run --release --example tcp_speed -p tcplab-tcp [CONTROL] [SECONDS] [MBIT/S] [LOSE ONE IN]`

use std::collections::VecDeque;
use std::time::Instant;

use tcplab_control::Control;
use tcplab_tcp::{Config, Connection, Segment};
use tcplab_units::{Span, Time};

const ONE_WAY: Span = Span::from_ms(25);
/// Bits of a full frame.
const FRAME_BITS: u64 = 1514 * 8;
/// The limit of the bottleneck's queue, in one-way delays.
const QUEUE: u64 = 3;

/// A bottleneck with a droptail queue and a delay line behind it.
struct Pipe {
    line: VecDeque<(Time, Segment)>,
    busy_until: Time,
    per_packet: Span,
    lose_one_in: u64,
    sent: u64,
}

impl Pipe {
    fn send(&mut self, segment: Segment, now: Time) {
        self.sent += 1;
        if self.lose_one_in > 0 && self.sent.is_multiple_of(self.lose_one_in) {
            return;
        }
        let start = if self.busy_until > now { self.busy_until } else { now };
        if start.since(now) > ONE_WAY * QUEUE {
            return;
        }
        self.busy_until = start + self.per_packet;
        self.line.push_back((self.busy_until + ONE_WAY, segment));
    }
    fn next(&self) -> Time {
        self.line.front().map_or(Time::NEVER, |(at, _)| *at)
    }
}

fn drain(end: &mut Connection, pipe: &mut Pipe, now: Time) {
    while let Some(segment) = end.poll_transmit(now) {
        pipe.send(segment, now);
    }
    while end.poll_notice().is_some() {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "cubic".into());
    let seconds: u64 = args.next().map_or(Ok(60), |s| s.parse())?;
    let mbit: u64 = args.next().map_or(Ok(100), |s| s.parse())?;
    let lose_one_in: u64 = args.next().map_or(Ok(0), |s| s.parse())?;
    let config = Config { send_buffer_max: 256 << 20, receive_buffer_max: 256 << 20, ..Config::default() };
    let mut now = Time::ZERO;
    let pipe = |per_packet, lose_one_in| Pipe {
        line: VecDeque::new(),
        busy_until: now,
        per_packet,
        lose_one_in,
        sent: 0,
    };
    let mut forward = pipe(Span::from_ns(FRAME_BITS * 1_000 / mbit), lose_one_in);
    let mut backward = pipe(Span::ZERO, 0);
    let mut sender = Connection::connect(&config, Control::new(&name, [])?, 1, now);
    sender.write(u64::MAX, now);
    drain(&mut sender, &mut forward, now);
    let (at, syn) = forward.line.pop_front().ok_or("no SYN was sent")?;
    now = at;
    let mut receiver = Connection::accept(&config, Control::new("reno", [])?, 2, &syn, now);
    drain(&mut receiver, &mut backward, now);

    let started = Instant::now();
    let (mut data, mut acks) = (0u64, 0u64);
    while now < Time::ZERO + Span::from_secs(seconds) {
        let timers = sender.poll_timeout().min(receiver.poll_timeout());
        let (data_at, ack_at) = (forward.next(), backward.next());
        now = timers.min(data_at).min(ack_at);
        if ack_at == now {
            if let Some((_, segment)) = backward.line.pop_front() {
                acks += 1;
                sender.handle_segment(&segment, now);
            }
        } else if data_at == now {
            if let Some((_, segment)) = forward.line.pop_front() {
                data += 1;
                receiver.handle_segment(&segment, now);
            }
        } else {
            if sender.poll_timeout() <= now {
                sender.handle_timeout(now);
            }
            if receiver.poll_timeout() <= now {
                receiver.handle_timeout(now);
            }
        }
        drain(&mut sender, &mut forward, now);
        drain(&mut receiver, &mut backward, now);
    }
    let elapsed = started.elapsed();
    let info = sender.info(now);
    println!(
        "{name}: {data} data packets, {acks} ACKs, {} retransmitted, cwnd {}",
        info.retransmits, info.cwnd
    );
    println!("goodput {:.2} Mbit/s", receiver.bytes_received() as f64 * 8e-6 / seconds as f64);
    println!("{:.1} ns per data packet for both ends together", elapsed.as_nanos() as f64 / data as f64);
    Ok(())
}
