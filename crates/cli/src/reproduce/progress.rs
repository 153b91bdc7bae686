//! Progress of the figures, and the remaining time, estimated from the first seed of each figure.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlink::reactor::Clock;
use airtcp_reproduce::Watcher;
use airtcp_sim::run::{Report, Run};
use airwire::time::{Duration, Instant};

use crate::shared::progress::{ProgressDisplay, format_duration};

/// The cost of a figure, on all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// Duration of the first seed.
    seconds: f64,
    /// Number of runs of the first seed.
    runs: u64,
    /// Number of further runs.
    remaining_runs: u64,
}

impl Cost {
    /// Returns the estimated duration of `runs` runs in seconds.
    fn of(self, runs: u64) -> f64 {
        self.seconds / self.runs.max(1) as f64 * runs as f64
    }
}

pub(super) struct Progress(Mutex<State>);

struct State {
    display: ProgressDisplay,
    clock: Clock,
    shown: Instant,
    /// Name and position of the current figure.
    label: String,
    /// Runs of the current figure so far.
    runs: u64,
    phase: Phase,
    since: Instant,
}

enum Phase {
    /// One seed per figure runs, to measure its cost.
    FirstSeeds,
    /// The other seeds run. `cost` is the cost of the current figure.
    Running { cost: Cost, work: Work },
}

/// Amounts of work, in seconds at the speed of the first seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Work {
    /// Estimated work of all figures.
    all: f64,
    /// Work of the finished figures.
    before: f64,
    /// Work done for the current figure.
    this: f64,
    /// Estimated work of the current figure.
    planned: f64,
}

impl Work {
    fn begin(&mut self, planned: f64) {
        (self.this, self.planned) = (0.0, planned);
    }

    /// Changes the estimate for the current figure.
    fn replan(&mut self, planned: f64) {
        self.all += planned - self.planned;
        self.planned = planned;
    }

    /// Finishes the current figure: its actual work replaces the estimate.
    fn done(&mut self) {
        self.replan(self.this);
        self.before += self.this;
        self.begin(0.0);
    }

    /// Returns the remaining real time, if the rest proceeds at the speed so far. `took` is the real time so
    /// far, in seconds.
    fn remaining(self, took: f64) -> Duration {
        let done = self.before + self.this;
        let pace = if done > 0.0 { took / done } else { 1.0 };
        Duration::from_secs_f64((self.all - done).max(0.0) * pace)
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Progress").finish_non_exhaustive()
    }
}

impl Watcher for Progress {
    fn ran(&self, _: &Run, _: &Report) {
        self.state().ran();
    }

    fn expects(&self, runs: u64) {
        if let Phase::Running { cost, work } = &mut self.state().phase {
            work.replan(work.this + cost.of(runs));
        }
    }
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Arc<Self> {
        let clock = Clock::start();
        let now = clock.now();
        let display = ProgressDisplay::new(quiet);
        Arc::new(Self(Mutex::new(State {
            display,
            clock,
            shown: now,
            label: String::new(),
            runs: 0,
            phase: Phase::FirstSeeds,
            since: now,
        })))
    }

    /// Begins the first seed of a figure.
    pub(super) fn begin_first_seed(&self, label: String) {
        let mut state = self.state();
        (state.label, state.runs) = (label, 0);
        state.since = state.clock.now();
    }

    /// Returns the cost since [`Progress::begin_first_seed`]. `further` maps the number of runs of the first
    /// seed to the number of further runs.
    pub(super) fn cost(&self, further: impl Fn(u64) -> u64) -> Cost {
        let state = self.state();
        let seconds = state.clock.now().saturating_since(state.since).as_secs_f64();
        Cost { seconds, runs: state.runs, remaining_runs: further(state.runs) }
    }

