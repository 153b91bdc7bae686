//! Signs that identify some congestion controls without a replay.

use super::{Event, Measured, Round};

/// Segments in flight while BBR measures the RTT without a queue (draft-cardwell-iccrg-bbr-congestion-control-00,
/// ProbeRTT).
const PROBE_SEGMENTS: f64 = 4.5;
/// Minimum window before and after a probe, in segments. The lower minimum is for a probe that does not follow a loss
/// and has at least `PROBE_MIN_FLIGHT` segments in flight in each of several rounds.
const PROBE_MIN_WINDOW: f64 = 16.0;
const CLEAR_PROBE_MIN_WINDOW: f64 = 8.0;
const PROBE_MIN_FLIGHT: f64 = 3.5;
/// Minimum seconds between probes. Later versions probe every five seconds.
const PROBE_INTERVAL: f64 = 8.0;
/// Seconds that a probe lasts.
const PROBE_DURATION: std::ops::Range<f64> = 0.12..1.5;
/// Minimum number of rounds of a probe that follows a loss, or a small window.
const MIN_CLEAR_ROUNDS: u32 = 3;
/// After a loss, two rounds suffice if the flight then rises at once by this factor. In slow start, it doubles.
const PROBE_JUMP: f64 = 3.0;
/// Number of rounds after a probe within which half of the window is in flight again.
const PROBE_END: u32 = 4;
/// Hybla's reference RTT in seconds.
const HYBLA_RTT: f64 = 0.025;
/// Minimum and maximum ratio of the first RTT to the minimum RTT. On a slow link, a SYN takes less time than
/// data.
const MIN_FIRST_RTT: f64 = 0.8;
const FIRST_RTT: f64 = 1.1;
/// Seconds (RFC 6298 §2.1).
const SYN_TIMEOUT: f64 = 1.0;

/// The state of the search for a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Probe {
    No,
    /// Little data is in flight, for this number of seconds and rounds. The last value is the minimum flight.
    Low(f64, u32, f64),
    /// More data has been in flight for this number of rounds.
    Over(u32),
}

/// Counts the times that the flight falls to four segments, stays there, and rises again at once. A loss may
/// have reduced it only if it stays there for several rounds: in slow start it would have grown.
pub(super) fn min_rtt_probes(rounds: &[Round], segment: f64) -> u32 {
    let mut found = 0;
    let mut last = f64::NEG_INFINITY;
    let mut probe = Probe::No;
    let (mut before, mut has_loss) = (0.0, false);
    for round in rounds {
        let Measured { window, lasted, ended, .. } = Measured::new(round, segment);
        if round.event != Event::Round {
            probe = Probe::No;
            (before, has_loss) = (if round.event == Event::Loss { window.max(before) } else { 0.0 }, true);
            continue;
        }
        if window <= PROBE_SEGMENTS {
            probe = match probe {
                _ if before < if has_loss { PROBE_MIN_WINDOW } else { CLEAR_PROBE_MIN_WINDOW } => Probe::No,
                Probe::Low(seconds, rounds, flight) => {
                    Probe::Low(seconds + lasted, rounds + 1, flight.min(window))
                }
                Probe::No | Probe::Over(_) => Probe::Low(lasted, 1, window),
            };
            continue;
        }
        probe = match probe {
            Probe::Low(seconds, rounds, flight) if PROBE_DURATION.contains(&seconds) => {
                let is_long = rounds >= MIN_CLEAR_ROUNDS;
                let is_clear = is_long && flight >= PROBE_MIN_FLIGHT;
                let jumps = rounds >= 2 && flight >= PROBE_MIN_FLIGHT && window >= PROBE_JUMP * flight;
                let is_probe =
                    if before < PROBE_MIN_WINDOW { is_clear } else { is_long || jumps || !has_loss };
                if is_probe { Probe::Over(1) } else { Probe::No }
            }
            Probe::Over(rounds) if rounds < PROBE_END => Probe::Over(rounds + 1),
            _ => Probe::No,
        };
        match probe {
            Probe::Over(_) if window >= before * 0.5 => {
                if ended - last < PROBE_INTERVAL {
                    return 0;
                }
                (found, last, probe) = (found + 1, ended, Probe::No);
            }
            Probe::Over(_) => continue,
            _ => {}
        }
        (before, has_loss) = (window, false);
    }
    found
}

/// Returns whether the initial window equals the one of Hybla, which is proportional to the first RTT. `None` if other
/// congestion controls may have the same one.
pub(super) fn hybla_starts(initial_segments: Option<u64>, rtt: f64) -> Option<bool> {
    let initial = initial_segments? as f64;
    let expected = |rtt: f64| (rtt / HYBLA_RTT).floor().max(1.0);
    // The RTT of the handshake differs from the minimum of the data, and includes the timeout of a
    // retransmitted SYN.
    let starts_after =
        |rtt: f64| (expected(rtt * MIN_FIRST_RTT)..=expected(rtt * FIRST_RTT)).contains(&initial);
    (expected(rtt) < 10.0).then_some(starts_after(rtt) || starts_after(rtt + SYN_TIMEOUT))
}
