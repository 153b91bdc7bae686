//! Detection of policers (bbr_lt_bw_sampling(); Flach et al.: *An Internet-Wide Analysis of Traffic
//! Policing*, SIGCOMM 2016). A policer passes a burst and then drops everything above its rate. The maximum
//! recent rate is then the rate of the burst, which is far too high. Two successive intervals with many
//! losses and nearly the same rate reveal a policer, and for a while that rate is used as the bandwidth.

use airwire::time::Instant;

use crate::recovery::rate::Totals;

/// bbr_lt_intvl_min_rtts: minimum length of an interval, in round trips.
const MIN_ROUNDS: u32 = 4;
/// bbr_lt_loss_thresh: minimum ratio of lost to delivered data.
const LOSS_THRESH: f64 = 50.0 / 256.0;
/// bbr_lt_bw_ratio: two rates count as equal if they differ by no more than this share.
const SAME_RATIO: f64 = 1.0 / 8.0;
/// bbr_lt_bw_diff, in bytes per second: two rates also count as equal if they differ by no more than this.
const SAME_RATE: f64 = 500.0;
/// bbr_lt_bw_max_rtts: number of round trips in which the rate of a policer is used.
const MAX_ROUNDS: u32 = 48;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LongTerm {
    /// Waits for a loss, which ends the burst of a policer.
    Waits,
    /// Measures an interval from one loss to another.
    Samples {
        interval: Interval,
        /// Rate of the previous interval, in segments per second.
        before: Option<f64>,
    },
    /// A policer limits the bandwidth to `bw`, in segments per second.
    Policed { bw: f64, rounds: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    began: Instant,
    delivered: f64,
    lost: f64,
    rounds: u32,
}

impl Interval {
    fn from_now(totals: &Totals) -> Self {
        let Totals { delivered, delivered_time, lost, .. } = *totals;
        Self { began: delivered_time, delivered, lost, rounds: 0 }
    }

    /// Returns the rate of the interval in segments per second, if its losses indicate a policer.
    fn policed_rate(&self, totals: &Totals) -> Option<f64> {
        let lost = totals.lost - self.lost;
        let delivered = totals.delivered - self.delivered;
        let milliseconds = (totals.delivered_time - self.began).as_millis();
        let lossy = delivered > 0.0 && lost >= LOSS_THRESH * delivered;
        (lossy && milliseconds > 0).then(|| delivered / (milliseconds as f64 / 1e3))
    }
}

impl LongTerm {
    /// Returns the rate of the policer. `None`: no policer is known.
    pub(super) fn bw(&self) -> Option<f64> {
        match self {
            Self::Policed { bw, .. } => Some(*bw),
            Self::Waits | Self::Samples { .. } => None,
        }
    }

    /// Counts a round trip of ProbeBw at the rate of a policer. Returns whether it was the last one, because
    /// more bandwidth may be available now.
    pub(super) fn round_is_over(&mut self) -> bool {
        let Self::Policed { rounds, .. } = self else { return false };
        *rounds += 1;
        let last = *rounds >= MAX_ROUNDS;
        if last {
            *self = Self::Waits;
        }
        last
    }

    /// Searches for a policer while none is known. Returns whether one was found.
    pub(super) fn sample(
        &mut self,
        totals: &Totals,
        (round_start, lossy, app_limited): (bool, bool, bool),
        smss: u64,
    ) -> bool {
        if *self == Self::Waits {
            if !lossy {
                return false;
            }
            *self = Self::Samples { interval: Interval::from_now(totals), before: None };
        }
        let Self::Samples { interval, before } = self else { return false };
        // A pause of the application makes the rate too low.
        if app_limited {
            *self = Self::Waits;
            return false;
        }
        interval.rounds += u32::from(round_start);
        if interval.rounds > 4 * MIN_ROUNDS {
            *self = Self::Waits;
            return false;
        }
        // The interval ends with a loss, when the policer has used up its tokens.
        if interval.rounds < MIN_ROUNDS || !lossy {
            return false;
        }
        let Some(bw) = interval.policed_rate(totals) else { return false };
        let is_same = |before: f64| {
            let apart = (bw - before).abs();
            apart <= SAME_RATIO * before || apart * super::PACING_MARGIN * smss as f64 <= SAME_RATE
        };
        if let Some(before) = before.filter(|before| is_same(*before)) {
            *self = Self::Policed { bw: (bw + before) / 2.0, rounds: 0 };
            return true;
        }
        *self = Self::Samples { interval: Interval::from_now(totals), before: Some(bw) };
        false
    }
}
