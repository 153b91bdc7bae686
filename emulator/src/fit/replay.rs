//! Sends the recorded packets over another path, and looks what becomes of them.

use airwire::time::{Duration, Instant};
use serde::Serialize;

use super::{Crossing, Recorded, Recording};
use crate::machine::{Machine, Port, catch_up, drain};
use crate::packet::{Direction, PerDirection};
use crate::path::{FIXED, MOBILE, Path};
use crate::simulate::{Family, sequenced};

/// What became of a direction's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// The share of those that did not arrive.
    pub lost: f64,
    /// Of those that arrived: a tenth took at most so long,
    pub low: Duration,
    /// half of them so long,
    pub median: Duration,
    /// and nine tenths so long.
    pub high: Duration,
}

impl Outcome {
    /// What became of these.
    pub fn of(crossings: &[Crossing]) -> Self {
        let mut delays: Vec<Duration> = crossings.iter().filter_map(Crossing::delay).collect();
        if delays.is_empty() {
            return Self { lost: 1.0, ..Self::default() };
        }
        delays.sort_unstable();
        let at = |tenths: usize| delays[(delays.len() - 1) * tenths / 10];
        Self {
            lost: 1.0 - delays.len() as f64 / crossings.len() as f64,
            low: at(1),
            median: at(5),
            high: at(9),
        }
    }
}

/// What two paths did to the same packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The one.
    pub recorded: Outcome,
    /// The other.
    pub carried: Outcome,
    /// By how much the delays of the same packet differ, on average, of those that arrived both times.
    pub apart: Duration,
}

/// How long packets may stay behind the end of the recording.
const DRAIN: Duration = Duration::from_secs(60);

/// Sends the packets over another path, at the times at which they entered.
pub fn carry(recording: &Recording, path: &mut Path) -> Recording {
    let mut carried = Recording {
        directions: PerDirection::from_fn(|direction| {
            let crossings = recording.directions[direction].crossings.iter();
            Recorded { crossings: crossings.map(|it| Crossing { left: None, ..*it }).collect(), copies: 0 }
        }),
        lasts: recording.lasts,
    };
    let mut next = PerDirection::from_fn(|_| 0);
    loop {
        let due = |direction: Direction| {
            let crossing = carried.directions[direction].crossings.get(next[direction])?;
            Some((crossing.entered, crossing.octets, direction))
        };
        let Some((now, octets, direction)) = Direction::BOTH.into_iter().filter_map(due).min() else { break };
        catch_up(path, now, |at, port, packet| arrive(&mut carried, at, port, &packet));
        let port = if direction == Direction::Down { FIXED } else { MOBILE };
        let (index, octets) = (next[direction], (octets as usize).max(SHORTEST));
        path.handle_packet(now, port, sequenced(Family::V4, direction, index as u64, octets));
        drain(path, now, |at, port, packet| arrive(&mut carried, at, port, &packet));
        next[direction] += 1;
    }
    // Some stages have deadlines for ever.
    catch_up(path, Instant::ZERO + recording.lasts + DRAIN, |at, port, packet| {
        arrive(&mut carried, at, port, &packet);
    });
    carried
}

fn arrive(carried: &mut Recording, at: Instant, port: Port, packet: &[u8]) {
    let direction = if port == MOBILE { Direction::Down } else { Direction::Up };
    let Some(number) = packet.get(NUMBER..).and_then(|rest| rest.first_chunk::<8>()) else { return };
    let index = usize::try_from(u64::from_be_bytes(*number)).unwrap_or(usize::MAX);
    let Recorded { crossings, copies } = &mut carried.directions[direction];
    match crossings.get_mut(index) {
        Some(crossing) if crossing.left.is_none() => crossing.left = Some(at),
        Some(_) => *copies += 1,
        // Damaged.
        None => {}
    }
}

/// What became of the packets on one path and on the other, which have the same.
pub fn compare(recorded: &Recording, carried: &Recording) -> PerDirection<Comparison> {
    PerDirection::from_fn(|direction| {
        let [recorded, carried] =
            [recorded, carried].map(|recording| &recording.directions[direction].crossings);
        let both =
            recorded.iter().zip(carried).filter_map(|(one, other)| Some((one.delay()?, other.delay()?)));
        let (sum, count) = both.fold((0_u128, 0_u128), |(sum, count), (one, other)| {
            (sum + u128::from(one.abs_diff(other).as_nanos()), count + 1)
        });
        Comparison {
            recorded: Outcome::of(recorded),
            carried: Outcome::of(carried),
            apart: Duration::from_nanos((sum / count.max(1)) as u64),
        }
    })
}

/// Where [`sequenced`] writes the packet's number: behind the headers of IPv4 and UDP.
const NUMBER: usize = 28;
/// The shortest packet that has a number. The shortest one of TCP is longer.
const SHORTEST: usize = NUMBER + 8;
