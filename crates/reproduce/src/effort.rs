//! The number of runs per point, and the results of runs that are already done.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use airtcp::recovery::inputs::keep_common;
use airtcp_sim::run::{self, Report, Run};
use airtcp_sim::world::{World, WorldError};
use rayon::prelude::*;
use serde::Serialize;

use crate::reading::Reading;
use crate::runs::Runs;

/// The number of seeds, and the results so far.
#[derive(Debug)]
pub struct Effort {
    /// Runs per point. Every point has the same seeds in the same order, so that compared senders form pairs.
    pub seeds: u32,
    first_seed: u64,
    reading: Reading,
    earlier: EarlierResults,
    watcher: Arc<dyn Watcher>,
    missing: Arc<Missing>,
    runs: Option<Arc<Runs>>,
}

/// For each recipe, the parts whose information has arrived in no run of a figure.
#[derive(Debug, Default)]
pub struct Missing(Mutex<BTreeMap<String, Option<Vec<String>>>>);

impl Missing {
    fn note(&self, report: &Report) {
        let mut missing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for flow in &report.flows {
            keep_common(missing.entry(flow.recipe.clone()).or_default(), &flow.notices);
        }
    }

    /// One line for each part of a recipe whose information never arrived.
    pub fn notices(&self) -> Vec<String> {
        let missing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = |(recipe, notices): (&String, &Option<Vec<String>>)| {
            notices.iter().flatten().map(|notice| format!("{recipe}: {notice}")).collect::<Vec<_>>()
        };
        missing.iter().flat_map(lines).collect()
    }
}

/// Receives the progress of a figure, from all threads that run it.
pub trait Watcher: std::fmt::Debug + Send + Sync {
    /// Receives a finished run.
    fn ran(&self, run: &Run, report: &Report);

    /// Receives the approximate number of further runs. Only a search calls this. For other figures, the first seed is
    /// enough to estimate the number of runs.
    fn expects(&self, runs: u64);
}

/// A watcher that ignores the progress.
#[derive(Debug)]
struct NoWatcher;

impl Watcher for NoWatcher {
    fn ran(&self, _: &Run, _: &Report) {}

    fn expects(&self, _: u64) {}
}

impl Effort {
    /// An effort with `seeds` seeds, without previous results and without a watcher.
    pub fn new(seeds: u32) -> Self {
        Self::watched(seeds, Arc::new(NoWatcher))
    }

    /// An effort with `seeds` seeds and a watcher, without previous results.
    pub fn watched(seeds: u32, watcher: Arc<dyn Watcher>) -> Self {
        Self {
            seeds,
            first_seed: 1,
            reading: Reading::default(),
            earlier: EarlierResults::default(),
            watcher,
            missing: Arc::default(),
            runs: None,
        }
    }

    /// The same effort with the seeds from `first`. Without this, the first seed is 1.
    pub fn starting_at(self, first: u64) -> Self {
        Self { first_seed: first, ..self }
    }

    /// The same effort, which also records its runs in the chosen reading.
    pub fn recording(self, runs: Arc<Runs>) -> Self {
        Self { runs: Some(runs), ..self }
    }

    /// For each recipe, the parts whose information has arrived in no run so far.
    pub fn missing(&self) -> Arc<Missing> {
        Arc::clone(&self.missing)
    }

    /// Reports the approximate number of runs that will follow, for a search.
    pub(crate) fn expects(&self, runs: u64) {
        self.watcher.expects(runs);
    }

    /// An effort with another number of seeds and without previous results.
    pub fn fresh(&self, seeds: u32) -> Self {
        let effort = Self::watched(seeds, Arc::clone(&self.watcher));
        Self {
            first_seed: self.first_seed,
            missing: self.missing(),
            reading: self.reading.clone(),
            runs: self.runs.clone(),
            ..effort
        }
    }

    /// An effort with at most `seeds` seeds, for a part of a figure with long runs.
    pub(crate) fn at_most(&self, seeds: u32) -> Self {
        self.fresh(self.seeds.min(seeds))
    }

