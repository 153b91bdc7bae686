//! Liveness: every recipe completes every transfer.
//!
//! The matrix contains every recipe of the catalogue alone, all pairs, and a sample of triples, with every
//! profile on every path of `paths/`, in virtual time. Each transfer must meet three conditions:
//!
//! 1. It completes.
//! 2. The sender is never silent for longer than its retransmission timer allows (`silence.rs`).
//! 3. It is not much slower than the default recipe with the same profile, path and seeds, unless
//!    `reasons.toml` gives a reason.
//!
//! For a change, every single recipe and a few pairs and triples run in a sample of the cases. `make nightly`
//! runs all recipes in all cases. `AIRTCP_LIVENESS_SEED` draws other triples and other samples.
//! `AIRTCP_LIVENESS_ONLY=sack+rack` runs one recipe with every profile on every path.

mod path;
mod reasons;
mod recipes;
mod silence;
mod transfer;

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;

use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp_testkit::sample::{sample, seed};
use libtest_mimic::{Arguments, Trial};

use crate::path::PATHS;
use crate::reasons::{Allows, Reason};
use crate::recipes::Family;
use crate::transfer::{Case, Fault, SEEDS};

const SEED: &str = "AIRTCP_LIVENESS_SEED";
const ONLY: &str = "AIRTCP_LIVENESS_ONLY";

/// Number of recipes of each family that run for a change, and the number of cases for each recipe.
const SAMPLES: [(Family, usize, usize); 3] =
    [(Family::Alone, usize::MAX, 4), (Family::Pair, 16, 2), (Family::Triple, 4, 2)];
/// Recipes per trial. Each trial also runs the default recipe, in its own process.
const BATCH: usize = 100;

/// Minimum goodput of every recipe, as a fraction of the default recipe's goodput, unless a reason allows
/// less.
///
/// Random variation alone rarely produces less. In 300 transfers of the default recipe with each profile on
/// each path, two random groups of four differ by more than this factor in 3 of 10,000 comparisons.
const FRACTION: f64 = 0.3;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    match trials() {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("tests/liveness: {error}");
            ExitCode::from(2)
        }
    }
}

fn trials() -> Result<Vec<Trial>, String> {
    let seed = match std::env::var(SEED) {
        Ok(text) => text.parse().map_err(|_| format!("{SEED}={text}: write a number"))?,
        Err(_) => seed(),
    };
    let reasons =
        reasons::read(include_str!("reasons.toml")).map_err(|error| format!("reasons.toml: {error}"))?;
    let reasons = Arc::new(reasons);
    if let Ok(text) = std::env::var(ONLY) {
        let recipe: Recipe = text.parse().map_err(|error| format!("{ONLY}={text}: {error}"))?;
        let trial = Trial::test(text, move || Ok(check(cases(&recipe).collect(), &reasons)?));
        return Ok(vec![trial]);
    }
    let mut trials = Vec::new();
    let matrix = recipes::matrix(seed);
    for (family, recipes, cases) in SAMPLES {
        let all = matrix.iter().filter(|entry| entry.family == family).map(|entry| entry.recipe.clone());
        let drawn = sample(&format!("{} {seed}", family.name()), all, recipes);
        for (number, batch) in drawn.chunks(BATCH).enumerate() {
            let (batch, reasons) = (batch.to_vec(), Arc::clone(&reasons));
            let name = format!("{}/{}", family.name(), number + 1);
            trials.push(Trial::test(name, move || Ok(check_all(&batch, cases, &reasons, seed)?)));
        }
    }
    for (index, reason) in reasons.iter().enumerate() {
        let name = format!("{}/{} on {}", reason.allows.name(), reason.recipe, reason.paths.join(", "));
        let reasons = Arc::clone(&reasons);
        let trial = Trial::test(name, move || Ok(is_needed(index, &reasons)?));
        trials.push(trial.with_ignored_flag(true));
    }
    Ok(trials)
}

