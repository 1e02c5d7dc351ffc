//! Randomness by name and number: what one component draws for one packet depends on nothing else.

use tcplab_plan::random::{GAMMA, component_seed, mix};

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

#[cfg(test)]
mod tests {
    use super::*;

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
