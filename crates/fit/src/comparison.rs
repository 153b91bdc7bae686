//! Compares the outcomes of the same packets on two paths.

use airwire::direction::PerDirection;
use airwire::time::Duration;
use serde::Serialize;

use crate::{Crossing, Recording};

/// Outcome for the packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Share of packets that did not arrive.
    pub lost: f64,
    /// The 10th percentile of the delays.
    pub p10: Duration,
    /// The median delay.
    pub median: Duration,
    /// The 90th percentile of the delays.
    pub p90: Duration,
}

impl Outcome {
    /// Summarizes these packets.
    pub fn of(crossings: &[Crossing]) -> Self {
        let mut delays: Vec<Duration> = crossings.iter().filter_map(Crossing::delay).collect();
        if delays.is_empty() {
            return Self { lost: 1.0, ..Self::default() };
        }
        delays.sort_unstable();
        let at = |tenths: usize| delays[(delays.len() - 1) * tenths / 10];
        Self {
            lost: 1.0 - delays.len() as f64 / crossings.len() as f64,
            p10: at(1),
            median: at(5),
            p90: at(9),
        }
    }
}

/// Outcomes of the same packets on two paths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Outcome on the recorded path.
    pub recorded: Outcome,
    /// Outcome on the other path.
    pub replayed: Outcome,
    /// Mean absolute difference between the delays of a packet that arrived on both paths.
    pub mean_delay_difference: Duration,
}

/// Compares the outcomes of the same packets on two paths.
pub fn compare(recorded: &Recording, replayed: &Recording) -> PerDirection<Comparison> {
    PerDirection::from_fn(|direction| {
        let [recorded, replayed] =
            [recorded, replayed].map(|recording| &recording.directions[direction].crossings);
        let both =
            recorded.iter().zip(replayed).filter_map(|(one, other)| Some((one.delay()?, other.delay()?)));
        let (sum, count) = both.fold((0_u128, 0_u128), |(sum, count), (one, other)| {
            (sum + u128::from(one.abs_diff(other).as_nanos()), count + 1)
        });
        Comparison {
            recorded: Outcome::of(recorded),
            replayed: Outcome::of(replayed),
            mean_delay_difference: Duration::from_nanos((sum / count.max(1)) as u64),
        }
    })
}
