//! BBR version 3, following draft-ietf-ccwg-bbr-06 (July 2026) and its names. Section numbers refer to the
//! draft.
//!
//! The model extends version 1 ([`bbr`](super::bbr)), which has a bandwidth and a round-trip time, by bounds
//! learned from losses. A probe for more bandwidth sets `inflight_longterm` if more than 2 % of its data is
//! lost. Losses outside a probe lower `bw_shortterm` and `inflight_shortterm`, and the next probe clears
//! these two. ProbeBW is a cycle of four states. A probe starts after two to three seconds, or earlier, after
//! the number of round trips in which Reno would cause a loss:
//!
//! ```text
//!  Startup ──▶ Drain ──▶ DOWN ──▶ CRUISE ──▶ REFILL ──▶ UP      pacing gains: 2.77, 0.5; 0.9, 1, 1, 1.25
//!                          ▲                            │      any state ──▶ ProbeRTT: half of the BDP,
//!                          └────────────────────────────┘      after 5 s without a shorter round trip
//! ```
//!
//! `congestion` evaluates losses, `cycle` implements the states of ProbeBW, `probe_rtt` implements ProbeRTT
//! and measures the round-trip time, and `control` computes the pacing rate and the window from the model.
//!
//! ECN: the draft does not specify a response of its own, but requires that a CE mark counts as congestion
//! where ECN is in use (§3.7).
//! - Choice: an ECN echo counts once per window of data, as in RFC 3168. In Startup and in a probe it has the
//!   same effect as too many losses. In other states it counts as a loss in that round trip, which lowers the
//!   short-term bounds.
//!
//! Other choices and deviations:
//! - Choice: amounts are in segments, like all windows here, while the draft uses bytes. The accounting of
//!   the profile decides whether a small segment counts as a whole one.
//! - Choice: random numbers are derived from the time and the delivered amount (`scatter`), because this
//!   library has no source of randomness.
//! - Choice: if C.srtt is unknown in the first round trip, it is taken from the first sample, as in Linux.
//! - Choice: the flight before an ACK shows whether a probe has reached `inflight_longterm`, as in the Linux
//!   implementation of version 3. After the ACK, the flight is smaller than the window, and the window does
//!   not exceed the bound.
//! - Choice: it is meant for `sack` only. Without SACK the sender learns of deliveries too late to measure
//!   them (§4.1.3.5.1). It also runs if the peer does not permit SACK.
//! - Deviation: SaveStateUponLoss() runs when a recovery begins, but not also in NoteLoss(). The end of a
//!   probe clears the record that this round trip had losses, so the next loss of the same ACK would
//!   overwrite the saved state.
//! - Deviation: an application-limited phase is detected only when the application writes (as in Linux), not
//!   also at each ACK and timer (§4.1.2.4). Retransmissions sent after the application has run out of data
//!   are not marked.

mod congestion;
mod control;
mod cycle;
mod probe_rtt;

use airwire::time::{Duration, Instant};
use congestion::{Congestion, Undo};
use cycle::{AckPhase, Cycle};

use super::model::scatter;
use super::windowed_max::WindowedMax;
use super::{Loss, LossKind, Model, Modelled, Reduction, Window};
use crate::recovery::rate::{LostSegment, RateSample, Totals};
use crate::recovery::{Ack, RecoveryState, View};

/// MaxBwFilterLen: the current and the previous cycle.
const MAX_BW_FILTER_LEN: u64 = 1;
const EXTRA_ACKED_FILTER_LEN: u64 = 10;
const MIN_PIPE_CWND: f64 = 4.0;
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;
/// §5.3.2: maximum length of Drain in round trips.
const DRAIN_ROUNDS: u64 = 3;