    /// Begins the other seeds, when the first seeds of all figures are done. Returns the approximate duration
    /// of the rest.
    pub(super) fn begin(&self, costs: &[Cost]) -> Duration {
        let mut state = self.state();
        let all = costs.iter().map(|cost| cost.of(cost.remaining_runs)).sum();
        state.phase = Phase::Running { cost: Cost::default(), work: Work { all, ..Work::default() } };
        state.since = state.clock.now();
        Duration::from_secs_f64(all)
    }

    /// Begins the other seeds of a figure.
    pub(super) fn figure(&self, label: String, cost: Cost) {
        let mut state = self.state();
        (state.label, state.runs) = (label, 0);
        if let Phase::Running { cost: of, work } = &mut state.phase {
            *of = cost;
            work.begin(cost.of(cost.remaining_runs));
        }
    }

    /// Adds this number of seeds to the estimate for the current figure.
    pub(super) fn more(&self, seeds: u32) {
        if let Phase::Running { cost, work } = &mut self.state().phase {
            work.replan(work.planned + cost.of(cost.runs * u64::from(seeds)));
        }
    }

    /// Finishes the current figure.
    pub(super) fn done(&self) {
        if let Phase::Running { work, .. } = &mut self.state().phase {
            work.done();
        }
    }

    /// Clears the progress line before the command prints a line.
    pub(super) fn clear(&self) {
        self.state().display.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock leaves only inaccurate numbers.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn ran(&mut self) {
        let now = self.clock.now();
        self.runs += 1;
        if let Phase::Running { cost, work } = &mut self.phase {
            work.this += cost.of(1);
        }
        if self.display.interval().is_none_or(|every| now.saturating_since(self.shown) < every) {
            return;
        }
        self.shown = now;
        let Self { label, runs, .. } = self;
        let text = match self.phase {
            Phase::FirstSeeds => format!("{label}: {runs} runs with the first seed"),
            Phase::Running { work, .. } => {
                let took = now.saturating_since(self.since).as_secs_f64();
                format!("{label}, {} left", format_duration(work.remaining(took)))
            }
        };
        self.display.show(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_follows_pace_of_finished_work() {
        let work = Work { all: 100.0, before: 20.0, this: 5.0, planned: 30.0 };
        assert_eq!(work.remaining(50.0), Duration::from_secs(150));
        // Before any work is done, the estimate uses only the first seeds.
        assert_eq!(Work { all: 7.0, ..Work::default() }.remaining(0.0), Duration::from_secs(7));
        // A figure can take longer than its first seed suggested.
        assert_eq!(Work { all: 10.0, this: 11.0, ..Work::default() }.remaining(20.0), Duration::ZERO);
    }

    #[test]
    fn early_search_end_reduces_expected_work() {
        let progress = Progress::new(true);
        let (one, search) = (
            Cost { seconds: 1.0, runs: 10, remaining_runs: 90 },
            Cost { seconds: 2.0, runs: 10, remaining_runs: 1000 },
        );
        assert_eq!(progress.begin(&[one, search]), Duration::from_secs(9 + 200));
        let work = || match progress.state().phase {
            Phase::Running { work, .. } => work,
            Phase::FirstSeeds => panic!("no figure is running"),
        };
        let finish_runs = |runs| (0..runs).for_each(|_| progress.state().ran());
        let assert_near =
            |seconds: f64, wanted: f64| assert!((seconds - wanted).abs() < 1e-6, "{seconds}, not {wanted}");

        progress.figure("one".to_owned(), one);
        finish_runs(90);
        progress.more(10);
        assert_near(work().all, 9.0 + 10.0 + 200.0);
        // The figure executes half of the additional runs.
        finish_runs(50);
        progress.done();
        assert_near(work().all, 14.0 + 200.0);
        assert_near(work().before, 14.0);

        progress.figure("search".to_owned(), search);
        finish_runs(100);
        progress.expects(300);
        assert_near(work().all - work().before - work().this, 60.0);
        finish_runs(300);
        progress.done();
        assert_near(work().all, work().before);
    }
}
