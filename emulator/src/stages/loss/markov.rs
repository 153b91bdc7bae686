//! A channel with states.

use std::collections::{BTreeMap, BTreeSet};

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

use super::{State, Step};
use crate::maths;
use crate::settings::Invalid;

/// How a state damages packets.
#[derive(Clone, Debug)]
pub(super) enum Damage {
    Packet(f64),
    Bit {
        /// ln(1 − ber)
        ln_bit_survives: f64,
        /// The last length and what came out: lengths repeat.
        known: (usize, f64),
    },
}

impl Damage {
    pub(super) fn bit(ber: f64) -> Self {
        let ln_bit_survives = match ber {
            // Beyond the half, no packet of an octet survives often enough to tell the difference from this bound.
            ber if ber >= 1.0 => f64::NEG_INFINITY,
            ber if ber > 0.5 => maths::ln(1.0 - ber),
            ber => maths::ln_1p(-ber),
        };
        Self::Bit { ln_bit_survives, known: (0, 0.0) }
    }

    /// That a packet of so many octets is damaged: 1 − (1 − ber)^(8L) (P1 §3.1).
    pub(super) fn probability(&mut self, octets: usize) -> f64 {
        match self {
            Self::Packet(per) => *per,
            Self::Bit { ln_bit_survives, known } => {
                if known.0 != octets {
                    *known = (octets, -maths::exp_m1(octets as f64 * 8.0 * *ln_bit_survives));
                }
                known.1
            }
        }
    }
}

/// An error need not list more states.
const NAMED: usize = 20;

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
                let more = if names.len() > NAMED { ", …" } else { "" };
                return invalid(format!(
                    "the state \"{name}\" changes to an unknown state \"{to}\": known states: {}{more}",
                    names.iter().take(NAMED).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
                ));
            }
            if to == name {
                return invalid(format!(
                    "the state \"{name}\" changes to itself: remove that entry; the probability of staying is the rest to 1"
                ));
            }
            sum += probability.value();
        }
        // Rounding of a sum that was meant to be 1.
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
    states: Vec<Node>,
    current: usize,
    clock: Clock,
}

#[derive(Clone, Debug)]
struct Node {
    name: String,
    damage: Damage,
    /// Each other state, with its probability and those of all before it.
    to: Vec<(f64, usize)>,
    leaves: f64,
}

#[derive(Clone, Debug)]
enum Clock {
    Packets,
    Time { step: Duration, leaves: Leaves },
}

/// When the present state is left. How long a state lasts is drawn at once: a packet after an hour does not make
/// up for an hour of steps, nor for more than `CHANGES` changes.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    /// Not drawn yet; it was entered at this time.
    Undrawn {
        entered: Instant,
    },
    At(Instant),
    Never,
}

impl Chain {
    /// `states` are valid.
    pub(super) fn new(states: &[State], step: Step) -> Self {
        let indices: BTreeMap<&str, usize> =
            states.iter().enumerate().map(|(index, state)| (state.name.as_str(), index)).collect();
        let nodes = states
            .iter()
            .map(|state| Node {
                name: state.name.clone(),
                damage: match (state.per, state.ber) {
                    (_, Some(ber)) => Damage::bit(ber.value()),
                    (per, None) => Damage::Packet(per.map_or(0.0, |per| per.value())),
                },
                to: state
                    .to
                    .iter()
                    .filter_map(|(to, p)| Some((p.value(), *indices.get(to.as_str())?)))
                    .collect(),
                leaves: 0.0,
            })
            .collect();
        Self::of(nodes, step)
    }

    /// Good and bad.
    pub(super) fn two(damage: [Damage; 2], leave: [f64; 2], step: Step) -> Self {
        let [good, bad] = damage;
        let node = |name: &str, damage, p, other| Node {
            name: name.to_owned(),
            damage,
            to: vec![(p, other)],
            leaves: 0.0,
        };
        Self::of(vec![node("good", good, leave[0], 1), node("bad", bad, leave[1], 0)], step)
    }

    fn of(mut states: Vec<Node>, step: Step) -> Self {
        for state in &mut states {
            let mut sum = 0.0;
            for (p, _) in &mut state.to {
                sum += *p;
                *p = sum;
            }
            state.leaves = sum;
        }
        let clock = match step {
            Step::Packet => Clock::Packets,
            Step::Every(step) => Clock::Time { step, leaves: Leaves::Undrawn { entered: Instant::ZERO } },
        };
        Self { states, current: 0, clock }
    }

    pub(super) fn state_name(&self) -> &str {
        &self.states[self.current].name
    }

