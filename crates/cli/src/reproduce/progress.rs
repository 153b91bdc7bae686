//! How far the figures are, and how long the rest will take: by what one seed of each has taken.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlink::reactor::Clock;
use airtcp_reproduce::Watcher;
use airwire::time::{Duration, Instant};

use crate::shared::progress::{Teller, in_words};

/// What a figure takes, on all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// Of the first seed.
    seconds: f64,
    /// The same.
    runs: u64,
    /// Runs that are still to come.
    to_come: u64,
}

impl Cost {
    /// What so many runs take.
    fn of(self, runs: u64) -> f64 {
        self.seconds / self.runs.max(1) as f64 * runs as f64
    }
}

pub(super) struct Progress(Mutex<State>);

struct State {
    teller: Teller,
    clock: Clock,
    shown: Instant,
    /// The figure, and how many there are.
    what: String,
    /// Of it.
    runs: u64,
    phase: Phase,
    since: Instant,
}

enum Phase {
    /// One seed of a figure is run, to see what it takes.
    Looking,
    /// The rest is run. `cost`: of the figure whose turn it is.
    Running { cost: Cost, work: Work },
}

/// In seconds of what the first seeds took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Work {
    /// Of all figures, as far as is known.
    all: f64,
    /// Of figures that are done.
    before: f64,
    /// What is done of this figure.
    this: f64,
    /// What this figure takes, as far as is known.
    planned: f64,
}

impl Work {
    fn begin(&mut self, planned: f64) {
        (self.this, self.planned) = (0.0, planned);
    }

    /// More of this figure is to be done than was planned, or less.
    fn replan(&mut self, planned: f64) {
        self.all += planned - self.planned;
        self.planned = planned;
    }

    /// This figure is done, whatever was planned.
    fn done(&mut self) {
        self.replan(self.this);
        self.before += self.this;
        self.begin(0.0);
    }

    /// In real time. What comes is as much slower than the first seeds as what is done.
    fn left(self, took: f64) -> Duration {
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

/// What a figure calls.
impl Watcher for Progress {
    fn ran(&self) {
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
        let teller = Teller::new(quiet);
        Arc::new(Self(Mutex::new(State {
            teller,
            clock,
            shown: now,
            what: String::new(),
            runs: 0,
            phase: Phase::Looking,
            since: now,
        })))
    }

    /// One seed of a figure begins.
    pub(super) fn look(&self, what: String) {
        let mut state = self.state();
        (state.what, state.runs) = (what, 0);
        state.since = state.clock.now();
    }

    /// What it took since [`Progress::look`]. `further`: how many runs come after so many.
    pub(super) fn cost(&self, further: impl Fn(u64) -> u64) -> Cost {
        let state = self.state();
        let seconds = state.clock.now().saturating_since(state.since).as_secs_f64();
        Cost { seconds, runs: state.runs, to_come: further(state.runs) }
    }

    /// All figures have been looked at: the rest takes so long, about.
    pub(super) fn begin(&self, costs: &[Cost]) -> Duration {
        let mut state = self.state();
        let all = costs.iter().map(|cost| cost.of(cost.to_come)).sum();
        state.phase = Phase::Running { cost: Cost::default(), work: Work { all, ..Work::default() } };
        state.since = state.clock.now();
        Duration::from_secs_f64(all)
    }

    /// The rest of a figure begins.
    pub(super) fn figure(&self, what: String, cost: Cost) {
        let mut state = self.state();
        (state.what, state.runs) = (what, 0);
        if let Phase::Running { cost: of, work } = &mut state.phase {
            *of = cost;
            work.begin(cost.of(cost.to_come));
        }
    }

    /// It needs so many seeds more.
    pub(super) fn more(&self, seeds: u32) {
        if let Phase::Running { cost, work } = &mut self.state().phase {
            work.replan(work.planned + cost.of(cost.runs * u64::from(seeds)));
        }
    }

    /// It is done.
    pub(super) fn done(&self) {
        if let Phase::Running { work, .. } = &mut self.state().phase {
            work.done();
        }
    }

    /// Makes room for a line of the command's own.
    pub(super) fn clear(&self) {
        self.state().teller.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked with it has left numbers, whatever they are.
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
        if self.teller.every().is_none_or(|every| now.saturating_since(self.shown) < every) {
            return;
        }
        self.shown = now;
        let Self { what, runs, .. } = self;
        let text = match self.phase {
            Phase::Looking => format!("{what}: {runs} runs of the first seed"),
            Phase::Running { work, .. } => {
                let took = now.saturating_since(self.since).as_secs_f64();
                format!("{what}, {} left", in_words(work.left(took)))
            }
        };
        self.teller.tell(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_goes_by_the_pace_of_what_is_done() {
        let work = Work { all: 100.0, before: 20.0, this: 5.0, planned: 30.0 };
        assert_eq!(work.left(50.0), Duration::from_secs(150));
        // Before anything is done, the first seeds are all that is known.
        assert_eq!(Work { all: 7.0, ..Work::default() }.left(0.0), Duration::from_secs(7));
        // A figure that took longer than its first seed promised.
        assert_eq!(Work { all: 10.0, this: 11.0, ..Work::default() }.left(20.0), Duration::ZERO);
    }

    #[test]
    fn a_search_that_ends_early_is_not_waited_for() {
        let progress = Progress::new(true);
        let (one, search) =
            (Cost { seconds: 1.0, runs: 10, to_come: 90 }, Cost { seconds: 2.0, runs: 10, to_come: 1000 });
        assert_eq!(progress.begin(&[one, search]), Duration::from_secs(9 + 200));
        let work = || match progress.state().phase {
            Phase::Running { work, .. } => work,
            Phase::Looking => panic!("nothing runs"),
        };
        let makes = |runs| (0..runs).for_each(|_| progress.ran());
        let about =
            |seconds: f64, wanted: f64| assert!((seconds - wanted).abs() < 1e-6, "{seconds}, not {wanted}");

        progress.figure("one".to_owned(), one);
        makes(90);
        progress.more(10);
        about(work().all, 9.0 + 10.0 + 200.0);
        // It made half of what it might have.
        makes(50);
        progress.done();
        about(work().all, 14.0 + 200.0);
        about(work().before, 14.0);

        progress.figure("search".to_owned(), search);
        makes(100);
        progress.expects(300);
        about(work().all - work().before - work().this, 60.0);
        makes(300);
        progress.done();
        about(work().all, work().before);
    }
}
