//! Measures the reduction of a sender's window at a loss, its growth until the next loss, and its reductions
//! without a loss.
//!
//! The window is not contained in any packet. It is approximated by the maximum flight within a round trip,
//! as long as nothing else limits the sender.

use std::ops::RangeInclusive;

use airtcp_numbers::statistics::median;

use crate::compact::heap_of_vec;
use crate::connection::findings::CongestionFindings;

/// Maximum number of reductions and growth periods remembered. More would hardly change the median.
const MAX_MEASUREMENTS: usize = 64;
/// Number of rounds without another limit, after which the flight equals the window.
pub(super) const UNLIMITED_ROUNDS: u8 = 2;
/// Minimum number of rounds over which growth is measured.
const MIN_GROWTH_ROUNDS: u16 = 8;
/// Minimum window in segments. The flight is uncertain by one segment, which distorts the factor of smaller
/// windows.
const MIN_WINDOW_SEGMENTS: f64 = 16.0;

/// BBR reduces its flight to four segments for 200 ms every ten seconds, to measure the round trip without a
/// queue (draft-cardwell-iccrg-bbr-congestion-control-00, ProbeRTT).
const PROBE_SEGMENTS: u32 = 4;
const PROBE_DURATION: RangeInclusive<i64> = 150_000_000..=1_500_000_000;
const PROBE_INTERVAL: i64 = 5_000_000_000;
/// Minimum ratio of the window to the flight during a probe.
const PROBE_DEPTH: u32 = 5;

/// Maximum flight in bytes within a round trip: before a loss, and in the first round trip after the
/// recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reduction {
    before: u32,
    after: u32,
}

/// The growth of the window from a recovery to the next loss.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Growth {
    /// Bytes per round trip.
    slope: f32,
    /// By how much the mean window exceeds the midpoint of the first and the last, as a fraction of their
    /// difference. It is 0 for linear growth, and 1/4 for CUBIC's curve up to its previous maximum.
    curvature: f32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Congestion {
    reductions: Vec<Reduction>,
    growths: Vec<Growth>,
    phase: Phase,
    probe: Probe,
    probes: u32,
    last_probe: Option<i64>,
}

#[derive(Clone, Debug, Default)]
enum Phase {
    /// Not measuring a loss.
    #[default]
    Other,
    Recovery {
        before: u32,
        /// Number of spurious retransmissions known at the loss.
        spurious: u64,
    },
    /// The first round after the recovery.
    Reduced { before: u32, spurious: u64 },
    Growing {
        from: u32,
        last: u32,
        /// Sum of the flights of all rounds.
        sum: u64,
        rounds: u16,
    },
}

/// A probe for the minimum RTT.
#[derive(Clone, Copy, Debug, Default)]
enum Probe {
    #[default]
    No,
    /// Little data is in flight, although new segments are sent.
    Low { since: i64, before: u32 },
    /// The flight has risen. The probe is confirmed if the window is restored at or before `by`.
    Over { by: i64, before: u32 },
}

impl Congestion {
    /// Records a loss that was detected without a timeout. `before` is the maximum flight within a round
    /// trip, or `None` if something other than the window limits it.
    pub(super) fn lost(&mut self, before: Option<u32>, spurious: u64) {
        self.probe = Probe::No;
        self.phase = match (before, &self.phase) {
            (Some(before), Phase::Other) => Phase::Recovery { before, spurious },
            (Some(before), Phase::Growing { from, last, sum, rounds }) => {
                if *rounds >= MIN_GROWTH_ROUNDS && self.growths.len() < MAX_MEASUREMENTS {
                    self.growths.push(Growth::new(*from, *last, *sum, *rounds));
                }
                Phase::Recovery { before, spurious }
            }
            // Two losses in close succession: the change of the window cannot be attributed to one loss.
            _ => Phase::Other,
        };
    }

    /// Records a timeout, a congestion mark, or a limit other than the window.
    pub(super) fn interrupted(&mut self) {
        (self.phase, self.probe) = (Phase::Other, Probe::No);
    }

    /// Records that the lost data has been repaired.
    pub(super) fn recovered(&mut self) {
        if let Phase::Recovery { before, spurious } = self.phase {
            self.phase = Phase::Reduced { before, spurious };
        }
    }

