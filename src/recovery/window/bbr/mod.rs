//! BBR, version 1 (Cardwell, Cheng, Gunn, Yeganeh, Jacobson: *BBR: Congestion-Based Congestion Control*, ACM Queue 14(5),
//! 2016), as Linux 6.18 has it in net/ipv4/tcp_bbr.c: the window and the rate are those of a model of the path, whatever
//! is lost.
//!
//! The model is two numbers: the largest delivery rate of the last ten round trips, and the shortest round trip of the
//! last ten seconds. Their product is what fits into the path without a queue. The rate is the first times a gain, the
//! window the product times a gain:
//!
//! ```text
//!            3 rounds without 25 % more        no more in flight than fits
//!  Startup ─────────────────────────▶ Drain ──────────────────────────▶ ProbeBw
//!   2.89, 2.89                      0.34, 2.89              1.25, 0.75, 1 … 1; 2
//!      any of them ──▶ ProbeRtt: 4 segments for 200 ms, when 10 s have shown no shorter round trip
//! ```
//!
//! In the first round trip of fast recovery as much leaves as arrives (packet conservation); when it is over the window is
//! what it was before. ssthresh is left alone, but for what the kernel writes there when Startup ends. An ECN echo
//! changes nothing.
//!
//! Names are the kernel's, in milder form. Rates are in segments per second. Gains have the kernel's values, which are
//! fixed-point numbers of eight binary digits.
//!
//! Choice: the phase with which ProbeBw begins is random in the kernel. A core has no randomness: here it comes from the
//! moment and what is delivered by then (`scatter`).
//! Choice: it works with `sack` alone. Without SACK it hears of deliveries too late to measure them
//! (draft-ietf-ccwg-bbr-06 §4.1.3.5.1); with a peer that permits none it has to do so.
//! Choice: the segments of a TSO burst leave one by one here, but count as in the kernel where it makes room for bursts
//! (`quantization_budget`).

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
use crate::recovery::{Ack, Departure, Phase, View};

/// bbr_high_gain, 2/ln 2: the least with which the rate doubles each round trip.
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// bbr_bw_rtts.
const BW_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// bbr_cwnd_min_target.
const MIN_CWND: f64 = 4.0;
const FULL_BW_THRESH: f64 = 1.25;
const FULL_BW_COUNT: u32 = 3;
/// bbr_pacing_margin_percent: the rate is a little less than the bandwidth, so that queues end.
const PACING_MARGIN: f64 = 0.99;

/// BBR version 1 (Linux 6.18, tcp_bbr.c).
#[derive(Debug)]
pub(crate) struct Bbr {
    mode: Mode,
    max_bw: WindowedMax,
    rounds: Rounds,
    /// `None`: no round trip has been measured.
    min_rtt: Option<Duration>,
    min_rtt_stamp: Instant,
    full_bw: FullBw,
    long_term: LongTerm,
    aggregation: Aggregation,
    recovery: InRecovery,
    idle_restart: bool,
    pacing_gain: f64,
    /// In octets per second.
    pacing_rate: f64,
    has_seen_rtt: bool,
    /// Segments that have left, as far as it matters.
    sent: u32,
    /// When the next segment may leave, by the rate alone (EDT).
    next_departure: Instant,
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

/// Round trips, counted by what is delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    /// What left when less than this was delivered belongs to the present one.
    next_delivered: f64,
    /// It has begun with this ACK.
    start: bool,
}

/// Whether Startup has filled the path.
#[derive(Clone, Copy, Debug, Default)]
struct FullBw {
    bw: f64,
    rounds_without_growth: u32,
    reached: bool,
}

/// What losses do to the window for a time.
#[derive(Clone, Copy, Debug)]
struct InRecovery {
    /// `prev_ca_state`.
    before: Repairing,
    packet_conservation: bool,
    prior_cwnd: f64,
}

/// The kernel's CA states, as far as they matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repairing {
    Nothing,
    Losses,
    Timeout,
}

impl Repairing {
    /// What the radio took is no reason to hold anything back.
    fn of(view: &View<'_>) -> Self {
        match view.cc.phase() {
            Phase::Recovery if view.cc.kept_window().is_none() => Self::Losses,
            Phase::Restarted => Self::Timeout,
            Phase::Open | Phase::Reduced | Phase::Recovery => Self::Nothing,
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
            next_departure: Instant::ZERO,
        }
    }
}

impl Window for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn on_sent(&mut self, view: &View<'_>, departure: &Departure) {
        self.sent = self.sent.saturating_add(1);
        let octets = (departure.end - departure.start) as f64;
        let takes = Duration::from_secs_f64((octets / self.rate_now()).min(60.0));
        self.next_departure = self.next_departure.max(view.now) + takes;
    }

    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) -> Option<f64> {
        None
    }

    /// bbr_ssthresh().
    fn on_loss(&mut self, view: &View<'_>, _loss: &Loss) -> Reduction {
        self.save_cwnd(view);
        Reduction { cwnd: view.cc.cwnd, ssthresh: view.cc.ssthresh }
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        view.cc.cwnd
    }

    /// bbr_undo_cwnd(): Startup may have ended for nothing.
    fn on_undo(&mut self, _view: &View<'_>) {
        self.full_bw.bw = 0.0;
        self.full_bw.rounds_without_growth = 0;
        self.long_term = LongTerm::Waits;
    }

    fn model(&mut self) -> Option<&mut dyn Model> {
        Some(self)
    }

    fn paces(&self) -> bool {
        true
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
        // What the application had no use for says nothing about the path, unless it is more than was known.
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
        let in_flight = self.in_path_at_next_departure(view, sample.totals.in_flight);
        in_flight <= self.inflight(view, self.max_bw.get(), 1.0)
    }

    /// Returns whether this is ProbeRtt, in which rates say nothing.
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
        // Only what was delivered after it ends the idle time.
        if sample.measured.is_some_and(|measured| measured.delivered > 0.0) {
            self.idle_restart = false;
        }
        probes
    }

    /// bbr_check_probe_rtt_done(): true if the window is what it was again.
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
