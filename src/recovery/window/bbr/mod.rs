//! BBR version 1 (Cardwell, Cheng, Gunn, Yeganeh, Jacobson: *BBR: Congestion-Based Congestion Control*, ACM
//! Queue 14(5), 2016), following net/ipv4/tcp_bbr.c in Linux 6.18. A model of the path determines the window
//! and the pacing rate, regardless of losses.
//!
//! The model has two values: the maximum delivery rate of the last ten round trips, and the minimum
//! round-trip time of the last ten seconds. Their product, the BDP, fits into the path without a queue. The
//! pacing rate is the delivery rate times one gain, and the window is the BDP times another gain. The diagram
//! shows both gains:
//!
//! ```text
//!          3 rounds with < 25 % growth              in flight ≤ BDP
//!  Startup ─────────────────────────▶ Drain ──────────────────────────▶ ProbeBw
//!   2.89, 2.89                      0.34, 2.89              1.25, 0.75, 1 … 1; 2
//!      any state ──▶ ProbeRtt: 4 segments for 200 ms, after 10 s without a shorter round trip
//! ```
//!
//! In the first round trip of fast recovery, the sender sends one segment per delivered segment (packet
//! conservation). After recovery the window returns to its old value. ssthresh does not change, except for
//! the value that the kernel stores when Startup ends. An ECN echo has no effect.
//!
//! Names are simplified kernel names. Rates are in segments per second. Gains have the kernel's values, which
//! are fixed-point numbers with eight fractional bits.
//!
//! - Choice: the kernel draws the first phase of ProbeBw at random. This library has no source of randomness,
//!   so it derives the phase from the time and the delivered amount (`scatter`).
//! - Choice: it is meant for `sack` only. Without SACK the sender learns of deliveries too late to measure
//!   them (draft-ietf-ccwg-bbr-06 §4.1.3.5.1). It also runs if the peer does not permit SACK.
//! - Choice: the segments of a TSO burst leave one by one here, but they count as in the kernel where the
//!   window makes room for bursts (`quantization_budget`).

mod aggregation;
mod control;
mod long_term;

use aggregation::Aggregation;
use airwire::time::{Duration, Instant};
use long_term::LongTerm;

use super::model::scatter;
use super::windowed_max::WindowedMax;
use super::{Loss, Model, Modelled, Reduction, Window};
use crate::recovery::rate::{RateSample, Totals};
use crate::recovery::{Ack, RecoveryState, Transmission, View};

/// bbr_high_gain, 2/ln 2: the smallest gain that doubles the rate in each round trip.
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// bbr_bw_rtts: length of the filter for the maximum rate, in round trips.
const BW_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// bbr_cwnd_min_target, in segments.
const MIN_CWND: f64 = 4.0;
const FULL_BW_THRESH: f64 = 1.25;
const FULL_BW_COUNT: u32 = 3;
/// bbr_pacing_margin_percent: the pacing rate is slightly below the bandwidth, so that queues drain.
const PACING_MARGIN: f64 = 0.99;

#[derive(Debug)]
pub(crate) struct Bbr {
    mode: Mode,
    max_bw: WindowedMax,
    rounds: Rounds,
    /// `None`: no round-trip time has been measured.
    min_rtt: Option<Duration>,
    min_rtt_stamp: Instant,
    full_bw: FullBw,
    long_term: LongTerm,
    aggregation: Aggregation,
    recovery: InRecovery,
    idle_restart: bool,
    pacing_gain: f64,
    /// In bytes per second.
    pacing_rate: f64,
    has_seen_rtt: bool,
    /// Number of segments sent. Only the first few matter.
    sent: u32,
    /// Time when pacing allows the next segment to leave (EDT).
    edt: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw {
        phase: usize,
        since: Instant,
    },
    ProbeRtt {
        /// `None`: more than four segments are still in flight.
        small: Option<SmallFlight>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct SmallFlight {
    until: Instant,
    round_done: bool,
}

/// Round trips, counted by delivered data.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    /// Segments sent before this amount was delivered belong to the current round trip.
    next_delivered: f64,
    /// Whether a round trip begins with this ACK.
    start: bool,
}

/// Whether Startup has filled the path.
#[derive(Clone, Copy, Debug, Default)]
struct FullBw {
    bw: f64,
    rounds_without_growth: u32,
    reached: bool,
}

/// The temporary effects of losses on the window.
#[derive(Clone, Copy, Debug)]
struct InRecovery {
    /// `prev_ca_state`: the state before this ACK.
    before: Repairing,
    packet_conservation: bool,
    prior_cwnd: f64,
}

/// The congestion avoidance (CA) states of the kernel that BBR uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repairing {
    Nothing,
    Losses,
    Timeout,
}

