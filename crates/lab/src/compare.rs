//! Compares transfers over TUN devices with the same transfers in virtual time. With the same seed, the path
//! treats the n-th packet in the same way in both, so they are compared decision by decision and round by
//! round.
//!
//! * `trace` is a transfer in a comparable form; `real` reads it from the lab's files, and `in_virtual_time`
//!   runs it.
//! * `parting` finds the first decision that differs, and the reason.

pub(crate) mod in_virtual_time;
mod parting;
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
pub use parting::{Alike, Moment, Parted, PartedBy};
use rayon::prelude::*;
pub use result::{Compared, Round, Verdict};

use super::LabError;
use super::experiment::{Experiment, Report, directory_name, write_json};
use super::sender::Kind;
use super::summary::profile;
use super::workload::{Amount, Ways, Workload};

/// Checks that virtual time has a model of such transfers.
///
/// # Errors
///
/// Returns an error that names the unsupported option.
pub fn has_a_model(workload: &Workload) -> Result<(), String> {
    let without = match workload {
        Workload { ways: Ways::Up | Ways::Both, .. } => "a sender on the mobile side (--direction)",
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
) -> Compared {
    let model = in_virtual_time::model(&experiment.receiver);
    let receiver = if model.is_some() { experiment.receiver.name() } else { "linux" };
    let model = model.unwrap_or_else(in_virtual_time::linux);
    let outcomes: Vec<_> = report.transfers.iter().filter(|outcome| outcome.sender == name).collect();
    let round = |index: usize| {
        let outcome = outcomes[index];
        let number = index as u32;
        let both = || {
            if let Some(why) = &outcome.failure {
                return Err(LabError::Transfer(format!("in real time: {why}")));
            }
            if let Some(why) = &outcome.invalid {
                return Err(LabError::Transfer(format!("invalid in real time, left out: {why}")));
            }
            let real = real::read(&experiment.directory.join(directory_name(number, name)))?;
            let fixed = HostSpec { profile: profile.profile(), recipe: recipe.clone() };
            let ran = in_virtual_time::run(experiment, model.clone(), fixed, outcome.seed, real.start)?;
            Ok((parting::compare(&real, &ran.trace), ran.kbit_per_s))
        };
        let (round, seed) = (number + 1, outcome.seed);
        match both() {
            Ok((alike, kbit_per_s)) => Round {
                round,
                seed,
                failure: None,
                real_kbit_per_s: Some(outcome.kbit_per_s),
                virtual_kbit_per_s: Some(kbit_per_s),
                decisions: Some(alike),
            },
            Err(error) => {
                let failure = Some(error.to_string());
                Round {
                    round,
                    seed,
                    failure,
                    real_kbit_per_s: None,
                    virtual_kbit_per_s: None,
                    decisions: None,
                }
            }
        }
    };
    let rounds: Vec<_> = (0..outcomes.len()).into_par_iter().map(round).collect();
    Compared::new(name, profile.as_str(), receiver, rounds)
}

impl Compared {
    /// Summarizes the rounds of a sender.
    fn new(sender: &str, profile: &str, receiver: &str, rounds: Vec<Round>) -> Self {
        let (real, other): (Vec<_>, Vec<_>) =
            rounds.iter().filter_map(|round| round.real_kbit_per_s.zip(round.virtual_kbit_per_s)).unzip();
        let ratio = Mean::of(&ratios(&other, &real));
        let alike = || rounds.iter().filter_map(|round| round.decisions.as_ref());
        let mut causes = BTreeMap::new();
        for divergence in alike().filter_map(|alike| alike.divergence.as_ref()) {
            *causes.entry(divergence.cause).or_default() += 1;
        }
        Self {
            sender: sender.to_owned(),
            profile: profile.to_owned(),
            receiver: receiver.to_owned(),
            real_kbit_per_s: Mean::of(&real),
            virtual_kbit_per_s: Mean::of(&other),
            verdict: Verdict::of(ratio),
            ratio,
            median_same: median(&alike().map(|alike| alike.same as f64).collect::<Vec<_>>()),
            causes,
            rounds,
        }
    }
}

/// Formats the comparison for a terminal of this width: a row per sender and a line per round. `None` shows
/// all columns.
pub fn table(compared: &[Compared], width: Option<usize>) -> String {
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
    for one in compared {
        let [mean, half] = shown(one.real_kbit_per_s, 1);
        let [virtual_mean, virtual_half] = shown(one.virtual_kbit_per_s, 1);
        let [ratio, ratio_half] = shown(one.ratio, 3);
        let same = one.median_same.map_or_else(|| "-".to_owned(), |same| format!("{same}"));
        let causes: Vec<_> = one.causes.iter().map(|(cause, rounds)| format!("{cause} {rounds}")).collect();
        let causes = if causes.is_empty() { "-".to_owned() } else { causes.join(", ") };
        let sender = one.sender.clone();
        let verdict = one.verdict.to_string();
        table.push([
            sender,
            mean,
            half,
            virtual_mean,
            virtual_half,
            ratio,
            ratio_half,
            verdict,
            same,
            causes,
        ]);
    }
    let over = profile(compared.iter().map(|one| Some(one.profile.as_str())));
    let text = over.map(|over| format!("{over}\n")).unwrap_or_default() + &table.render(width);
    let mut lines = String::new();
    for one in compared {
        for Round { round, failure, decisions, .. } in &one.rounds {
            let line = match (failure, decisions) {
                (Some(why), _) => why.clone(),
                (None, Some(alike)) => alike.to_string(),
                (None, None) => continue,
            };
            lines += &format!("{}, round {round}: {line}\n", one.sender);
        }
    }
    text + &wrapped_lines(&lines, width)
}

fn shown(mean: Option<Mean>, digits: usize) -> [String; 2] {
    let Some(mean) = mean else { return ["-".to_owned(), String::new()] };
    let width = mean.half_width.map_or_else(String::new, |width| format!("± {width:.digits$}"));
    [format!("{:.digits$}", mean.mean), width]
}
