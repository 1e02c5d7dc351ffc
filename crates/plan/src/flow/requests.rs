//! The objects that web traffic asks for: drawn from a seed, the same in every engine.

use super::{Popularity, Web};
use crate::random::{GAMMA, mix};

/// An object of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its number, from 0, the most popular.
    pub number: u32,
    /// Its bytes.
    pub size: u64,
}

/// The objects asked for, one after the other: the same for the same seed, whoever asks.
#[derive(Clone, Debug)]
pub struct Requests {
    /// By object: the sum of the weights up to and with it.
    weights: Vec<u64>,
    sizes: Vec<u64>,
    seed: u64,
    drawn: u64,
}

impl Requests {
    /// Requests of the flow `name` for the objects of `web`, in a run with `seed`.
    pub fn new(web: &Web, seed: u64, name: &str) -> Requests {
        let mut sum = 0;
        let weights = (1..=u64::from(web.objects)).map(|rank| {
            sum += match web.popularity {
                Popularity::Zipf => (1 << 32) / rank,
                Popularity::Uniform => 1,
            };
            sum
        });
        let weights = weights.collect();
        // FNV-1a over the name: each flow has a random stream of its own, and adding one shifts no other.
        let seed = name
            .bytes()
            .fold(scrambled(seed), |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Requests { weights, sizes: web.sizes.clone(), seed, drawn: 0 }
    }

    /// The next object asked for; none where there are no objects.
    pub fn draw(&mut self) -> Option<Object> {
        let all = *self.weights.last()?;
        self.drawn += 1;
        let place = below(all, scrambled(self.seed.wrapping_add(self.drawn.wrapping_mul(GAMMA))));
        self.object(self.weights.partition_point(|&weight| weight <= place) as u32)
    }

    /// The object of this number; none where the server has no such object.
    pub fn object(&self, number: u32) -> Option<Object> {
        if number as usize >= self.weights.len() {
            return None;
        }
        let size = below(self.sizes.len() as u64, scrambled(!self.seed ^ u64::from(number)));
        Some(Object { number, size: *self.sizes.get(size as usize)? })
    }

    /// A number that distinguishes these objects from those of another flow or run.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

/// SplitMix64's finalizer.
fn scrambled(count: u64) -> u64 {
    mix(count.wrapping_sub(GAMMA))
}

/// A number below `bound` from 64 random bits.
fn below(bound: u64, random: u64) -> u64 {
    ((u128::from(bound) * u128::from(random)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(popularity: Popularity, name: &str) -> Requests {
        let web = Web { objects: 100, sizes: vec![1000, 50_000], popularity, ..Web::default() };
        Requests::new(&web, 7, name)
    }

    fn drawn(popularity: Popularity, count: usize) -> Vec<Object> {
        let mut requests = requests(popularity, "f");
        (0..count).filter_map(|_| requests.draw()).collect()
    }

    #[test]
    fn popularity_follows_zipfs_law_or_is_uniform() {
        let share = |objects: &[Object], number: u32| {
            objects.iter().filter(|object| object.number == number).count() as f64 / objects.len() as f64
        };
        // The hundredth harmonic number is 5.187.
        let zipf = drawn(Popularity::Zipf, 100_000);
        assert!((share(&zipf, 0) - 1.0 / 5.187).abs() < 0.01);
        assert!((share(&zipf, 1) - 0.5 / 5.187).abs() < 0.01);
        let uniform = drawn(Popularity::Uniform, 100_000);
        assert!((share(&uniform, 0) - 0.01).abs() < 0.002);
        assert!((share(&uniform, 99) - 0.01).abs() < 0.002);
    }

    #[test]
    fn an_object_keeps_its_size_and_sizes_are_equally_likely() {
        let objects = drawn(Popularity::Uniform, 10_000);
        let mut sizes = [None; 100];
        for object in objects {
            assert_eq!(*sizes[object.number as usize].get_or_insert(object.size), object.size);
        }
        let large = sizes.iter().filter(|size| **size == Some(50_000)).count();
        assert!((30..=70).contains(&large), "{large} of 100 objects are large");
    }

    #[test]
    fn flows_of_one_run_ask_for_different_objects() {
        let [f, g] = ["f", "g"].map(|name| {
            let mut requests = requests(Popularity::Uniform, name);
            (0..10).filter_map(|_| requests.draw()).collect::<Vec<_>>()
        });
        assert_ne!(f, g);
        assert_eq!(f, drawn(Popularity::Uniform, 10));
    }

    #[test]
    fn a_server_has_the_objects_that_are_drawn_and_no_other() {
        let requests = requests(Popularity::Zipf, "f");
        for object in drawn(Popularity::Zipf, 1000) {
            assert_eq!(requests.object(object.number), Some(object));
        }
        assert_eq!(requests.object(100), None);
    }
}
