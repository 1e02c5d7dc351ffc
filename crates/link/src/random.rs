//! Randomness by name and number: what one component draws for one packet depends on nothing else.

/// SplitMix64's increment (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number
/// generators", 2014).
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A seed for the component `name` of a run with `seed`: the same on every machine and in every version.
///
/// Bytes are folded in as FNV-1a does, between two rounds of SplitMix64's finaliser, so neighbouring
/// seeds and names give unrelated streams.
pub fn component_seed(seed: u64, name: &str) -> u64 {
    let folded =
        name.bytes().fold(mix(seed), |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    mix(folded)
}

/// The draws of one impairment of a link, one for each packet number.
///
/// SplitMix64 counts and scrambles its count, so any of its outputs can be had without those before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64, impairment: &str) -> Draws {
        Draws(component_seed(seed, impairment))
    }

    /// 64 random bits for packet `number`.
    #[inline]
    pub(crate) fn at(self, number: u64) -> u64 {
        mix(self.0.wrapping_add(number.wrapping_mul(GAMMA)))
    }

    /// As many draws for packet `number` as are wanted.
    #[inline]
    pub(crate) fn stream(self, number: u64) -> Stream {
        Stream(self.at(number))
    }
}

/// One draw after another: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    pub(crate) fn new(seed: u64, impairment: &str) -> Stream {
        Stream(component_seed(seed, impairment))
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn draw(&mut self) -> u64 {
        let random = mix(self.0);
        self.0 = self.0.wrapping_add(GAMMA);
        random
    }

    /// A number below `bound`; zero if that is zero.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}

/// SplitMix64: one step and its finaliser, by which neighbouring values become unrelated.
#[inline]
pub const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GAMMA);
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

    #[test]
    fn the_draws_of_all_packets_in_order_are_one_stream() {
        let (draws, mut stream) = (Draws::new(1, "test"), Stream::new(1, "test"));
        assert!((0..1000).all(|number| draws.at(number) == stream.draw()));
    }

    #[test]
    fn numbers_below_a_bound_fill_it_evenly() {
        let mut stream = Stream::new(1, "test");
        let mut counts = [0i32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        // Three deviations of a binomial count.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 280), "{counts:?}");
        assert_eq!(stream.below(0), 0);
    }
}
