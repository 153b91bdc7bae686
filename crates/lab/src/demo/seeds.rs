//! The runs of a scene in virtual time: every sender with every seed.

use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use airlink::packet::Direction;
use airlink::scenario::Scenario;
use airtcp::profile::ProfileName;
use airtcp::recovery::inputs::keep_common;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::inputs::observed;
use airtcp_sim::world::{FlowResult, HostSpec, Watch};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use rayon::prelude::*;

use super::SceneMeans;
use crate::LabError;
use crate::compare::in_virtual_time::{self, VirtualTransfer};
use crate::sender::{Kind, Sender};

/// The SYN leaves within this time after the start of the path. It is a multiple of the period of every event
/// on the scenes' paths, so every phase is equally likely.
pub(super) const START_RANGE: Duration = Duration::from_secs(12);

/// The time at which the SYN leaves. Outages have fixed times, so a random start makes them hit any part of a
/// transfer.
pub(super) fn begin(seed: u64) -> Duration {
    Duration::from_nanos(Stream::new(seed, "demo-begin").below(START_RANGE.as_nanos()))
}

/// Upper bound on the duration of a run. A sender that backs off repeatedly may need minutes.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(3600);

/// All runs of a sender, in the order of the seeds.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    pub(super) kbit_per_s: Vec<f64>,
    pub(super) resent: Vec<f64>,
    pub(super) timeouts: Vec<f64>,
    /// The notices that all runs have in common. `None` without runs.
    pub(super) notices: Option<Vec<String>>,
}

impl Runs {
    pub(super) fn means(&self) -> SceneMeans {
        let mean = |values: &[f64]| Mean::of(values).expect("there is a seed at least");
        SceneMeans {
            kbit_per_s: mean(&self.kbit_per_s),
            resent: mean(&self.resent),
            timeouts: mean(&self.timeouts),
        }
    }
}

/// Returns the index of the seed whose runs are closest to the medians of all senders. If the first sender
/// has timeouts with any seed, only these seeds are considered. With any other seed, the scene's event may
/// have no effect.
pub(super) fn typical(runs: &[Runs]) -> usize {
    // The distance is 0 for the median, and 1 for the slowest or fastest run.
    let distance = |runs: &Runs, index: usize| {
        let own = runs.kbit_per_s[index];
        let slower = runs.kbit_per_s.iter().filter(|other| **other < own).count() as f64;
        let faster = runs.kbit_per_s.iter().filter(|other| **other > own).count() as f64;
        (slower - faster).abs() / runs.kbit_per_s.len() as f64
    };
    let max_distance = |index: usize| runs.iter().map(|runs| distance(runs, index)).fold(0.0, f64::max);
    let Some(first) = runs.first() else { return 0 };
    let all = 0..first.timeouts.len();
    let nearest = |seeds: &mut dyn Iterator<Item = usize>| {
        seeds.min_by(|one, other| max_distance(*one).total_cmp(&max_distance(*other)))
    };
    let with_timeouts = nearest(&mut all.clone().filter(|index| first.timeouts[*index] > 0.0));
    with_timeouts.or_else(|| nearest(&mut all.clone())).unwrap_or(0)
}

/// The recipe that models a kernel sender. `None` for recipes.
pub(super) fn model_recipe(kind: &Kind) -> Option<String> {
    match kind {
        Kind::Recipe { .. } => None,
        Kind::Kernel(control) if control == "cubic" => Some("linux".to_owned()),
        Kind::Kernel(control) => Some(format!("{control}-linux")),
    }
}

pub(super) fn host(kind: &Kind) -> Result<HostSpec, LabError> {
    match kind {
        Kind::Recipe { recipe, profile } => {
            Ok(HostSpec { profile: profile.profile(), recipe: recipe.clone() })
        }
        kernel => {
            let name = model_recipe(kernel).unwrap_or_default();
            let recipe = name.parse().map_err(|error| LabError::Transfer(format!("{kernel}: {error}")))?;
            Ok(HostSpec { profile: ProfileName::Linux.profile(), recipe })
        }
    }
}

/// Runs every sender with every seed. Calls `observe` after each run with the number of finished runs and the
/// total.
pub(super) fn run(
    scenario: &Scenario,
    bytes: u64,
    senders: &[Sender],
    seeds: RangeInclusive<u64>,
    observe: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Runs>, LabError> {
    let seeds: Vec<u64> = seeds.collect();
    let all = senders.len() * seeds.len();
    let done = Mutex::new(0);
    let of_sender = |sender: &Sender| {
        let host = host(&sender.kind)?;
        let run = |seed: &u64| {
            let result = transfer(scenario, bytes, host.clone(), *seed).run(|_| {});
            // Report under the lock, so that the numbers increase.
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            *done += 1;
            observe(*done, all);
            result.map(|(world, kbit_per_s)| (world.result(0), kbit_per_s))
        };
        let results: Result<Vec<_>, LabError> = seeds.par_iter().map(run).collect();
        let mut runs = Runs::default();
        for (FlowResult { counters, inputs, .. }, kbit_per_s) in results? {
            runs.kbit_per_s.push(kbit_per_s);
            runs.resent.push(counters.resent() as f64);
            runs.timeouts.push(counters.timeouts as f64);
            let notices = observed(scenario, Direction::Down, inputs, &host.recipe);
            keep_common(&mut runs.notices, &notices);
        }
        Ok(runs)
    };
    senders.iter().map(of_sender).collect()
}

/// The transfer of a scene with this seed.
pub(super) fn transfer(scenario: &Scenario, bytes: u64, fixed: HostSpec, seed: u64) -> VirtualTransfer<'_> {
    VirtualTransfer {
        scenario,
        bytes,
        limit: LIMIT,
        receiver: in_virtual_time::linux(),
        fixed,
        seed,
        begin: Instant::ZERO + begin(seed),
        watch: Watch::Results,
    }
}
