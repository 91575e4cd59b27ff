//! Faults that take long, or a broker of one's own: `make test-faults`. What is chosen by chance comes from a seed,
//! which is printed; `BREW_FAULT_SEED` gives it again. `BREW_FAULT_ROUNDS` is how often chance is taken.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stderr, reason = "the seed is for whoever reads the output of a failed run")]

mod broker;
#[path = "../common/mod.rs"]
mod common;
mod crash_points;
mod frozen;
mod replicas;

/// The chance of one test.
fn chance(test: &str) -> fastrand::Rng {
    let seed = number("BREW_FAULT_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("{test}: BREW_FAULT_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

fn rounds() -> u64 {
    number("BREW_FAULT_ROUNDS").unwrap_or(1)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}
