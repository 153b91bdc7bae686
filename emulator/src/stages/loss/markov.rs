//! A channel whose states form a Markov chain.

use std::collections::{BTreeMap, BTreeSet};

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Probability;

use super::{State, Step};
use crate::maths;
use crate::settings::Invalid;

/// The rate at which a state damages packets.
#[derive(Clone, Debug)]
pub(super) enum ErrorRate {
    PerPacket(f64),
    PerBit {
        /// ln(1 − ber)
        ln_bit_survives: f64,
        /// The last length and its result, because lengths repeat.
        cached: (usize, f64),
    },
}

impl ErrorRate {
    pub(super) fn per_bit(ber: f64) -> Self {
        let ln_bit_survives = match ber {
            // Above 0.5, packets of one or more bytes survive so rarely that precision does not matter.
            ber if ber >= 1.0 => f64::NEG_INFINITY,
            ber if ber > 0.5 => maths::ln(1.0 - ber),
            ber => maths::ln_1p(-ber),
        };
        Self::PerBit { ln_bit_survives, cached: (0, 0.0) }
    }

    /// Returns the probability that a packet of this length is damaged: 1 − (1 − ber)^(8L) (P1 §3.1).
    pub(super) fn probability(&mut self, octets: usize) -> f64 {
        match self {
            Self::PerPacket(per) => *per,
            Self::PerBit { ln_bit_survives, cached } => {
                if cached.0 != octets {
                    *cached = (octets, -maths::exp_m1(octets as f64 * 8.0 * *ln_bit_survives));
                }
                cached.1
            }
        }
    }
}

/// Maximum number of states that an error lists.
const MAX_LISTED: usize = 20;

pub(super) fn validate(states: &[State]) -> Result<(), Invalid> {
    let invalid = |message: String| Err(Invalid::new("states", message));
    if states.is_empty() {
        return invalid(
            "a chain needs at least one state: write `states = [{ name = \"good\", … }, …]`".into(),
        );
    }
    let mut names = BTreeSet::new();
    for state in states {
        if !names.insert(state.name.as_str()) {
            return invalid(format!("two states are named \"{}\": give each a unique name", state.name));
        }
    }
    for state in states {
        let name = &state.name;
        if state.per.is_some() && state.ber.is_some() {
            return invalid(format!("the state \"{name}\" has both `per` and `ber`: remove one of them"));
        }
        let mut sum = 0.0;
        for (to, probability) in &state.to {
            if !names.contains(to.as_str()) {
                let more = if names.len() > MAX_LISTED { ", …" } else { "" };
                return invalid(format!(
                    "the state \"{name}\" changes to an unknown state \"{to}\": known states: {}{more}",
                    names
                        .iter()
                        .take(MAX_LISTED)
                        .map(|name| format!("\"{name}\""))
                        .collect::<Vec<_>>()
                        .join(", ")
                ));
            }
            if to == name {
                return invalid(format!(
                    "the state \"{name}\" changes to itself: remove that entry; the probability of staying is the rest to 1"
                ));
            }
            sum += probability.value();
        }
        // Tolerate rounding errors in a sum that should be 1.
        if sum > 1.0 + 1e-9 {
            return invalid(format!(
                "the probabilities of leaving the state \"{name}\" add up to {sum}, more than 1"
            ));
        }
    }
    Ok(())
}

#[derive(Clone, Debug)]
pub(super) struct Chain {
    states: Vec<ChainState>,
    current: usize,
    clock: Clock,
}

#[derive(Clone, Debug)]
pub(super) struct ChainState {
    name: String,
    error_rate: ErrorRate,
    /// Transitions: the cumulative probability up to this one, and the index of the next state.
    transitions: Vec<(f64, usize)>,
    /// Probability of leaving the state at each step.
    leave: f64,
}

#[derive(Clone, Debug)]
enum Clock {
    Packets,
    Time { step: Duration, departure: Departure },
}

/// The time at which the chain leaves the current state. The duration of a state is drawn at once, so a
/// packet after an hour of silence does not have to catch up on each step. `MAX_CHANGES` limits the changes
/// of state that it catches up on.
#[derive(Clone, Copy, Debug)]
enum Departure {
    /// The duration has not been drawn yet. The state was entered at this time.
    NotDrawn {
        entered: Instant,
    },
    At(Instant),
    Never,
}

impl ChainState {
    /// Creates a state. `transitions` are the probabilities and indices of the next states.
    pub(super) fn new(
        name: &str,
        error_rate: ErrorRate,
        transitions: impl IntoIterator<Item = (f64, usize)>,
    ) -> Self {
        let mut leave = 0.0;
        let cumulative = transitions.into_iter().map(|(p, next)| {
            leave += p;
            (leave, next)
        });
        Self { name: name.to_owned(), error_rate, transitions: cumulative.collect(), leave }
    }

    /// Creates the states of a scenario, which must be valid.
    pub(super) fn all(states: &[State]) -> Vec<Self> {
        let indices: BTreeMap<&str, usize> =
            states.iter().map(|state| state.name.as_str()).zip(0..).collect();
        let create = |State { name, per, ber, to }: &State| {
            let error_rate = match (per, ber) {
                (_, Some(ber)) => ErrorRate::per_bit(ber.value()),
                (per, None) => ErrorRate::PerPacket(per.map_or(0.0, Probability::value)),
            };
            Self::new(
                name,
                error_rate,
                to.iter().filter_map(|(to, p)| Some((p.value(), *indices.get(to.as_str())?))),
            )
        };
        states.iter().map(create).collect()
    }
}

impl Chain {
    /// Creates a chain that starts in the first state.
    pub(super) fn new(states: Vec<ChainState>, step: Step) -> Self {
        let clock = match step {
            Step::Packet => Clock::Packets,
            Step::Every(step) => {
                Clock::Time { step, departure: Departure::NotDrawn { entered: Instant::ZERO } }
            }
        };
        Self { states, current: 0, clock }
    }

