//! An HTTP cache in a node; or by itself, as `tcplab-agent cache`.

use std::collections::HashMap;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tcplab_accelerator::{AcceleratorError, Cache, CacheCounts};

use crate::protocol::{self, Destination};
use crate::proxy::{self, Proxy, UNSEEN};

/// Answers requests until the input ends. The first line has the keys of the command `cache`.
pub fn main() -> u8 {
    proxy::alone(
        "caching",
        |asked: protocol::Cache| open(&asked),
        |cache, over, observe| {
            let done = cache.run(UNSEEN, over, |counts, samples| observe(facts(counts), samples));
            done.map(|counts| facts(&counts))
        },
    )
}

fn open(asked: &protocol::Cache) -> Result<Cache, AcceleratorError> {
    let mut first: HashMap<&str, SocketAddr> = HashMap::new();
    let server = |at: &Destination| SocketAddr::new(at.address, at.port);
    let servers = asked
        .streams
        .iter()
        .map(|at| (server(at), *first.entry(&at.flow).or_insert_with(|| server(at))))
        .collect();
    let legs = [asked.towards_client.clone(), asked.towards_server.clone()];
    Cache::open(&asked.cache, legs, asked.ports.clone(), servers)
}

fn facts(counts: &CacheCounts) -> Value {
    let CacheCounts { open, accepted, broken, passed, hits, revalidated, misses, stored, memory } = *counts;
    json!({
        "open": open, "accepted": accepted, "broken": broken, "passed": passed, "hits": hits, "revalidated": revalidated,
        "misses": misses, "stored": stored, "memory": memory,
    })
}

/// Starts to answer requests, until the process ends.
pub fn start(asked: protocol::Cache) -> Result<Proxy, AcceleratorError> {
    let cache = open(&asked)?;
    Proxy::start("cache", asked.streams, asked.sample, move |interval, _, observe| {
        cache.run(interval, || false, |counts, samples| observe(facts(counts), samples)).map(drop)
    })
}
