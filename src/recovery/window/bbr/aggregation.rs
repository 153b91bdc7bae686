//! ACK aggregation (bbr_update_ack_aggregation()): ACKs may arrive in bursts, for example over a radio link
//! that collects them. The window needs room for the data acknowledged beyond the estimated bandwidth, so
//! that the sender can transmit until the next burst arrives.

use airwire::time::Instant;

use crate::recovery::rate::RateSample;

/// bbr_extra_acked_win_rtts, in round trips.
const WINDOW_ROUNDS: u32 = 5;
/// bbr_ack_epoch_acked_reset_thresh, in segments.
const LARGEST_EPOCH: f64 = (1_u32 << 20) as f64;
/// bbr_extra_acked_max_us, in seconds.
const LONGEST_SILENCE: f64 = 0.1;

/// Maximum amount acknowledged ahead of the estimated bandwidth, over the last five to ten round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    epoch: Instant,
    /// Amount acknowledged since `epoch`.
    epoch_acked: f64,
    /// Maximum of the current five round trips, and of the five before.
    extra: [f64; 2],
    rounds: u32,
}

impl Default for Aggregation {
    fn default() -> Self {
        Self::since(Instant::ZERO)
    }
}

impl Aggregation {
    pub(super) fn since(now: Instant) -> Self {
        Self { epoch: now, epoch_acked: 0.0, extra: [0.0; 2], rounds: 0 }
    }

    /// Begins a new epoch. After an idle time, the old one expects ACKs that could not arrive.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.epoch, self.epoch_acked) = (now, 0.0);
    }

    pub(super) fn update(&mut self, sample: &RateSample, round_start: bool, bw: f64, cwnd: f64) {
        let is_valid = sample.measured.is_some_and(|measured| measured.interval.is_some());
        if sample.newly_acked <= 0.0 || !is_valid {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.extra = [0.0, self.extra[0]];
            }
        }
        let now = sample.totals.delivered_time;
        let mut expected = (bw * (now - self.epoch).as_secs_f64()).floor();
        if self.epoch_acked <= expected || self.epoch_acked + sample.newly_acked >= LARGEST_EPOCH {
            self.restart(now);
            expected = 0.0;
        }
        self.epoch_acked += sample.newly_acked;
        let extra = (self.epoch_acked - expected).min(cwnd);
        self.extra[0] = self.extra[0].max(extra);
    }

    /// bbr_ack_aggregation_cwnd(): returns the amount added to the window.
    pub(super) fn room(&self, bw: f64) -> f64 {
        let [present, before] = self.extra;
        present.max(before).min((bw * LONGEST_SILENCE).floor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::rate::Totals;

    #[test]
    fn sample_without_interval_does_not_count() {
        let totals =
            Totals { delivered: 10.0, delivered_time: Instant::from_secs(1), lost: 0.0, in_flight: 0.0 };
        let sample = RateSample {
            totals,
            prior_in_flight: 10.0,
            newly_acked: 10.0,
            newly_lost: 0.0,
            rtt: None,
            ack_may_be_delayed: false,
            measured: None,
        };
        let mut aggregation = Aggregation::default();
        aggregation.update(&sample, false, 1.0, 100.0);
        assert_eq!(aggregation.room(1000.0), 0.0);
    }
}
