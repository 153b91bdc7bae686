//! Replays each model on the rounds, and measures the errors of their predictions.

use super::models::{MODELS, Model, Path, State};
use super::{Event, Measured, Observed};

/// Minimum window in segments before a reduction. The reduction of a smaller window is too coarse.
const MIN_WINDOW: f64 = 8.0;
/// The same minimum for a fall without a loss.
const MIN_FALLING_WINDOW: f64 = 5.0;
/// Number of rounds over which growth is predicted at once.
const HORIZON: usize = 10;
/// Minimum number of rounds between losses that show growth.
const MIN_ROUNDS: usize = 2;
/// The alternative state is used if the ratio of its error to the error of the current state is below this.
const CLEARLY_BETTER: f64 = 0.6;
/// Upper bound of a single error.
pub(super) const MAX_ERROR: f64 = 4.0;
/// Growth per round that indicates slow start, if the window exceeds `INITIAL_WINDOW`.
const SLOW_START_GROWTH: f64 = 1.25;
const INITIAL_WINDOW: f64 = 10.5;
/// The part of a segment by which a window can exceed the flight.
const PART: f64 = 0.99;
/// If the window grows by more than this factor per round, the time of the growth is uncertain.
const FAST_GROWTH: f64 = 1.1;
/// Maximum ratio of the windows of two rounds that counts as a reduction. `SECOND_FALL` applies soon after a
/// recovery.
const FALL: f64 = 0.86;
const SECOND_FALL: f64 = 0.92;

/// Errors with their weights.
#[derive(Clone, Debug, Default)]
pub(super) struct Errors(Vec<[f64; 2]>);

impl Errors {
    pub(super) fn add(&mut self, value: f64, weight: f64) {
        self.0.push([value.min(MAX_ERROR), weight]);
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    fn sum(&self) -> f64 {
        self.0.iter().map(|[value, weight]| value * weight).sum()
    }

    fn weight(&self) -> f64 {
        self.0.iter().map(|[_, weight]| weight).sum()
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.sum() / self.weight())
    }
}

/// One model in the replay, and the errors of its predictions in units of the tolerance.
pub(super) struct Candidate {
    pub(super) model: &'static Model,
    state: State,
    pub(super) growth: Errors,
    pub(super) reduction: Errors,
    /// The errors of the reductions without a loss.
    pub(super) falls: Errors,
    /// The possible windows after the current recovery.
    predicted: [f64; 2],
}

/// The rounds between two losses, and the path after each of them.
type Epoch = Vec<(Measured, Path)>;

/// The replay of all models.
pub(super) struct Replay {
    pub(super) candidates: Vec<Candidate>,
    pub(super) path: Path,
    /// Losses that were compared with predictions. `growth_rounds` is the number of such rounds.
    pub(super) losses: u32,
    pub(super) growth_rounds: u32,
    /// Growth of the window in these rounds, in segments.
    pub(super) grown: f64,
    /// The window after a loss, as a fraction of the window before it.
    pub(super) kept: Errors,
    epoch: Epoch,
    /// The window before the loss that is being repaired.
    before: Option<f64>,
    recovered_at: f64,
    is_slow_start: bool,
    is_first_loss: bool,
    /// Whether no loss has occurred.
    is_first_epoch: bool,
    previous: Option<f64>,
}

impl Replay {
    /// Replays all rounds. `segment` is in bytes.
    pub(super) fn run(observed: &Observed, segment: f64) -> Self {
        let candidate = |model| Candidate {
            model,
            state: State::default(),
            growth: Errors::default(),
            reduction: Errors::default(),
            falls: Errors::default(),
            predicted: [0.0; 2],
        };
        let seconds = |micros: Option<u32>| f64::from(micros.unwrap_or(0)) / 1e6;
        let mut replay = Self {
            candidates: MODELS.iter().map(candidate).collect(),
            path: Path::new(seconds(observed.base_rtt), seconds(observed.shortest_rtt)),
            losses: 0,
            growth_rounds: 0,
            grown: 0.0,
            epoch: Vec::new(),
            before: None,
            recovered_at: 0.0,
            is_slow_start: true,
            is_first_loss: true,
            is_first_epoch: true,
            kept: Errors::default(),
            previous: None,
        };
        for round in &observed.rounds {
            let measured = Measured::new(round, segment);
            match round.event {
                Event::Round => replay.round(&measured),
                Event::Loss => replay.loss(&measured),
                Event::Timeout | Event::Limited => {
                    replay.end_epoch();
                    replay.is_slow_start |= round.event == Event::Timeout;
                    (replay.before, replay.previous) = (None, None);
                }
            }
        }
        replay.end_epoch();
        replay
    }

