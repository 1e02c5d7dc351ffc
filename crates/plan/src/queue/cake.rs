//! CAKE (Høiland-Jørgensen, Täht, Morton 2018), with the names and defaults of `tc-cake(8)`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Rate, Span};

use super::{Discipline, Limit, never_shapes};

/// Common Applications Kept Enhanced: a shaper, classes by DSCP, hosts and flows in turn, and COBALT in each flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cake {
    /// Rate of the shaper, which has no burst. Default: none, packets leave as fast as the link takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-role" = "shaper"))]
    pub bandwidth: Option<Rate>,
    /// The round-trip time that the AQM is tuned for: CoDel's interval; its target is a twentieth. Default: 100 ms.
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub rtt: Span,
    /// The tins that packets are sorted into by DSCP: `besteffort` (one), `diffserv3`, `diffserv4` or `precedence`
    /// (eight). Default: diffserv3.
    pub diffserv: Diffserv,
    /// Between whom a tin shares its rate: `flowblind`, `srchost`, `dsthost`, `hosts`, `flows`, or first between
    /// hosts and then between the flows of each: `dual-srchost`, `dual-dsthost`, `triple-isolate`. Default:
    /// triple-isolate.
    pub isolation: Isolation,
    /// Drop TCP acknowledgments that wait when a later one acknowledges as much: `off`, `on`, or `aggressive`, which
    /// also drops the one right before the latest. Default: off.
    pub ack_filter: AckFilter,
    /// Bytes that the shaper adds to each packet's IP length. Default: none, it counts the Ethernet frame (IP length
    /// + 14).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 256), extend("x-tcplab" = "size"))]
    pub overhead: Option<u32>,
    /// The shaper counts a shorter packet as so many bytes, overhead included. Default: 0 B.
    #[schemars(range(max = 256), extend("x-tcplab" = "size"))]
    pub mpu: u32,
    /// The link's cells, by which the shaper counts: `noatm`, `atm` (53 bytes for each 48 or part of them) or `ptm` (65
    /// for each 64). Default: noatm.
    pub atm: Cells,
    /// Maximum that may wait, in frame bytes where `tc` counts the memory of buffers; beyond it the longest queue loses
    /// packets from its head. Default: four times what the bandwidth sends in `rtt`, from 4 MiB to 15.5 MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-tcplab" = "positive-amount", "x-role" = "limit"))]
    pub memlimit: Option<Limit>,
}

/// How CAKE sorts packets into tins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Diffserv {
    /// One tin.
    Besteffort,
    /// Bulk, best effort, voice.
    #[default]
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
    /// Eight tins by the three bits of IP precedence.
    Precedence,
}

/// Between whom a tin of CAKE shares its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Isolation {
    /// Between nobody: each tin is one queue.
    Flowblind,
    /// Between source addresses.
    Srchost,
    /// Between destination addresses.
    Dsthost,
    /// Between pairs of addresses.
    Hosts,
    /// Between flows.
    Flows,
    /// Between source addresses, then between the flows of each.
    DualSrchost,
    /// Between destination addresses, then between the flows of each.
    DualDsthost,
    /// Between addresses at either side, then between flows.
    #[default]
    TripleIsolate,
}

/// Which acknowledgments CAKE drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum AckFilter {
    /// None.
    #[default]
    Off,
    /// One that a later one makes redundant, if another such waits behind it.
    On,
    /// That, and a single redundant one right before the latest.
    Aggressive,
}

/// Cells of the link behind CAKE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Cells {
    /// None.
    #[default]
    Noatm,
    /// Cells of 53 bytes that hold 48.
    Atm,
    /// 65 bytes for each 64 (IEEE 802.3, section 61.3).
    Ptm,
}

/// Bytes of an Ethernet header, which a frame has and an IP length has not.
const ETHERNET_HEADER: u32 = 14;
/// Bounds of the memory limit where none is given.
const MIN_MEMORY: u64 = 4 << 20;
const MAX_MEMORY: u64 = 10_240 * 1514;

impl Cake {
    /// Maximum that may wait.
    pub fn limit(&self) -> Limit {
        let by_rate = |rate: Rate| rate.bytes_in(self.rtt).saturating_mul(4).clamp(MIN_MEMORY, MAX_MEMORY);
        self.memlimit.unwrap_or_else(|| Limit::Bytes(self.bandwidth.map_or(MAX_MEMORY, by_rate)))
    }

