//! A policer lets a burst through, and then drops what is above its rate: the largest rate of late is the burst's, and far
//! too much. Two intervals in a row with many losses and nearly the same rate show it, and that rate is the bandwidth
//! for a while (bbr_lt_bw_sampling(); Flach et al.: *An Internet-Wide Analysis of Traffic Policing*, SIGCOMM 2016).

use airwire::time::Instant;

use crate::recovery::rate::Totals;

/// bbr_lt_intvl_min_rtts.
const MIN_ROUNDS: u32 = 4;
/// bbr_lt_loss_thresh: lost of what was delivered.
const LOSS_THRESH: f64 = 50.0 / 256.0;
/// bbr_lt_bw_ratio: two rates are the same if they differ by less.
const SAME_RATIO: f64 = 1.0 / 8.0;
/// bbr_lt_bw_diff, in octets per second: or by less than this.
const SAME_RATE: f64 = 500.0;
/// bbr_lt_bw_max_rtts: the rate of a policer holds for so many round trips.
const MAX_ROUNDS: u32 = 48;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LongTerm {
    /// A policer's burst ends with the first loss.
    Waits,
    /// From one loss to another.
    Samples {
        interval: Interval,
        /// The rate of the interval before, in segments per second.
        before: Option<f64>,
    },
    /// This is the bandwidth, in segments per second.
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

    /// Its rate, if it was lossy, in segments per second.
    fn policed_rate(&self, totals: &Totals) -> Option<f64> {
        let lost = totals.lost - self.lost;
        let delivered = totals.delivered - self.delivered;
        let milliseconds = (totals.delivered_time - self.began).as_millis();
        let lossy = delivered > 0.0 && lost >= LOSS_THRESH * delivered;
        (lossy && milliseconds > 0).then(|| delivered / (milliseconds as f64 / 1e3))
    }
}

impl LongTerm {
    /// `None`: no policer is known.
    pub(super) fn bw(&self) -> Option<f64> {
        match self {
            Self::Policed { bw, .. } => Some(*bw),
            Self::Waits | Self::Samples { .. } => None,
        }
    }

    /// A round trip of ProbeBw with a policer's rate has ended. True if it was the last: perhaps there is more now.
    pub(super) fn round_is_over(&mut self) -> bool {
        let Self::Policed { rounds, .. } = self else { return false };
        *rounds += 1;
        let last = *rounds >= MAX_ROUNDS;
        if last {
            *self = Self::Waits;
        }
        last
    }

    /// Where no policer is known. True if one is known now.
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
        // A pause makes the rate too small.
        if app_limited {
            *self = Self::Waits;
            return false;
        }
        interval.rounds += u32::from(round_start);
        if interval.rounds > 4 * MIN_ROUNDS {
            *self = Self::Waits;
            return false;
        }
        // It ends with a loss: then the policer's tokens are used up.
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
