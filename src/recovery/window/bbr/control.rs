//! Control by the model, which computes the cycle of gains, the amount that fits into the path, the pacing
//! rate and the window.

use airwire::time::{Duration, Instant};

use super::{Bbr, HIGH_GAIN, InRecovery, MIN_CWND, Mode, PACING_MARGIN, Repairing, scatter};
use crate::recovery::View;
use crate::recovery::rate::RateSample;

/// bbr_drain_gain: drains the queue of Startup in about one round trip.
const DRAIN_GAIN: f64 = 88.0 / 256.0;
const CWND_GAIN: f64 = 2.0;
/// bbr_pacing_gain: the gains of the ProbeBw phases.
const PACING_GAIN: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// bbr_cycle_rand: ProbeBw begins in any phase but the second.
const CYCLE_RAND: u64 = 7;
/// TCP_INIT_CWND, in segments.
const INITIAL_CWND: f64 = 10.0;
/// tcp_update_skb_after_send(): number of segments at the start that are not paced.
const NOT_PACED: u32 = 10;

impl Bbr {
    /// Enters ProbeBw, in any phase but the draining one.
    pub(super) fn probe_bw(&mut self, now: Instant, delivered: f64) {
        let drawn = scatter(now, delivered) % CYCLE_RAND;
        self.mode = Mode::ProbeBw { phase: ((8 - drawn) % 8) as usize, since: now };
    }

