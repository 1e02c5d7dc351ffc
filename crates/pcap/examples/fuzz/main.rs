//! Feeds broken captures to the readers, the parser, the analysis, the pairing and the dissector: none may panic,
//! read without end, or contradict itself.
//!
//! `cargo run --example fuzz -- --seconds 60 [--seed N] [--target NAME]` runs each target for its share of the
//! time, and keeps what breaks a rule in a file, which `--replay FILE` shows to every target again. Built without
//! optimisation, overflows panic too.

mod chance;
mod corpus;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use chance::Chance;
use corpus::corpus;
use targets::{TARGETS, Target};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut seconds, mut seed, mut wanted) = (60.0, u64::from(std::process::id()) << 32, None);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--seconds" => seconds = value.parse().expect("a number of seconds"),
            "--seed" => seed = value.parse().expect("a whole number"),
            "--replay" => {
                let bytes = std::fs::read(&value).expect("a file that was kept");
                TARGETS.into_iter().for_each(|(_, target)| target(&bytes));
                return;
            }
            "--target" => wanted = Some(value),
            _ => panic!("what is {argument}?"),
        }
    }
    std::panic::set_hook(Box::new(|_| {}));
    let targets: Vec<Target> = TARGETS
        .into_iter()
        .filter(|(name, _)| wanted.as_deref().is_none_or(|wanted| wanted == *name))
        .collect();
    let share = Duration::from_secs_f64(seconds / targets.len().max(1) as f64);
    for (name, target) in targets {
        let mut chance = Chance::new(seed);
        let corpus = corpus(name);
        let begin = Instant::now();
        let mut tried = 0u64;
        while begin.elapsed() < share {
            let mutant = chance.mutant(&corpus);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&mutant))) {
                let panicked = panic.downcast_ref::<String>().cloned();
                let panicked =
                    panicked.or_else(|| panic.downcast_ref::<&str>().map(|panicked| (*panicked).to_owned()));
                let path = std::env::temp_dir().join(format!("tcplab-fuzz-{name}-{tried}"));
                let kept = std::fs::write(&path, &mutant);
                println!(
                    "{name}: seed {seed}, mutant {tried}: {panicked:?}, kept in {} ({kept:?})",
                    path.display()
                );
                std::process::exit(1);
            }
            tried += 1;
        }
        println!("{name}: {tried} mutants, seed {seed}");
    }
}
