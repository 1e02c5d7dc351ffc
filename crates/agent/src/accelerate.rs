//! An accelerator in a node; or by itself, as `tcplab-agent accelerate`.

use serde_json::{Value, json};
use tcplab_accelerator::{Accelerator, AcceleratorError, Counts};

use crate::protocol::Accelerate;
use crate::proxy::{self, Proxy, UNSEEN};

/// Splits connections until the input ends. The first line is the plan's accelerator; congestion controls by their names in this
/// kernel.
pub fn main() -> u8 {
    proxy::alone("accelerating", Accelerator::open, |accelerator, over, observe| {
        let done = accelerator.run(UNSEEN, over, |counts, samples| observe(facts(counts), samples));
        done.map(|counts| facts(&counts))
    })
}

fn facts(counts: &Counts) -> Value {
    let Counts { open, accepted, broken, refused, passed } = *counts;
    json!({"open": open, "accepted": accepted, "broken": broken, "refused": refused, "passed": passed})
}

/// Starts to split connections, until the process ends or the plan kills it.
pub fn start(asked: Accelerate) -> Result<Proxy, AcceleratorError> {
    let kill_at = asked.accelerator.kill_at;
    let accelerator = Accelerator::open(asked.accelerator)?;
    Proxy::start("accelerator", asked.streams, asked.sample, move |interval, now, observe| {
        let over = || kill_at.is_some_and(|at| now() >= at.as_ns());
        accelerator.run(interval, over, |counts, samples| observe(facts(counts), samples)).map(drop)
    })
}
