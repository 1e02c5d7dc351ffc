//! The tins of CAKE: their names, shares of the bandwidth and codepoints (`tc-cake(8)`, "priority queue parameters").

use tcplab_units::{Rate, Span};

use super::cobalt::Law;
use crate::config::{Cake, Diffserv};

/// Settings of a tin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) name: &'static str,
    /// Up to this rate it goes before the tins below it; none where the shaper is unlimited.
    pub(super) threshold: Option<Rate>,
    /// Quantum of its turn without a shaper, in frame bytes.
    pub(super) turn: i64,
    /// Frame bytes that a flow may send in its turn.
    pub(super) quantum: u32,
    pub(super) law: Law,
}

/// A tin's name, and its share of the bandwidth as a numerator and a denominator.
type Share = (&'static str, u64, u64);

const BULK: Share = ("bulk", 1, 16);
const BEST_EFFORT: Share = ("best effort", 1, 1);
const VIDEO: Share = ("video", 1, 2);
const VOICE: Share = ("voice", 1, 4);
const PRECEDENCE: [&str; 8] =
    ["routine", "priority", "immediate", "flash", "flash override", "critical", "internetwork", "network"];

/// An Ethernet frame, which one turn is about.
const FRAME: u32 = 1514;
/// Bytes of a turn of the tin with the whole bandwidth, where that is unlimited. With less than a frame, a tin waits for one frame
/// of each other tin. It is measured on Linux (see docs/fidelity.md).
const TURN: u64 = 1024;
/// Of a tin's rate in bytes a second, the part that is a flow's quantum; and the minimum quantum.
const QUANTUM_SHIFT: u32 = 12;
const MIN_QUANTUM: u64 = 300;

/// The tins from the lowest to the highest. Bulk goes before best effort up to its small threshold, so that it does not
/// starve; beyond it, best effort hardly ever leaves it anything.
pub(super) fn tins(config: &Cake) -> Vec<Settings> {
    let shares = match config.diffserv {
        Diffserv::Besteffort => vec![BEST_EFFORT],
        Diffserv::Diffserv3 => vec![BEST_EFFORT, BULK, VOICE],
        Diffserv::Diffserv4 => vec![BEST_EFFORT, BULK, VIDEO, VOICE],
        // Each has seven eighths of the one below it.
        Diffserv::Precedence => {
            (0u32..).zip(PRECEDENCE).map(|(level, name)| (name, 7u64.pow(level), 8u64.pow(level))).collect()
        }
    };
    let tin = |(name, part, whole): Share| {
        let threshold = config.bandwidth.map(|rate| {
            let bits = u128::from(rate.bits_per_sec()) * u128::from(part) / u128::from(whole);
            Rate::from_bits_per_sec((bits as u64).max(1)).unwrap_or(rate)
        });
        Settings {
            name,
            threshold,
            turn: (TURN * part / whole) as i64,
            quantum: quantum(threshold),
            law: law(threshold, config.rtt),
        }
    };
    shares.into_iter().map(tin).collect()
}

fn quantum(rate: Option<Rate>) -> u32 {
    let part = |rate: Rate| (rate.bits_per_sec() / 8) >> QUANTUM_SHIFT;
    rate.map_or(FRAME, |rate| part(rate).clamp(MIN_QUANTUM, u64::from(FRAME)) as u32)
}

/// The target is a twentieth of the round trip, and at low rates one and a half frames; the interval grows by as much.
fn law(rate: Option<Rate>, rtt: Span) -> Law {
    let frame_time = rate.map_or(Span::ZERO, |rate| rate.time_to_send(u64::from(FRAME)));
    let wanted = rtt / 20;
    let target = wanted.max(frame_time * 3 / 2);
    let interval = (rtt + target).saturating_sub(wanted).max(target * 2);
    Law { target, interval, frame_time }
}

/// The number of the tin for packets with this codepoint.
pub(super) fn tin_of(diffserv: Diffserv, dscp: u8) -> usize {
    // CS1 and LE; CS4 to CS7, VA and EF; AF2x to AF4x, CS2, CS3; TOS4 asks for low delay (RFC 1349).
    match (diffserv, dscp) {
        (Diffserv::Besteffort, _) => 0,
        (Diffserv::Precedence, _) => usize::from(dscp >> 3),
        (_, 1 | 8) => 1,
        (Diffserv::Diffserv3, 4 | 44 | 46 | 48 | 56) => 2,
        (Diffserv::Diffserv4, 4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38) => 2,
        (Diffserv::Diffserv4, 32 | 40 | 44 | 46 | 48 | 56) => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bits: u64, diffserv: Diffserv) -> Vec<Settings> {
        tins(&Cake { bandwidth: Rate::from_bits_per_sec(bits), diffserv, ..Cake::default() })
    }

    #[test]
    fn thresholds_quanta_and_targets_are_those_of_the_manual_page() {
        // `man tc-cake` shows them at 100 Mbit/s.
        let found = at(100_000_000, Diffserv::Diffserv3);
        let thresholds: Vec<u64> =
            found.iter().filter_map(|tin| Some(tin.threshold?.bits_per_sec())).collect();
        assert_eq!(thresholds, [100_000_000, 6_250_000, 25_000_000]);
        assert_eq!([0, 1, 2].map(|tin| found[tin].quantum), [1514, 300, 762]);
        let ms = [0, 1, 2].map(|tin| (found[tin].law.target.as_ns(), found[tin].law.interval.as_ns()));
        assert_eq!(ms, [(5_000_000, 100_000_000); 3]);
    }

    #[test]
    fn a_slow_tin_has_a_longer_target() {
        // 1.5 frames of 1514 bytes at 625 kbit/s.
        let bulk = at(10_000_000, Diffserv::Diffserv4)[1].law;
        assert_eq!(bulk.target, Span::from_ns(29_068_800));
        assert_eq!(bulk.interval, Span::from_ns(124_068_800));
        let slow = at(80_000, Diffserv::Besteffort)[0].law;
        assert_eq!(slow.interval, slow.target * 2);
    }

    #[test]
    fn every_codepoint_has_a_tin() {
        for diffserv in [Diffserv::Besteffort, Diffserv::Diffserv3, Diffserv::Diffserv4, Diffserv::Precedence]
        {
            let tins = at(1_000_000, diffserv).len();
            assert!((0..64).all(|dscp| tin_of(diffserv, dscp) < tins));
        }
        assert_eq!([0, 8, 46, 10].map(|dscp| tin_of(Diffserv::Diffserv3, dscp)), [0, 1, 2, 0]);
        assert_eq!([0, 8, 34, 46].map(|dscp| tin_of(Diffserv::Diffserv4, dscp)), [0, 1, 2, 3]);
        assert_eq!([0, 8, 34, 46].map(|dscp| tin_of(Diffserv::Precedence, dscp)), [0, 1, 4, 5]);
    }
}
