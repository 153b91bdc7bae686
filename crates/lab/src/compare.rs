//! Compares transfers over TUN devices with the same transfers in virtual time. With the same seed, the path
//! treats the n-th packet in the same way in both, so they are compared decision by decision and round by
//! round.
//!
//! * `trace` is a transfer in a comparable form; `real` reads it from the lab's files, and `in_virtual_time`
//!   runs it.
//! * `divergence` finds the first decision that differs, and the cause.

mod divergence;
pub(crate) mod in_virtual_time;
mod real;
pub(crate) mod result;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;

use airtcp::profile::ProfileName;
use airtcp::recovery::Recipe;
use airtcp_numbers::statistics::{Mean, median, ratios};
use airtcp_numbers::table::{Column, Table, wrapped_lines};
use airtcp_sim::world::HostSpec;
pub use divergence::{Cause, DecisionComparison, DecisionSummary, Divergence};
use rayon::prelude::*;
pub use result::{RatioVerdict, Round, SenderComparison};

use super::LabError;
use super::experiment::{Experiment, Report, directory_name, write_json};
use super::sender::Kind;
use super::summary::profile;
use super::transfer::Outcome;
use super::workload::{Amount, Directions, Workload};

/// Checks that virtual time has a model of such transfers.
///
/// # Errors
///
/// Returns an error that names the unsupported option.
pub fn check_workload(workload: &Workload) -> Result<(), String> {
    let without = match workload {
        Workload { directions: Directions::Up | Directions::Both, .. } => {
            "a sender on the mobile side (--direction)"
        }
        Workload { flows, .. } if *flows > 1 => "several connections (--flows)",
        Workload { competitors, .. } if !competitors.is_empty() => "competing senders (--competitor)",
        Workload { amount: Amount::Time(_), .. } => "transfers limited by time (--for)",
        Workload { read_rate: Some(_), .. } => "a receiver that reads slowly (--read-rate)",
        _ => return Ok(()),
    };
    Err(format!(
        "--virtual compares a single connection down and does not support {without}; omit one of the two"
    ))
}

/// Runs every recipe of the experiment in virtual time with the seeds of its rounds, compares the results,
/// and adds the comparison to the report and to `lab.json`. The experiment must have kept the path's events.
///
/// # Errors
///
/// Returns an error if `lab.json` cannot be written.
pub fn compare(experiment: &Experiment, report: &mut Report) -> Result<(), LabError> {
    report.in_virtual_time = experiment
        .senders
        .iter()
        .filter_map(|sender| match &sender.kind {
            Kind::Recipe { recipe, profile } => {
                Some(of_sender(experiment, report, &sender.name, recipe, *profile))
            }
            Kind::Kernel(_) => None,
        })
        .collect();
    write_json(&experiment.directory.join("lab.json"), report)
}

fn of_sender(
    experiment: &Experiment,
    report: &Report,
    name: &str,
    recipe: &Recipe,
    profile: ProfileName,
) -> SenderComparison {
    let model = in_virtual_time::model(&experiment.receiver);
    let receiver = if model.is_some() { experiment.receiver.name() } else { "linux" };
    let model = model.unwrap_or_else(in_virtual_time::linux);
    let outcomes: Vec<_> = report.transfers.iter().filter(|outcome| outcome.sender == name).collect();
    let compare_decisions = |number: u32, outcome: &Outcome| -> Result<_, LabError> {
        if let Some(why) = &outcome.failure {
            return Err(LabError::Transfer(format!("in real time: {why}")));
        }
        if let Some(why) = &outcome.invalid {
            return Err(LabError::Transfer(format!("invalid in real time, left out: {why}")));
        }
        let real = real::read(&experiment.directory.join(directory_name(number, name)))?;
        let fixed = HostSpec { profile: profile.profile(), recipe: recipe.clone() };
        let (trace, kbit_per_s) =
            in_virtual_time::run(experiment, model.clone(), fixed, outcome.seed, real.start)?;
        Ok((divergence::compare(&real, &trace), kbit_per_s))
    };
    let round = |index: usize| {
        let outcome = outcomes[index];
        let number = index as u32;
        let round = Round { round: number + 1, seed: outcome.seed, ..Round::default() };
        match compare_decisions(number, outcome) {
            Ok((decisions, kbit_per_s)) => Round {
                real_kbit_per_s: Some(outcome.kbit_per_s),
                virtual_kbit_per_s: Some(kbit_per_s),
                decisions: Some(decisions),
                ..round
            },
            Err(error) => Round { failure: Some(error.to_string()), ..round },
        }
    };
    let rounds: Vec<_> = (0..outcomes.len()).into_par_iter().map(round).collect();
    SenderComparison::new(name, profile.as_str(), receiver, rounds)
}

