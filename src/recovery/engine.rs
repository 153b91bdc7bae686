//! The engine: the only code that applies decisions.
//!
//! For each ACK, it asks in this order: what the last timeout meant, and whether the last reduction was
//! spurious (either can end an episode); what the ACK means for a repair in progress; how much may be in
//! flight; and whether a segment is lost, and why. A model sets the window last. `Recovery::set_window` makes
//! every change of the window, so the trace names the responsible algorithm.

mod answers;
mod ask;
mod loss;
mod model;
mod mtu_probe;
mod room;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use airwire::Cause;
use airwire::time::{Duration, Instant};

pub(super) use self::answers::Answers;
use self::ask::Undone;
pub(crate) use self::mtu_probe::ProbeRoom;
use super::catalogue::{Need, Question};
use super::decision::{Decision, What};
use super::detect::{Correction, Detect, LossEvent, MeasuredReordering, Opens, Verdict};
use super::episode::{
    AfterTimeout, Condition, Disorder, Episode, EventWindow, FastRecovery, Kept, MOVES, Memory, Move, Restart,
};
use super::parameter::Given;
use super::rate::RateSampler;
use super::repair::{Entry, RepairStep};
use super::spurious::EifelDetection;
use super::timeout::{Afterwards, Reaction};
use super::undo::Restore;
use super::window::{Loss, LossKind, Modelled, Progress, Reduction, Step};
use super::{Ack, Congestion, Departure, Entered, Handshake, Inputs, Phase, Transmission, Truth, View};
use crate::flight::{Amount, Fate, Flight};
use crate::profile::Profile;
use crate::profile::knobs::{
    Accounting, GrowOnExit, Growth, InitialSsthresh, Pacing, PartialAckDeflation, RepeatedTimeout,
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

/// Counters of a connection's loss recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Counters {
    /// Episodes that began without a timeout (succeeded-dupack).
    pub fast_retransmits: u64,
    /// Timeouts with data outstanding.
    pub timeouts: u64,
    /// Timeouts by the number of duplicate ACKs before them: 0, 1, 2, and 3 or more (P0 §4.1, x-dupack).
    pub timeouts_by_dupacks: [u64; 4],
    /// Timeouts after all segments outstanding in the current pass, except the first, had caused a duplicate
    /// ACK (failed-dupack).
    pub failed_dupack: u32,
    /// Timeouts with only one segment outstanding in the current pass (failed-dupack with x = 0).
    pub failed_alone: u32,
    /// Timeouts that timestamps prove spurious (RFC 3522), whether or not the sender undid them.
    pub spurious_timeouts: u64,
    /// Fast retransmissions that timestamps prove spurious (RFC 3522), whether or not the sender undid them.
    pub spurious_fast_retransmits: u64,
    /// ACKs with a D-SACK block.
    pub dsacks: u64,
    /// Duplicate ACKs that the repair counted.
    pub dupacks: u64,
    /// Window reductions that were undone.
    pub undone: u64,
    /// Window reductions for any reason.
    pub window_reductions: u64,
    /// Episodes and timeouts that were attributed to the radio link.
    pub attributed_to_radio: u64,
    /// Retransmissions that were declared lost without a timeout.
    pub lost_retransmissions: u64,
    /// Segments retransmitted as the first of an episode.
    pub resent_fast: u64,
    /// Segments retransmitted as a further hole of an episode.
    pub resent_recovery: u64,
    /// Segments retransmitted after a timeout or in a go-back-N pass.
    pub resent_timeout: u64,
    /// Segments retransmitted as a probe.
    pub resent_probe: u64,
}

impl Counters {
    /// Returns the number of all retransmissions.
    pub fn resent(&self) -> u64 {
        self.resent_fast + self.resent_recovery + self.resent_timeout + self.resent_probe
    }
}

/// The effect of a detector's verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Nothing,
    /// A segment must be sent: a lost retransmission once more, or a probe.
    Resend,
    /// An episode began.
    Event,
}

/// The effect of an ACK on the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerRule {
    /// Keep the timer running.
    Keep,
    /// Restart the timer if data is outstanding.
    Restart,
}

/// A transmission that does not depend on the window.
#[derive(Debug)]
enum Order {
    /// A retransmission that has been decided.
    Resend { start: u64, kind: Transmission },
    /// A probe for a detector: new data or, if there is none, the last segment.
    Probe(Box<Wish>),
}