impl Repairing {
    /// Returns the state. An episode attributed to the radio link does not count, because its losses are not
    /// a reason to send less.
    fn of(view: &View<'_>) -> Self {
        match view.cc.state() {
            RecoveryState::Recovery if view.cc.kept_window().is_none() => Self::Losses,
            RecoveryState::Loss => Self::Timeout,
            RecoveryState::Open | RecoveryState::Cwr | RecoveryState::Recovery => Self::Nothing,
        }
    }
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            mode: Mode::Startup,
            max_bw: WindowedMax::default(),
            rounds: Rounds::default(),
            min_rtt: None,
            min_rtt_stamp: Instant::ZERO,
            full_bw: FullBw::default(),
            long_term: LongTerm::Waits,
            aggregation: Aggregation::default(),
            recovery: InRecovery { before: Repairing::Nothing, packet_conservation: false, prior_cwnd: 0.0 },
            idle_restart: false,
            pacing_gain: HIGH_GAIN,
            pacing_rate: 0.0,
            has_seen_rtt: false,
            sent: 0,
            edt: Instant::ZERO,
        }
    }
}

impl Window for Bbr {
    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        self.sent = self.sent.saturating_add(1);
        let octets = (transmission.end - transmission.start) as f64;
        let takes = Duration::from_secs_f64((octets / self.rate_now()).min(60.0));
        self.edt = self.edt.max(view.now) + takes;
    }

    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) -> Option<f64> {
        None
    }

    /// bbr_ssthresh(): only saves the window.
    fn on_loss(&mut self, view: &View<'_>, _loss: &Loss) -> Reduction {
        self.save_cwnd(view);
        Reduction { cwnd: view.cc.cwnd, ssthresh: view.cc.ssthresh }
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        view.cc.cwnd
    }

    /// bbr_undo_cwnd(): the spurious episode may have ended Startup too early.
    fn on_undo(&mut self) {
        self.full_bw.bw = 0.0;
        self.full_bw.rounds_without_growth = 0;
        self.long_term = LongTerm::Waits;
    }

    fn model(&mut self) -> Option<&mut dyn Model> {
        Some(self)
    }

    fn pacing_rate(&self, _view: &View<'_>) -> Option<f64> {
        Some(self.rate_now())
    }
}

impl Model for Bbr {
    fn begin(&mut self, view: &View<'_>) {
        self.min_rtt = view.rtt.min();
        self.min_rtt_stamp = view.now;
        self.aggregation = Aggregation::since(view.now);
        self.pace_by_rtt(view);
    }

    /// bbr_main().
    fn on_sample(&mut self, view: &View<'_>, sample: &RateSample) -> Modelled {
        let mut cwnd = view.cc.cwnd;
        let mut ssthresh = view.cc.ssthresh;
        self.update_bw(view, sample);
        self.aggregation.update(sample, self.rounds.start, self.bw(), cwnd);
        self.update_cycle_phase(view, sample);
        self.check_full_bw_reached(sample);
        if self.mode == Mode::Startup && self.full_bw.reached {
            self.mode = Mode::Drain;
            ssthresh = self.inflight(view, self.max_bw.get(), 1.0);
        }
        if self.mode == Mode::Drain && self.is_drained(view, sample) {
            self.probe_bw(view.now, sample.totals.delivered);
        }
        let ignores_rates = self.update_min_rtt(view, sample, &mut cwnd);
        self.update_gain();
        self.set_pacing_rate(view, self.pacing_gain);
        let cwnd = self.next_cwnd(view, sample, cwnd);
        Modelled { cwnd, ssthresh, ignores_rates }
    }

    /// bbr_set_state() with TCP_CA_Loss.
    fn on_timeout(&mut self, view: &View<'_>, totals: &Totals) {
        self.recovery.before = Repairing::Timeout;
        self.full_bw.bw = 0.0;
        self.rounds.start = true;
        if self.sample_long_term(view, totals, true, false) {
            self.probe_bw(view.now, totals.delivered);
        }
    }

    /// bbr_cwnd_event() with CA_EVENT_TX_START.
    fn on_restart_from_idle(&mut self, view: &View<'_>) -> Option<f64> {
        self.idle_restart = true;
        self.aggregation.restart(view.now);
        match self.mode {
            Mode::ProbeBw { .. } => {
                self.set_pacing_rate(view, 1.0);
                None
            }
            Mode::ProbeRtt { small } => {
                self.probe_rtt_is_over(view.now, small, 0.0).then(|| self.restored(view.cc.cwnd))
            }
            Mode::Startup | Mode::Drain => None,
        }
    }
}