    pub(super) fn update_cycle_phase(&mut self, view: &View<'_>, sample: &RateSample) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        if self.phase_is_over(view, sample, since) {
            let since = sample.totals.delivered_time;
            self.mode = Mode::ProbeBw { phase: (phase + 1) % PACING_GAIN.len(), since };
        }
    }

    pub(super) fn phase_is_over(&self, view: &View<'_>, sample: &RateSample, since: Instant) -> bool {
        let is_full_length =
            self.min_rtt.is_some_and(|min_rtt| sample.totals.delivered_time - since > min_rtt);
        if self.pacing_gain == 1.0 {
            return is_full_length;
        }
        let in_path = self.packets_in_net_at_edt(view, sample.prior_in_flight);
        let max_bw = self.max_bw.get();
        if self.pacing_gain > 1.0 {
            let probed = in_path >= self.inflight(view, max_bw, self.pacing_gain);
            return is_full_length && (sample.newly_lost > 0.0 || probed);
        }
        is_full_length || in_path <= self.inflight(view, max_bw, 1.0)
    }

    pub(super) fn update_gain(&mut self) {
        self.pacing_gain = match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { .. } if self.long_term.bw().is_some() => 1.0,
            Mode::ProbeBw { phase, .. } => PACING_GAIN[phase],
            Mode::ProbeRtt { .. } => 1.0,
        };
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => CWND_GAIN,
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    // ----- path capacity -----

    pub(super) fn bdp(&self, bw: f64, gain: f64) -> f64 {
        match self.min_rtt {
            Some(min_rtt) => (bw * min_rtt.as_secs_f64() * gain).ceil(),
            None => INITIAL_CWND,
        }
    }

    pub(super) fn inflight(&self, view: &View<'_>, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(view, self.bdp(bw, gain))
    }

    /// Adds room for three full-sized bursts in the end systems, and rounds up to an even number because of
    /// delayed ACKs.
    pub(super) fn quantization_budget(&self, view: &View<'_>, cwnd: f64) -> f64 {
        let even = ((cwnd + 3.0 * self.tso_segs_goal(view)) / 2.0).ceil() * 2.0;
        // The gain cycle needs additional room if the BDP is small.
        if matches!(self.mode, Mode::ProbeBw { phase: 0, .. }) { even + 2.0 } else { even }
    }

    /// Returns the number of segments that the kernel would send in one burst: about one millisecond of data.
    pub(super) fn tso_segs_goal(&self, view: &View<'_>) -> f64 {
        /// GSO_LEGACY_MAX_SIZE without MAX_TCP_HEADER, in bytes.
        const LARGEST: f64 = 65_215.0;
        /// bbr_min_tso_rate, in bytes per second.
        const MIN_TSO_RATE: f64 = 150_000.0;
        let octets = (self.pacing_rate / 1024.0).min(LARGEST);
        let least = if self.pacing_rate < MIN_TSO_RATE { 1.0 } else { 2.0 };
        (octets / view.smss as f64).floor().clamp(least, 127.0)
    }

    /// Estimates the amount in flight when the next segment leaves, which pacing may delay.
    pub(super) fn packets_in_net_at_edt(&self, view: &View<'_>, in_flight: f64) -> f64 {
        let ahead = self.edt - view.now;
        let delivered = (self.bw() * ahead.as_secs_f64()).floor();
        let leaving = if self.pacing_gain > 1.0 { self.tso_segs_goal(view) } else { 0.0 };
        (in_flight + leaving - delivered).max(0.0)
    }

    // ----- pacing rate -----

    pub(super) fn rate_now(&self) -> f64 {
        if self.sent < NOT_PACED { f64::INFINITY } else { self.pacing_rate }
    }

    pub(super) fn set_pacing_rate(&mut self, view: &View<'_>, gain: f64) {
        if !self.has_seen_rtt && view.rtt.srtt().is_some() {
            self.pace_by_rtt(view);
        }
        let rate = self.bw() * gain * PACING_MARGIN * view.smss as f64;
        if rate > 0.0 && (self.full_bw.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// bbr_init_pacing_rate_from_rtt(): the pacing rate until there is a sample, from the window and the
    /// round-trip time, or 1 ms if no round-trip time is known.
    pub(super) fn pace_by_rtt(&mut self, view: &View<'_>) {
        let srtt = view.rtt.srtt();
        self.has_seen_rtt = srtt.is_some();
        let rtt = srtt.unwrap_or(Duration::from_millis(1)).max(Duration::from_micros(1));
        let bw = view.cc.cwnd / rtt.as_secs_f64();
        self.pacing_rate = bw * HIGH_GAIN * PACING_MARGIN * view.smss as f64;
    }

    // ----- window -----

    /// bbr_save_cwnd(): saves the window to return to.
    pub(super) fn save_cwnd(&mut self, view: &View<'_>) {
        let good = self.recovery.before == Repairing::Nothing && !matches!(self.mode, Mode::ProbeRtt { .. });
        let cwnd = view.cc.cwnd;
        self.recovery.prior_cwnd = if good { cwnd } else { self.recovery.prior_cwnd.max(cwnd) };
    }

    pub(super) fn restored(&self, cwnd: f64) -> f64 {
        cwnd.max(self.recovery.prior_cwnd)
    }

    /// bbr_set_cwnd().
    pub(super) fn next_cwnd(&mut self, view: &View<'_>, sample: &RateSample, cwnd: f64) -> f64 {
        let acked = sample.newly_acked;
        let mut next = cwnd;
        if acked > 0.0 {
            next = self.recover_or_restore(view, sample, cwnd);
            if !self.recovery.packet_conservation {
                next = self.towards_target(view, sample, next);
            }
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) { next.min(MIN_CWND) } else { next }
    }

    /// bbr_set_cwnd_to_recover_or_restore().
    pub(super) fn recover_or_restore(&mut self, view: &View<'_>, sample: &RateSample, cwnd: f64) -> f64 {
        let InRecovery { before, prior_cwnd, .. } = self.recovery;
        let now = Repairing::of(view);
        let conserved = sample.totals.in_flight + sample.newly_acked;
        let mut next = (cwnd - sample.newly_lost).max(1.0);
        if now == Repairing::Losses && before != Repairing::Losses {
            self.recovery.packet_conservation = true;
            self.rounds.next_delivered = sample.totals.delivered;
            next = conserved;
        } else if now == Repairing::Nothing && before != Repairing::Nothing {
            next = next.max(prior_cwnd);
            self.recovery.packet_conservation = false;
        }
        self.recovery.before = now;
        if self.recovery.packet_conservation { next.max(conserved).max(1.0) } else { next }
    }

    /// Grows the window towards the target as in slow start, or reduces it to the target at once.
    pub(super) fn towards_target(&self, view: &View<'_>, sample: &RateSample, cwnd: f64) -> f64 {
        let bw = self.bw();
        let aggregated = if self.full_bw.reached { self.aggregation.room(bw) } else { 0.0 };
        let target = self.quantization_budget(view, self.bdp(bw, self.cwnd_gain()) + aggregated);
        let grown = cwnd + sample.newly_acked;
        let next = if self.full_bw.reached {
            grown.min(target)
        } else if cwnd < target || sample.totals.delivered < INITIAL_CWND {
            grown
        } else {
            cwnd
        };
        next.max(MIN_CWND)
    }
}
