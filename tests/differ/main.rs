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
use std::time::SystemTime;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::rounds::Task;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let some = Trial::test("some", || run(300, Seed::Fixed));
    // Every row of expected.toml must be needed by one of so many.
    let many = Trial::test("many", || run(10_000, Seed::OfTheDay)).with_ignored_flag(true);
    let mut arguments = arguments;
    // They measure times: one after the other.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, vec![some, many]).exit_code()
}

enum Seed {
    Fixed,
    OfTheDay,
}

fn run(count: u64, seed: Seed) -> Result<(), Failed> {
    let given = number("AIRTCP_DIFFER_SEED")?;
    let seed = given.unwrap_or_else(|| match seed {
        Seed::Fixed => 1,
        Seed::OfTheDay => today(),
    });
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

#[expect(clippy::disallowed_methods, reason = "the seed of a run that is not to be repeated")]
fn today() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |time| time.as_secs() / 86_400)
}
