//! Which congestion control a sender seems to have: how far its window falls at a loss, how it grows until the next, and
//! whether it goes down without one.
//!
//! The window itself is in no packet. What stands for it is the most that is in flight within a round trip, as long as nothing
//! else limits the sender.

use std::ops::RangeInclusive;

use airtcp_numbers::statistics::median;

use super::compact::heap_of_vec;
use super::findings::{CongestionControl, CongestionFindings};

/// Falls and slopes that are remembered, the first ones: a median of more says no more.
const REMEMBERED: usize = 64;
/// Rounds without another limit, after which the flight stands for the window.
pub(super) const UNLIMITED_ROUNDS: u8 = 2;
/// Rounds over which growth is measured.
const GROWING_ROUNDS: u16 = 8;
/// A window of fewer segments tells too little of a factor: what is in flight may be a segment more or less.
const SEGMENTS: f64 = 16.0;
/// Falls that have to agree.
const FALLS: usize = 3;

/// Reno's factor (RFC 5681 §3.2), and what a segment more or less makes of it.
const HALF: RangeInclusive<f64> = 0.42..=0.58;
/// CUBIC's (RFC 9438 §4.6).
const SEVEN_TENTHS: RangeInclusive<f64> = 0.63..=0.77;
/// What a sender that answers losses by a factor of its own has.
const REDUCES: RangeInclusive<f64> = 0.42..=0.77;
const REDUCES_NOT: RangeInclusive<f64> = 0.85..=1.2;
/// Segments that Reno's window grows by in a round trip: one, or half of it where an ACK comes for two (RFC 5681 §3.1).
const A_SEGMENT_OR_HALF: RangeInclusive<f64> = 0.35..=1.2;

/// A window that falls to 0.7 and grows by a segment in each round trip is no CUBIC's: as long as Reno would be faster, CUBIC
/// grows by 0.53 segments (RFC 9438 §4.3), and then by a curve.
const A_SEGMENT: RangeInclusive<f64> = 0.85..=1.15;
/// Of [`Growth::bulge`].
const STRAIGHT: f64 = 0.06;
/// Of the median.
const NEAR: f64 = 0.07;

/// BBR keeps four segments in flight for 200 ms, to see the round trip without a queue, each ten seconds
/// (draft-cardwell-iccrg-bbr-congestion-control-00, ProbeRTT).
const PROBE_SEGMENTS: u32 = 4;
const PROBE_LASTS: RangeInclusive<i64> = 150_000_000..=1_500_000_000;
const PROBES_APART: i64 = 5_000_000_000;
/// The window before is so many times as large.
const PROBE_DEPTH: u32 = 5;

/// Octets in flight within a round trip before a loss, and in the first one after its repair.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fall {
    before: u32,
    after: u32,
}

/// How the window grew from the repair of a loss to the next loss.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Growth {
    /// Octets per round trip.
    slope: f32,
    /// By how much the mean window is above the middle between the first and the last, as a part of their difference: 0 of a
    /// line, 1/4 of CUBIC's curve up to its old window.
    bulge: f32,
}

#[derive(Debug, Default)]
pub(super) struct Congestion {
    falls: Vec<Fall>,
    growths: Vec<Growth>,
    phase: Phase,
    probe: Probe,
    probes: u32,
    last_probe: Option<i64>,
}

#[derive(Debug, Default)]
enum Phase {
    /// No loss that tells anything is being repaired, or was.
    #[default]
    Other,
    Repairing {
        before: u32,
        /// Retransmissions known to be mistakes by then.
        spurious: u64,
    },
    /// The first round after the repair.
    Fallen { before: u32, spurious: u64 },
    Growing {
        from: u32,
        last: u32,
        /// Of all rounds.
        sum: u64,
        rounds: u16,
    },
}

/// A probe for the least round trip.
#[derive(Clone, Copy, Debug, Default)]
enum Probe {
    #[default]
    No,
    /// Little is in flight, though new segments leave.
    Low { since: i64, before: u32 },
    /// It is over, and the window is as it was before this time.
    Over { by: i64, before: u32 },
}

impl Congestion {
    /// A loss was found without a timeout. `before` is in flight within a round trip, unless something else limits it.
    pub(super) fn lost(&mut self, before: Option<u32>, spurious: u64) {
        self.probe = Probe::No;
        self.phase = match (before, &self.phase) {
            (Some(before), Phase::Other) => Phase::Repairing { before, spurious },
            (Some(before), Phase::Growing { from, last, sum, rounds }) => {
                if *rounds >= GROWING_ROUNDS && self.growths.len() < REMEMBERED {
                    self.growths.push(Growth::new(*from, *last, *sum, *rounds));
                }
                Phase::Repairing { before, spurious }
            }
            // One loss after the other: which of them the window answers cannot be told.
            _ => Phase::Other,
        };
    }

    /// A timeout, congestion experienced, or another limit than the window.
    pub(super) fn interrupted(&mut self) {
        (self.phase, self.probe) = (Phase::Other, Probe::No);
    }

    /// What was lost has been repaired.
    pub(super) fn repaired(&mut self) {
        if let Phase::Repairing { before, spurious } = self.phase {
            self.phase = Phase::Fallen { before, spurious };
        }
    }

