//! How far the figures are, and how long the rest will take: by what one seed of each has taken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlink::reactor::Clock;
use airtcp_reproduce::Told;
use airwire::time::{Duration, Instant};

use crate::shared::progress::{Teller, in_words};

/// What one seed of a figure takes, on all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    seconds: f64,
    runs: u64,
}

impl Cost {
    /// What so many seeds take.
    fn of(self, seeds: u32) -> f64 {
        self.seconds * f64::from(seeds)
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
    /// The rest is run. `cost`: of the figure whose turn it is, where it has been looked at.
    Running { cost: Option<Cost>, work: Work },
}

/// In seconds of what the first seeds took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Work {
    /// Of all figures, with all seeds that are known to be needed.
    all: f64,
    /// Of figures that are done.
    before: f64,
    /// Of this figure.
    this: f64,
}

impl Work {
    /// In real time. What comes is as much slower than the first seeds as what is done.
    fn left(self, took: f64) -> Duration {
        let done = self.before + self.this;
        let pace = if done > 0.0 { took / done } else { 1.0 };
        Duration::from_secs_f64((self.all - done).max(0.0) * pace)
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

    /// What a figure calls after each run.
    pub(super) fn told(self: &Arc<Self>) -> Told {
        let progress = Arc::clone(self);
        Told::new(move || progress.state().ran())
    }

    /// One seed of a figure begins.
    pub(super) fn look(&self, what: String) {
        let mut state = self.state();
        (state.what, state.runs) = (what, 0);
        state.since = state.clock.now();
    }

    /// What it took since [`Progress::look`].
    pub(super) fn cost(&self) -> Cost {
        let state = self.state();
        let seconds = state.clock.now().saturating_since(state.since).as_secs_f64();
        Cost { seconds, runs: state.runs }
    }

    /// All figures have been looked at: with so many seeds each, the rest takes so long at least.
    pub(super) fn begin(&self, costs: &[Cost], seeds: u32) -> Duration {
        let mut state = self.state();
        let all = costs.iter().map(|cost| cost.of(seeds - 1)).sum();
        state.phase = Phase::Running { cost: None, work: Work { all, ..Work::default() } };
        state.since = state.clock.now();
        Duration::from_secs_f64(all)
    }

    /// The rest of a figure begins.
    pub(super) fn figure(&self, what: String, cost: Option<Cost>) {
        let mut state = self.state();
        (state.what, state.runs) = (what, 0);
        if let Phase::Running { cost: of, .. } = &mut state.phase {
            *of = cost;
        }
    }

    /// It needs so many seeds more.
    pub(super) fn more(&self, seeds: u32) {
        if let Phase::Running { cost: Some(cost), work } = &mut self.state().phase {
            work.all += cost.of(seeds);
        }
    }

    /// It is done, and had so many seeds beside the first one.
    pub(super) fn done(&self, seeds: u32) {
        if let Phase::Running { cost: Some(cost), work } = &mut self.state().phase {
            work.before += cost.of(seeds);
            work.this = 0.0;
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
        if let Phase::Running { cost: Some(cost), work } = &mut self.phase {
            work.this += cost.seconds / cost.runs.max(1) as f64;
        }
        if self.teller.every().is_none_or(|every| now.saturating_since(self.shown) < every) {
            return;
        }
        self.shown = now;
        let Self { what, runs, .. } = self;
        let text = match self.phase {
            Phase::Looking => format!("{what}: {runs} runs of the first seed"),
            Phase::Running { cost: None, .. } => format!("{what}: {runs} runs"),
            Phase::Running { cost: Some(_), work } => {
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
        let work = Work { all: 100.0, before: 20.0, this: 5.0 };
        assert_eq!(work.left(50.0), Duration::from_secs(150));
        // Before anything is done, the first seeds are all that is known.
        assert_eq!(Work { all: 7.0, ..Work::default() }.left(0.0), Duration::from_secs(7));
        // A figure that took longer than its first seed promised.
        assert_eq!(Work { all: 10.0, before: 0.0, this: 11.0 }.left(20.0), Duration::ZERO);
    }
}
