//! The runs of a scene in virtual time: every sender with every seed.

use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use airlink::scenario::Scenario;
use airtcp::profile::ProfileName;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::{HostSpec, Watch};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use rayon::prelude::*;

use super::Many;
use crate::LabError;
use crate::compare::in_virtual_time::{self, OneTransfer};
use crate::sender::{Kind, Sender};

/// Within so long of the path's beginning the SYN leaves. What happens on the scenes' paths happens again every twelve seconds:
/// no part of that is more likely than another.
pub(super) const FIRST: Duration = Duration::from_secs(12);

/// When it leaves. Outages come at set times: so they come at any time of a transfer.
pub(super) fn begin(seed: u64) -> Duration {
    Duration::from_nanos(Stream::new(seed, "demo-begin").below(FIRST.as_nanos()))
}

/// No run takes longer. A sender that backs off again and again may need minutes.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(3600);

/// All runs of a sender, in the order of the seeds.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    pub(super) kbit_per_s: Vec<f64>,
    pub(super) resent: Vec<f64>,
    pub(super) timeouts: Vec<f64>,
}

struct Counted {
    kbit_per_s: f64,
    resent: f64,
    timeouts: f64,
}

impl Runs {
    pub(super) fn means(&self) -> Many {
        let mean = |values: &[f64]| Mean::of(values).expect("there is a seed at least");
        Many {
            kbit_per_s: mean(&self.kbit_per_s),
            resent: mean(&self.resent),
            timeouts: mean(&self.timeouts),
        }
    }
}

/// The seed, counted from the first one, whose runs are closest to the medians of all senders. It is one of the seeds in which
/// the first sender has a timeout, if there are any: in the others there may be nothing to see.
pub(super) fn typical(runs: &[Runs]) -> usize {
    // From 0 for the median to 1 for the slowest or fastest run.
    let distance = |own: &Runs, at: usize| {
        let count = |holds: fn(&f64, &f64) -> bool| {
            own.kbit_per_s.iter().filter(|other| holds(other, &own.kbit_per_s[at])).count() as f64
        };
        (count(|other, this| other < this) - count(|other, this| other > this)).abs()
            / own.kbit_per_s.len() as f64
    };
    let farthest = |at: usize| runs.iter().map(|own| distance(own, at)).fold(0.0, f64::max);
    let Some(first) = runs.first() else { return 0 };
    let all = 0..first.timeouts.len();
    let nearest = |seeds: Vec<usize>| {
        seeds.into_iter().min_by(|one, other| farthest(*one).total_cmp(&farthest(*other)))
    };
    nearest(all.clone().filter(|at| first.timeouts[*at] > 0.0).collect())
        .or_else(|| nearest(all.collect()))
        .unwrap_or(0)
}

/// The recipe that sends like this one of the kernel's. `None`: it is a recipe itself.
pub(super) fn stands_for(kind: &Kind) -> Option<String> {
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
            let name = stands_for(kernel).unwrap_or_default();
            let recipe = name.parse().map_err(|error| LabError::Transfer(format!("{kernel}: {error}")))?;
            Ok(HostSpec { profile: ProfileName::Linux.profile(), recipe })
        }
    }
}

/// Tells `observe` of each run as it ends: how many are done, of how many.
pub(super) fn run(
    scenario: &Scenario,
    octets: u64,
    senders: &[Sender],
    seeds: RangeInclusive<u64>,
    observe: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Runs>, LabError> {
    let seeds: Vec<u64> = seeds.collect();
    let all = senders.len() * seeds.len();
    let done = Mutex::new(0);
    let one = |host: &HostSpec, seed: u64| {
        let counted = run_one(scenario, octets, host.clone(), seed);
        // Told in order, whichever thread it was.
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += 1;
        observe(*done, all);
        counted
    };
    let of_sender = |sender: &Sender| {
        let host = host(&sender.kind)?;
        let counted: Result<Vec<Counted>, LabError> =
            seeds.par_iter().map(|seed| one(&host, *seed)).collect();
        let mut runs = Runs::default();
        for Counted { kbit_per_s, resent, timeouts } in counted? {
            runs.kbit_per_s.push(kbit_per_s);
            runs.resent.push(resent);
            runs.timeouts.push(timeouts);
        }
        Ok(runs)
    };
    senders.iter().map(of_sender).collect()
}

/// What a seed makes of a scene.
pub(super) fn transfer(scenario: &Scenario, octets: u64, fixed: HostSpec, seed: u64) -> OneTransfer<'_> {
    OneTransfer {
        scenario,
        octets,
        limit: LIMIT,
        receiver: in_virtual_time::linux(),
        fixed,
        seed,
        begin: Instant::ZERO + begin(seed),
        watch: Watch::Results,
    }
}

fn run_one(scenario: &Scenario, octets: u64, fixed: HostSpec, seed: u64) -> Result<Counted, LabError> {
    let (world, kbit_per_s) = transfer(scenario, octets, fixed, seed).run(|_| {})?;
    let counters = world.result(0).counters;
    Ok(Counted { kbit_per_s, resent: counters.resent() as f64, timeouts: counters.timeouts as f64 })
}
