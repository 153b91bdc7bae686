//! How many runs are made of each point, and the runs that were made already.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use airtcp_sim::run::{self, Report, Run};
use airtcp_sim::world::{World, WorldError};
use rayon::prelude::*;

/// How many runs are made.
#[derive(Debug)]
pub struct Effort {
    /// Runs of every point, with the seeds 1, 2 and so on, so that all that is compared has the same seeds.
    pub seeds: u32,
    made: Made,
    watcher: Arc<dyn Watcher>,
}

/// Is told how a figure comes on, on whatever core makes it.
pub trait Watcher: std::fmt::Debug + Send + Sync {
    /// One more run is made.
    fn ran(&self);

    /// About so many are still to come. Only a figure that searches says so: of the others the first seed tells.
    fn expects(&self, runs: u64);
}

/// Nobody watches.
#[derive(Debug)]
struct Nobody;

impl Watcher for Nobody {
    fn ran(&self) {}

    fn expects(&self, _: u64) {}
}

impl Effort {
    /// So many seeds, nothing made before, and nobody who watches.
    pub fn new(seeds: u32) -> Self {
        Self::watched(seeds, Arc::new(Nobody))
    }

    /// So many seeds, and nothing made before.
    pub fn watched(seeds: u32, watcher: Arc<dyn Watcher>) -> Self {
        Self { seeds, made: Made::default(), watcher }
    }

    /// For a figure that searches: about so many runs are still to come.
    pub(crate) fn expects(&self, runs: u64) {
        self.watcher.expects(runs);
    }

    /// At most so many seeds, for a part of a figure whose runs are long. It makes them itself.
    pub(crate) fn at_most(&self, seeds: u32) -> Self {
        Self::watched(self.seeds.min(seeds), Arc::clone(&self.watcher))
    }

    /// The same with more seeds. A figure that is run again makes only those that it has not made before.
    pub fn with(self, seeds: u32) -> Self {
        self.made.next.store(0, Ordering::Relaxed);
        Self { seeds, ..self }
    }

    /// The seeds, from 1 on.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        1..=u64::from(self.seeds)
    }

    /// Runs every point with every seed, on all cores, and returns what `measure` takes from each report: by point, in
    /// the order of the seeds. Samples of two points at the same index have the same seed, so they are a pair.
    ///
    /// A figure asks for the same points in the same order each time that it is run: what it has is found by that.
    pub fn sample<P: Sync, T: Clone + Send + 'static>(
        &self,
        points: &[P],
        plan: impl Fn(&P, u64) -> Run + Sync,
        measure: impl Fn(&P, &Report) -> T + Sync,
    ) -> Result<Vec<Vec<T>>, WorldError> {
        self.watch(points, plan, |point, report, _| measure(point, report))
    }

    /// Like [`Effort::sample`]; `measure` is shown the world as well, with what its flows were watched for.
    pub fn watch<P: Sync, T: Clone + Send + 'static>(
        &self,
        points: &[P],
        plan: impl Fn(&P, u64) -> Run + Sync,
        measure: impl Fn(&P, &Report, &mut World) -> T + Sync,
    ) -> Result<Vec<Vec<T>>, WorldError> {
        self.each(points, |point, seed| {
            let (report, mut world) = run::run_watched(&plan(point, seed), |_| {})?;
            Ok(measure(point, &report, &mut world))
        })
    }

    /// Like [`Effort::sample`], for what is measured while a run goes on: `job` makes the run itself.
    pub(crate) fn each<P: Sync, T: Clone + Send + 'static>(
        &self,
        points: &[P],
        job: impl Fn(&P, u64) -> Result<T, WorldError> + Sync,
    ) -> Result<Vec<Vec<T>>, WorldError> {
        let call = self.made.next.fetch_add(1, Ordering::Relaxed);
        let made: Option<Vec<Vec<T>>> = self.made.take(call);
        let mut samples = made.unwrap_or_else(|| points.iter().map(|_| Vec::new()).collect());
        let missing = |(point, made): (usize, &Vec<T>)| {
            (made.len() as u64 + 1..=u64::from(self.seeds)).map(move |seed| (point, seed))
        };
        let jobs: Vec<(usize, u64)> = samples.iter().enumerate().flat_map(missing).collect();
        let found: Vec<(usize, T)> = jobs
            .into_par_iter()
            .map(|(point, seed)| {
                let measured = job(&points[point], seed)?;
                self.watcher.ran();
                Ok((point, measured))
            })
            .collect::<Result<_, WorldError>>()?;
        for (point, value) in found {
            samples[point].push(value);
        }
        self.made.keep(call, samples.clone());
        Ok(samples)
    }
}

/// What was measured, by the order in which a figure asks for it: that is the same each time.
#[derive(Default)]
struct Made {
    next: AtomicUsize,
    samples: Mutex<BTreeMap<usize, Box<dyn Any + Send>>>,
}

impl Made {
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

impl std::fmt::Debug for Made {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Made").finish_non_exhaustive()
    }
}