    /// It begins at `now`.
    pub(super) fn begin(&mut self, now: Instant) {
        if let Clock::Time { leaves, .. } = &mut self.clock {
            *leaves = Leaves::Undrawn { entered: now };
        }
    }

    /// In the state that `old` is in now, if there is one of that name.
    pub(super) fn go_on_from(&mut self, old: &mut Self, now: Instant, stream: &mut Stream) {
        old.advance(now, stream);
        if let Some(current) = self.states.iter().position(|state| state.name == old.state_name()) {
            self.current = current;
        }
    }

    /// A packet comes through at `now`: the probability that it is damaged.
    pub(super) fn pass(&mut self, now: Instant, octets: usize, stream: &mut Stream) -> f64 {
        self.advance(now, stream);
        let probability = self.states[self.current].damage.probability(octets);
        if let Clock::Packets = self.clock {
            let draw = stream.unit();
            let state = &self.states[self.current];
            if let Some((_, next)) = state.to.iter().find(|(sum, _)| draw < *sum) {
                self.current = *next;
            }
        }
        probability
    }

    /// With steps in time: to the state at `now`.
    fn advance(&mut self, now: Instant, stream: &mut Stream) {
        let Clock::Time { step, leaves } = &mut self.clock else { return };
        let mut changes = 0;
        loop {
            let state = &self.states[self.current];
            match *leaves {
                Leaves::Never => return,
                // A state has no memory of how long it has lasted: after the jump it is drawn anew.
                Leaves::Undrawn { entered } if changes > CHANGES => {
                    let steps = (now - entered).as_nanos() / step.as_nanos();
                    self.current = after(&self.states, self.current, steps, stream.unit());
                    *leaves = Leaves::Undrawn { entered: entered + *step * steps };
                    changes = 0;
                }
                Leaves::Undrawn { entered } => {
                    *leaves = match steps_until_left(state.leaves, stream.unit()) {
                        Some(steps) => Leaves::At(entered + *step * steps),
                        None => Leaves::Never,
                    };
                }
                Leaves::At(at) if at > now => return,
                Leaves::At(at) => {
                    let draw = stream.unit() * state.leaves;
                    // The last sum is `leaves` itself, which the draw stays below, but for rounding.
                    let next = state.to.iter().find(|(sum, _)| draw < *sum).or_else(|| state.to.last());
                    self.current = next.map_or(self.current, |(_, next)| *next);
                    *leaves = Leaves::Undrawn { entered: at };
                    changes += 1;
                }
            }
        }
    }
}

/// So many changes of state are gone through one by one, in about 0.1 ms. More are taken in one jump, so that a
/// packet after a long silence does not make the others wait.
const CHANGES: u32 = 1000;

/// The state so many steps after `from`: drawn from its row of the transition matrix's power, by squaring.
fn after(states: &[Node], from: usize, mut steps: u64, draw: f64) -> usize {
    let n = states.len();
    let mut power = vec![vec![0.0; n]; n];
    for ((row, state), own) in power.iter_mut().zip(states).zip(0..) {
        let mut before = 0.0;
        for (sum, to) in &state.to {
            row[*to] += sum - before;
            before = *sum;
        }
        row[own] = (1.0 - state.leaves).max(0.0);
    }
    let mut distribution = vec![0.0; n];
    distribution[from] = 1.0;
    while steps > 0 {
        if steps % 2 == 1 {
            distribution = times(&distribution, &power);
        }
        steps /= 2;
        power = power.iter().map(|row| times(row, &power)).collect();
    }
    let mut sum = 0.0;
    let reached = distribution.iter().position(|probability| {
        sum += probability;
        draw < sum
    });
    // Rounding may leave the sum a little below a draw of almost 1.
    reached.or_else(|| distribution.iter().rposition(|probability| *probability > 0.0)).unwrap_or(from)
}

/// One row of a product of matrices. All rows are distributions: what rounding adds to their sum would grow with
/// each squaring, so it is taken away.
fn times(row: &[f64], matrix: &[Vec<f64>]) -> Vec<f64> {
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

/// Geometric, from 1: the first step at which something of probability `p` per step happens. By inversion.
fn steps_until_left(p: f64, draw: f64) -> Option<u64> {
    if p <= 0.0 {
        return None;
    }
    if p >= 1.0 {
        return Some(1);
    }
    let ln_stays = if p > 0.5 { maths::ln(1.0 - p) } else { maths::ln_1p(-p) };
    let ln_draw = maths::ln(1.0 - draw);
    // 0 ≤ draw < 1, so the quotient is finite and not negative; it may be more than an integer holds.
    Some(((ln_draw / ln_stays) as u64).saturating_add(1))
}