    fn round(&mut self, round: &Measured) {
        if let Some(before) = self.before.take() {
            self.recovered(before, round);
        } else if self.is_slow_start
            && self.previous.is_some_and(|previous| round.window < previous * SLOW_START_GROWTH)
            && round.window > INITIAL_WINDOW
        {
            self.is_slow_start = false;
            self.restart(round.ended, round.window);
        }
        // Soon after a recovery, the window may fall again because of a loss without a retransmission so far.
        let falls = self.epoch.last().is_some_and(|(last, _)| round.window < SECOND_FALL * last.window);
        if !self.is_first_epoch && self.epoch.len() <= 2 && falls {
            self.epoch.clear();
            self.restart(round.ended - round.lasted, round.window);
        }
        self.path.observe(round);
        self.path.since_loss = round.ended - round.lasted / 2.0 - self.recovered_at;
        self.path.rounds_since_loss = self.epoch.len() as f64;
        self.previous = Some(round.window);
        if self.is_slow_start {
            for candidate in &mut self.candidates {
                (candidate.model.learn)(&mut candidate.state, &self.path, round.window);
            }
        } else {
            self.epoch.push((*round, self.path));
        }
    }

    /// Begins an epoch with this window.
    fn restart(&mut self, at: f64, window: f64) {
        self.recovered_at = at;
        for candidate in &mut self.candidates {
            candidate.state.start = window;
        }
    }

    fn loss(&mut self, round: &Measured) {
        self.end_epoch();
        self.path.observe(round);
        for candidate in &mut self.candidates {
            candidate.predicted = (candidate.model.reduce)(&mut candidate.state, &self.path, round.window);
        }
        self.before = Some(round.window);
        (self.is_slow_start, self.is_first_epoch) = (false, false);
        self.previous = None;
    }

    /// Processes the first round after a recovery. `before` is the window before the loss.
    fn recovered(&mut self, before: f64, round: &Measured) {
        self.recovered_at = round.ended - round.lasted;
        let mut path = self.path;
        path.observe(round);
        (path.since_loss, path.rounds_since_loss) = (round.lasted / 2.0, 0.0);
        // The loss that ends slow start is often followed by others before the window has settled.
        let counts = before >= MIN_WINDOW && !self.is_first_loss;
        self.is_first_loss = false;
        self.losses += u32::from(counts);
        if counts {
            self.kept.add(round.window / before, 1.0);
        }
        for candidate in &mut self.candidates {
            candidate.recovered(before, &path, round, counts);
        }
    }

    fn end_epoch(&mut self) {
        let epoch = std::mem::take(&mut self.epoch);
        if epoch.len() >= MIN_ROUNDS {
            self.growth_rounds += epoch.len() as u32 - 1;
            self.grown += epoch[epoch.len() - 1].0.window - epoch[0].0.window;
        }
        let falls = falls(&epoch);
        for candidate in &mut self.candidates {
            let mut own: &[_] = &[];
            if let Some(kept) = candidate.model.kept_without_loss {
                own = &falls;
                for (from, to) in &falls {
                    let error = fall_error(epoch[*from].0.window, epoch[*to].0.window, kept);
                    candidate.falls.add(error, 1.0);
                }
            }
            candidate.grow(&epoch, own);
        }
    }
}

impl Candidate {
    /// Compares the window in the first round trip after a recovery with the prediction.
    fn recovered(&mut self, before: f64, path: &Path, round: &Measured, counts: bool) {
        let tolerance = before * 0.04 + 1.0;
        let mut best = (f64::INFINITY, self.state);
        // A loss that is detected during a reduction without a loss does not reduce the window again.
        let kept = self.model.kept_without_loss.map(|kept| (kept * before).floor());
        for reduced in self.predicted.into_iter().chain(kept) {
            let window = reduced.max(2.0);
            let mut state = self.state;
            (state.start, state.kept) = (window, window / before);
            let grown = window + (self.model.grow)(&mut state, path, window, round);
            // The window is seen at some time in the round.
            let nearest = round.window.clamp(window.min(grown), window.max(grown));
            let error = (nearest - round.window).abs() / tolerance;
            if error < best.0 {
                best = (error, state);
            }
        }
        self.state = best.1;
        if counts {
            self.reduction.add(best.0, 1.0);
        }
    }

