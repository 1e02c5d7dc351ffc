//! Random streams: one for every component and impairment, so that adding one shifts no other.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// A seed for the component `name` of a run with `seed`: the same on every machine and in every version.
///
/// Bytes are folded in as FNV-1a does, between two rounds of SplitMix64's finaliser, so neighbouring
/// seeds and names give unrelated streams.
pub fn component_seed(seed: u64, name: &str) -> u64 {
    let folded =
        name.bytes().fold(mix(seed), |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    mix(folded)
}

/// The random stream of one impairment of a link with this seed.
pub(crate) fn stream(seed: u64, impairment: &str) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(component_seed(seed, impairment))
}

/// SplitMix64: one step and its finaliser.
const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn neighbouring_seeds_and_names_give_different_streams() {
        let names = ["", "a", "b", "ab", "ba", "path.forward", "path.backward"];
        let seeds: HashSet<u64> =
            (0..1000).flat_map(|seed| names.map(|name| component_seed(seed, name))).collect();
        assert_eq!(seeds.len(), 1000 * names.len());
    }

    #[test]
    fn seeds_never_change_between_versions() {
        assert_eq!(component_seed(0, ""), mix(mix(0)));
        // First output of SplitMix64 seeded with zero, as its author's reference gives it.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    }
}
