//! Cost of an ACK in each control.

use criterion::{Criterion, criterion_group, criterion_main};
use tcplab_control::{AckSample, Control, RateSample, TcpSock};

/// A connection in the middle of a long transfer: 100 Mbit/s, 50 ms, an ACK for every second packet.
fn connection() -> TcpSock {
    TcpSock {
        sack_ok: 1,
        mss_cache: 1448,
        snd_cwnd: 430,
        snd_ssthresh: 300,
        packets_out: 430,
        is_cwnd_limited: 1,
        srtt_us: 50_000 << 3,
        rtt_min_us: 50_000,
        tcp_mstamp: 1_000_000,
        delivered_mstamp: 1_000_000,
        ..TcpSock::default()
    }
}

fn ack(control: &mut Control, sk: &mut TcpSock) {
    sk.tcp_mstamp += 240;
    sk.delivered_mstamp = sk.tcp_mstamp;
    sk.delivered = sk.delivered.wrapping_add(2);
    sk.snd_una = sk.snd_una.wrapping_add(2 * 1448);
    sk.snd_nxt = sk.snd_una.wrapping_add(430 * 1448);
    control.in_ack_event(sk, 0);
    control.pkts_acked(sk, &AckSample { pkts_acked: 2, rtt_us: 50_000, in_flight: 430 });
    if control.has_cong_control() {
        let sample = RateSample {
            prior_delivered: sk.delivered.wrapping_sub(430),
            delivered: 430,
            interval_us: 51_600,
            rtt_us: 50_000,
            acked_sacked: 2,
            prior_in_flight: 430,
            ..RateSample::default()
        };
        control.cong_control(sk, 0, 0, &sample);
    } else {
        control.cong_avoid(sk, 0, 2);
        // Else the window would grow without end.
        sk.snd_cwnd = sk.snd_cwnd.min(600);
    }
}

fn per_ack(criterion: &mut Criterion) {
    for name in Control::names() {
        let Ok(mut control) = Control::new(name, []) else { continue };
        let mut sk = connection();
        control.init(&mut sk);
        criterion
            .bench_function(&format!("ack/{name}"), |bencher| bencher.iter(|| ack(&mut control, &mut sk)));
    }
}

criterion_group!(benches, per_ack);
criterion_main!(benches);
