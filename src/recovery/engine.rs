//! The engine: the only code that applies decisions.
//!
//! For each ACK, the engine calls the answers in this order: timeout and undo (either can end an episode),
//! repair, window, detector and attribution. A model sets the window last. `Recovery::change_window` makes
//! every change of the window, so the trace names the responsible algorithm.

mod ack;
mod answers;
mod attribution;
mod counters;
mod event;
mod loss;
mod model;
mod mtu_probe;
mod room;
#[cfg(test)]
mod tests;
mod timeout;

use std::sync::Arc;

use airwire::Cause;
use airwire::time::{Duration, Instant};

pub(super) use self::answers::Answers;
pub use self::counters::Counters;
use self::event::Event;
use self::loss::Found;
pub(crate) use self::mtu_probe::ProbeRoom;
use super::catalogue::{Author, Need, Question};
use super::decision::{Decision, What};
use super::detect::{Correction, Detect, LossEpisode, MeasuredReordering, Opens, Verdict};
use super::episode::{
    AfterEpisode, AfterTimeout, Condition, Disorder, Episode, EpisodeWindow, FastRecovery, KeptWindow,
    Restart, TRANSITIONS, Transition,
};
use super::rate::RateSampler;
use super::repair::{Entry, RepairStep};
use super::spurious::EifelDetection;
use super::timeout::{Reaction, TimeoutVerdict};
use super::undo::Restore;
use super::window::{Loss, LossKind, Modelled, Progress, Reduction, Step};
use super::{
    Ack, Congestion, Entered, Handshake, Inputs, RecoveryState, Transmission, TransmissionKind, Truth, View,
};
use crate::flight::{Amount, Flight, SegmentState};
use crate::profile::Profile;
use crate::profile::recovery::{
    Accounting, GrowOnExit, Growth, InitialSsthresh, Pacing, PartialAckDeflation, RecoveryRules,
    RepeatedTimeout,
};
use crate::rtt::RttEstimator;

/// The parts of a connection that a decision may change, and the other inputs of decisions.
pub(crate) struct Path<'a> {
    pub(crate) now: Instant,
    pub(crate) flight: &'a mut Flight,
    pub(crate) rtt: &'a mut RttEstimator,
    /// Sender maximum segment size, in bytes of payload.
    pub(crate) smss: u64,
    /// The receiver's window, in bytes.
    pub(crate) rwnd: u64,
    /// Bytes that the application has written and that have not been sent.
    pub(crate) unsent: u64,
}

impl Path<'_> {
    fn view<'a>(
        &'a self,
        cc: &'a Congestion,
        handshake: &'a Handshake,
        rules: &'a RecoveryRules,
    ) -> View<'a> {
        let Self { now, smss, rwnd, unsent, .. } = *self;
        View { now, flight: self.flight, cc, handshake, rtt: self.rtt, rules, smss, rwnd, unsent }
    }
}

/// The effect of an ACK on the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerRule {
    /// Keep the timer running.
    Keep,
    /// Restart the timer if data is outstanding.
    Restart,
    /// Restart the timer, counted from the transmission of the first outstanding segment.
    RestartSinceTransmission,
}

/// A transmission that does not depend on the window.
#[derive(Debug)]
enum Pending {
    /// A retransmission that has been decided.
    Resend { start: u64, kind: TransmissionKind },
    /// A probe for a detector: new data or, if there is none, the last segment. Boxed to keep connections
    /// small, because probes are rare.
    Probe(Box<ProbeRequest>),
}

/// The detector that requests a probe, and its reason.
#[derive(Debug)]
struct ProbeRequest {
    by: Author,
    why: &'static str,
}

/// The transmissions that the last event allows.
#[derive(Clone, Copy, Debug, Default)]
struct Allowance {
    /// Number of segments that may still be sent. `None`: no limit.
    burst: Option<u32>,
    data: AllowedData,
}

/// Which segments may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum AllowedData {
    #[default]
    OldAndNew,
    /// Only new data: no segment is declared lost, and none is retransmitted.
    New,
}

/// The last ACK, for an add-on that sets the window in fast recovery. The window may be reduced after the ACK,
/// when the cause of a hole is found before its retransmission.
#[derive(Clone, Copy, Debug, Default)]
struct LastAck {
    /// Delivered data that the add-on has not processed yet.
    delivered: Amount,
    /// Whether the ACK advanced SND.UNA and no loss was found (RFC 9937 §6.2, safeACK).
    is_safe: bool,
}

