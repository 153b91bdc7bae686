//! ProbeBW: the cycle that probes for bandwidth (§5.3.3).

use airwire::time::{Duration, Instant};

use super::{Bbr3, ProbeBw, State, scatter};
use crate::recovery::View;
use crate::recovery::rate::RateSample;

const HEADROOM: f64 = 0.15;
/// Maximum of T_reno_bound in round trips. T_reno_bound is the time in which Reno would cause a loss on this
/// path.
const RENO_ROUNDS: f64 = 63.0;
/// Minimum of T_bbr. A random time of up to one second is added.
const SHORTEST_WAIT: Duration = Duration::from_secs(2);

impl ProbeBw {
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            Self::Down => 0.9,
            Self::Cruise | Self::Refill => 1.0,
            Self::Up => 1.25,
        }
    }
}

/// The state of the cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// Whether the data being delivered now was sent during a probe.
    pub(super) is_bw_probe_sample: bool,
    stamp: Instant,
    bw_probe_wait: Duration,
    pub(super) rounds_since_probe_up: u64,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,
}

/// The phase of the cycle in which the data being acknowledged was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            stamp: Instant::ZERO,
            bw_probe_wait: Duration::ZERO,
            rounds_since_probe_up: 0,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
        }
    }
}

impl Bbr3 {
    /// UpdateProbeBWCyclePhase().
    pub(super) fn update_cycle(&mut self, view: &View<'_>, sample: &RateSample) {
        if !self.full_bw.reached || sample.newly_acked == 0.0 || self.adapt_longterm_model(view, sample) {
            return;
        }
        let State::ProbeBw(phase) = self.state else { return };
        match phase {
            ProbeBw::Down | ProbeBw::Cruise if self.is_time_to_probe(view) => self.start_refill(),
            ProbeBw::Down if self.is_time_to_cruise(view, sample) => {
                self.state = State::ProbeBw(ProbeBw::Cruise);
            }
            ProbeBw::Down | ProbeBw::Cruise => {}
            ProbeBw::Refill => {
                if self.rounds.start {
                    self.cycle.is_bw_probe_sample = true;
                    self.start_up(view, sample);
                }
            }
            ProbeBw::Up => {
                if self.is_time_to_go_down(view, sample) {
                    // So far nothing shows that the probe was too high.
                    self.cycle.prev_probe_too_high = false;
                    self.start_down(view.now);
                }
            }
        }
    }

    /// StartProbeBW_DOWN().
    pub(super) fn start_down(&mut self, now: Instant) {
        self.congestion.reset_signals();
        self.cycle.probe_up_acked_per_inc = f64::INFINITY;
        // PickProbeWait().
        let drawn = scatter(now, self.delivered);
        self.cycle.rounds_since_probe_up = drawn & 1;
        let fraction = (drawn >> 11) as f64 / (1_u64 << 53) as f64;
        self.cycle.bw_probe_wait = SHORTEST_WAIT + Duration::from_secs_f64(fraction);
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBw(ProbeBw::Down);
    }

    /// StartProbeBW_REFILL().
    pub(super) fn start_refill(&mut self) {
        self.congestion.reset_shortterm();
        self.cycle.bw_probe_up_rounds = 0;
        self.cycle.bw_probe_up_acked = 0.0;
        self.cycle.prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBw(ProbeBw::Refill);
    }

    /// StartProbeBW_UP().
    fn start_up(&mut self, view: &View<'_>, sample: &RateSample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_bw.reset(sample.delivery_rate());
        self.state = State::ProbeBw(ProbeBw::Up);
        self.raise_slope(view);
    }

    /// IsTimeToProbeBW().
    fn is_time_to_probe(&self, view: &View<'_>) -> bool {
        let reno_rounds = self.target_inflight(view).min(RENO_ROUNDS);
        view.now > self.cycle.stamp + self.cycle.bw_probe_wait
            || self.cycle.rounds_since_probe_up as f64 >= reno_rounds
    }

