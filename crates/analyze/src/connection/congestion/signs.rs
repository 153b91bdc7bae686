//! Signs that identify some congestion controls without a replay.

use super::{Event, Measured, Round};

/// Segments in flight while BBR measures the RTT without a queue (draft-cardwell-iccrg-bbr-congestion-control-00,
/// ProbeRTT).
const PROBE_SEGMENTS: f64 = 4.5;
/// Minimum window before and after a probe, in segments.
const PROBE_MIN_WINDOW: f64 = 16.0;
/// Minimum seconds between probes. Later versions probe every five seconds.
const PROBE_INTERVAL: f64 = 8.0;
/// Seconds that a probe lasts.
const PROBE_DURATION: std::ops::Range<f64> = 0.12..1.5;
/// Number of rounds after a probe within which half of the window is in flight again.
const PROBE_END: u32 = 4;
/// Hybla's reference RTT in seconds.
const HYBLA_RTT: f64 = 0.025;
/// Maximum ratio of the first RTT to the minimum RTT.
const FIRST_RTT: f64 = 1.1;
/// Seconds (RFC 6298 §2.1).
const SYN_TIMEOUT: f64 = 1.0;

/// The state of the search for a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Probe {
    No,
    /// Little data is in flight, for this number of seconds.
    Low(f64),
    /// More data has been in flight for this number of rounds.
    Over(u32),
}

/// Counts the times that the flight falls to four segments without a loss, and rises again at once.
pub(super) fn min_rtt_probes(rounds: &[Round], segment: f64) -> u32 {
    let mut found = 0;
    let mut last = f64::NEG_INFINITY;
    let mut probe = Probe::No;
    let mut before = 0.0;
    for round in rounds {
        if round.event != Event::Round {
            (probe, before) = (Probe::No, 0.0);
            continue;
        }
        let Measured { window, lasted, ended, .. } = Measured::new(round, segment);
        if window <= PROBE_SEGMENTS {
            probe = match probe {
                _ if before < PROBE_MIN_WINDOW => Probe::No,
                Probe::Low(seconds) => Probe::Low(seconds + lasted),
                Probe::No | Probe::Over(_) => Probe::Low(lasted),
            };
            continue;
        }
        probe = match probe {
            Probe::Low(seconds) if PROBE_DURATION.contains(&seconds) => Probe::Over(1),
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
        before = window;
    }
    found
}

/// Returns whether the initial window equals the one of Hybla, which is proportional to the first RTT. `None` if other
/// congestion controls may have the same one.
pub(super) fn hybla_starts(initial_segments: Option<u64>, rtt: f64) -> Option<bool> {
    let initial = initial_segments? as f64;
    let expected = |rtt: f64| (rtt / HYBLA_RTT).floor().max(1.0);
    // The first RTT is somewhat longer than the minimum, and includes the timeout of a retransmitted SYN.
    let starts_after = |rtt: f64| (expected(rtt)..=expected(rtt * FIRST_RTT)).contains(&initial);
    (expected(rtt) < 10.0).then_some(starts_after(rtt) || starts_after(rtt + SYN_TIMEOUT))
}
