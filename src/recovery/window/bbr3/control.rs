//! Control by the model: the amount that fits into the path, the pacing rate, and the window (§5.6).

use airwire::time::Duration;

use super::{Bbr3, MIN_PIPE_CWND, ProbeBw, State};
use crate::recovery::View;
use crate::recovery::rate::RateSample;

const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const DEFAULT_CWND_GAIN: f64 = 2.0;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// PacingMarginPercent.
const PACING_MARGIN: f64 = 0.99;

impl Bbr3 {
    pub(super) fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        self.min_rtt.min_rtt.map_or(self.initial_cwnd, |min_rtt| gain * bw * min_rtt.as_secs_f64())
    }

    pub(super) fn inflight(&self, view: &View<'_>, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(view, self.bdp_multiple(bw, gain))
    }

    pub(super) fn quantization_budget(&self, view: &View<'_>, inflight: f64) -> f64 {
        let offload_budget = 3.0 * self.send_quantum(view);
        let inflight = inflight.max(offload_budget).max(MIN_PIPE_CWND);
        if self.state == State::ProbeBw(ProbeBw::Up) { inflight + 2.0 } else { inflight }
    }

    /// SetSendQuantum(), in segments.
    pub(super) fn send_quantum(&self, view: &View<'_>) -> f64 {
        (self.pacing_rate / 1e3).min(65_536.0).max(2.0 * view.smss as f64) / view.smss as f64
    }

    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain { .. } => DRAIN_PACING_GAIN,
            State::ProbeBw(phase) => phase.pacing_gain(),
            State::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeRtt { .. } => PROBE_RTT_CWND_GAIN,
            State::ProbeBw(ProbeBw::Up) => 2.25,
            State::Startup | State::Drain { .. } | State::ProbeBw(_) => DEFAULT_CWND_GAIN,
        }
    }

    pub(super) fn init_pacing_rate(&mut self, view: &View<'_>) {
        let srtt = view.rtt.srtt().filter(|srtt| !srtt.is_zero());
        self.has_seen_rtt = srtt.is_some();
        let nominal = self.initial_cwnd / srtt.unwrap_or(Duration::from_millis(1)).as_secs_f64();
        self.pacing_rate = STARTUP_PACING_GAIN * nominal * view.smss as f64;
    }

    /// SetPacingRateWithGain().
    pub(super) fn set_pacing_rate(&mut self, view: &View<'_>, gain: f64) {
        if !self.has_seen_rtt && view.rtt.srtt().is_some() {
            self.init_pacing_rate(view);
        }
        let rate = gain * self.bw * PACING_MARGIN * view.smss as f64;
        // Until a sample yields a higher rate, the initial rate applies.
        if rate > 0.0 && (self.full_bw.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    pub(super) fn save_cwnd(&mut self, view: &View<'_>) {
        let good = !self.in_loss_recovery && !matches!(self.state, State::ProbeRtt { .. });
        let cwnd = view.cc.cwnd;
        self.prior_cwnd = if good { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// SetCwnd().
    pub(super) fn next_cwnd(&self, view: &View<'_>, sample: &RateSample, cwnd: f64) -> f64 {
        let fits = self.bdp_multiple(self.bw, self.cwnd_gain()) + self.extra_acked.filter.get();
        let max_inflight = self.quantization_budget(view, fits);
        let grown = cwnd + sample.newly_acked;
        let next = if self.full_bw.reached {
            grown.min(max_inflight)
        } else if cwnd < max_inflight || sample.totals.delivered < self.initial_cwnd {
            grown
        } else {
            cwnd
        };
        let next = next.max(MIN_PIPE_CWND);
        let next = match self.state {
            State::ProbeRtt { .. } => next.min(self.probe_rtt_cwnd()),
            _ => next,
        };
        next.min(self.cap())
    }

    /// BoundCwndForModel().
    pub(super) fn cap(&self) -> f64 {
        let longterm = match self.state {
            State::ProbeRtt { .. } | State::ProbeBw(ProbeBw::Cruise) => self.inflight_with_headroom(),
            State::ProbeBw(_) => self.congestion.inflight_longterm,
            State::Startup | State::Drain { .. } => f64::INFINITY,
        };
        longterm.min(self.congestion.inflight_shortterm).max(MIN_PIPE_CWND)
    }

    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN).max(MIN_PIPE_CWND)
    }
}
