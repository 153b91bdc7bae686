//! Sends the recorded packets over another path and compares the results.

use airwire::time::{Duration, Instant};
use serde::Serialize;

use super::{Crossing, Recorded, Recording};
use crate::machine::{Machine, Port, catch_up, drain};
use crate::packet::{Direction, PerDirection};
use crate::path::{FIXED, MOBILE, Path};
use crate::simulate::{Family, sequenced};

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

/// Time after the end of the recording in which packets may still arrive.
const DRAIN: Duration = Duration::from_secs(60);

/// Sends the packets over another path, at the times at which they entered.
pub fn carry(recording: &Recording, path: &mut Path) -> Recording {
    let mut replayed = Recording {
        directions: PerDirection::from_fn(|direction| {
            let crossings = recording.directions[direction].crossings.iter();
            Recorded { crossings: crossings.map(|it| Crossing { left: None, ..*it }).collect(), copies: 0 }
        }),
        duration: recording.duration,
    };
    let mut next = PerDirection::from_fn(|_| 0);
    loop {
        let due = |direction: Direction| {
            let crossing = replayed.directions[direction].crossings.get(next[direction])?;
            Some((crossing.entered, crossing.octets, direction))
        };
        let Some((now, octets, direction)) = Direction::BOTH.into_iter().filter_map(due).min() else { break };
        catch_up(path, now, |at, port, packet| arrive(&mut replayed, at, port, &packet));
        let port = if direction == Direction::Down { FIXED } else { MOBILE };
        let (index, octets) = (next[direction], (octets as usize).max(SHORTEST));
        path.handle_packet(now, port, sequenced(Family::V4, direction, index as u64, octets));
        drain(path, now, |at, port, packet| arrive(&mut replayed, at, port, &packet));
        next[direction] += 1;
    }
    // Some stages always have a deadline, so stop after `DRAIN`.
    catch_up(path, Instant::ZERO + recording.duration + DRAIN, |at, port, packet| {
        arrive(&mut replayed, at, port, &packet);
    });
    replayed
}

fn arrive(replayed: &mut Recording, at: Instant, port: Port, packet: &[u8]) {
    let direction = if port == MOBILE { Direction::Down } else { Direction::Up };
    let Some(number) = packet.get(NUMBER..).and_then(|rest| rest.first_chunk::<8>()) else { return };
    let index = usize::try_from(u64::from_be_bytes(*number)).unwrap_or(usize::MAX);
    let Recorded { crossings, copies } = &mut replayed.directions[direction];
    match crossings.get_mut(index) {
        Some(crossing) if crossing.left.is_none() => crossing.left = Some(at),
        Some(_) => *copies += 1,
        // The number is damaged.
        None => {}
    }
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

/// Position at which [`sequenced`] writes the packet's number, after the IPv4 and UDP headers.
const NUMBER: usize = 28;
/// The shortest packet that contains a number. Every TCP packet is longer.
const SHORTEST: usize = NUMBER + 8;
