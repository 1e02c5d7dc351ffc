//! Picks the packets that one impairment strikes, from a random stream of its own.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chain::Chain;
use crate::config::Chance;
use crate::random::stream;

/// A chain and its random stream.
#[derive(Clone, Debug)]
pub(crate) struct Strikes {
    chain: Chain,
    rng: Xoshiro256PlusPlus,
}

impl Strikes {
    pub(crate) fn new(chance: Chance, seed: u64, impairment: &str) -> Strikes {
        Strikes { chain: Chain::new(chance), rng: stream(seed, impairment) }
    }

    /// New settings from the next packet on; the stream goes on.
    pub(crate) fn set(&mut self, chance: Chance) {
        self.chain = Chain::new(chance);
    }

    /// Whether the next packet is struck.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        self.chain.next(&mut self.rng)
    }
}