/// The recorded decisions, one list per reader.
#[derive(Debug, Default)]
struct Trace {
    /// For [`Recovery::take_trace`].
    kept: Option<Vec<Decision>>,
    /// For the host's events ([`crate::events`]).
    events: Option<Vec<Decision>>,
}

/// The loss recovery of one connection. Asks the answers of its [`Recipe`](super::Recipe) and applies their
/// decisions.
// Parts that few connections need are boxed to keep idle connections small.
#[derive(Debug)]
pub struct Recovery {
    profile: Arc<Profile>,
    answers: Answers,
    wants_sack: bool,
    cc: Congestion,
    handshake: Handshake,
    pending: Option<Pending>,
    allowance: Allowance,
    last_ack: LastAck,
    /// Whether the next new segment carries CWR, regardless of the reason for the reduction (RFC 3168
    /// §6.1.2).
    send_cwr: bool,
    /// Whether an episode began with the loss of an MTU probe, until the connection has processed that.
    lost_mtu_probe: bool,
    observer: EifelDetection,
    counters: Counters,
    inputs: Inputs,
    trace: Option<Box<Trace>>,
    /// Source of rate samples. `None` if the window does not use them.
    rates: Option<Box<RateSampler>>,
}

impl Recovery {
    /// Creates the loss recovery of a connection. `wants_sack`: whether a part of the recipe uses SACK
    /// blocks.
    pub(super) fn new(profile: Arc<Profile>, mut answers: Answers, wants_sack: bool) -> Self {
        let rates = answers.window.model().map(|_| Box::new(RateSampler::new()));
        Self {
            profile,
            answers,
            wants_sack,
            cc: Congestion::default(),
            handshake: Handshake::default(),
            pending: None,
            allowance: Allowance::default(),
            last_ack: LastAck::default(),
            send_cwr: false,
            lost_mtu_probe: false,
            observer: EifelDetection::default(),
            counters: Counters::default(),
            inputs: Inputs::default(),
            trace: None,
            rates,
        }
    }

    fn event<'a, 'p>(&'a mut self, path: &'a mut Path<'p>) -> Event<'a, 'p> {
        Event { sender: self, path, timer: TimerRule::Keep, opens: false }
    }

