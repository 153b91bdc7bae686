//! Comparison with ns-2: with the profile `ns2`, an airtcp host must send the same segments in the same order
//! at the same times.
//!
//! README.md describes the vectors and how to generate more.

mod fresh;
mod host;
mod order;
mod path;
mod replay;
mod settings;
mod sink;
mod vector;
mod world;

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use serde::Deserialize;

use crate::vector::{Vector, read_family};

/// A file of vectors, and the number of its batches. Each batch is one trial in its own
/// process.
struct Family {
    name: &'static str,
    text: &'static str,
    batches: usize,
}

const FAMILIES: [Family; 4] = [
    Family { name: "recorded", text: include_str!("recorded.jsonl"), batches: 3 },
    Family { name: "droplists", text: include_str!("droplists.jsonl"), batches: 2 },
    Family { name: "random", text: include_str!("random.jsonl"), batches: 3 },
    Family { name: "found", text: include_str!("found.jsonl"), batches: 1 },
];

/// Environment variable with the name of the only vector to try.
const ONLY: &str = "AIRTCP_NS2_ONLY";

/// Vectors with a known difference, and its reason. Both an unlisted difference and a listed vector
/// without a difference are failures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    #[serde(default)]
    deviation: Vec<Deviation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    name: String,
    reason: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    match trials() {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("tests/ns2: {error}");
            ExitCode::from(2)
        }
    }
}

fn trials() -> Result<Vec<Trial>, String> {
    let Expected { deviation: deviations } =
        toml::from_str(include_str!("expected.toml")).map_err(|e| format!("expected.toml: {e}"))?;
    let has_family = |name: &str| FAMILIES.iter().any(|family| name.split('/').next() == Some(family.name));
    if let Some(unknown) = deviations.iter().find(|deviation| !has_family(&deviation.name)) {
        return Err(format!("expected.toml: unknown family in \"{}\"", unknown.name));
    }
    let deviations = Arc::new(deviations);
    if let Ok(name) = std::env::var(ONLY) {
        return Ok(vec![Trial::test(name.clone(), move || Ok(check_only(&name, &deviations)?))]);
    }
    let mut trials = Vec::new();
    for family in &FAMILIES {
        for batch in 0..family.batches {
            let deviations = Arc::clone(&deviations);
            let name = format!("{}/{}", family.name, batch + 1);
            trials.push(Trial::test(name, move || Ok(check_batch(family, batch, &deviations)?)));
        }
    }
    for ranges in fresh::RANGES {
        trials.push(Trial::test(format!("fresh/{ranges}"), move || {
            let vectors = fresh::vectors(ranges)?;
            Ok(report(
                vectors.iter().map(|vector| (format!("fresh/{ranges}/{}", vector.name), check(vector, None))),
            )?)
        }));
    }
    Ok(trials)
}

/// Checks every `batches`-th vector, so that each batch is a mixture of all kinds.
fn check_batch(family: &Family, batch: usize, deviations: &[Deviation]) -> Result<(), String> {
    let vectors = named(family)?;
    let prefix = format!("{}/", family.name);
    let mut of_family = deviations.iter().filter(|deviation| deviation.name.starts_with(&prefix));
    if let Some(unknown) = of_family.find(|known| vectors.iter().all(|(name, _)| *name != known.name)) {
        return Err(format!("expected.toml: unknown vector \"{}\"", unknown.name));
    }
    let of_batch = vectors.into_iter().skip(batch).step_by(family.batches);
    report(of_batch.map(|(name, vector)| {
        let deviation = deviations.iter().find(|deviation| deviation.name == name);
        (name, check(&vector, deviation))
    }))
}

fn check_only(wanted: &str, deviations: &[Deviation]) -> Result<(), String> {
    let deviation = deviations.iter().find(|deviation| deviation.name == wanted);
    for family in FAMILIES.iter().filter(|family| wanted.split('/').next() == Some(family.name)) {
        if let Some((_, vector)) = named(family)?.into_iter().find(|(name, _)| name == wanted) {
            return check(&vector, deviation);
        }
    }
    Err(format!("{ONLY}={wanted}: unknown vector; tests/ns2/*.jsonl have the names"))
}

/// Returns the vectors of a family with their full names.
fn named(family: &Family) -> Result<Vec<(String, Vector)>, String> {
    let vectors = read_family(family.text).map_err(|e| format!("{}.jsonl: {e}", family.name))?;
    Ok(vectors.into_iter().map(|vector| (format!("{}/{}", family.name, vector.name), vector)).collect())
}

/// Lists every vector that differs.
fn report(results: impl Iterator<Item = (String, Result<(), String>)>) -> Result<(), String> {
    let (mut differences, mut tried) = (String::new(), 0);
    for (name, result) in results {
        tried += 1;
        if let Err(difference) = result {
            let _ = writeln!(differences, "{name}:\n{difference}");
        }
    }
    eprintln!("{tried} vectors");
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}

/// Replays the recorded transmissions if ACKs were recorded, then runs the scenario with an airtcp host as
/// sender.
fn check(vector: &Vector, deviation: Option<&Deviation>) -> Result<(), String> {
    if vector.flows.iter().any(|flow| flow.acks.is_some()) {
        replay::check(vector).map_err(|difference| format!("path and receiver: {difference}"))?;
    }
    match (closed_loop(vector), deviation) {
        (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
        (Err(difference), None) => Err(difference),
        (Ok(()), Some(deviation)) => {
            Err(format!("equal, but expected.toml says it is not: {}", deviation.reason))
        }
    }
}

/// Runs the scenario with an airtcp host in place of ns-2's sender.
fn closed_loop(vector: &Vector) -> Result<(), String> {
    let mut senders: Vec<Box<dyn world::FlowSender + '_>> = Vec::new();
    for flow in &vector.flows {
        senders.push(Box::new(host::HostSender::new(flow)?));
    }
    let logs = world::run(vector, senders);
    vector.flows.iter().zip(&logs).try_for_each(|(flow, log)| order::compare(flow, log))
}