    fn state_name(&self) -> &str {
        self.name_of(self.current)
    }

    /// Returns the index of the current state.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// Returns the name of a state.
    pub(super) fn name_of(&self, state: usize) -> &str {
        &self.states[state].name
    }

    /// Starts the chain at `now`.
    pub(super) fn begin(&mut self, now: Instant) {
        if let Clock::Time { departure, .. } = &mut self.clock {
            *departure = Departure::NotDrawn { entered: now };
        }
    }

    /// Continues in the current state of `old`, if this chain has a state of the same name.
    pub(super) fn continue_from(&mut self, old: &mut Self, now: Instant, stream: &mut Stream) {
        old.advance(now, stream);
        if let Some(current) = self.states.iter().position(|state| state.name == old.state_name()) {
            self.current = current;
        }
    }

    /// Returns the damage probability of a packet at `now` and advances the state.
    #[inline(always)]
    pub(super) fn pass(&mut self, now: Instant, octets: usize, stream: &mut Stream) -> f64 {
        let steps_by_packets = matches!(self.clock, Clock::Packets);
        if !steps_by_packets {
            self.advance(now, stream);
        }
        let state = &mut self.states[self.current];
        let probability = state.error_rate.probability(octets);
        if steps_by_packets {
            let draw = stream.unit();
            if let Some((_, next)) = state.transitions.iter().find(|(sum, _)| draw < *sum) {
                self.current = *next;
            }
        }
        probability
    }

    /// With steps in time, advances to the state at `now`.
    fn advance(&mut self, now: Instant, stream: &mut Stream) {
        let Clock::Time { step, departure } = &mut self.clock else { return };
        let mut changes = 0;
        loop {
            let state = &self.states[self.current];
            match *departure {
                Departure::Never => return,
                // The chain is memoryless, so the remaining duration can be drawn again after the jump.
                Departure::NotDrawn { entered } if changes > MAX_CHANGES => {
                    let steps = (now - entered).as_nanos() / step.as_nanos();
                    self.current = state_after(&self.states, self.current, steps, stream.unit());
                    *departure = Departure::NotDrawn { entered: entered + *step * steps };
                    changes = 0;
                }
                Departure::NotDrawn { entered } => {
                    *departure = match steps_until_departure(state.leave, stream.unit()) {
                        Some(steps) => Departure::At(entered + *step * steps),
                        None => Departure::Never,
                    };
                }
                Departure::At(at) if at > now => return,
                Departure::At(at) => {
                    let draw = stream.unit() * state.leave;
                    // The last sum equals `leave`, and the draw is below it, except for rounding errors.
                    let next = state
                        .transitions
                        .iter()
                        .find(|(sum, _)| draw < *sum)
                        .or_else(|| state.transitions.last());
                    self.current = next.map_or(self.current, |(_, next)| *next);
                    *departure = Departure::NotDrawn { entered: at };
                    changes += 1;
                }
            }
        }
    }
}

/// Maximum number of state changes that are simulated one by one, which takes ~0.1 ms. Beyond it, the chain
/// jumps ahead, so that a packet after a long silence does not delay others.
const MAX_CHANGES: u32 = 1000;

/// Returns the state `steps` steps after `from`, drawn from its row in the power of the transition matrix.
/// The power is computed by squaring.
fn state_after(states: &[ChainState], from: usize, mut steps: u64, draw: f64) -> usize {
    let n = states.len();
    let mut power = vec![vec![0.0; n]; n];
    for ((row, state), own) in power.iter_mut().zip(states).zip(0..) {
        let mut before = 0.0;
        for (sum, to) in &state.transitions {
            row[*to] += sum - before;
            before = *sum;
        }
        row[own] = (1.0 - state.leave).max(0.0);
    }
    let mut distribution = vec![0.0; n];
    distribution[from] = 1.0;
    while steps > 0 {
        if steps % 2 == 1 {
            distribution = multiply_row(&distribution, &power);
        }
        steps /= 2;
        power = power.iter().map(|row| multiply_row(row, &power)).collect();
    }
    let mut sum = 0.0;
    let reached = distribution.iter().position(|probability| {
        sum += probability;
        draw < sum
    });
    // Rounding errors may leave the sum slightly below a draw close to 1.
    reached.or_else(|| distribution.iter().rposition(|probability| *probability > 0.0)).unwrap_or(from)
}

/// Computes one row of a matrix product. All rows are distributions. The row is normalized, because rounding
/// errors in its sum would grow with each squaring.
fn multiply_row(row: &[f64], matrix: &[Vec<f64>]) -> Vec<f64> {
    let mut product = vec![0.0; row.len()];
    for (weight, row) in row.iter().zip(matrix) {
        for (cell, value) in product.iter_mut().zip(row) {
            *cell += weight * value;
        }
    }
    let sum: f64 = product.iter().sum();
    product.iter_mut().for_each(|cell| *cell /= sum);
    product
}

/// Draws from the geometric distribution on 1, 2, … by inversion: the first step at which an event with
/// probability `p` per step occurs.
fn steps_until_departure(p: f64, draw: f64) -> Option<u64> {
    if p <= 0.0 {
        return None;
    }
    if p >= 1.0 {
        return Some(1);
    }
    let ln_stay = if p > 0.5 { maths::ln(1.0 - p) } else { maths::ln_1p(-p) };
    let ln_draw = maths::ln(1.0 - draw);
    // 0 ≤ draw < 1, so the quotient is finite and not negative. The cast saturates if it is too large.
    Some(((ln_draw / ln_stay) as u64).saturating_add(1))
}
