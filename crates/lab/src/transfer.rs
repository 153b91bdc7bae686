//! Runs one transfer with a path, a receiver and a sender, and evaluates their files.

pub(crate) mod outcome;
pub(crate) mod plan;
mod programs;
pub(crate) mod reading;

use std::fs;
use std::io;
use std::path::Path;

pub use outcome::Outcome;
pub(crate) use plan::Transfer;
use programs::send;
use reading::{annotate, check};

use super::LabError;
use super::disk;
use super::testbed::{PathOptions, Testbed, Tools};
use super::validity::{self, ClockOffset};

/// Maximum number of attempts for a transfer that the machine disturbs. After that it stays invalid.
const ATTEMPTS: usize = 3;

/// Runs the transfer in its own directory, and repeats it if it is invalid.
pub(crate) fn run_until_valid(tools: &Tools, plan: &Transfer<'_>) -> Result<Outcome, LabError> {
    let mut repeated = Vec::new();
    loop {
        recreate_directory(plan.directory)?;
        let outcome = match run(tools, plan) {
            Err(error @ LabError::Full { .. }) => {
                // The remaining files are useless, and other transfers need the space.
                let _ = fs::remove_dir_all(plan.directory);
                return Err(error);
            }
            outcome => outcome?,
        };
        match &outcome.invalid {
            // A failure is never attributed to the machine.
            Some(why) if outcome.failure.is_none() && repeated.len() + 1 < ATTEMPTS => {
                repeated.push(why.clone())
            }
            _ => return Ok(Outcome { repeated, ..outcome }),
        }
    }
}

/// Creates an empty directory, and removes an older one, such as the remains of an interrupted lab.
pub(crate) fn recreate_directory(directory: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir(directory),
    }
    .map_err(LabError::file(directory))
}

/// Runs a transfer. If it fails, the outcome contains the reason. An error means that the next transfer would
/// also fail.
pub(crate) fn run(tools: &Tools, plan: &Transfer<'_>) -> Result<Outcome, LabError> {
    let mut outcome = Outcome {
        sender: plan.sender.name.clone(),
        profile: plan.sender.profile(),
        receiver: plan.receiver.name().to_owned(),
        seed: plan.seed,
        ..Outcome::default()
    };
    match run_and_check(tools, plan, &mut outcome) {
        Ok(()) => {}
        // A full disk would fail every further transfer, and does not depend on this one.
        Err(LabError::Transfer(why)) if disk::is_full(plan.directory, &why) => {
            return Err(LabError::Full { directory: plan.directory.to_owned() });
        }
        Err(LabError::Transfer(why)) => outcome.mark_failed(why),
        Err(error) => return Err(error),
    }
    Ok(outcome)
}

fn run_and_check(tools: &Tools, plan: &Transfer<'_>, outcome: &mut Outcome) -> Result<(), LabError> {
    let &Transfer { scenario, seed, directory, keep, .. } = plan;
    let streams = plan.workload.streams(plan.sender);
    let started = ClockOffset::now();
    let mut testbed = Testbed::start(tools, &PathOptions { scenario, seed, directory, keep })?;
    let ended = send(tools, plan, &streams, &mut testbed, &mut outcome.counters)
        .map_err(|error| testbed.reason(error));
    // Finish in any case: the capture is complete only when the path has ended.
    let finished = testbed.finish();
    let annotated = if finished.is_ok() { annotate(directory, &streams) } else { Ok(()) };
    let received = ended?;
    finished?;
    annotated?;
    outcome.read(directory, &streams, plan.workload.time(), received)?;
    outcome.invalid = validity::disturbance(plan, &streams, outcome, started);
    for (stream, connection) in streams.iter().zip(&mut outcome.connections) {
        check(plan, stream, connection)?;
    }
    Ok(())
}