    fn is_time_to_cruise(&self, view: &View<'_>, sample: &RateSample) -> bool {
        let in_flight = sample.totals.in_flight;
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(view, self.max_bw.get(), 1.0)
    }

    fn is_time_to_go_down(&mut self, view: &View<'_>, sample: &RateSample) -> bool {
        let longterm = self.congestion.inflight_longterm;
        // The ACK itself makes the flight smaller than the window, which the bound limits. So the flight
        // before the ACK counts.
        if self.cycle.prev_probe_too_high && sample.prior_in_flight >= longterm {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if view.cc.cwnd_limited && view.cc.cwnd >= longterm {
            // The bound limits the sender, not the path.
            self.full_bw.reset(sample.delivery_rate());
            return false;
        }
        self.full_bw.now
    }

    /// TargetInflight().
    pub(super) fn target_inflight(&self, view: &View<'_>) -> f64 {
        self.bdp_multiple(self.bw, 1.0).min(view.cc.cwnd)
    }

    /// Returns the long-term bound, reduced to leave room in the buffer for other flows.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let longterm = self.congestion.inflight_longterm;
        if longterm.is_infinite() {
            return longterm;
        }
        (longterm - (HEADROOM * longterm).max(1.0)).max(super::MIN_PIPE_CWND)
    }

    /// RaiseInflightLongtermSlope(): the bound grows by one segment in the first round trip, then by two,
    /// four, eight.
    fn raise_slope(&mut self, view: &View<'_>) {
        let growth = f64::from(1_u32 << self.cycle.bw_probe_up_rounds);
        self.cycle.bw_probe_up_rounds = (self.cycle.bw_probe_up_rounds + 1).min(30);
        self.cycle.probe_up_acked_per_inc = (view.cc.cwnd / growth).max(1.0);
    }

    /// ProbeInflightLongtermUpward().
    fn probe_longterm_upward(&mut self, view: &View<'_>, sample: &RateSample) {
        if !view.cc.cwnd_limited || view.cc.cwnd < self.congestion.inflight_longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.bw_probe_up_acked += sample.newly_acked;
        if cycle.bw_probe_up_acked >= cycle.probe_up_acked_per_inc {
            let delta = (cycle.bw_probe_up_acked / cycle.probe_up_acked_per_inc).floor();
            cycle.bw_probe_up_acked -= delta * cycle.probe_up_acked_per_inc;
            self.congestion.inflight_longterm += delta;
        }
        if self.rounds.start {
            self.raise_slope(view);
        }
    }

    /// AdaptLongTermModel(). Returns whether it has chosen the next state.
    fn adapt_longterm_model(&mut self, view: &View<'_>, sample: &RateSample) -> bool {
        let is_in_cycle = matches!(self.state, State::ProbeBw(_));
        match self.cycle.ack_phase {
            AckPhase::ProbeStarting if self.rounds.start => self.cycle.ack_phase = AckPhase::ProbeFeedback,
            AckPhase::ProbeStopping if self.rounds.start => {
                self.cycle.is_bw_probe_sample = false;
                self.cycle.ack_phase = AckPhase::Init;
                if is_in_cycle && !sample.is_app_limited() {
                    // AdvanceMaxBwFilter().
                    self.cycle_count += 1;
                }
                let was_careful = self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high;
                if is_in_cycle && was_careful {
                    self.start_refill();
                    return true;
                }
            }
            _ => {}
        }
        let (lost, tx_in_flight) =
            sample.measured.map_or((0.0, 0.0), |measured| (measured.lost, measured.tx_in_flight));
        let longterm = self.congestion.inflight_longterm;
        if self.is_inflight_too_high(view, lost, tx_in_flight) || longterm.is_infinite() {
            return false;
        }
        self.congestion.inflight_longterm = longterm.max(tx_in_flight);
        if self.state == State::ProbeBw(ProbeBw::Up) {
            self.probe_longterm_upward(view, sample);
        }
        false
    }
}
