//! BBR, version 3, after draft-ietf-ccwg-bbr-06 (July 2026; its §5 unless another is named), with its names.
//!
//! The model is that of version 1 ([`bbr`](super::bbr)), a rate and a round trip, with bounds that losses teach it:
//! `inflight_longterm`, which a probe for more bandwidth set when more than 2 % were lost, and `bw_shortterm` and
//! `inflight_shortterm`, which losses outside a probe lower, and which the next probe forgets. ProbeBW is a cycle of four
//! states, and a probe comes every two or three seconds, or after as many round trips as Reno would need for one:
//!
//! ```text
//!  Startup ──▶ Drain ──▶ DOWN ──▶ CRUISE ──▶ REFILL ──▶ UP      gain of the rate: 2.77, 0.5; 0.9, 1, 1, 1.25
//!                          ▲                            │      any of them ──▶ ProbeRTT: half of what fits,
//!                          └────────────────────────────┘      when 5 s have shown no shorter round trip
//! ```
//!
//! `congestion` has what losses teach, `cycle` the states of ProbeBW, `probe_rtt` that state and the round trip, `control`
//! what comes of the model.
//!
//! ECN: the draft specifies no response of its own, and demands that a CE mark is taken for congestion where ECN is in use
//! (§3.7).
//! Choice: an echo counts once for each window of data, as RFC 3168 has it. In Startup and in a probe it says what too many
//! losses say: that this was too much. Elsewhere it is a loss of that round trip: the bounds of the short term come down.
//!
//! Choice: amounts are in segments where the draft has octets, as windows are here; what decides whether a small segment
//! counts as a whole one is the profile's accounting.
//! Choice: the draft's random numbers come from the moment and from what is delivered (`scatter`): a core has none.
//! Choice: in the first round trip C.srtt may be unknown, and is taken from the first sample, as Linux does it.
//! Choice: whether a probe has reached `inflight_longterm` is seen by what was in flight before the ACK, as in Linux' own
//! version 3: after it the flight is smaller than the window, and the window no larger than the bound.
//! Choice: it works with `sack` alone. Without SACK it hears of deliveries too late to measure them
//! (draft-ietf-ccwg-bbr-06 §4.1.3.5.1); with a peer that permits none it has to do so.
//! Deviation: SaveStateUponLoss() comes when a recovery begins, and not also in NoteLoss(): the end of a probe forgets that
//! this round trip had losses, so that the next loss of the same ACK would forget what there is to take back.
//! Deviation: an application-limited phase is noticed when the application writes (as in Linux), and not also with each
//! ACK and timer (§4.1.2.4): copies that leave after it has nothing more to send are not marked.

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
use crate::recovery::{Ack, Handshake, Phase, View};

/// MaxBwFilterLen: this cycle and the one before.
const MAX_BW_FILTER_LEN: u64 = 1;
const EXTRA_ACKED_FILTER_LEN: u64 = 10;
const MIN_PIPE_CWND: f64 = 4.0;
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;
/// §5.3.2: Drain lasts no longer.
const DRAIN_ROUNDS: u64 = 3;

/// BBR version 3 (draft-ietf-ccwg-bbr-06).
#[derive(Debug)]
pub(crate) struct Bbr3 {
    state: State,
    /// C.has_selective_acks.
    has_selective_acks: bool,
    initial_cwnd: f64,
    /// C.delivered, as far as it is known here.
    delivered: f64,
    rounds: Rounds,
    max_bw: WindowedMax,
    /// The time of `max_bw`.
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
    /// C.pacing_rate, in octets per second.
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
        /// `None`: more is in flight than there shall be.
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

/// Round trips, counted by what is delivered (§5.5.1).
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    next_delivered: f64,
    start: bool,
}

/// §5.3.4.3.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    /// `None`: infinite.
    min_rtt: Option<Duration>,
    stamp: Instant,
    probe_min_delay: Option<Duration>,
    probe_min_stamp: Instant,
    probe_expired: bool,
}

/// §5.3.1.2.
#[derive(Clone, Copy, Debug, Default)]
struct FullBw {
    bw: f64,
    count: u32,
    now: bool,
    reached: bool,
}

impl FullBw {
    /// ResetFullBW(), from this rate on.
    fn reset(&mut self, bw: f64) {
        *self = Self { bw, count: 0, now: false, reached: self.reached };
    }
}

/// §5.5.9.
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
            has_selective_acks: false,
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
    fn name(&self) -> &'static str {
        "bbr3"
    }

    fn on_established(&mut self, handshake: &Handshake, _detector: super::Traits) {
        self.has_selective_acks = handshake.scoreboard;
    }

    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) -> Option<f64> {
        None
    }

    /// OnEnterFastRecovery() and OnEnterRTO(); losses themselves come one by one ([`Model::on_lost`]).
    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        if loss.kind == LossKind::EcnEcho {
            self.on_ecn_echo(view);
        } else {
            self.save_cwnd(view);
            self.congestion.save();
            // What is then told of single losses finds the window reduced already.
            self.in_loss_recovery |= loss.kind == LossKind::Timeout;
        }
        Reduction { cwnd: view.cc.cwnd, ssthresh: view.cc.ssthresh }
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        view.cc.cwnd
    }

    /// HandleSpuriousLossDetection(). The window is restored at the end of the ACK, as after every recovery.
    fn on_undo(&mut self, _view: &View<'_>) {
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

    fn paces(&self) -> bool {
        true
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
        if self.cycle.is_bw_probe_sample && self.is_inflight_too_high(lost.lost, lost.tx_in_flight) {
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

    /// The window is what the timeout's answer says, C.inflight + 1.
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

/// What the radio took is no reason to hold anything back.
fn is_in_fast_recovery(view: &View<'_>) -> bool {
    view.cc.phase() == Phase::Recovery && view.cc.kept_window().is_none()
}

fn is_in_loss_recovery(view: &View<'_>) -> bool {
    is_in_fast_recovery(view) || view.cc.phase() == Phase::Restarted
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
        // A sample that is not reliable is no sign of a plateau.
        let reliable = sample.delivery_rate() > 0.0 && !sample.is_app_limited();
        if self.full_bw.now || !self.rounds.start || !reliable {
            return;
        }
        let rate = sample.delivery_rate();
        if rate >= self.full_bw.bw * FULL_BW_GROWTH {
            // It still grows.
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