    /// A round trip is over, with so much in flight at most.
    pub(super) fn round(&mut self, flight: u32, spurious: u64) {
        match &mut self.phase {
            Phase::Fallen { before, spurious: known } => {
                // A sender takes a reduction back that turns out to be a mistake (RFC 3522, RFC 4015).
                if *known == spurious && self.falls.len() < REMEMBERED {
                    self.falls.push(Fall { before: *before, after: flight });
                }
                self.phase = Phase::Growing { from: flight, last: flight, sum: 0, rounds: 0 };
            }
            Phase::Growing { last, sum, rounds, .. } => {
                (*last, *rounds) = (flight, rounds.saturating_add(1));
                *sum += u64::from(flight);
            }
            Phase::Other | Phase::Repairing { .. } => {}
        }
    }

    /// A full segment has left, and so much is in flight with it; `window` is the most within a round trip.
    pub(super) fn sent(&mut self, now: i64, flight: u32, window: u32, segment: u32, round_trip: i64) {
        let low = flight <= PROBE_SEGMENTS * segment;
        self.probe = match self.probe {
            Probe::No if Self::may_probe(flight, window, segment) => {
                Probe::Low { since: now, before: window }
            }
            Probe::Low { since, before } if !low => match now - since {
                lasted if PROBE_LASTS.contains(&lasted) => {
                    Probe::Over { by: now + round_trip + round_trip / 2, before }
                }
                _ => Probe::No,
            },
            Probe::Over { by, .. } if now > by => Probe::No,
            // In so short a time, slow start makes twice as much of four segments, or three times.
            Probe::Over { before, .. } if u64::from(flight) * 3 >= u64::from(before) * 2 => {
                if self.last_probe.is_none_or(|last| now - last >= PROBES_APART) {
                    self.probes += 1;
                }
                self.last_probe = Some(now);
                Probe::No
            }
            going_on => going_on,
        };
    }

    /// Whether a segment that leaves with so little in flight may be part of a probe.
    pub(super) fn may_probe(flight: u32, window: u32, segment: u32) -> bool {
        flight <= PROBE_SEGMENTS * segment && window >= PROBE_DEPTH * PROBE_SEGMENTS * segment
    }

    pub(super) fn heap(&self) -> usize {
        heap_of_vec::<Fall>(self.falls.capacity()) + heap_of_vec::<Growth>(self.growths.capacity())
    }

    pub(super) fn findings(&self, segment: u32) -> CongestionFindings {
        let segment = f64::from(segment.max(1));
        let large = self.falls.iter().filter(|fall| f64::from(fall.before) >= SEGMENTS * segment);
        let mut factors: Vec<f64> =
            large.map(|fall| f64::from(fall.after) / f64::from(fall.before)).collect();
        factors.sort_by(f64::total_cmp);
        let of_growths = |value: fn(&Growth) -> f32| {
            let values: Vec<_> = self.growths.iter().map(|growth| f64::from(value(growth))).collect();
            median(&values)
        };
        let growth = of_growths(|growth| growth.slope).map(|slope| slope / segment);
        let bulge = of_growths(|growth| growth.bulge);
        CongestionFindings {
            looks_like: self.judge(agreed(&factors), growth.zip(bulge)),
            falls: factors.len() as u64,
            falls_to: median(&factors),
            falls_to_least: factors.first().copied(),
            falls_to_most: factors.last().copied(),
            grows_segments_per_round_trip: growth,
            grows_above_a_line: bulge,
            min_rtt_probes: u64::from(self.probes),
        }
    }

    /// `factor`: what losses leave of the window, if they agree. `growth`: segments per round trip, and the bulge.
    fn judge(&self, factor: Option<f64>, growth: Option<(f64, f64)>) -> CongestionControl {
        let is = |range: &RangeInclusive<f64>| factor.is_some_and(|factor| range.contains(&factor));
        let grows = |range: &RangeInclusive<f64>| growth.is_some_and(|(growth, _)| range.contains(&growth));
        let in_a_line = growth.is_some_and(|(_, bulge)| bulge.abs() <= STRAIGHT);
        match self.probes {
            // BBR answers losses in its own way, and not always in the same, but with no fixed factor.
            2.. if !is(&REDUCES) => CongestionControl::Bbr,
            1 if is(&REDUCES_NOT) => CongestionControl::Bbr,
            0 if is(&HALF) && grows(&A_SEGMENT_OR_HALF) => CongestionControl::Reno,
            0 if is(&SEVEN_TENTHS) && !(grows(&A_SEGMENT) && in_a_line) => CongestionControl::Cubic,
            _ => CongestionControl::CannotBeTold,
        }
    }
}

impl Growth {
    fn new(from: u32, last: u32, sum: u64, rounds: u16) -> Self {
        let [from, last, rounds] = [f64::from(from), f64::from(last), f64::from(rounds)];
        let by = last - from;
        let mean = sum as f64 / rounds;
        // The first of the rounds that were summed is a step above `from`.
        let middle = (from + by / rounds + last) / 2.0;
        let bulge = if by > 0.0 { (mean - middle) / by } else { 0.0 };
        Self { slope: (by / rounds) as f32, bulge: bulge as f32 }
    }
}

/// The median, if nine values in ten are near it.
fn agreed(factors: &[f64]) -> Option<f64> {
    let middle = median(factors)?;
    let near = factors.iter().filter(|factor| (**factor - middle).abs() <= NEAR).count();
    (factors.len() >= FALLS && 10 * near >= 9 * factors.len()).then_some(middle)
}