#[derive(Debug)]
pub(crate) struct Bbr3 {
    state: State,
    initial_cwnd: f64,
    /// C.delivered, as last reported to this algorithm.
    delivered: f64,
    rounds: Rounds,
    max_bw: WindowedMax,
    /// Number of cycles, the time base of `max_bw`.
    cycle_count: u64,
    /// BBR.bw: `max_bw` within the bounds, in segments per second.
    bw: f64,
    min_rtt: MinRtt,
    full_bw: FullBw,
    extra_acked: ExtraAcked,
    congestion: Congestion,
    cycle: Cycle,
    prior_cwnd: f64,
    in_loss_recovery: bool,
    idle_restart: bool,
    /// C.pacing_rate, in bytes per second.
    pacing_rate: f64,
    has_seen_rtt: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain {
        start_round: u64,
    },
    ProbeBw(ProbeBw),
    ProbeRtt {
        /// `None`: more is in flight than ProbeRTT permits.
        small: Option<SmallFlight>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeBw {
    Down,
    Cruise,
    Refill,
    Up,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct SmallFlight {
    /// probe_rtt_done_stamp.
    until: Instant,
    round_done: bool,
}

/// Round trips, counted by delivered data (§5.5.1).
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    next_delivered: f64,
    start: bool,
}

/// The minimum round-trip time (§5.3.4.3).
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    /// `None`: infinite.
    min_rtt: Option<Duration>,
    stamp: Instant,
    probe_min_delay: Option<Duration>,
    probe_min_stamp: Instant,
    probe_expired: bool,
}

/// Whether the path is full (§5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
struct FullBw {
    bw: f64,
    count: u32,
    now: bool,
    reached: bool,
}

impl FullBw {
    /// ResetFullBW(), with `bw` as the new reference.
    fn reset(&mut self, bw: f64) {
        *self = Self { bw, count: 0, now: false, reached: self.reached };
    }
}

/// The degree of ACK aggregation (§5.5.9).
#[derive(Clone, Copy, Debug)]
struct ExtraAcked {
    interval_start: Instant,
    delivered: f64,
    filter: WindowedMax,
}

impl Default for Bbr3 {
    fn default() -> Self {
        let start = Instant::ZERO;
        Self {
            state: State::Startup,
            initial_cwnd: 10.0,
            delivered: 0.0,
            rounds: Rounds::default(),
            max_bw: WindowedMax::default(),
            cycle_count: 0,
            bw: 0.0,
            min_rtt: MinRtt {
                min_rtt: None,
                stamp: start,
                probe_min_delay: None,
                probe_min_stamp: start,
                probe_expired: false,
            },
            full_bw: FullBw::default(),
            extra_acked: ExtraAcked { interval_start: start, delivered: 0.0, filter: WindowedMax::default() },
            congestion: Congestion::default(),
            cycle: Cycle::default(),
            prior_cwnd: 0.0,
            in_loss_recovery: false,
            idle_restart: false,
            pacing_rate: 0.0,
            has_seen_rtt: false,
        }
    }
}

impl Window for Bbr3 {
    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) -> Option<f64> {
        None
    }

    /// OnEnterFastRecovery() and OnEnterRTO(). [`Model::on_lost`] reports each loss separately.
    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        if loss.kind == LossKind::EcnEcho {
            self.on_ecn_echo(view);
        } else {
            self.save_cwnd(view);
            self.congestion.save();
            // The window will be reduced, so `save_cwnd` must keep the saved window.
            self.in_loss_recovery |= loss.kind == LossKind::Timeout;
        }
        Reduction { cwnd: view.cc.cwnd, ssthresh: view.cc.ssthresh }
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        view.cc.cwnd
    }

    /// HandleSpuriousLossDetection(). The window is restored at the end of the ACK, as after every recovery.
    fn on_undo(&mut self) {
        self.full_bw.reset(0.0);
        let probes_rtt = matches!(self.state, State::ProbeRtt { .. });
        match self.congestion.restore() {
            Some(Undo::Startup) if self.state != State::Startup => {
                self.full_bw.reached = false;
                if !probes_rtt {
                    self.state = State::Startup;
                }
            }
            Some(Undo::ProbeBwUp) if self.state != State::ProbeBw(ProbeBw::Up) && !probes_rtt => {
                self.start_refill();
            }
            _ => {}
        }
        self.bound_bw();
    }

    fn model(&mut self) -> Option<&mut dyn Model> {
        Some(self)
    }

    fn pacing_rate(&self, _view: &View<'_>) -> Option<f64> {
        Some(self.pacing_rate)
    }
}

impl Model for Bbr3 {
    /// OnInit().
    fn begin(&mut self, view: &View<'_>) {
        self.initial_cwnd = view.cc.cwnd;
        let rtt = view.rtt.srtt();
        self.min_rtt = MinRtt {
            min_rtt: rtt,
            stamp: view.now,
            probe_min_delay: rtt,
            probe_min_stamp: view.now,
            probe_expired: false,
        };
        self.extra_acked.interval_start = view.now;
        self.init_pacing_rate(view);
    }

    /// HandleLostPacket().
    fn on_lost(&mut self, view: &View<'_>, lost: &LostSegment) {
        self.delivered = lost.delivered;
        self.note_loss();
        self.congestion.count_range(lost.start, lost.end);
        if self.cycle.is_bw_probe_sample && self.is_inflight_too_high(view, lost.lost, lost.tx_in_flight) {
            let inflight = congestion::inflight_at_loss(lost);
            self.on_inflight_too_high(view, inflight, lost.is_app_limited);
        }
    }

