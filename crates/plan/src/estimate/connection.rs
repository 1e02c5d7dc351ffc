//! How fast one TCP connection is where nobody else uses its links.

use super::{HEADERS, Paths, paths::Hop};
use crate::{Cc, TcpSettings};

/// Payload that Linux's default buffers hold, bytes: the rest of their 4 and 6 MiB is sk_buffs.
const DEFAULT_WINDOW: u64 = 3 << 20;
/// Controls that do not slow down for a random loss, and those that do as Reno does.
const LOSS_BLIND: [&str; 2] = ["bbr", "copa"];
const RENO_LIKE: [&str; 4] = ["reno", "dctcp", "vegas", "ledbatpp"];
/// The part of the MSS that a segment does not carry: the timestamps.
const MSS_TO_PAYLOAD: u32 = 12;
/// RFC 9438, section 4.6: the window's growth, segments per second cubed, and the share it falls to.
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
/// The share that Reno's window falls to (RFC 5681).
const RENO_BETA: f64 = 0.5;

/// Payload in bit/s from one end to the other, over the directions that it takes.
pub(crate) fn connection_rate(
    cc: &Cc,
    from: &TcpSettings,
    to: &TcpSettings,
    paths: &Paths<'_>,
    hops: &[Hop<'_>],
) -> f64 {
    let buffer = |given: Option<u64>| given.filter(|&bytes| bytes > 0).unwrap_or(DEFAULT_WINDOW);
    let window = buffer(from.send_buffer).min(buffer(to.receive_buffer));
    let (rtt, loss) = (paths.rtt(), super::paths::loss(hops));
    // Each leg of an accelerated connection has its own window; loss is taken to be that of the leg towards the server.
    let (one, cc) = match paths.accelerator {
        Some(accelerator) => (f64::INFINITY, &accelerator.towards_server.cc),
        None => ((window * 8) as f64 / rtt, cc),
    };
    let name = cc.name.strip_prefix("tl_").unwrap_or(&cc.name);
    if loss <= 0.0 || LOSS_BLIND.iter().any(|blind| name.starts_with(blind)) {
        return one;
    }
    let payload = f64::from(from.mss.saturating_sub(MSS_TO_PAYLOAD));
    let reno = reno(payload, rtt, loss);
    let (steady, beta) = if RENO_LIKE.contains(&name) {
        (reno, RENO_BETA)
    } else {
        (reno.max(cubic(payload, rtt, loss)), CUBIC_BETA)
    };
    let begin = slow_start(steady * rtt / (payload * 8.0), loss, beta) * payload * 8.0;
    one.min(steady + begin / paths.time.max(rtt))
}

/// Segments until the window is about that of the steady state. 1 / loss of them before the first loss, when the window is as
/// large, and as many between later losses, each of which leaves `beta` of it.
fn slow_start(steady_window: f64, loss: f64, beta: f64) -> f64 {
    let losses = (1.0 / loss / steady_window).ln() / (1.0 / beta).ln();
    (1.0 + losses.max(0.0)) / loss
}

/// Reno under random loss, where the window grows by bytes (Mathis, Semke, Mahdavi, Ott 1997; RFC 3465).
fn reno(payload: f64, rtt: f64, loss: f64) -> f64 {
    payload * 8.0 / rtt * (1.5 / loss).sqrt()
}

/// CUBIC under random loss: the greater of its own region and of its Reno-friendly one (RFC 9438, section 5.1).
fn cubic(payload: f64, rtt: f64, loss: f64) -> f64 {
    let own =
        (CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA))).powf(0.25) * (rtt / loss).powf(0.75);
    own.max((1.5 / loss).sqrt()) * payload * 8.0 / rtt
}

/// Frame bits per second of `streams` that each move so much payload, in packets of `size`.
pub(crate) fn framed_rate(payload: f64, streams: u32, size: u32) -> f64 {
    payload * f64::from(streams) * f64::from(size + HEADERS) / f64::from(size)
}

/// Frame bits of so many bytes a stream; infinite: as many as the time allows.
pub(crate) fn framed(bytes: Option<u64>, streams: u32, size: u32) -> f64 {
    bytes.map_or(f64::INFINITY, |bytes| {
        bytes as f64 * f64::from(streams) * 8.0 * f64::from(size + HEADERS) / f64::from(size)
    })
}

/// ACKs for each segment that arrives.
pub(crate) fn acks_a_segment(receiver: &TcpSettings) -> f64 {
    match (receiver.gro, receiver.delayed_ack) {
        (true, _) => 0.25,
        (false, true) => 0.5,
        (false, false) => 1.0,
    }
}