    fn view<'a>(&'a self, path: &'a Path<'_>) -> View<'a> {
        path.view(&self.cc, &self.handshake, &self.profile.recovery)
    }

    /// Processes the end of the handshake.
    pub(crate) fn on_established(&mut self, path: &mut Path<'_>, handshake: &Handshake) {
        self.inputs.establish(handshake);
        let lost = handshake.syn_was_lost;
        let rules = &self.profile.recovery;
        let window = rules.initial.window_after_lost_syn.filter(|_| lost);
        let window = window.unwrap_or_else(|| rules.initial.window.segments(path.smss));
        let ssthresh = match (rules.initial.ssthresh_after_lost_syn, rules.initial.ssthresh) {
            (Some(ssthresh), _) if lost => ssthresh,
            (_, InitialSsthresh::Infinite) => f64::INFINITY,
            (_, InitialSsthresh::ReceiverWindow) => path.rwnd as f64 / path.smss as f64,
        };
        let cwnd = self.answers.window.initial(window);
        let by = self.answers.window.author();
        self.change_window(path.now, by, Reduction { cwnd, ssthresh }, "connection established");
        self.fall_back(path.now, handshake);
        let mistakes_reordering = self.answers.detect.traits().mistakes_reordering;
        self.handshake = Handshake { mistakes_reordering, ..*handshake };
        let mut event = self.event(path);
        event.ask(|answers, view| {
            if let Some(slow_start) = answers.slow_start() {
                slow_start.on_established(view);
            }
        });
        event.begin_model();
    }

    /// Replaces answers that need something that the peer does not support.
    fn fall_back(&mut self, now: Instant, handshake: &Handshake) {
        const NO_SACK: &str = "the peer does not permit SACK";
        if !handshake.sack {
            for question in [Question::Repair, Question::Detect, Question::Undo] {
                self.replace_if_it_needs(Need::Sack, question, now, NO_SACK);
            }
            let emulated = self.answers.detect.traits().sacked_out.is_some();
            if let Some(add_ons) = &mut self.answers.add_ons {
                add_ons.in_recovery.take_if(|answer| !emulated && answer.row().requires(Need::Sack));
            }
        }
        if !handshake.timestamps {
            const WHY: &str = "no timestamps on this connection";
            self.replace_if_it_needs(Need::Timestamps, Question::Undo, now, WHY);
        }
    }

    fn replace_if_it_needs(&mut self, need: Need, question: Question, now: Instant, why: &'static str) {
        if let Some((by, to)) = self.answers.fall_back(need, question, &self.profile) {
            self.record(now, by, What::Fallback { to }, why);
        }
    }

    /// Passes ground truth about the path to the recipe's parts that [need it](super::Recipe::needs_truth).
    pub fn on_truth(&mut self, truth: Truth) {
        self.inputs.note(Need::Truth);
        self.answers.each_attribute(|attribute| attribute.on_truth(truth));
        self.answers.window.on_truth(truth);
    }

    /// Processes a transmission that the in-flight list already contains.
    pub(crate) fn on_sent(&mut self, path: &mut Path<'_>, transmission: &Transmission) {
        self.event(path).on_sent(transmission);
    }

    /// Processes an ACK that the in-flight list has already processed. Records in `ack` if it proves a
    /// retransmission spurious.
    pub(crate) fn on_ack(&mut self, path: &mut Path<'_>, ack: &mut Ack) -> TimerRule {
        self.event(path).on_ack(ack)
    }

    /// Processes an ACK that repeats the last one while nothing is outstanding: a tail loss probe has arrived after
    /// the original (Linux, tcp_process_tlp_ack()).
    pub(crate) fn on_repeated_ack(&mut self, path: &mut Path<'_>) {
        self.event(path).ask(|answers, view| {
            answers.each_detector(|detect| detect.on_correction(view, Correction::ProbeAnswered));
        });
    }

    /// Processes an expiry of the retransmission timer with data outstanding.
    pub(crate) fn on_timeout(&mut self, path: &mut Path<'_>) {
        self.event(path).on_timeout();
    }

    /// Processes the expiry of [`Recovery::deadline`].
    pub(crate) fn on_deadline(&mut self, path: &mut Path<'_>) -> TimerRule {
        self.event(path).on_deadline()
    }

    /// Processes new data after the connection was idle for more than an RTO (RFC 5681 §4.1). The last
    /// segment left at `last_sent`.
    pub(crate) fn on_idle(&mut self, path: &mut Path<'_>, last_sent: Instant) {
        self.event(path).on_idle(last_sent);
    }

    /// Returns true if [`Self::on_burst_sent`] has something to do.
    #[inline]
    pub(crate) fn has_new_usage(&self) -> bool {
        self.cc.usage.is_new
    }

    /// Processes the end of a burst: nothing more can be sent now.
    #[inline]
    pub(crate) fn on_burst_sent(&mut self, path: &mut Path<'_>) {
        if std::mem::take(&mut self.cc.usage.is_new) {
            self.event(path).review_usage();
        }
    }

    /// Returns the number of segments that duplicate ACKs represent, if fast recovery counts them in place
    /// of a scoreboard (Linux 6.18, `sacked_out`).
    fn emulated_sacks(&self) -> Option<u64> {
        self.answers.add_ons.as_ref()?.in_recovery.as_ref()?;
        self.answers.detect.traits().sacked_out
    }

    /// Returns the number of deliveries that duplicate ACKs announced (Linux 6.18, tcp_add_reno_sack()).
    /// After a timeout and before new data is sent, duplicate ACKs may be about retransmissions
    /// (tcp_process_loss()).
    fn announced(&self, path: &Path<'_>) -> u32 {
        if self.answers.has_scoreboard() || self.is_about_copies(path) {
            return 0;
        }
        self.emulated_sacks().map_or_else(|| self.cc.dupacks(), |sacked_out| sacked_out as u32)
    }

    /// Returns whether duplicate ACKs may be about retransmissions, because no new data was sent since a
    /// timeout.
    fn is_about_copies(&self, path: &Path<'_>) -> bool {
        self.cc.state() == RecoveryState::Loss
            && self.cc.recover.is_some_and(|recover| path.flight.max() <= recover)
    }

    /// Returns the earliest time at which a detector's timer expires or a pause ends. `None` if nothing
    /// happens before the next ACK.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let own = self.answers.detect.deadline();
        let hold = self.cc.episode.paused_until();
        if self.answers.add_ons.is_none() && hold.is_none() { own } else { self.earliest(own, hold) }
    }

    fn earliest(&self, own: Option<Instant>, hold: Option<Instant>) -> Option<Instant> {
        let additional = self.answers.add_ons.iter().flat_map(|add_ons| &add_ons.detectors);
        let additional = additional.filter_map(|detector| detector.deadline());
        own.into_iter().chain(additional).chain(hold).min()
    }

    /// Returns the time that must pass before the retransmission timer may fire.
    pub fn timer_floor(&self) -> Option<Duration> {
        self.answers.detect.traits().timer_floor
    }

    /// Returns the deadline of a detector that replaces the retransmission timer, if it is after `now`. The
    /// detector's wait may have become longer since the timer was set.
    pub(crate) fn waits_until(&self, now: Instant) -> Option<Instant> {
        self.timer_floor()?;
        self.answers.detect.deadline().filter(|at| *at > now)
    }

    /// Sets cwnd and ssthresh. Only this function changes them outside tests.
    fn change_window(&mut self, at: Instant, by: Author, window: Reduction, why: &'static str) {
        let Reduction { cwnd, ssthresh } = window;
        let Congestion { cwnd: was_cwnd, ssthresh: was_ssthresh, .. } = self.cc;
        if cwnd == was_cwnd && ssthresh == was_ssthresh {
            return;
        }
        (self.cc.cwnd, self.cc.ssthresh) = (cwnd, ssthresh);
        self.cc.usage.since = at;
        self.record(at, by, What::Window { cwnd, ssthresh, was_cwnd, was_ssthresh }, why);
    }

    fn record(&mut self, at: Instant, by: Author, what: What, why: &'static str) {
        let state = self.cc.state();
        let Some(trace) = &mut self.trace else { return };
        let decision = Decision { at, state, question: by.question, by: by.name, what, why };
        if let Some(events) = &mut trace.events {
            events.push(decision.clone());
        }
        if let Some(kept) = &mut trace.kept {
            kept.push(decision);
        }
    }

    /// Sets the window for a test that starts in the middle of a connection.
    #[cfg(test)]
    pub(super) fn put_window(&mut self, cwnd: f64, ssthresh: f64) {
        (self.cc.cwnd, self.cc.ssthresh) = (cwnd, ssthresh);
    }

    /// Returns window, threshold and state.
    pub fn congestion(&self) -> &Congestion {
        &self.cc
    }

    /// Returns the reordering that the primary detector has measured.
    pub(crate) fn reordering(&self) -> MeasuredReordering {
        self.answers.detect.traits().reordering
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the kinds of information that have arrived so far.
    pub fn inputs(&self) -> Inputs {
        let mut inputs = self.inputs;
        // Before a retransmission, a receiver has no duplicate to report.
        if self.counters.dsacks > 0 || self.counters.resent() == 0 {
            inputs.note(Need::Dsack);
        }
        inputs
    }

    #[cfg(test)]
    pub(super) fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    #[cfg(test)]
    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the names of the six current answers, in the order of the questions.
    #[cfg(test)]
    pub(super) fn answers(&self) -> [&'static str; 6] {
        let a = &self.answers;
        let six = [
            a.detect.author(),
            a.attribute.author(),
            a.repair.author(),
            a.window.author(),
            a.timeout.author(),
            a.undo.author(),
        ];
        six.map(|author| author.name)
    }

    /// Returns whether to offer SACK.
    pub(crate) fn wants_sack(&self) -> bool {
        self.wants_sack
    }

    /// Returns whether the sender keeps a scoreboard.
    pub(crate) fn uses_sack(&self) -> bool {
        self.answers.has_scoreboard()
    }

    /// Returns true once after each reduction: the next new segment carries CWR.
    pub(crate) fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.send_cwr)
    }

    /// Starts to record decisions for [`Recovery::take_trace`].
    pub fn start_trace(&mut self) {
        self.trace.get_or_insert_default().kept.get_or_insert_default();
    }

    /// Starts to record decisions for the host's events.
    pub(crate) fn start_events(&mut self) {
        self.trace.get_or_insert_default().events.get_or_insert_default();
    }

    /// Returns the decisions for the host's events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<Decision> {
        self.trace.as_mut().and_then(|trace| trace.events.as_mut()).map(std::mem::take).unwrap_or_default()
    }

    /// Returns the decisions since the last call. Empty unless [`Recovery::start_trace`] was called.
    pub fn take_trace(&mut self) -> Vec<Decision> {
        self.trace.as_mut().and_then(|trace| trace.kept.as_mut()).map(std::mem::take).unwrap_or_default()
    }
}
