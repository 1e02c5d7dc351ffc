//! Broken captures: some thousand mutants, the same ones each time. `make fuzz` tries others, for longer.

#[path = "../examples/fuzz/chance.rs"]
mod chance;
#[path = "../examples/fuzz/corpus.rs"]
mod corpus;
#[path = "../examples/fuzz/targets.rs"]
mod targets;

#[test]
fn nothing_broken_makes_anything_panic() {
    for (name, target) in targets::TARGETS {
        let corpus = corpus::corpus(name);
        let mut chance = chance::Chance::new(7);
        for mutant in 0..2000 {
            let bytes = chance.mutant(&corpus);
            let outcome = std::panic::catch_unwind(|| target(&bytes));
            assert!(outcome.is_ok(), "{name}, mutant {mutant}: {bytes:?}");
        }
    }
}
