//! Plays exchanges against airtcp alone, with the delays of a busy machine between events. If the host sends
//! or wakes endlessly, the test fails with the state of the host.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

use crate::ours;
use crate::plan::{Generator, Plan};
use crate::play::LOCAL;

/// Number of timetables that each plan is played with.
const TIMETABLES: u64 = 3;

/// Plays `count` exchanges.
pub(crate) fn run(seed: u64, count: u64) -> Result<(), String> {
    for number in 0..count {
        let plan = Arc::new(Generator::new(seed, number).plan());
        for table in 0..TIMETABLES {
            let stream = Stream::new(seed ^ number.wrapping_mul(TIMETABLES).wrapping_add(table), "delays");
            let (times, end) = timetable(&plan, stream);
            let (local, peer) = (SocketAddr::from((LOCAL, 40_000)), (Ipv4Addr::new(10, 1, 0, 1), 5000));
            ours::play(&plan, Instant::from_secs(10), (&times, end), local, peer.into())
                .map_err(|error| format!("AIRTCP_DIFFER_SEED={seed}, exchange {number}: {error}"))?;
        }
    }
    Ok(())
}

/// Returns the times of the events and of the end.
fn timetable(plan: &Plan, mut stream: Stream) -> (Vec<Duration>, Duration) {
    let mut now = Duration::ZERO;
    let mut after = |gap: Duration| {
        let longest = [1, 1, 1000, 20_000, 300_000, 3_000_000][stream.bits() as usize % 6];
        now += gap + Duration::from_micros(stream.bits() % longest);
        now
    };
    let times = plan.events.iter().map(|event| after(event.gap)).collect();
    let end = after(plan.silence) + Duration::from_secs(200);
    (times, end)
}