impl SenderComparison {
    /// Summarizes the rounds of a sender.
    fn new(sender: &str, profile: &str, receiver: &str, rounds: Vec<Round>) -> Self {
        let (real, other): (Vec<_>, Vec<_>) =
            rounds.iter().filter_map(|round| round.real_kbit_per_s.zip(round.virtual_kbit_per_s)).unzip();
        let ratio = Mean::of(&ratios(&other, &real));
        let compared = || rounds.iter().filter_map(|round| round.decisions.as_ref());
        let mut causes = BTreeMap::new();
        for divergence in compared().filter_map(|decisions| decisions.divergence.as_ref()) {
            *causes.entry(divergence.cause).or_default() += 1;
        }
        Self {
            sender: sender.to_owned(),
            profile: profile.to_owned(),
            receiver: receiver.to_owned(),
            real_kbit_per_s: Mean::of(&real),
            virtual_kbit_per_s: Mean::of(&other),
            verdict: RatioVerdict::of(ratio),
            ratio,
            median_same: median(&compared().map(|decisions| decisions.same as f64).collect::<Vec<_>>()),
            causes,
            rounds,
        }
    }
}

/// Formats the comparison for a terminal of this width: a row per sender and a line per round. `None` shows
/// all columns.
pub fn table(compared: &[SenderComparison], width: Option<usize>) -> String {
    const REAL: &str = "real, kbit/s";
    const VIRTUAL: &str = "virtual, kbit/s";
    const RATIO: &str = "virtual / real";
    const SAME: &str = "same decisions";
    let mut table = Table::new([
        Column::new("sender").left(),
        Column::new("mean").of(REAL),
        Column::new("").of(REAL).joined(),
        Column::new("mean").of(VIRTUAL),
        Column::new("").of(VIRTUAL).joined(),
        Column::new("ratio").of(RATIO),
        Column::new("").of(RATIO).joined(),
        Column::new("verdict").of(RATIO).optional(2),
        Column::new("median").of(SAME).optional(1),
        Column::new("cause of difference").of(SAME).left().optional(0),
    ]);
    for sender in compared {
        let mut row = vec![sender.sender.clone()];
        row.extend(mean_and_half_width(sender.real_kbit_per_s, 1));
        row.extend(mean_and_half_width(sender.virtual_kbit_per_s, 1));
        row.extend(mean_and_half_width(sender.ratio, 3));
        row.push(sender.verdict.to_string());
        row.push(sender.median_same.map_or_else(|| "-".to_owned(), |same| format!("{same}")));
        let causes: Vec<_> =
            sender.causes.iter().map(|(cause, rounds)| format!("{cause} {rounds}")).collect();
        row.push(if causes.is_empty() { "-".to_owned() } else { causes.join(", ") });
        table.push(row);
    }
    let heading = profile(compared.iter().map(|sender| Some(sender.profile.as_str())));
    let text = heading.map(|heading| format!("{heading}\n")).unwrap_or_default() + &table.render(width);
    let mut lines = String::new();
    for sender in compared {
        for Round { round, failure, decisions, .. } in &sender.rounds {
            let line = match (failure, decisions) {
                (Some(why), _) => why.clone(),
                (None, Some(decisions)) => decisions.to_string(),
                (None, None) => continue,
            };
            lines += &format!("{}, round {round}: {line}\n", sender.sender);
        }
    }
    text + &wrapped_lines(&lines, width)
}

fn mean_and_half_width(mean: Option<Mean>, digits: usize) -> [String; 2] {
    let Some(mean) = mean else { return ["-".to_owned(), String::new()] };
    let width = mean.half_width.map_or_else(String::new, |width| format!("± {width:.digits$}"));
    [format!("{:.digits$}", mean.mean), width]
}
