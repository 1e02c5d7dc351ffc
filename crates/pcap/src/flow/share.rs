//! Several analyses that divide a capture's flows among themselves.

use std::hash::{BuildHasher, RandomState};

use super::{Analysis, Flows, Options};
use crate::flow::Counts;
use crate::parse::{FourTuple, Segment, parse};
use crate::read::Packet;

/// How flows are divided: by both ends' addresses and ports, the same for both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    /// A fixed one would let a capture be made whose flows are all one analysis's.
    seed: u64,
    parts: u32,
}

impl Division {
    pub(crate) fn into_parts(parts: usize) -> Division {
        Division { seed: RandomState::new().hash_one(0u8) | 1, parts: parts as u32 }
    }

    /// Which part these ends belong to.
    #[inline]
    pub(crate) fn part(&self, ends: &FourTuple) -> usize {
        let fold = |address: u128| (address >> 64) as u64 ^ address as u64;
        let addresses = fold(ends.source.0).wrapping_add(fold(ends.destination.0));
        let (one, other) = (u64::from(ends.source_port), u64::from(ends.destination_port));
        let ports = (one + other) | ((one ^ other) << 32);
        let mixed = (addresses ^ ports.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(self.seed);
        let hash = (mixed ^ (mixed >> 32)).wrapping_mul(0xd1b5_4a32_d192_ed03);
        (((hash >> 32) * u64::from(self.parts)) >> 32) as usize
    }

    pub(crate) fn shares(self) -> impl Iterator<Item = Share> {
        (0..self.parts as usize).map(move |index| Share { division: self, index })
    }
}

/// One of the parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    division: Division,
    index: usize,
}

impl Share {
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    fn holds(&self, segment: &Segment) -> bool {
        self.division.part(&FourTuple::of(segment)) == self.index
    }

    /// Of what belongs to no flow, one counts.
    fn counts_for_all(&self) -> bool {
        self.index == 0
    }

    pub(crate) fn analysis(&self, options: Options) -> Analysis {
        let most_flows = options.most_flows.div_ceil(self.division.parts as usize);
        Analysis::new(Options { most_flows, ..options })
    }

    /// Takes in a packet whose endpoints the fast path could not read: each share is shown it, and one counts it.
    #[cold]
    pub(crate) fn shown_to_all(&self, analysis: &mut Analysis, packet: &Packet<'_>) {
        match parse(packet.link, packet.bytes, packet.original_len) {
            Ok(segment) => match &segment.fragment {
                // Whose it is shows when all have come.
                Some(fragment) => {
                    if self.counts_for_all() {
                        analysis.counts.packet(packet);
                        analysis.counts.fragments += 1;
                    }
                    if let Some(whole) =
                        analysis.fragments.add(&segment, fragment, packet.time, packet.interface)
                        && self.holds(&whole.segment)
                    {
                        let (number, time) = (packet.number, packet.time);
                        analysis.whole(number, time, packet.interface, &whole.segment, whole.parts);
                    }
                }
                None if self.holds(&segment) => {
                    analysis.counts.packet(packet);
                    analysis.segment(packet.number, packet.time, packet.interface, &segment);
                }
                None => {}
            },
            Err(reason) => {
                if self.counts_for_all() {
                    analysis.counts.packet(packet);
                    analysis.counts.unparsed(&reason);
                }
                analysis.unparsed(&reason, packet.interface);
            }
        }
    }

    /// Ends the share's flows: what there is of them, and what it has counted.
    pub(crate) fn finish(&self, analysis: Analysis) -> (Flows, Counts) {
        let (flows, mut counts, ()) = analysis.into_flows();
        if !self.counts_for_all() {
            counts.fragments_incomplete = 0;
        }
        (flows, counts)
    }
}
