//! A medium that stations share: a plain Wi-Fi.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Rate, Span};

use crate::describe::Bytes;

/// A half-duplex medium whose stations take turns by the distributed coordination function (DCF) of IEEE 802.11. Short
/// form: its name.
///
/// The default times are those of best-effort traffic at 5 GHz (IEEE 802.11-2020, OFDM PHY and HT PHY).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-short" = "name"))]
pub struct Medium {
    /// Its name, by which links say that they use it.
    #[schemars(extend("x-tcplab" = "name"))]
    pub name: String,
    /// How long the medium is idle before stations count down their backoff. Default: 43 us (AIFS: SIFS and 3 slots).
    #[serde(default = "aifs")]
    pub aifs: Span,
    /// A slot of the backoff. Default: 9 us.
    #[serde(default = "slot")]
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub slot: Span,
    /// A backoff is up to this many slots. Default: 15.
    #[serde(default = "cw_min")]
    #[schemars(range(max = 32_767))]
    pub cw_min: u32,
    /// A transmission that nobody acknowledges doubles the slots, up to this many. Default: 1023.
    #[serde(default = "cw_max")]
    #[schemars(range(max = 32_767))]
    pub cw_max: u32,
    /// Time before the frames of a transmission. Default: 36 us (preamble of HT-mixed format, one spatial stream).
    #[serde(default = "preamble")]
    pub preamble: Span,
    /// Time of the acknowledgment behind them. Default: 48 us (SIFS and a block ACK at 24 Mbit/s).
    #[serde(default = "ack")]
    pub ack: Span,
    /// How much a transmission holds.
    #[serde(default)]
    pub aggregation: Aggregation,
    /// Retransmissions of a frame until it is given up. Default: 7.
    #[serde(default = "retries")]
    #[schemars(range(max = 255))]
    pub retries: u32,
}

/// The frames that a station sends in one transmission (A-MPDU). The first always goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Aggregation {
    /// Maximum of frames, and how far one may be ahead of the oldest not delivered. Default: 64, the window of a block
    /// ACK; 1: no aggregation.
    #[schemars(range(min = 1, max = 1024))]
    pub frames: u32,
    /// Maximum of bytes, overhead included. Default: 65535 B, an A-MPDU of 802.11n.
    #[schemars(extend("x-tcplab" = "positive-size"))]
    pub bytes: u64,
    /// Maximum of time, without preamble. Default: 4 ms, as Linux's drivers have it.
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub time: Span,
}

impl Default for Aggregation {
    fn default() -> Aggregation {
        Aggregation { frames: 64, bytes: 65_535, time: Span::from_ms(4) }
    }
}

impl Aggregation {
    /// Whether a frame of `len` bytes may follow `frames` frames of `bytes` bytes, sent at `rate`.
    pub fn has_room(&self, frames: u32, bytes: u64, len: u64, rate: Rate) -> bool {
        let all = bytes + len;
        frames == 0 || frames < self.frames && all <= self.bytes && rate.time_to_send(all) <= self.time
    }
}

fn aifs() -> Span {
    Span::from_us(43)
}

fn slot() -> Span {
    Span::from_us(9)
}

fn cw_min() -> u32 {
    15
}

fn cw_max() -> u32 {
    1023
}

fn preamble() -> Span {
    Span::from_us(36)
}

fn ack() -> Span {
    Span::from_us(48)
}

fn retries() -> u32 {
    7
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Aggregation { frames, bytes, time } = self.aggregation;
        let several = if frames == 1 { "1 frame".to_owned() } else { format!("up to {frames} frames") };
        write!(f, "transmissions of {several}, {} and {time}, {} retries", Bytes(bytes), self.retries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transmission_holds_a_frame_and_more_within_every_limit() {
        let rate = Rate::from_bits_per_sec(8_000_000).expect("not zero");
        let maximum = Aggregation { frames: 3, bytes: 5000, time: Span::from_ms(4) };
        assert!(maximum.has_room(0, 0, 9000, rate));
        assert!(maximum.has_room(2, 2000, 2000, rate));
        assert!(!maximum.has_room(2, 2000, 2001, rate), "it would take longer than 4 ms");
        assert!(!maximum.has_room(3, 300, 100, rate));
        let fast = Rate::from_bits_per_sec(8_000_000_000).expect("not zero");
        assert!(maximum.has_room(1, 4000, 1000, fast) && !maximum.has_room(1, 4000, 1001, fast));
    }
}
