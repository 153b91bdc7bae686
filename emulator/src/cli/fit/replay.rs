//! Replay of recorded packets over another path.

use airlink::machine::{Machine, Port, catch_up, drain};
use airlink::packet::{Direction, PerDirection};
use airlink::path::{FIXED, MOBILE, Path};
use airlink::simulate::{Family, sequenced};
use airlink_fit::{Crossing, Recorded, Recording};
use airwire::time::{Duration, Instant};

/// Time after the end of the recording in which packets may still arrive.
const DRAIN: Duration = Duration::from_secs(60);

/// Sends the packets over another path, at the times at which they entered.
pub(super) fn replay(recording: &Recording, path: &mut Path) -> Recording {
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
        catch_up(path, now, |at, port, packet| record_arrival(&mut replayed, at, port, &packet));
        let port = if direction == Direction::Down { FIXED } else { MOBILE };
        let (index, octets) = (next[direction], (octets as usize).max(SHORTEST));
        path.handle_packet(now, port, sequenced(Family::V4, direction, index as u64, octets));
        drain(path, now, |at, port, packet| record_arrival(&mut replayed, at, port, &packet));
        next[direction] += 1;
    }
    // Some stages always have a deadline, so stop after `DRAIN`.
    catch_up(path, Instant::ZERO + recording.duration + DRAIN, |at, port, packet| {
        record_arrival(&mut replayed, at, port, &packet);
    });
    replayed
}

fn record_arrival(replayed: &mut Recording, at: Instant, port: Port, packet: &[u8]) {
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

/// Position at which [`sequenced`] writes the packet's number, after the IPv4 and UDP headers.
const NUMBER: usize = 28;
/// The shortest packet that contains a number. Every TCP packet is longer.
const SHORTEST: usize = NUMBER + 8;
