//! The reaction of the model to losses (§5.5.10, §5.5.11).

use super::{Bbr3, ProbeBw, State};
use crate::recovery::View;
use crate::recovery::rate::{LostSegment, RateSample};

/// Maximum share of lost data in a round trip that probes for bandwidth.
const LOSS_THRESH: f64 = 0.02;
/// Lower limit of the factor by which a round trip with losses reduces the short-term bounds.
const BETA: f64 = 0.7;
/// BBRStartupFullLossCnt: number of separate lost ranges in a round trip that ends Startup.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;

/// The bounds of the model, and the measurements from which they are derived. An unset bound is infinite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    /// In segments per second.
    pub(super) bw_shortterm: f64,
    pub(super) inflight_shortterm: f64,
    pub(super) inflight_longterm: f64,
    /// Maximum of the current round trip.
    bw_latest: f64,
    pub(super) inflight_latest: f64,
    loss_round_delivered: f64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// Number of separate ranges lost in this round trip, and the end of the last one.
    lost_ranges: (u32, Option<u64>),
    /// The state to restore on an undo.
    undo: Saved,
}

#[derive(Clone, Copy, Debug)]
struct Saved {
    state: Option<Undo>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// undo_state: the state that a loss has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    Startup,
    ProbeBwUp,
}

impl Default for Congestion {
    fn default() -> Self {
        let unbound = f64::INFINITY;
        Self {
            bw_shortterm: unbound,
            inflight_shortterm: unbound,
            inflight_longterm: unbound,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0.0,
            loss_round_start: false,
            is_loss_in_round: false,
            lost_ranges: (0, None),
            undo: Saved { state: None, bw_shortterm: 0.0, inflight_shortterm: 0.0, inflight_longterm: 0.0 },
        }
    }
}

impl Congestion {
    /// SaveStateUponLoss(), except for the window.
    pub(super) fn save(&mut self) {
        self.undo = Saved {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// Restores the saved bounds, unless the current ones are larger. Returns the state to return to.
    pub(super) fn restore(&mut self) -> Option<Undo> {
        self.is_loss_in_round = false;
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        self.undo.state.take()
    }

    /// ResetShortTermModel().
    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }

    /// ResetCongestionSignals().
    pub(super) fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// UpdateLatestDeliverySignals().
    pub(super) fn update_latest(&mut self, sample: &RateSample) {
        self.loss_round_start = false;
        let Some(measured) = sample.measured else { return };
        self.bw_latest = self.bw_latest.max(sample.delivery_rate());
        self.inflight_latest = self.inflight_latest.max(measured.delivered);
        if measured.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = sample.totals.delivered;
            self.loss_round_start = true;
        }
    }

    /// AdvanceLatestDeliverySignals().
    pub(super) fn advance_latest(&mut self, sample: &RateSample) {
        if self.loss_round_start {
            self.bw_latest = sample.delivery_rate();
            self.inflight_latest = sample.measured.map_or(0.0, |measured| measured.delivered);
            self.lost_ranges = (0, None);
        }
    }

    pub(super) fn count_range(&mut self, start: u64, end: u64) {
        let (count, last) = &mut self.lost_ranges;
        *count += u32::from(*last != Some(start));
        *last = Some(end);
    }

    /// LossLowerBounds(), called once per round trip.
    fn lower(&mut self, max_bw: f64, cwnd: f64) {
        let or = |bound: f64, now: f64| if bound.is_infinite() { now } else { bound };
        self.bw_shortterm = self.bw_latest.max(BETA * or(self.bw_shortterm, max_bw));
        self.inflight_shortterm = self.inflight_latest.max(BETA * or(self.inflight_shortterm, cwnd));
    }
}

/// InflightAtLoss(): returns the value of C.inflight at which losses crossed the threshold. They may have
/// crossed it within the segment.
pub(super) fn inflight_at_loss(lost: &LostSegment) -> f64 {
    let inflight_prev = lost.tx_in_flight - lost.size;
    let lost_prev = lost.lost - lost.size;
    let lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
    inflight_prev + lost_prefix
}

impl Bbr3 {
    /// NoteLoss(): the first loss begins the round trip in which losses count.
    pub(super) fn note_loss(&mut self) {
        if !self.congestion.is_loss_in_round {
            self.congestion.loss_round_delivered = self.delivered;
        }
        self.congestion.is_loss_in_round = true;
    }

    /// IsInflightTooHigh().
    pub(super) fn is_inflight_too_high(&self, view: &View<'_>, lost: f64, tx_in_flight: f64) -> bool {
        lost > tx_in_flight * LOSS_THRESH || (lost > 0.0 && !view.handshake.scoreboard)
    }

    /// HandleInflightTooHigh(), for a probe with `inflight` in flight. Called once per probe.
    pub(super) fn on_inflight_too_high(&mut self, view: &View<'_>, inflight: f64, app_limited: bool) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_bw_probe_sample = false;
        if !app_limited {
            self.congestion.inflight_longterm = inflight.max(self.target_inflight(view) * BETA);
        }
        if self.state == State::ProbeBw(ProbeBw::Up) {
            self.congestion.undo.state = Some(Undo::ProbeBwUp);
            self.start_down(view.now);
        }
    }

    /// UpdateCongestionSignals() after UpdateMaxBw(): once per round trip with losses, outside a probe, the
    /// short-term bounds decrease towards the amount delivered in that round trip.
    pub(super) fn update_congestion_signals(&mut self, view: &View<'_>) {
        if !self.congestion.loss_round_start {
            return;
        }
        let is_probing_bw =
            matches!(self.state, State::Startup | State::ProbeBw(ProbeBw::Refill | ProbeBw::Up));
        if self.congestion.is_loss_in_round && !is_probing_bw {
            self.congestion.lower(self.max_bw.get(), view.cc.cwnd);
        }
        self.congestion.is_loss_in_round = false;
    }

    /// §5.3.1.3: returns whether a whole round trip of fast recovery has lost more than 2 %, in at least six
    /// separate ranges.
    pub(super) fn is_startup_lossy(&self, view: &View<'_>, sample: &RateSample) -> bool {
        if !super::is_in_fast_recovery(view) {
            return false;
        }
        if !view.handshake.scoreboard {
            return sample.newly_lost > 0.0;
        }
        let Some(measured) = sample.measured else { return false };
        self.congestion.loss_round_start
            && self.congestion.lost_ranges.0 >= STARTUP_FULL_LOSS_COUNT
            && self.is_inflight_too_high(view, measured.lost, measured.tx_in_flight)
    }

    /// CheckStartupHighLoss(): Startup has more than filled the path.
    pub(super) fn startup_was_too_much(&mut self) {
        self.congestion.undo.state = Some(Undo::Startup);
        self.full_bw.reached = true;
        let bdp = self.bdp_multiple(self.max_bw.get(), 1.0);
        self.congestion.inflight_longterm = bdp.max(self.congestion.inflight_latest);
    }

    /// Handles the first ECN echo of a window of data.
    pub(super) fn on_ecn_echo(&mut self, view: &View<'_>) {
        self.note_loss();
        if self.state == State::Startup {
            self.startup_was_too_much();
        } else if self.cycle.is_bw_probe_sample {
            let in_flight = view.segments(view.flight.pipe());
            self.on_inflight_too_high(view, in_flight, false);
        }
    }
}