    /// UpdateOnACK().
    fn on_sample(&mut self, view: &View<'_>, sample: &RateSample) -> Modelled {
        let mut cwnd = view.cc.cwnd;
        self.delivered = sample.totals.delivered;
        self.congestion.update_latest(sample);
        self.update_max_bw(sample);
        self.update_congestion_signals(view);
        self.update_extra_acked(view, sample);
        self.check_full_bw_reached(sample);
        self.check_startup_done(view, sample);
        self.check_drain_done(view, sample);
        self.update_cycle(view, sample);
        self.update_min_rtt(view, sample);
        let ignores_rates = self.check_probe_rtt(view, sample, &mut cwnd);
        self.congestion.advance_latest(sample);
        self.bound_bw();

        self.set_pacing_rate(view, self.pacing_gain());
        let in_loss_recovery = is_in_loss_recovery(view);
        if self.in_loss_recovery && !in_loss_recovery {
            cwnd = cwnd.max(self.prior_cwnd);
        }
        self.in_loss_recovery = in_loss_recovery;
        Modelled { cwnd: self.next_cwnd(view, sample, cwnd), ssthresh: view.cc.ssthresh, ignores_rates }
    }

    /// Only records the recovery. The answer to the timeout sets the window to C.inflight + 1.
    fn on_timeout(&mut self, _view: &View<'_>, _totals: &Totals) {
        self.in_loss_recovery = true;
    }

    /// HandleRestartFromIdle().
    fn on_restart_from_idle(&mut self, view: &View<'_>) -> Option<f64> {
        self.idle_restart = true;
        self.extra_acked.interval_start = view.now;
        match self.state {
            State::ProbeBw(_) => {
                self.set_pacing_rate(view, 1.0);
                None
            }
            State::ProbeRtt { small } => {
                self.probe_rtt_is_over(view.now, small).then(|| view.cc.cwnd.max(self.prior_cwnd))
            }
            State::Startup | State::Drain { .. } => None,
        }
    }
}

/// Returns whether the sender is in fast recovery. An episode attributed to the radio link does not count,
/// because its losses are not a reason to send less.
fn is_in_fast_recovery(view: &View<'_>) -> bool {
    view.cc.state() == RecoveryState::Recovery && view.cc.kept_window().is_none()
}

fn is_in_loss_recovery(view: &View<'_>) -> bool {
    is_in_fast_recovery(view) || view.cc.state() == RecoveryState::Loss
}

impl Bbr3 {
    /// UpdateMaxBw(), with UpdateRound().
    fn update_max_bw(&mut self, sample: &RateSample) {
        self.rounds.start = false;
        let Some(measured) = sample.measured else { return };
        if measured.prior_delivered >= self.rounds.next_delivered {
            self.start_round();
            self.rounds.count += 1;
            self.cycle.rounds_since_probe_up += 1;
            self.rounds.start = true;
        }
        let rate = sample.delivery_rate();
        if rate > 0.0 && (rate >= self.max_bw.get() || !measured.is_app_limited) {
            self.max_bw.update(MAX_BW_FILTER_LEN, self.cycle_count, rate);
        }
    }

    fn start_round(&mut self) {
        self.rounds.next_delivered = self.delivered;
    }

    /// BoundBWForModel().
    fn bound_bw(&mut self) {
        self.bw = self.max_bw.get().min(self.congestion.bw_shortterm);
    }

    fn update_extra_acked(&mut self, view: &View<'_>, sample: &RateSample) {
        let extra_acked = &mut self.extra_acked;
        let mut expected = self.bw * (view.now - extra_acked.interval_start).as_secs_f64();
        if extra_acked.delivered <= expected {
            (extra_acked.delivered, extra_acked.interval_start) = (0.0, view.now);
            expected = 0.0;
        }
        extra_acked.delivered += sample.newly_acked;
        let extra = (extra_acked.delivered - expected).min(view.cc.cwnd);
        let window = if self.full_bw.reached { EXTRA_ACKED_FILTER_LEN } else { 1 };
        extra_acked.filter.update(window, self.rounds.count, extra);
    }

    fn check_full_bw_reached(&mut self, sample: &RateSample) {
        // An unreliable sample does not show a plateau.
        let reliable = sample.delivery_rate() > 0.0 && !sample.is_app_limited();
        if self.full_bw.now || !self.rounds.start || !reliable {
            return;
        }
        let rate = sample.delivery_rate();
        if rate >= self.full_bw.bw * FULL_BW_GROWTH {
            // The bandwidth still grows.
            self.full_bw.reset(rate);
            return;
        }
        self.full_bw.count += 1;
        self.full_bw.now = self.full_bw.count >= FULL_BW_ROUNDS;
        self.full_bw.reached |= self.full_bw.now;
    }

    fn check_startup_done(&mut self, view: &View<'_>, sample: &RateSample) {
        if self.state != State::Startup {
            return;
        }
        if !self.full_bw.reached && self.is_startup_lossy(view, sample) {
            self.startup_was_too_much();
        }
        if self.full_bw.reached {
            self.state = State::Drain { start_round: self.rounds.count };
        }
    }

    fn check_drain_done(&mut self, view: &View<'_>, sample: &RateSample) {
        let State::Drain { start_round } = self.state else { return };
        let drained = sample.totals.in_flight <= self.inflight(view, self.bw, 1.0);
        if drained || self.rounds.count > start_round + DRAIN_ROUNDS {
            self.start_down(view.now);
        }
    }
}

#[cfg(test)]
mod tests;