impl Bbr {
    /// bbr_bw(), in segments per second.
    fn bw(&self) -> f64 {
        self.long_term.bw().unwrap_or_else(|| self.max_bw.get())
    }

    fn update_bw(&mut self, view: &View<'_>, sample: &RateSample) {
        self.rounds.start = false;
        let Some((measured, interval)) = sample.measured.and_then(|it| Some((it, it.interval?))) else {
            return;
        };
        if measured.prior_delivered >= self.rounds.next_delivered {
            self.rounds.next_delivered = sample.totals.delivered;
            self.rounds.count += 1;
            self.rounds.start = true;
            self.recovery.packet_conservation = false;
        }
        let lossy = sample.newly_lost > 0.0;
        if self.sample_long_term(view, &sample.totals, lossy, measured.is_app_limited) {
            self.probe_bw(view.now, sample.totals.delivered);
        }
        // The rate of an application-limited sample is a lower bound, useful only if it exceeds the known
        // bandwidth.
        let bw = measured.delivered / interval.as_secs_f64();
        if !measured.is_app_limited || bw >= self.max_bw.get() {
            self.max_bw.update(BW_ROUNDS, self.rounds.count, bw);
        }
    }

    fn sample_long_term(&mut self, view: &View<'_>, totals: &Totals, lossy: bool, app_limited: bool) -> bool {
        let round_start = self.rounds.start;
        if self.long_term.bw().is_some() {
            let probes = matches!(self.mode, Mode::ProbeBw { .. });
            return round_start && probes && self.long_term.round_is_over();
        }
        let policed = self.long_term.sample(totals, (round_start, lossy, app_limited), view.smss);
        if policed {
            self.pacing_gain = 1.0;
        }
        false
    }

    fn check_full_bw_reached(&mut self, sample: &RateSample) {
        if self.full_bw.reached || !self.rounds.start || sample.is_app_limited() {
            return;
        }
        let max_bw = self.max_bw.get();
        if max_bw >= self.full_bw.bw * FULL_BW_THRESH {
            self.full_bw.bw = max_bw;
            self.full_bw.rounds_without_growth = 0;
            return;
        }
        self.full_bw.rounds_without_growth += 1;
        self.full_bw.reached = self.full_bw.rounds_without_growth >= FULL_BW_COUNT;
    }

    fn is_drained(&self, view: &View<'_>, sample: &RateSample) -> bool {
        let in_flight = self.packets_in_net_at_edt(view, sample.totals.in_flight);
        in_flight <= self.inflight(view, self.max_bw.get(), 1.0)
    }

    /// Returns whether the sender is in ProbeRtt, where rate samples say nothing about the path.
    fn update_min_rtt(&mut self, view: &View<'_>, sample: &RateSample, cwnd: &mut f64) -> bool {
        let now = view.now;
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW;
        if let Some(rtt) = sample.rtt
            && (self.min_rtt.is_none_or(|min_rtt| rtt <= min_rtt) || (expired && !sample.ack_may_be_delayed))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_stamp = now;
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.mode = Mode::ProbeRtt { small: None };
            self.save_cwnd(view);
        }
        let probes = matches!(self.mode, Mode::ProbeRtt { .. });
        if let Mode::ProbeRtt { small } = &mut self.mode {
            match small {
                None if sample.totals.in_flight <= MIN_CWND => {
                    *small = Some(SmallFlight { until: now + PROBE_RTT_TIME, round_done: false });
                    self.rounds.next_delivered = sample.totals.delivered;
                }
                None => {}
                Some(flight) => {
                    flight.round_done |= self.rounds.start;
                    let flight = Some(*flight).filter(|flight| flight.round_done);
                    if self.probe_rtt_is_over(now, flight, sample.totals.delivered) {
                        *cwnd = self.restored(*cwnd);
                    }
                }
            }
        }
        // The idle time ends when new data is delivered.
        if sample.measured.is_some_and(|measured| measured.delivered > 0.0) {
            self.idle_restart = false;
        }
        probes
    }

    /// bbr_check_probe_rtt_done(): returns whether ProbeRtt is over and the old window applies again.
    fn probe_rtt_is_over(&mut self, now: Instant, small: Option<SmallFlight>, delivered: f64) -> bool {
        if small.is_none_or(|small| now <= small.until) {
            return false;
        }
        self.min_rtt_stamp = now;
        if self.full_bw.reached {
            self.probe_bw(now, delivered);
        } else {
            self.mode = Mode::Startup;
        }
        true
    }
}

#[cfg(test)]
mod tests;
