//! The profile `linux` beside this machine's kernel: random exchanges, played against both.
//!
//! An exchange is a plan (`plan.rs`): what a peer sends, what the application calls, and when. The kernel plays it over
//! a TUN device, hundreds at the same time; then airtcp's host plays it in virtual time, with every event at the time
//! at which the kernel had it. What comes back is compared, segment by segment. `expected.toml` has the differences
//! that stay, each with its reason.
//!
//!     cargo test -p airtcp-tests --no-default-features --features kernel --test differ
//!
//! needs root. `AIRTCP_DIFFER_SEED` takes other exchanges, `AIRTCP_DIFFER_COUNT` more, `AIRTCP_DIFFER_ONLY` a single one.

mod compare;
mod heard;
mod kernel;
mod ours;
mod peer;
mod plan;
mod play;
mod rounds;
mod rows;
mod words;

use std::process::ExitCode;

use airtcp_testkit::sample;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::rounds::Task;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let some = Trial::test("some", || run(300));
    // Every row of expected.toml must be needed by one of so many.
    let many = Trial::test("many", || run(10_000)).with_ignored_flag(true);
    let mut arguments = arguments;
    // They measure times: one after the other.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, vec![some, many]).exit_code()
}

fn run(count: u64) -> Result<(), Failed> {
    let seed = number("AIRTCP_DIFFER_SEED")?.unwrap_or_else(sample::seed);
    let only = number("AIRTCP_DIFFER_ONLY")?;
    let count = number("AIRTCP_DIFFER_COUNT")?.unwrap_or(count);
    let rows =
        rows::read(include_str!("expected.toml")).map_err(|error| format!("expected.toml: {error}"))?;
    let numbers = only.map_or_else(|| (0..count).collect(), |only| vec![only]);
    eprintln!("AIRTCP_DIFFER_SEED={seed}: {} exchanges", numbers.len());
    Ok(Task { seed, numbers, rows, all_rows: count >= 10_000 && only.is_none() }.run()?)
}

fn number(name: &str) -> Result<Option<u64>, String> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{name}={text}: write a number"))
}
