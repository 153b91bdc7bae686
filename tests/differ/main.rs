//! Compares the profile `linux` with this machine's kernel, in random exchanges that are played against both.
//!
//! An exchange follows a plan (`plan.rs`): the segments of a peer, the calls of the application, and their
//! times. The kernel plays it over a TUN device, in parallel with hundreds of others. Then airtcp's host
//! plays it in virtual time, with every event at the time at which the kernel had it. The segments that both
//! send are compared one by one. `expected.toml` lists the remaining differences, each with its field, its
//! direction, a maximum number and the reason. An exchange with another difference is played again. The
//! difference is unexplained if the kernel repeats its first answer, and this answer differs from airtcp's. A
//! single unexplained difference fails the short run with the default seed, and the run of a single exchange.
//! Other runs print unexplained differences, and fail if more than five of 10,000 exchanges have one
//! (`MOST_UNEXPLAINED`). A full run also fails if the share of identical or cut exchanges misses its bound.
//!
//! This command needs root privileges:
//!
//!     cargo test -p airtcp-tests --no-default-features --features kernel --test differ
//!
//! A third test needs neither root nor the kernel. It plays exchanges with random delays against airtcp alone,
//! and fails if the host never stops sending or waking.
//!
//! `AIRTCP_DIFFER_SEED` selects other exchanges, `AIRTCP_DIFFER_COUNT` sets their number, and
//! `AIRTCP_DIFFER_ONLY` selects a single one. `AIRTCP_DIFFER_ROW` prints the differences that the row with these
//! words explains, or all rows (`all`).

mod compare;
mod delays;
mod kernel;
mod observed;
mod ours;
mod peer;
mod plan;
mod play;
mod receiver;
mod rounds;
mod rows;
mod words;

use std::process::ExitCode;

use airtcp_testkit::sample;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::rounds::Task;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let short = Trial::test("exchanges_match_kernel_in_short_run", || run(300));
    // With this many exchanges, every row of expected.toml must be needed.
    let full_run = rows::FULL_RUN as u64;
    let full =
        Trial::test("exchanges_match_kernel_in_full_run", move || run(full_run)).with_ignored_flag(true);
    let delays = Trial::test("host_stops_acting_after_any_delay", || {
        let seed = number("AIRTCP_DIFFER_SEED")?.unwrap_or_else(sample::seed);
        Ok(delays::run(seed, number("AIRTCP_DIFFER_COUNT")?.unwrap_or(1000))?)
    });
    // The tests measure times, so they must not run in parallel.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, vec![short, full, delays]).exit_code()
}

fn run(count: u64) -> Result<(), Failed> {
    let seed = number("AIRTCP_DIFFER_SEED")?.unwrap_or_else(sample::seed);
    let only = number("AIRTCP_DIFFER_ONLY")?;
    let count = number("AIRTCP_DIFFER_COUNT")?.unwrap_or(count);
    let rows =
        rows::read(include_str!("expected.toml")).map_err(|error| format!("expected.toml: {error}"))?;
    let numbers = only.map_or_else(|| (0..count).collect(), |only| vec![only]);
    eprintln!("AIRTCP_DIFFER_SEED={seed}: {} exchanges", numbers.len());
    let is_full = count >= rows::FULL_RUN as u64 && only.is_none();
    // The exchanges of the short run have no unexplained difference. Other exchanges may have some that are
    // too rare for a row of `expected.toml`.
    let is_strict = (seed == sample::DEFAULT_SEED && !is_full) || only.is_some();
    let shown = std::env::var("AIRTCP_DIFFER_ROW").ok();
    Ok(Task { seed, numbers, rows, shown, is_full, is_strict }.run()?)
}

fn number(name: &str) -> Result<Option<u64>, String> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{name}={text}: write a number"))
}
