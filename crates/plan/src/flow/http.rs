//! Web traffic: what a server has, and what its clients ask for.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use crate::describe::Bytes;

/// Pages that a client loads one after the other, and the objects they are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Web {
    /// Objects that the server has.
    pub objects: u32,
    /// Bytes of an object: one of these, each as likely as the others.
    pub sizes: Vec<u64>,
    /// How often each object is asked for.
    pub popularity: Popularity,
    /// Objects of a page.
    pub page: u32,
    /// Ranges that an object is divided into, each with a request of its own (RFC 9110, section 14).
    pub ranges: u32,
    /// Pause between a page and the next.
    pub think: Span,
    /// Pages; none: as many as the time allows.
    pub count: Option<u64>,
}

impl fmt::Display for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = Bytes(self.sizes.iter().min().copied().unwrap_or(0));
        let most = Bytes(self.sizes.iter().max().copied().unwrap_or(0));
        f.write_str("http, ")?;
        self.count.map_or(Ok(()), |count| write!(f, "{count} "))?;
        write!(f, "pages of {} of {} objects of ", self.page, self.objects)?;
        if least.0 != most.0 {
            write!(f, "{least} to ")?;
        }
        write!(f, "{most}")?;
        if self.ranges > 1 {
            write!(f, ", {} ranges each", self.ranges)?;
        }
        if self.think == Span::ZERO { Ok(()) } else { write!(f, ", pauses of {}", self.think) }
    }
}

/// How often each object is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Popularity {
    /// The n-th most popular 1/n as often as the most popular (Zipf's law).
    #[default]
    Zipf,
    /// All equally often.
    Uniform,
}

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
    /// Requests for the objects of `web`, from the random stream `seed`.
    pub fn new(web: &Web, seed: u64) -> Requests {
        let mut sum = 0;
        let weights = (1..=u64::from(web.objects)).map(|rank| {
            sum += match web.popularity {
                Popularity::Zipf => (1 << 32) / rank,
                Popularity::Uniform => 1,
            };
            sum
        });
        Requests { weights: weights.collect(), sizes: web.sizes.clone(), seed, drawn: 0 }
    }

    /// The next object asked for; none where there are no objects.
    pub fn draw(&mut self) -> Option<Object> {
        let all = *self.weights.last()?;
        self.drawn += 1;
        let place = below(all, scrambled(self.seed.wrapping_add(self.drawn.wrapping_mul(GAMMA))));
        let number = self.weights.partition_point(|&weight| weight <= place) as u32;
        let size = below(self.sizes.len() as u64, scrambled(!self.seed ^ u64::from(number)));
        Some(Object { number, size: *self.sizes.get(size as usize)? })
    }
}

/// SplitMix64's increment and finalizer (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn scrambled(count: u64) -> u64 {
    let mixed = (count ^ (count >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A number below `bound` from 64 random bits.
fn below(bound: u64, random: u64) -> u64 {
    ((u128::from(bound) * u128::from(random)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(popularity: Popularity, count: usize) -> Vec<Object> {
        let web = Web {
            objects: 100,
            sizes: vec![1000, 50_000],
            popularity,
            page: 1,
            ranges: 1,
            think: Span::ZERO,
            count: None,
        };
        let mut requests = Requests::new(&web, 7);
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
    fn pages_in_words() {
        let mut web = Web {
            objects: 100,
            sizes: vec![50_000, 1000],
            popularity: Popularity::Zipf,
            page: 10,
            ranges: 1,
            think: Span::ZERO,
            count: None,
        };
        assert_eq!(web.to_string(), "http, pages of 10 of 100 objects of 1 kB to 50 kB");
        (web.count, web.ranges, web.think) = (Some(3), 2, Span::from_ms(500));
        assert_eq!(
            web.to_string(),
            "http, 3 pages of 10 of 100 objects of 1 kB to 50 kB, 2 ranges each, pauses of 500 ms"
        );
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
}
