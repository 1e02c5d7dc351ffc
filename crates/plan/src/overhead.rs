//! Overhead of a link's framing.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes that a frame takes on the wire beside those of its Ethernet frame (IP length + 14). Serialisation alone counts
/// them; queue limits and the tables count the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// Added to each frame.
    pub bytes: u32,
    /// A shorter frame is padded to this, `bytes` included.
    #[serde(default)]
    pub minimum: u32,
    /// The frame is sent in ATM cells, which hold 48 bytes each and take 53.
    #[serde(default)]
    pub atm: bool,
}

/// Payload and length of an ATM cell, bytes (ITU-T I.361).
const CELL_PAYLOAD: u32 = 48;
const CELL: u32 = 53;

impl Overhead {
    /// Whether frames take no more than themselves.
    pub fn is_none(&self) -> bool {
        *self == Overhead::default()
    }

    /// The bytes on the wire of a frame of `frame_len` bytes.
    #[inline]
    pub fn len_on_wire(&self, frame_len: u32) -> u32 {
        let len = frame_len.saturating_add(self.bytes).max(self.minimum);
        if self.atm { len_in_cells(len) } else { len }
    }
}

/// The bytes of the ATM cells that carry `len` bytes.
#[cold]
fn len_in_cells(len: u32) -> u32 {
    len.div_ceil(CELL_PAYLOAD).saturating_mul(CELL)
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B of overhead a frame", self.bytes)?;
        if self.minimum > 0 {
            write!(f, ", {} B at least", self.minimum)?;
        }
        f.write_str(if self.atm { ", in ATM cells" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_its_framing_and_at_least_the_minimum() {
        let ethernet = Overhead { bytes: 24, minimum: 84, atm: false };
        assert_eq!([40, 60, 1514].map(|len| ethernet.len_on_wire(len)), [84, 84, 1538]);
        assert_eq!(Overhead::default().len_on_wire(1514), 1514);
    }

    #[test]
    fn atm_sends_whole_cells() {
        // A full packet over PPPoE with LLC/SNAP: 1500 + 40 bytes are 33 cells (`man tc-cake`, pppoe-llcsnap).
        let pppoe = Overhead { bytes: 26, minimum: 0, atm: true };
        assert_eq!(pppoe.len_on_wire(1514), 33 * 53);
        assert_eq!(Overhead { atm: true, ..Overhead::default() }.len_on_wire(49), 106);
    }
}
