//! The same runs twice: over real devices to this kernel, and in virtual time. Do their means agree?

use airtcp_numbers::statistics::Mean;
use airtcp_sim::run::{Run, Until, run_watched};
use airtcp_sim::world::{Flow, HostSpec, Length};
use airwire::time::{Duration, Instant};
use rayon::prelude::*;
use serde::Serialize;

use super::LabError;
use super::experiment::{Experiment, Report};
use super::sender::Kind;
use super::summary::{aligned, profile};

/// The goodput of one recipe in kbit/s, both ways. The kernel's own senders have no model in virtual time.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The recipe, with its profile where those of the experiment differ.
    pub sender: String,
    /// The profile, in both.
    pub profile: &'static str,
    /// Over real devices; `None` if no transfer succeeded.
    pub real: Option<Mean>,
    /// With the same seeds in virtual time.
    pub in_virtual_time: Option<Mean>,
    /// The two 95 % intervals meet.
    pub agree: bool,
}

/// Runs every recipe of the experiment in virtual time, with the seeds of its rounds. Goodput is measured as in a
/// capture: from the first SYN to the ACK for the last octet.
pub fn compare(experiment: &Experiment, report: &Report) -> Result<Vec<Compared>, LabError> {
    let mut compared = Vec::new();
    for (sender, row) in experiment.senders.iter().zip(&report.summary) {
        let Kind::Recipe { recipe, profile } = &sender.kind else { continue };
        let fixed = || HostSpec { profile: profile.profile(), recipe: recipe.clone() };
        let seeds: Vec<_> = (0..u64::from(experiment.rounds)).map(|round| experiment.seed + round).collect();
        let goodputs = seeds
            .into_par_iter()
            .map(|seed| goodput(experiment, fixed(), seed))
            .collect::<Result<Vec<_>, LabError>>()?;
        let in_virtual_time = Mean::of(&goodputs);
        let agree = match (&row.kbit_per_s, &in_virtual_time) {
            (Some(real), Some(other)) => real.agrees_with(other),
            _ => false,
        };
        compared.push(Compared {
            sender: sender.name.clone(),
            profile: profile.as_str(),
            real: row.kbit_per_s,
            in_virtual_time,
            agree,
        });
    }
    Ok(compared)
}

fn goodput(experiment: &Experiment, fixed: HostSpec, seed: u64) -> Result<f64, LabError> {
    let octets = experiment.bytes;
    let run = Run {
        scenario: experiment.scenario.clone(),
        seed,
        fixed,
        mobile: HostSpec::kernel(),
        flows: vec![Flow::down(Length::Octets(octets))],
        until: Until::Complete(Duration::from_nanos(experiment.limit.as_nanos() as u64)),
        from: Instant::ZERO,
        score: false,
    };
    let mut acknowledged = None;
    run_watched(&run, |world| {
        let done = || world.sender(0).is_some_and(|sender| sender.statistics().bytes_acked >= octets);
        if acknowledged.is_none() && done() {
            acknowledged = Some(world.now());
        }
    })
    .map_err(|error| LabError::Transfer(error.to_string()))?;
    let seconds = acknowledged.map_or(0.0, |at| at.as_secs_f64());
    if seconds == 0.0 {
        return Err(LabError::Transfer(format!(
            "in virtual time the transfer is not done after {} s (seed {seed})",
            experiment.limit.as_secs()
        )));
    }
    Ok(octets as f64 * 8.0 / seconds / 1e3)
}

/// For a terminal.
pub fn table(compared: &[Compared]) -> String {
    let mut rows =
        vec![["sender", "real, kbit/s", "", "virtual, kbit/s", "", "virtual / real", ""].map(str::to_owned)];
    for Compared { sender, real, in_virtual_time, agree, .. } in compared {
        let [mean, width] = shown(real);
        let [virtual_mean, virtual_width] = shown(in_virtual_time);
        let ratio = match (real, in_virtual_time) {
            (Some(real), Some(other)) => format!("{:.2}", other.mean / real.mean),
            _ => "-".to_owned(),
        };
        let verdict = if *agree { "agree" } else { "DO NOT AGREE" };
        rows.push([sender.clone(), mean, width, virtual_mean, virtual_width, ratio, verdict.to_owned()]);
    }
    let over = profile(compared.iter().map(|one| Some(one.profile)));
    over.map(|over| format!("{over}\n")).unwrap_or_default() + &aligned(&rows)
}

fn shown(mean: &Option<Mean>) -> [String; 2] {
    let Some(mean) = mean else { return ["-".to_owned(), String::new()] };
    [format!("{:.1}", mean.mean), mean.half_width.map_or_else(String::new, |width| format!("± {width:.1}"))]
}