    /// Records the end of a round trip. `flight` is the maximum flight of the round trip.
    pub(super) fn round(&mut self, flight: u32, spurious: u64) {
        match &mut self.phase {
            Phase::Reduced { before, spurious: known } => {
                // A sender undoes a window reduction that proves to be spurious (RFC 3522, RFC 4015).
                if *known == spurious && self.reductions.len() < MAX_MEASUREMENTS {
                    self.reductions.push(Reduction { before: *before, after: flight });
                }
                self.phase = Phase::Growing { from: flight, last: flight, sum: 0, rounds: 0 };
            }
            Phase::Growing { last, sum, rounds, .. } => {
                (*last, *rounds) = (flight, rounds.saturating_add(1));
                *sum += u64::from(flight);
            }
            Phase::Other | Phase::Recovery { .. } => {}
        }
    }

    /// Records that a full segment was sent. `flight` includes it, and `window` is the maximum flight within
    /// a round trip.
    pub(super) fn sent(&mut self, now: i64, flight: u32, window: u32, segment: u32, round_trip: i64) {
        let low = flight <= PROBE_SEGMENTS * segment;
        self.probe = match self.probe {
            Probe::No if Self::may_probe(flight, window, segment) => {
                Probe::Low { since: now, before: window }
            }
            Probe::Low { since, before } if !low => match now - since {
                lasted if PROBE_DURATION.contains(&lasted) => {
                    Probe::Over { by: now + round_trip + round_trip / 2, before }
                }
                _ => Probe::No,
            },
            Probe::Over { by, .. } if now > by => Probe::No,
            // Within this short time, slow start can only double or triple four segments.
            Probe::Over { before, .. } if u64::from(flight) * 3 >= u64::from(before) * 2 => {
                if self.last_probe.is_none_or(|last| now - last >= PROBE_INTERVAL) {
                    self.probes += 1;
                }
                self.last_probe = Some(now);
                Probe::No
            }
            unchanged => unchanged,
        };
    }

    /// Returns whether a segment sent with this flight may be part of a probe.
    pub(super) fn may_probe(flight: u32, window: u32, segment: u32) -> bool {
        flight <= PROBE_SEGMENTS * segment && window >= PROBE_DEPTH * PROBE_SEGMENTS * segment
    }

    pub(super) fn heap(&self) -> usize {
        heap_of_vec::<Reduction>(self.reductions.capacity()) + heap_of_vec::<Growth>(self.growths.capacity())
    }

    pub(super) fn findings(&self, segment: u32) -> CongestionFindings {
        let segment = f64::from(segment.max(1));
        let large = self
            .reductions
            .iter()
            .filter(|reduction| f64::from(reduction.before) >= MIN_WINDOW_SEGMENTS * segment);
        let mut factors: Vec<f64> =
            large.map(|reduction| f64::from(reduction.after) / f64::from(reduction.before)).collect();
        factors.sort_by(f64::total_cmp);
        let of_growths = |value: fn(&Growth) -> f32| {
            let values: Vec<_> = self.growths.iter().map(|growth| f64::from(value(growth))).collect();
            median(&values)
        };
        let growth = of_growths(|growth| growth.slope).map(|slope| slope / segment);
        let curvature = of_growths(|growth| growth.curvature);
        CongestionFindings {
            falls: factors.len() as u64,
            falls_to: median(&factors),
            falls_to_least: factors.first().copied(),
            falls_to_most: factors.last().copied(),
            grows_segments_per_round_trip: growth,
            growth_curvature: curvature,
            min_rtt_probes: u64::from(self.probes),
        }
    }
}

impl Growth {
    fn new(from: u32, last: u32, sum: u64, rounds: u16) -> Self {
        let [from, last, rounds] = [f64::from(from), f64::from(last), f64::from(rounds)];
        let by = last - from;
        let mean = sum as f64 / rounds;
        // The first summed round is one step above `from`.
        let middle = (from + by / rounds + last) / 2.0;
        let curvature = if by > 0.0 { (mean - middle) / by } else { 0.0 };
        Self { slope: (by / rounds) as f32, curvature: curvature as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_ends_min_rtt_probe() {
        const SEGMENT: u32 = 1000;
        const RTT: i64 = 100_000_000;
        let probes = |loses: bool| {
            let mut congestion = Congestion::default();
            let send = |congestion: &mut Congestion, now, segments| {
                congestion.sent(now, segments * SEGMENT, 40 * SEGMENT, SEGMENT, RTT);
            };
            send(&mut congestion, 0, 4);
            if loses {
                congestion.lost(Some(40 * SEGMENT), 0);
            }
            send(&mut congestion, 3 * RTT, 5);
            send(&mut congestion, 3 * RTT, 40);
            congestion.findings(SEGMENT).min_rtt_probes
        };
        assert_eq!((probes(false), probes(true)), (1, 0));
    }
}