    /// An effort with the same seeds and another reading of the paper, without previous results.
    pub(crate) fn with_reading(&self, reading: Reading) -> Self {
        Self { reading, runs: None, ..self.fresh(self.seeds) }
    }

    /// The value of a detail in this reading, if it differs from the chosen one.
    pub(crate) fn value(&self, detail: &str) -> Option<&'static str> {
        self.reading.value(detail)
    }

    /// Changes a run to this reading. [`Self::sample`] and [`Self::watch`] call it for their runs.
    pub(crate) fn apply_reading(&self, mut run: Run) -> Result<Run, WorldError> {
        self.reading.apply(&mut run)?;
        Ok(run)
    }

    /// The same effort with more seeds. A figure that runs again executes only the runs that are missing.
    pub fn with_seeds(self, seeds: u32) -> Self {
        self.earlier.next.store(0, Ordering::Relaxed);
        Self { seeds, ..self }
    }

    /// Runs every point with every seed on all cores, and returns the results of `measure` by point, in the order of
    /// the seeds. Samples of two points at the same index have the same seed, so they are a pair.
    ///
    /// A figure must request the same points in the same order every time, because earlier results are found by their
    /// position in this order.
    pub fn sample<P: Sync, T: Clone + Send + Serialize + 'static>(
        &self,
        points: &[P],
        plan: impl Fn(&P, u64) -> Run + Sync,
        measure: impl Fn(&P, &Report) -> T + Sync,
    ) -> Result<Vec<Vec<T>>, WorldError> {
        self.watch(points, plan, |point, report, _| measure(point, report))
    }

    /// Like [`Effort::sample`], for a value that is [`named`].
    pub(crate) fn sample_named<P: Sync, T: Clone + Send + Serialize + 'static>(
        &self,
        name: &'static str,
        points: &[P],
        plan: impl Fn(&P, u64) -> Run + Sync,
        measure: impl Fn(&P, &Report) -> T + Sync,
    ) -> Result<Vec<Vec<T>>, WorldError> {
        self.sample(points, plan, |point, report| named(name, measure(point, report))).map(unnamed)
    }

    /// Like [`Effort::sample`]. `measure` also gets the world, with the records that the flows were set to watch.
    pub fn watch<P: Sync, T: Clone + Send + Serialize + 'static>(
        &self,
        points: &[P],
        plan: impl Fn(&P, u64) -> Run + Sync,
        measure: impl Fn(&P, &Report, &mut World) -> T + Sync,
    ) -> Result<Vec<Vec<T>>, WorldError> {
        self.execute(
            points,
            |point, seed| self.apply_reading(plan(point, seed)),
            |point, run| {
                let (report, mut world) = run::run_watched(run, |_| {})?;
                let measured = measure(point, &report, &mut world);
                Ok((report, measured))
            },
        )
    }

    /// Like [`Effort::sample`], for measurements during a run: `job` executes the run itself.
    pub(crate) fn execute<P: Sync, T: Clone + Send + Serialize + 'static>(
        &self,
        points: &[P],
        plan: impl Fn(&P, u64) -> Result<Run, WorldError> + Sync,
        job: impl Fn(&P, &Run) -> Result<(Report, T), WorldError> + Sync,
    ) -> Result<Vec<Vec<T>>, WorldError> {
        let numbers = match &self.runs {
            Some(runs) => {
                let first = points.iter().map(|point| plan(point, self.first_seed));
                runs.number(&first.collect::<Result<Vec<_>, _>>()?)
            }
            None => Vec::new(),
        };
        let indices: Vec<usize> = (0..points.len()).collect();
        self.each(&indices, |&index, seed| {
            let run = plan(&points[index], seed)?;
            let (report, measured) = job(&points[index], &run)?;
            self.missing.note(&report);
            self.watcher.ran(&run, &report);
            if let Some(runs) = &self.runs {
                runs.measured(numbers[index], run.seed, &measured);
            }
            Ok(measured)
        })
    }

    /// Executes a run that does not depend on the seeds.
    pub(crate) fn once(&self, run: &Run) -> Result<World, WorldError> {
        let (report, world) = run::run_watched(run, |_| {})?;
        self.watcher.ran(run, &report);
        if let Some(runs) = &self.runs {
            runs.number(std::slice::from_ref(run));
        }
        Ok(world)
    }

    /// Calls `job` for each point with each seed.
    fn each<P: Sync, T: Clone + Send + 'static>(
        &self,
        points: &[P],
        job: impl Fn(&P, u64) -> Result<T, WorldError> + Sync,
    ) -> Result<Vec<Vec<T>>, WorldError> {
        let call = self.earlier.next.fetch_add(1, Ordering::Relaxed);
        let earlier: Option<Vec<Vec<T>>> = self.earlier.take(call);
        let mut samples = earlier.unwrap_or_else(|| points.iter().map(|_| Vec::new()).collect());
        let missing = |(point, seeds): (usize, &Vec<T>)| {
            (seeds.len() as u64..u64::from(self.seeds)).map(move |index| (point, self.first_seed + index))
        };
        let jobs: Vec<(usize, u64)> = samples.iter().enumerate().flat_map(missing).collect();
        let values: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
        in_parallel(jobs.len(), &|index| {
            let (point, seed) = jobs[index];
            *values[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(job(&points[point], seed)?);
            Ok(())
        })?;
        for ((point, _), value) in jobs.into_iter().zip(values) {
            samples[point].extend(value.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
        self.earlier.keep(call, samples.clone());
        Ok(samples)
    }
}

/// Calls `job` with each number below `count`, on all cores. Not generic: the code of a parallel iterator would be
/// compiled once per figure.
fn in_parallel(
    count: usize,
    job: &(dyn Fn(usize) -> Result<(), WorldError> + Sync),
) -> Result<(), WorldError> {
    (0..count).into_par_iter().try_for_each(job)
}

/// A value with the name of its column in [`Runs`]. A struct does not need it, because its fields become columns.
type Named<T> = BTreeMap<&'static str, T>;

pub(crate) fn named<T>(name: &'static str, value: T) -> Named<T> {
    BTreeMap::from([(name, value)])
}

/// Removes the names that [`named`] added.
pub(crate) fn unnamed<T>(samples: Vec<Vec<Named<T>>>) -> Vec<Vec<T>> {
    let values = |seeds: Vec<Named<T>>| seeds.into_iter().flat_map(BTreeMap::into_values).collect();
    samples.into_iter().map(values).collect()
}

/// The results of a figure that runs again with more seeds. A figure requests its results in the same order every time,
/// so the position in this order identifies them.
#[derive(Default)]
struct EarlierResults {
    next: AtomicUsize,
    samples: Mutex<BTreeMap<usize, Box<dyn Any + Send>>>,
}

impl EarlierResults {
    fn take<T: 'static>(&self, call: usize) -> Option<T> {
        let kept = self.samples.lock().ok()?.remove(&call)?;
        kept.downcast().ok().map(|kept| *kept)
    }

    fn keep<T: Send + 'static>(&self, call: usize, samples: T) {
        if let Ok(mut kept) = self.samples.lock() {
            kept.insert(call, Box::new(samples));
        }
    }
}

impl std::fmt::Debug for EarlierResults {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EarlierResults").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_begin_at_first_seed() {
        let seeds = |effort: &Effort| effort.each(&["a", "b"], |_, seed| Ok(seed)).unwrap();
        assert_eq!(seeds(&Effort::new(2)), [[1, 2], [1, 2]]);
        let later = Effort::new(2).starting_at(10);
        assert_eq!(seeds(&later), [[10, 11], [10, 11]]);
        assert_eq!(seeds(&later.with_seeds(3)), [[10, 11, 12], [10, 11, 12]]);
        assert_eq!(seeds(&Effort::new(3).starting_at(10).at_most(1)), [[10], [10]]);
    }
}
