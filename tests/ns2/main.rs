//! ns-2 is the oracle: with the profile `ns2`, our host sends the same segments in the same order at the same times.
//!
//! README.md says where the vectors come from and how to make more.

mod fresh;
mod host;
mod order;
mod path;
mod replay;
mod settings;
mod sink;
mod vector;
mod world;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;

use crate::vector::{Vector, read_family};

const FAMILIES: [(&str, &str); 4] = [
    ("recorded", include_str!("recorded.jsonl")),
    ("droplists", include_str!("droplists.jsonl")),
    ("random", include_str!("random.jsonl")),
    ("found", include_str!("found.jsonl")),
];

/// Vectors known to differ, each with its reason. It is an error if one of them does not differ, or another one does.
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
    let trials = match trials(arguments.ignored || arguments.include_ignored) {
        Ok(trials) => trials,
        Err(error) => {
            eprintln!("tests/ns2: {error}");
            return ExitCode::from(2);
        }
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trials(fresh: bool) -> Result<Vec<Trial>, String> {
    let expected: Expected =
        toml::from_str(include_str!("expected.toml")).map_err(|e| format!("expected.toml: {e}"))?;
    let mut deviations = expected.deviation;
    let mut trials = Vec::new();
    for (family, text) in FAMILIES {
        for vector in read_family(text).map_err(|e| format!("{family}.jsonl: {e}"))? {
            let vector = Arc::new(vector);
            let name = format!("{family}/{}", vector.name);
            let position = deviations.iter().position(|deviation| deviation.name == name);
            let deviation = position.map(|at| deviations.swap_remove(at));
            if vector.flows.iter().any(|flow| flow.acks.is_some()) {
                let vector = Arc::clone(&vector);
                trials.push(Trial::test(format!("path/{name}"), move || {
                    replay::check(&vector).map_err(Failed::from)
                }));
            }
            trials.push(Trial::test(name, move || match (closed_loop(&vector), &deviation) {
                (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
                (Err(difference), None) => Err(difference.into()),
                (Ok(()), Some(deviation)) => {
                    Err(format!("equal, but expected.toml says it is not: {}", deviation.reason).into())
                }
            }));
        }
    }
    if let Some(unknown) = deviations.first() {
        return Err(format!("expected.toml: there is no vector \"{}\"", unknown.name));
    }
    if fresh {
        for (family, vectors) in fresh::families()? {
            trials.extend(vectors.into_iter().map(|vector| {
                let name = format!("{family}/{}", vector.name);
                Trial::test(name, move || closed_loop(&vector).map_err(Failed::from)).with_ignored_flag(true)
            }));
        }
    }
    Ok(trials)
}

/// Our host in ns-2's place.
fn closed_loop(vector: &Vector) -> Result<(), String> {
    let mut senders: Vec<Box<dyn world::FlowSender + '_>> = Vec::new();
    for flow in &vector.flows {
        senders.push(Box::new(host::HostSender::new(flow)?));
    }
    let logs = world::run(vector, senders);
    vector.flows.iter().zip(&logs).try_for_each(|(flow, log)| order::compare(flow, log))
}