/// The detector that wants a probe, and its reason. Boxed to keep connections small, because probes are rare.
#[derive(Debug)]
struct Wish {
    by: &'static str,
    why: &'static str,
}

/// State that belongs to the current ACK or timer expiry only.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Number of segments that may still be sent. `None`: no limit.
    burst: Option<u32>,
    /// Data delivered by the ACK that the add-on for fast recovery has not processed yet.
    delivered: Amount,
    /// Whether the ACK opens the window unless it reveals a loss.
    opens: bool,
}

/// Which segments the current ACK may release.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Leaves {
    #[default]
    OldAndNew,
    /// Only new data: no segment is declared lost, and none is retransmitted.
    New,
}

/// The recorded decisions, one list per reader.
#[derive(Debug, Default)]
struct Trace {
    /// For [`Recovery::take_trace`].
    kept: Option<Vec<Decision>>,
    /// For the host's events ([`crate::events`]).
    told: Option<Vec<Decision>>,
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
    order: Option<Order>,
    turn: Turn,
    /// Whether the next new segment carries CWR, whatever the reason for the reduction (RFC 3168 §6.1.2).
    send_cwr: bool,
    /// Whether the current ACK advanced SND.UNA and no loss was found (RFC 9937 §6.2, safeACK).
    is_safe: bool,
    /// Whether an episode began with the loss of an MTU probe, until the connection has processed that.
    lost_mtu_probe: bool,
    leaves: Leaves,
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
        let cc = Congestion {
            cwnd: 1.0,
            ssthresh: f64::INFINITY,
            episode: Episode::default(),
            disorder: Disorder::default(),
            announced: 0,
            recover: None,
            last_entry: None,
            previous_una: 0,
            echoed: None,
            acked_tsval: None,
            timeouts_in_row: 0,
            peak_flight: 0.0,
            usage_seq: 0,
            cwnd_limited: false,
        };
        Self {
            profile,
            answers,
            wants_sack,
            cc,
            order: None,
            turn: Turn::default(),
            leaves: Leaves::default(),
            send_cwr: false,
            is_safe: false,
            lost_mtu_probe: false,
            observer: EifelDetection::default(),
            counters: Counters::default(),
            inputs: Inputs::default(),
            trace: None,
            rates,
        }
    }

    /// Processes the end of the handshake.
    pub(crate) fn on_established(&mut self, path: &mut Path<'_>, handshake: &Handshake) {
        self.inputs.establish(handshake);
        let syn_was_lost = handshake.syn_was_lost;
        let knobs = &self.profile.recovery;
        let mut window = knobs.initial_window.segments(path.smss);
        if syn_was_lost && let Some(after_loss) = knobs.window_after_lost_syn {
            window = after_loss;
        }
        let mut ssthresh = match knobs.initial_ssthresh {
            InitialSsthresh::Infinite => f64::INFINITY,
            InitialSsthresh::ReceiverWindow => path.rwnd as f64 / path.smss as f64,
        };
        if syn_was_lost && let Some(after_loss) = knobs.ssthresh_after_lost_syn {
            ssthresh = after_loss;
        }
        let window = self.answers.window.initial(window);
        let by = self.answers.window.name();
        self.set_window(path.now, Question::Window, by, window, ssthresh, "connection established");
        if !handshake.sack {
            self.do_without_sack(path.now);
        }
        if !handshake.timestamps && self.answers.undo.row().requires(Need::Timestamps) {
            self.fall_back(path.now, Question::Undo, "no timestamps on this connection");
        }
        let answers = &mut self.answers;
        let mistakes_reordering = answers.detect.traits().mistakes_reordering;
        let handshake = &Handshake { mistakes_reordering, ..*handshake };
        answers.each_detector(|detect| detect.on_established(handshake));
        answers.each_attribute(|attribute| attribute.on_established(handshake));
        answers.window.on_established(handshake);
        answers.timeout.on_established(handshake);
        answers.undo.on_established(handshake);
        let view = view_of(&self.cc, &self.profile, path);
        if let Some(slow_start) = answers.slow_start() {
            slow_start.on_established(&view);
        }
        self.begin_model(path);
    }

    fn do_without_sack(&mut self, now: Instant) {
        const WHY: &str = "the peer does not permit SACK";
        if self.answers.has_scoreboard() {
            self.fall_back(now, Question::Repair, WHY);
            // The add-on for fast recovery depends on the scoreboard.
            if let Some(add_ons) = &mut self.answers.add_ons {
                add_ons.in_recovery = None;
            }
        }
        if self.answers.detect.row().requires(Need::Sack) {
            self.fall_back(now, Question::Detect, WHY);
        }
        if self.answers.undo.row().requires(Need::Sack) {
            self.fall_back(now, Question::Undo, WHY);
        }
    }

    /// Replaces an answer by the default one, because the peer does not support what it needs.
    fn fall_back(&mut self, now: Instant, question: Question, why: &'static str) {
        let [by, to] = self.answers.fall_back(question, &Given::new(&self.profile, &[]));
        self.note(now, question, by, What::Fallback { to }, why);
    }

    /// Passes ground truth about the path to the recipe's parts that [need it](super::Recipe::needs_truth).
    pub fn on_truth(&mut self, truth: Truth) {
        self.inputs.note(Need::Truth);
        self.answers.each_attribute(|attribute| attribute.on_truth(truth));
        self.answers.window.on_truth(truth);
    }

    /// Processes a transmission that the in-flight list already contains.
    pub(crate) fn on_sent(&mut self, path: &mut Path<'_>, departure: &Departure) {
        match departure.kind {
            Transmission::New => {}
            Transmission::FastRetransmit => self.counters.resent_fast += 1,
            Transmission::Recovery => self.counters.resent_recovery += 1,
            Transmission::Timeout => self.counters.resent_timeout += 1,
            Transmission::Probe => self.counters.resent_probe += 1,
        }
        let was_ordered = self.carry_out(path.now, departure);
        self.order_rest_of_mtu_probe(path, departure);
        if let Some(kept) = self.cc.episode.kept_mut() {
            kept.judged.take_if(|hole| *hole == departure.start);
        }
        if departure.kind != Transmission::New
            && let Some(first) = self.cc.episode.first_mut()
        {
            *first = false;
        }
        if !was_ordered && let Some(left) = &mut self.turn.burst {
            *left = left.saturating_sub(1);
        }
        if departure.kind == Transmission::New
            && self.cc.dupacks() > 0
            && matches!(self.cc.episode, Episode::Open(_))
        {
            self.cc.disorder.limited += 1;
        }
        self.observer.on_sent(departure);
        let view = view_of(&self.cc, &self.profile, path);
        let answers = &mut self.answers;
        answers.each_detector(|detect| detect.on_sent(&view, departure));
        answers.each_attribute(|attribute| attribute.on_sent(&view, departure));
        answers.repair.on_sent(&view, departure);
        answers.window.on_sent(&view, departure);
        if view.cc.episode.is_regulated()
            && let Some(in_recovery) = answers.in_recovery()
        {
            in_recovery.on_sent(&view, departure);
        }
        answers.undo.on_sent(&view, departure);
        let outstanding = view.segments(view.flight.outstanding());
        let limited = view.segments(self.in_flight(&view)) + 1.0 > self.cc.cwnd;
        let (una, max) = (view.flight.una(), view.flight.max());
        // A retransmission uses the window only if new data waits for it (Linux 6.18, tcp_write_xmit()).
        let uses = departure.kind == Transmission::New || limited && view.unsent > 0;
        let larger = !self.cc.cwnd_limited && outstanding > self.cc.peak_flight;
        if uses && (una >= self.cc.usage_seq || limited || larger) {
            self.cc.peak_flight = outstanding;
            self.cc.cwnd_limited = limited;
            self.cc.usage_seq = max;
        }
        if self.samples_rates() {
            self.tell_model_of_departure(path, departure);
        }
    }

    /// Removes the order that this transmission fulfils. Returns true if it is a retransmission that was
    /// decided before, which does not count against the segments that an ACK releases.
    fn carry_out(&mut self, now: Instant, departure: &Departure) -> bool {
        let concerned = |order: &mut Order| match order {
            Order::Resend { start, .. } => *start == departure.start,
            Order::Probe(_) => true,
        };
        match self.order.take_if(concerned) {
            Some(Order::Resend { .. }) => true,
            Some(Order::Probe(wish)) => {
                let Wish { by, why } = *wish;
                self.note(now, Question::Detect, by, What::Probe { offset: departure.start }, why);
                false
            }
            None => false,
        }
    }

    /// Processes an ACK that the in-flight list has already processed.
    pub(crate) fn on_ack(&mut self, path: &mut Path<'_>, ack: &Ack) -> TimerRule {
        self.order.take_if(|order| matches!(order, Order::Probe(_)));
        self.turn.delivered = ack.delivered;
        self.is_safe = ack.advances();
        if path.flight.is_empty() {
            self.cc.episode.end_pause();
        }
        if ack.advances() {
            self.cc.announced = self.announced(path);
            self.cc.disorder = Disorder::default();
            self.cc.previous_una = path.flight.una() - ack.acked.bytes;
            (self.cc.echoed, self.cc.acked_tsval) = (ack.ecr, ack.acked_tsval);
            self.cc.timeouts_in_row = 0;
        } else if ack.duplicate
            && !(self.cc.timeouts_in_row > 0 && self.answers.repair.row().repair.scoreboard_in_recovery_only)
        {
            self.cc.disorder.dupacks += 1;
            self.cc.disorder.room += 1;
            self.counters.dupacks += 1;
        }
        self.counters.dsacks += u64::from(ack.dsack.is_some());
        if ack.ece {
            self.inputs.note(Need::EcnMarks);
        }
        if ack.loss_report.is_some() {
            self.inputs.note(Need::LossReports);
        }
        let proves_spurious = self.observer.on_ack(&view_of(&self.cc, &self.profile, path), ack);
        match proves_spurious {
            Some(Entered::ByTimeout) => self.counters.spurious_timeouts += 1,
            Some(Entered::ByLossDetection) => self.counters.spurious_fast_retransmits += 1,
            None => {}
        }
        let ack = &Ack { proves_spurious, ..*ack };
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.each_attribute(|attribute| attribute.on_ack(&view, ack));
        self.answers.window.observe(&view, ack);
        if let Some(slow_start) = self.answers.slow_start() {
            slow_start.observe(&view, ack);
        }

        let mut timer = if ack.advances() { TimerRule::Restart } else { TimerRule::Keep };
        let begins_recovery = self.ask_timeout(path, ack, &mut timer);
        let undone = self.ask_undo(path, ack);
        // Linux 6.18, tcp_try_undo_partial(): there is more reordering than assumed, so no more segments are
        // declared lost yet.
        self.leaves = if undone == Undone::Later { Leaves::New } else { Leaves::OldAndNew };
        if undone != Undone::Window && !begins_recovery {
            self.ask_repair(path, ack, &mut timer);
        }
        if self.cc.phase() != Phase::Recovery
            && (ack.advances() || self.cc.timeouts_in_row > 0)
            && self.answers.repair.row().repair.scoreboard_in_recovery_only
        {
            self.forget_sacks(path);
        }
        self.ask_ecn(path, ack);
        let leaves = self.leaves;
        let found = self.hear(path, |detect, view| match (detect.on_ack(view, ack), leaves) {
            (_, Leaves::New) => Verdict::Nothing,
            (verdict, Leaves::OldAndNew) => verdict,
        });
        if found != Found::Nothing {
            timer = TimerRule::Restart;
        }
        if std::mem::take(&mut self.turn.opens) && found != Found::Event {
            self.ask_window(path, ack);
        }
        self.ask_in_recovery(path);
        if self.samples_rates() {
            self.ask_model(path, ack);
        }
        let begins = found == Found::Event;
        let burst = self.answers.repair.burst(&view_of(&self.cc, &self.profile, path), begins);
        self.turn.burst = match self.cc.episode {
            Episode::Restarted(Restart::Timeout(AfterTimeout::Kept)) => Some(2),
            _ => burst.or(self.profile.recovery.max_burst),
        };
        timer
    }

    /// Returns the number of deliveries that duplicate ACKs announced (Linux 6.18, tcp_add_reno_sack()).
    /// After a timeout and before new data is sent, duplicate ACKs may be about retransmissions
    /// (tcp_process_loss()).
    fn announced(&self, path: &Path<'_>) -> u32 {
        let has_scoreboard = self.answers.has_scoreboard();
        if has_scoreboard || self.is_about_copies(path) { 0 } else { self.cc.dupacks() }
    }

    /// Returns whether duplicate ACKs may be about retransmissions, because no new data was sent since a
    /// timeout.
    fn is_about_copies(&self, path: &Path<'_>) -> bool {
        self.cc.phase() == Phase::Restarted
            && self.cc.recover.is_some_and(|recover| path.flight.max() <= recover)
    }

    /// Processes an expiry of the retransmission timer with data outstanding.
    pub(crate) fn on_timeout(&mut self, path: &mut Path<'_>) {
        let una = path.flight.una();
        self.counters.timeouts += 1;
        let dupacks = self.cc.dupacks();
        self.counters.timeouts_by_dupacks[(dupacks as usize).min(3)] += 1;
        if u64::from(dupacks) + 1 == path.flight.passed().segments {
            let failed = match dupacks {
                0 => &mut self.counters.failed_alone,
                _ => &mut self.counters.failed_dupack,
            };
            *failed += 1;
        }
        self.note(
            path.now,
            Question::Timeout,
            self.answers.timeout.name(),
            What::Timeout { offset: una },
            "RTO",
        );
        // A mark is as old as the last ACK, so it counts only at the first timeout in a row.
        let counts = self.cc.timeouts_in_row == 0 && self.answers.attribute.judges_timeouts();
        match counts.then(|| self.ask_why(path, una)).flatten() {
            Some(Cause::Radio) => return self.keep_window_at_timeout(path),
            Some(Cause::Congestion) => {}
            None => self.ask_judges(path, una),
        }
        let before = self.cc.clone();
        self.cc.episode.deflate();
        let view = view_of(&self.cc, &self.profile, path);
        let knobs = view.knobs;
        let first = self.cc.timeouts_in_row == 0
            || knobs.repeated_timeout == RepeatedTimeout::ReduceAgain
            || self.cc.episode == Episode::Restarted(Restart::Timeout(AfterTimeout::Kept));
        // An episode attributed to the radio link has not reduced the window.
        let is_paid_for = knobs.repeated_timeout == RepeatedTimeout::OncePerWindow
            && matches!(self.cc.phase(), Phase::Recovery | Phase::Reduced)
            && self.cc.kept_window().is_none()
            && self.cc.recover.is_some_and(|recover| una < recover);
        let reaction = self.answers.timeout.on_timeout(&view);
        if first {
            self.answers.undo.on_reduction(&view, &before, LossKind::Timeout);
            self.send_cwr = true;
        }
        let ssthresh = if first && !is_paid_for {
            self.counters.window_reductions += 1;
            let window_when_sent = self.window_at_timeout(path);
            let loss = Loss { kind: LossKind::Timeout, window_when_sent };
            self.answers.window.on_loss(&view, &loss).ssthresh
        } else {
            self.cc.ssthresh
        };
        let answers = &mut self.answers;
        answers.each_detector(|detect| detect.on_timeout(&view));
        if let Some(slow_start) = answers.slow_start() {
            slow_start.on_timeout();
        }
        self.answers.repair.on_timeout(&view);
        let forget_sacks = knobs.forget_sacks_at_timeout;
        let dupacks_survive =
            knobs.dupacks_survive_timeout && self.answers.repair.row().repair.keeps_dupacks_at_timeout;

        path.rtt.back_off();
        self.cc.timeouts_in_row += 1;
        self.cc.disorder = match dupacks_survive {
            true => Disorder { dupacks, ..Disorder::default() },
            false => Disorder::default(),
        };
        self.order = None;
        (self.turn.burst, self.leaves) = (None, Leaves::OldAndNew);
        if forget_sacks {
            self.forget_sacks(path);
        }
        let by = self.answers.timeout.name();
        let (cwnd, effect) = match reaction {
            Reaction::Restart { cwnd } => {
                path.flight.rewind();
                (cwnd, AfterTimeout::Reduced)
            }
            Reaction::Probe { cwnd } => {
                path.flight.mark_head_lost();
                self.order = Some(Order::Resend { start: una, kind: Transmission::Timeout });
                (cwnd, AfterTimeout::Undecided)
            }
        };
        self.set_window(path.now, Question::Timeout, by, cwnd, ssthresh, "retransmission timeout");
        self.observer.on_event(&view_of(&self.cc, &self.profile, path), Entered::ByTimeout);
        let restarted = Episode::Restarted(Restart::Timeout(effect));
        self.enter(path, Condition::Timeout, restarted, Question::Timeout, by);
        self.tell_model_of_timer(path, true);
    }

    /// Processes a timeout that was attributed to the radio link: everything is retransmitted, and the window
    /// stays.
    fn keep_window_at_timeout(&mut self, path: &mut Path<'_>) {
        let by = self.answers.attribute.name();
        let cwnd = self.cc.kept_window().unwrap_or(self.cc.cwnd);
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.each_detector(|detect| detect.on_timeout(&view));
        self.answers.repair.on_timeout(&view);
        if view.knobs.forget_sacks_at_timeout {
            self.forget_sacks(path);
        }
        path.rtt.back_off();
        self.counters.attributed_to_radio += 1;
        self.cc.timeouts_in_row += 1;
        self.cc.disorder = Disorder::default();
        self.order = None;
        (self.turn.burst, self.leaves) = (Some(1), Leaves::OldAndNew);
        path.flight.rewind();
        let ssthresh = self.cc.ssthresh;
        self.set_window(path.now, Question::Attribute, by, cwnd, ssthresh, "marked timeout");
        self.observer.on_event(&view_of(&self.cc, &self.profile, path), Entered::ByTimeout);
        let restarted = Episode::Restarted(Restart::Timeout(AfterTimeout::Kept));
        self.enter(path, Condition::Timeout, restarted, Question::Attribute, by);
        self.tell_model_of_timer(path, false);
    }

    /// Processes the expiry of [`Recovery::deadline`].
    pub(crate) fn on_deadline(&mut self, path: &mut Path<'_>) -> TimerRule {
        let now = path.now;
        if self.cc.episode.paused_until().is_some_and(|until| until <= now) {
            self.cc.episode.end_pause();
        }
        (self.turn.delivered, self.leaves) = (Amount::default(), Leaves::OldAndNew);
        self.is_safe = false;
        let found = self.hear(path, |detect, view| match detect.deadline() {
            Some(at) if at <= now => detect.on_deadline(view),
            _ => Verdict::Nothing,
        });
        self.ask_in_recovery(path);
        self.tell_model_of_timer(path, false);
        if found == Found::Nothing { TimerRule::Keep } else { TimerRule::Restart }
    }

    /// Returns the earliest time at which a detector's timer expires or a pause ends. `None` if nothing
    /// happens before the next ACK.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let own = self.answers.detect.deadline();
        let hold = self.cc.episode.paused_until();
        if self.answers.add_ons.is_none() && hold.is_none() {
            return own;
        }
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

    /// Processes new data after the connection was idle for more than an RTO (RFC 5681 §4.1).
    pub(crate) fn on_idle(&mut self, path: &mut Path<'_>) {
        let knobs = &self.profile.recovery;
        // A model paces instead (Linux 6.18, tcp_slow_start_after_idle_check()).
        if !knobs.restart_after_idle || self.samples_rates() {
            return;
        }
        let restart = knobs.initial_window.segments(path.smss).min(self.cc.cwnd);
        if restart < self.cc.cwnd {
            let ssthresh = self.cc.ssthresh;
            self.set_window(
                path.now,
                Question::Window,
                "restart-window",
                restart,
                ssthresh,
                "idle for an RTO",
            );
        }
    }

    fn restore(&mut self, path: &mut Path<'_>, restore: Restore, question: Question, by: &'static str) {
        let Restore { window, resume, timer, why, .. } = restore;
        if let Some(Reduction { cwnd, ssthresh }) = window {
            self.counters.undone += 1;
            self.answers.window.on_undo(&view_of(&self.cc, &self.profile, path));
            self.cc.timeouts_in_row = 0;
            self.cancel_resend();
            self.set_window(path.now, question, by, cwnd, ssthresh, why);
        }
        if let Some((srtt, rttvar)) = timer {
            path.rtt.set_smoothed(srtt, rttvar, self.cc.cwnd);
        }
        if resume {
            self.cancel_resend();
            path.flight.resume_at_max();
            self.note(path.now, question, by, What::Resume { at: path.flight.max() }, why);
        }
        if window.is_some() {
            if self.cc.phase() == Phase::Open {
                self.cc.episode = Episode::default();
                return;
            }
            self.leave(path, Condition::Mistake, Memory::Nothing);
            // RFC 5682 §2.1 (3b): only a few segments of this window were retransmitted, so any segment still
            // missing is lost and may start a new episode.
            self.cc.recover = Some(path.flight.una());
        }
    }

    fn cancel_resend(&mut self) {
        self.order.take_if(|order| matches!(order, Order::Resend { .. }));
    }

    /// Makes every transition between states. Data within a state changes elsewhere.
    fn move_to(&mut self, condition: Condition, episode: Episode) {
        let made = Move { from: self.cc.phase(), condition, to: episode.phase() };
        debug_assert!(MOVES.contains(&made), "{made:?} is not among the moves");
        self.cc.episode = episode;
    }

    /// Starts an episode.
    fn enter(
        &mut self,
        path: &Path<'_>,
        condition: Condition,
        episode: Episode,
        question: Question,
        by: &'static str,
    ) {
        let recover = path.flight.max();
        let phase = episode.phase();
        self.move_to(condition, episode);
        self.cc.recover = Some(recover);
        self.cc.last_entry = Some(match condition {
            Condition::Timeout | Condition::TimeoutWithDuplicates => Entered::ByTimeout,
            _ => Entered::ByLossDetection,
        });
        self.note(path.now, question, by, What::Enter { phase, recover }, condition.text());
    }

    /// Ends the episode.
    fn leave(&mut self, path: &Path<'_>, condition: Condition, memory: Memory) {
        let phase = self.cc.phase();
        self.move_to(condition, Episode::Open(memory));
        let by = self.answers.repair.name();
        self.note(path.now, Question::Repair, by, What::Leave { phase }, condition.text());
    }

    /// Sets cwnd and ssthresh. Only this function changes them outside tests.
    fn set_window(
        &mut self,
        at: Instant,
        question: Question,
        by: &'static str,
        cwnd: f64,
        ssthresh: f64,
        why: &'static str,
    ) {
        if cwnd == self.cc.cwnd && ssthresh == self.cc.ssthresh {
            return;
        }
        let (was_cwnd, was_ssthresh) = (self.cc.cwnd, self.cc.ssthresh);
        (self.cc.cwnd, self.cc.ssthresh) = (cwnd, ssthresh);
        self.note(at, question, by, What::Window { cwnd, ssthresh, was_cwnd, was_ssthresh }, why);
    }

    fn note(&mut self, at: Instant, question: Question, by: &'static str, what: What, why: &'static str) {
        let episode = self.cc.phase();
        if let Some(trace) = &mut self.trace {
            let decision = Decision { at, episode, question, by, what, why };
            if let Some(told) = &mut trace.told {
                told.push(decision.clone());
            }
            if let Some(kept) = &mut trace.kept {
                kept.push(decision);
            }
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
    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the names of the six current answers, in the order of the questions.
    #[cfg(test)]
    pub(super) fn answers(&self) -> [&'static str; 6] {
        let a = &self.answers;
        [
            a.detect.name(),
            a.attribute.name(),
            a.repair.name(),
            a.window.name(),
            a.timeout.name(),
            a.undo.name(),
        ]
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
        self.trace.get_or_insert_default().told.get_or_insert_default();
    }

    /// Returns the decisions for the host's events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<Decision> {
        self.trace.as_mut().and_then(|trace| trace.told.as_mut()).map(std::mem::take).unwrap_or_default()
    }

    /// Returns the decisions since the last call. Empty unless [`Recovery::start_trace`] was called.
    pub fn take_trace(&mut self) -> Vec<Decision> {
        self.trace.as_mut().and_then(|trace| trace.kept.as_mut()).map(std::mem::take).unwrap_or_default()
    }
}

fn view_of<'a>(cc: &'a Congestion, profile: &'a Profile, path: &'a Path<'_>) -> View<'a> {
    View {
        now: path.now,
        flight: path.flight,
        cc,
        rtt: path.rtt,
        knobs: &profile.recovery,
        smss: path.smss,
        rwnd: path.rwnd,
        unsent: path.unsent,
    }
}