    /// Compares the growth between two losses with the prediction. `falls` are the first and last rounds of
    /// reductions without a loss, if the model has them.
    fn grow(&mut self, epoch: &Epoch, falls: &[(usize, usize)]) {
        let alternative = self.state.alternative();
        let mut best = self.replayed(self.state, epoch, falls);
        if let Some(state) = alternative {
            let other = self.replayed(state, epoch, falls);
            if other.1.sum() < CLEARLY_BETTER * best.1.sum() {
                best = other;
            }
        }
        self.state = best.0;
        self.growth.extend(best.1);
    }

    /// Returns the state and the errors after an epoch.
    fn replayed(&self, mut state: State, epoch: &Epoch, falls: &[(usize, usize)]) -> (State, Errors) {
        let mut errors = Errors::default();
        let Some((first, path)) = epoch.first() else { return (state, errors) };
        let (mut from, mut window) = (0, first.window);
        (self.model.learn)(&mut state, path, window);
        for (index, (round, path)) in epoch.iter().enumerate().skip(1) {
            if let Some(fall) = falls.iter().find(|fall| (fall.0 + 1..=fall.1).contains(&index)) {
                if index == fall.1 {
                    let kept = self.model.kept_without_loss.unwrap_or(1.0);
                    let error = fall_error(epoch[fall.0].0.window, round.window, kept);
                    errors.add(error, (fall.1 - fall.0) as f64);
                    (from, window) = (index, round.window);
                }
                continue;
            }
            let before = window;
            window += (self.model.grow)(&mut state, path, window, round);
            window = window.max(1.0);
            (self.model.learn)(&mut state, path, round.window);
            let is_last = index - from == HORIZON
                || index + 1 == epoch.len()
                || falls.iter().any(|fall| fall.0 == index);
            if is_last {
                let start = epoch[from].0.window;
                let grown = round.window - start;
                // A window that grows by a large factor in a round trip is seen at an uncertain time.
                let previous = epoch[index - 1].0.window;
                let fast = (round.window - previous * FAST_GROWTH).max(0.0);
                let tolerance = 1.0 + 0.08 * grown.abs() + 0.01 * start + 0.5 * fast;
                if epoch.len() >= MIN_ROUNDS {
                    // The window is seen at some time in the round, without the part of a segment. That part
                    // is unknown at the beginning, too. The tolerance includes one segment.
                    let step = window - before;
                    let first = window - step.signum() * (step.abs() - 1.0).max(0.0);
                    let (least, most) = (window.min(first), window.max(first));
                    let error = (round.window - most - PART / 2.0).max(least - round.window - PART).max(0.0);
                    errors.add(error / tolerance, (index - from) as f64);
                }
                (from, window) = (index, window.clamp(round.window, round.window + PART));
            }
        }
        (state, errors)
    }
}

/// Returns the error of a prediction that a reduction without a loss leaves this part of the window.
fn fall_error(before: f64, after: f64, kept: f64) -> f64 {
    (after / before - kept).abs() / (0.05 + 0.5 / after)
}

/// Returns the first and last rounds of reductions without a loss, which take at most two rounds.
fn falls(epoch: &Epoch) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    while from + 1 < epoch.len() {
        let start = epoch[from].0.window;
        let ratio = |to: usize| epoch.get(to).map_or(1.0, |(round, _)| round.window / start);
        let [one, two] = [ratio(from + 1), ratio(from + 2)];
        let rounds = if one <= FALL && two > one - 0.03 {
            Some(1)
        } else if two <= FALL && one < 1.0 {
            Some(2)
        } else {
            None
        };
        match rounds {
            Some(rounds) if start >= MIN_FALLING_WINDOW => {
                found.push((from, from + rounds));
                from += rounds;
            }
            _ => from += 1,
        }
    }
    found
}