    /// The bytes by which the shaper counts a frame of `frame_len` bytes.
    pub fn len_on_wire(&self, frame_len: u32) -> u32 {
        let framed = |overhead| frame_len.saturating_sub(ETHERNET_HEADER).saturating_add(overhead);
        let len = self.overhead.map_or(frame_len, framed).max(self.mpu);
        match self.atm {
            Cells::Noatm => len,
            Cells::Atm => len.div_ceil(48).saturating_mul(53),
            Cells::Ptm => len.saturating_add(len.div_ceil(64)),
        }
    }
}

impl Default for Cake {
    fn default() -> Cake {
        Cake {
            bandwidth: None,
            rtt: Span::from_ms(100),
            diffserv: Diffserv::default(),
            isolation: Isolation::default(),
            ack_filter: AckFilter::default(),
            overhead: None,
            mpu: 0,
            atm: Cells::default(),
            memlimit: None,
        }
    }
}

impl Discipline for Cake {
    fn limit(&self) -> Option<Limit> {
        Some(Cake::limit(self))
    }

    fn shapes(&self) -> bool {
        self.bandwidth.is_some()
    }

    fn cautions(&self, rate: Option<Rate>) -> Vec<String> {
        let shaper = self.bandwidth.and_then(|own| never_shapes("cake's bandwidth", own, rate));
        shaper.into_iter().collect()
    }
}

impl fmt::Display for Cake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cake")?;
        if let Some(bandwidth) = self.bandwidth {
            write!(f, " at {bandwidth}")?;
        }
        write!(f, " ({}, {}, rtt {}", self.diffserv.word(), self.isolation.word(), self.rtt)?;
        f.write_str(match self.ack_filter {
            AckFilter::Off => ")",
            AckFilter::On => ", ack-filter)",
            AckFilter::Aggressive => ", ack-filter-aggressive)",
        })
    }
}

impl Diffserv {
    fn word(self) -> &'static str {
        match self {
            Diffserv::Besteffort => "besteffort",
            Diffserv::Diffserv3 => "diffserv3",
            Diffserv::Diffserv4 => "diffserv4",
            Diffserv::Precedence => "precedence",
        }
    }
}

impl Isolation {
    fn word(self) -> &'static str {
        match self {
            Isolation::Flowblind => "flowblind",
            Isolation::Srchost => "srchost",
            Isolation::Dsthost => "dsthost",
            Isolation::Hosts => "hosts",
            Isolation::Flows => "flows",
            Isolation::DualSrchost => "dual-srchost",
            Isolation::DualDsthost => "dual-dsthost",
            Isolation::TripleIsolate => "triple-isolate",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_counts_from_the_ip_length_and_cells_are_whole() {
        let cake = Cake::default();
        assert_eq!(cake.len_on_wire(1514), 1514);
        // `man tc-cake`: ethernet is overhead 38 mpu 84, pppoe-llcsnap overhead 40 atm, bridged-ptm overhead 22 ptm.
        let ethernet = Cake { overhead: Some(38), mpu: 84, ..cake };
        assert_eq!([54, 1514].map(|len| ethernet.len_on_wire(len)), [84, 1538]);
        assert_eq!(Cake { overhead: Some(40), atm: Cells::Atm, ..cake }.len_on_wire(1514), 33 * 53);
        assert_eq!(Cake { overhead: Some(22), atm: Cells::Ptm, ..cake }.len_on_wire(1514), 1522 + 24);
    }

    #[test]
    fn memory_is_four_times_what_the_bandwidth_sends_in_a_round_trip() {
        // `man tc-cake` shows 5000000 bytes at 100 Mbit/s.
        let at = |mbit: u64| Cake { bandwidth: Rate::from_bits_per_sec(mbit * 1_000_000), ..Cake::default() };
        let bytes = [4 << 20, 5_000_000, MAX_MEMORY].map(Limit::Bytes);
        assert_eq!([1, 100, 10_000].map(|mbit| at(mbit).limit()), bytes);
        assert_eq!(Cake { memlimit: Some(Limit::Packets(1)), ..at(100) }.limit(), Limit::Packets(1));
    }
}
