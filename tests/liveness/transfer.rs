//! One transfer of the matrix, and its faults: a transfer that does not end, or a sender that is silent for
//! too long.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use airtcp::recovery::Recipe;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::sweep::setup::Setup;
use airtcp_sim::world::{Watch, World, WorldConfig};
use airwire::time::{Duration, Instant};

use crate::path::Path;
use crate::silence::{Silence, Watcher};

/// Number of path seeds for each case.
pub(crate) const SEEDS: u64 = 4;

/// A recipe and a profile on a path.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) recipe: Recipe,
    pub(crate) profile: &'static str,
    pub(crate) path: &'static Path,
}

/// A violation of the liveness conditions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The transfer did not complete within the time limit.
    NoEnd { delivered: u64, at: Instant },
    /// The sender was silent for too long.
    Silence(Silence),
    /// The simulation failed with an error.
    Broken(String),
}

/// The result of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The faults, each with its seed.
    pub(crate) faults: Vec<(u64, Fault)>,
    /// Duration of the transfer with each seed.
    pub(crate) took: Vec<Duration>,
}

impl Case {
    /// Returns the equivalent options of `airtcp sim`.
    fn setup(&self) -> Setup {
        let profile = self.profile.parse().expect("it is one of Profile::NAMES");
        Setup { recipes: vec![self.recipe.clone().into()], profile, ..self.path.setup.clone() }
    }

    /// Returns the command that reproduces the case, to be run in the root of the repository.
    pub(crate) fn command(&self, seed: u64) -> String {
        self.setup().command(seed)
    }

    /// Runs the case with every seed. Results are cached.
    pub(crate) fn outcome(&self) -> Arc<Outcome> {
        type Known = BTreeMap<(String, &'static str, &'static str), Arc<Outcome>>;
        static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
        let key = (self.recipe.to_string(), self.profile, self.path.name);
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = known().get(&key) {
            return Arc::clone(outcome);
        }
        let outcome = Arc::new(self.run());
        known().insert(key, Arc::clone(&outcome));
        outcome
    }

    fn run(&self) -> Outcome {
        let mut outcome = Outcome::default();
        for seed in 1..=SEEDS {
            let (fault, took) = self.transfer(seed);
            outcome.faults.extend(fault.map(|fault| (seed, fault)));
            outcome.took.push(took);
        }
        outcome
    }

    fn transfer(&self, seed: u64) -> (Option<Fault>, Duration) {
        let (mut world, limit) = self.world(seed, Watch::Results);
        let mut watcher = Watcher::default();
        while !world.is_closed() {
            match world.step_until(limit) {
                Ok(true) => watcher.observe(&world),
                Ok(false) => break,
                Err(error) => return (Some(Fault::Broken(error.to_string())), limit - Instant::ZERO),
            }
        }
        let result = world.result(0);
        // If no event is left, the silence lasts until the time limit.
        let end = if world.is_closed() { world.now() } else { limit };
        let silence = watcher.finish(end).map(Fault::Silence);
        let no_end = Fault::NoEnd { delivered: result.delivered, at: world.now() };
        let fault = if world.is_closed() && world.is_complete() { silence } else { Some(no_end) };
        (fault, result.took().unwrap_or(limit - Instant::ZERO))
    }

    fn world(&self, seed: u64, watch: Watch) -> (World, Instant) {
        let Run { scenario, seed, fixed, mobile, mut flows, until, .. } =
            self.setup().run(self.path.scenario.clone(), seed);
        for flow in &mut flows {
            flow.watch = watch;
        }
        let limit = match until {
            Until::At(limit) => limit,
            Until::Complete(limit) => Instant::ZERO + limit,
        };
        let world = World::new(WorldConfig { scenario, seed, fixed, mobile, flows });
        (world.expect("the paths of the matrix can be built"), limit)
    }

    /// Returns the events around `at`, one per line.
    pub(crate) fn around(&self, seed: u64, at: Instant) -> String {
        const BEFORE: usize = 24;
        const AFTER: usize = 8;
        let (mut world, limit) = self.world(seed, Watch::Packets);
        while !world.is_closed() && world.step_until(limit).unwrap_or(false) {}
        let sequence = world.time_sequence(0);
        let lines: Vec<_> = sequence.lines().collect();
        let time = |line: &str| line.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
        let next =
            lines.partition_point(|line| time(line).is_some_and(|time| time <= at.as_secs_f64() + 1e-6));
        lines[next.saturating_sub(BEFORE)..(next + AFTER).min(lines.len())].join("\n")
    }
}

impl Fault {
    /// Returns the time at which the fault begins.
    pub(crate) fn at(&self) -> Option<Instant> {
        match self {
            Self::NoEnd { at, .. } => Some(*at),
            Self::Silence(silence) => Some(silence.since),
            Self::Broken(_) => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |duration: Duration| duration.as_secs_f64();
        match self {
            Self::NoEnd { delivered, at } => {
                write!(f, "incomplete: {delivered} bytes were delivered by the last event, at {at} s")
            }
            Self::Silence(Silence { since, lasted, round_trip, timer, own }) => write!(
                f,
                "silent for {:.3} s from {since} s on; the timer in force was {:.3} s, the detector's own {:.3} s, the round trip {:.3} s",
                seconds(*lasted),
                seconds(*timer),
                seconds(*own),
                seconds(*round_trip)
            ),
            Self::Broken(error) => f.write_str(error),
        }
    }
}