/// Checks each of the recipes in `count` of its cases.
fn check_all(batch: &[Recipe], count: usize, reasons: &[Reason], seed: u64) -> Result<(), String> {
    let mut faults = String::new();
    for recipe in batch {
        let drawn = sample(&format!("{recipe} {seed}"), cases(recipe), count);
        if let Err(failures) = check(drawn, reasons) {
            let _ = writeln!(faults, "{recipe} ({SEED}={seed}):\n{failures}");
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Returns the cases of a recipe: every profile on every path.
fn cases(recipe: &Recipe) -> impl Iterator<Item = Case> + use<'_> {
    PATHS.iter().flat_map(move |path| {
        Profile::NAMES.into_iter().map(move |profile| Case { recipe: recipe.clone(), profile, path })
    })
}

/// Returns the recipe's goodput as a fraction of the default recipe's. The geometric mean over the seeds
/// keeps one seed with a long timer backoff from outweighing all other seeds.
fn share(case: &Case) -> f64 {
    let default = Case { recipe: Recipe::default(), ..case.clone() }.outcome();
    let outcome = case.outcome();
    let ratios = default.took.iter().zip(&outcome.took);
    let logarithms: f64 = ratios.map(|(theirs, ours)| (theirs.as_secs_f64() / ours.as_secs_f64()).ln()).sum();
    (logarithms / SEEDS as f64).exp()
}

fn check(cases: Vec<Case>, reasons: &[Reason]) -> Result<(), String> {
    let mut failures = String::new();
    let mut first = None;
    for case in cases {
        let context = format!("profile {}, path {}", case.profile, case.path.name);
        let Failure { faults, slow } = failure(&case, reasons);
        for (seed, fault) in faults {
            let _ = writeln!(failures, "{context}: {fault}\n    {}", case.command(seed));
            first = first.or_else(|| Some((case.clone(), seed, fault.at()?)));
        }
        if let Some((share, floor)) = slow {
            let least = format!("{share:.3} of the default recipe's goodput; the minimum is {floor}");
            let _ = writeln!(
                failures,
                "{context}: {least}; the first of {SEEDS} seeds:\n    {}",
                case.command(1)
            );
        }
    }
    if let Some((case, seed, at)) = first {
        let context = format!("profile {}, path {}, seed {seed}", case.profile, case.path.name);
        let _ = writeln!(failures, "events around the first fault ({context}):\n{}", case.around(seed, at));
    }
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

/// The findings about a case that no reason allows.
#[derive(Default)]
struct Failure {
    /// The faults, each with its seed.
    faults: Vec<(u64, Fault)>,
    /// The fraction of the default recipe's goodput, and the required minimum.
    slow: Option<(f64, f64)>,
}

impl Failure {
    fn is_none(&self) -> bool {
        self.faults.is_empty() && self.slow.is_none()
    }
}

fn failure(case: &Case, reasons: &[Reason]) -> Failure {
    let (mut floor, mut patience) = (FRACTION, Vec::new());
    for reason in reasons.iter().filter(|reason| reason.is_about(case)) {
        match reason.allows {
            Allows::Slow { floor: lower } => floor = floor.min(lower),
            Allows::Patient { own_timers, more } => patience.push((own_timers, more)),
            Allows::Anything => return Failure::default(),
        }
    }
    let outcome = case.outcome();
    let is_allowed = |fault: &Fault| match fault {
        Fault::Silence(silence) => {
            patience.iter().any(|(times, more)| silence.excess_with_own_timers(*times) <= *more)
        }
        _ => false,
    };
    let faults = outcome.faults.iter().filter(|(_, fault)| !is_allowed(fault)).cloned().collect();
    let share = share(case);
    Failure { faults, slow: (share < floor).then_some((share, floor)) }
}

/// Checks that a reason is still needed: without this reason, on each of its paths and with each of its
/// profiles, some recipe would fail. The candidates are the recipe that the reason names, alone and with one
/// more part.
fn is_needed(index: usize, reasons: &[Reason]) -> Result<(), String> {
    let reason = &reasons[index];
    let mut others = reasons.to_vec();
    others.remove(index);
    let recipes = recipes::with_one_more(&reason.recipe);
    let needs = |wanted: &dyn Fn(&Case) -> bool| {
        let cases = recipes.iter().flat_map(cases);
        cases
            .filter(|case| reason.is_about(case) && wanted(case))
            .any(|case| !failure(&case, &others).is_none())
    };
    for path in &reason.paths {
        if !needs(&|case| case.path.name == *path) {
            return Err(format!("no recipe needs this entry on the path {path}: {}", reason.why));
        }
    }
    for profile in &reason.profiles {
        if !needs(&|case| case.profile == *profile) {
            return Err(format!("no recipe needs this entry with the profile {profile}: {}", reason.why));
        }
    }
    Ok(())
}
