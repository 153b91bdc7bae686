//! The one place where decisions are applied.
//!
//! With each ACK the questions are asked in this order: what the last timeout meant, and whether the last reduction was
//! a mistake (either may end a loss event); what the ACK means to a repair in progress; how much may be in flight; and
//! whether something (else) is lost, and why. A window that a model decides is asked last of all. Every change of the
//! window goes through `Recovery::set_window`, so every change has an author in the trace.

mod ask;
mod loss;
mod model;
mod room;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use airwire::Cause;
use airwire::time::{Duration, Instant};

use self::ask::Undone;
use super::attribute::Attribute;
use super::catalogue::Question;
use super::decision::{Decision, What};
use super::detect::{Detect, LossEvent, Opens, ThreeDupacks, Verdict};
use super::episode::{
    AfterTimeout, Cue, Disorder, Episode, EventWindow, FastRecovery, Kept, MOVES, Memory, Move, Restart,
};
use super::rate::RateSampler;
use super::repair::{Entry, NewReno, Repair, RepairStep};
use super::spurious::EifelDetection;
use super::timeout::{Afterwards, Reaction, Timeout};
use super::undo::{Never, Restore, Undo};
use super::window::{InRecovery, Loss, LossKind, Modelled, Progress, Reduction, SlowStart, Step, Window};
use super::{Ack, Congestion, Departure, Entered, Handshake, Phase, Transmission, Truth, View};
use crate::flight::{Amount, Fate, Flight};
use crate::profile::Profile;
use crate::profile::knobs::{
    Accounting, GrowOnExit, Growth, InitialSsthresh, Pacing, PartialAckDeflation, RepeatedTimeout,
};
use crate::rtt::RttEstimator;

/// The parts of a connection that a decision may change, and what else decisions go by.
pub(crate) struct Path<'a> {
    pub(crate) now: Instant,
    pub(crate) flight: &'a mut Flight,
    pub(crate) rtt: &'a mut RttEstimator,
    /// In octets of data.
    pub(crate) smss: u64,
    /// In octets.
    pub(crate) rwnd: u64,
    /// In octets.
    pub(crate) unsent: u64,
}

/// The six answers of a recipe, and what stands beside them.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) detect: Box<dyn Detect>,
    pub(super) attribute: Box<dyn Attribute>,
    pub(super) repair: Box<dyn Repair>,
    pub(super) window: Box<dyn Window>,
    pub(super) timeout: Box<dyn Timeout>,
    pub(super) undo: Box<dyn Undo>,
    /// Boxed, because few recipes have any of it and a connection shall be small.
    pub(super) beside: Option<Box<Beside>>,
}

/// What may stand beside the six answers.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Other witnesses of a loss: each is heard after the detector.
    pub(super) witnesses: Vec<Box<dyn Detect>>,
    /// They are asked why a segment was lost, too, and change nothing.
    pub(super) judges: Vec<Box<dyn Attribute>>,
    /// The window during fast recovery.
    pub(super) in_recovery: Option<Box<dyn InRecovery>>,
    /// Looks for the end of slow start.
    pub(super) slow_start: Option<Box<dyn SlowStart>>,
}

impl Answers {
    fn each_detector(&mut self, mut tell: impl FnMut(&mut dyn Detect)) {
        tell(&mut *self.detect);
        for witness in self.beside.iter_mut().flat_map(|beside| &mut beside.witnesses) {
            tell(&mut **witness);
        }
    }

    fn each_attribute(&mut self, mut tell: impl FnMut(&mut dyn Attribute)) {
        tell(&mut *self.attribute);
        for judge in self.beside.iter_mut().flat_map(|beside| &mut beside.judges) {
            tell(&mut **judge);
        }
    }

    fn witness(&mut self, index: usize) -> Option<&mut dyn Detect> {
        Some(&mut **self.beside.as_mut()?.witnesses.get_mut(index)?)
    }

    fn judge(&mut self, index: usize) -> Option<&mut dyn Attribute> {
        Some(&mut **self.beside.as_mut()?.judges.get_mut(index)?)
    }

    fn in_recovery(&mut self) -> Option<&mut Box<dyn InRecovery>> {
        self.beside.as_mut()?.in_recovery.as_mut()
    }

    fn slow_start(&mut self) -> Option<&mut dyn SlowStart> {
        Some(&mut **self.beside.as_mut()?.slow_start.as_mut()?)
    }
}

/// What a connection's loss recovery adds up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Counters {
    /// Loss events found without a timeout (succeeded-dupack).
    pub fast_retransmits: u64,
    /// How often the retransmission timer fired with data outstanding.
    pub timeouts: u64,
    /// Timeouts by how many duplicate ACKs had arrived: 0, 1, 2, 3 and more (P0 §4.1, x-dupack).
    pub timeouts_by_dupacks: [u64; 4],
    /// Timeouts when all but the first segment outstanding in the present pass had produced a duplicate ACK
    /// (failed-dupack).
    pub failed_dupack: u32,
    /// The same with none to come: timeouts when the first segment was the only one outstanding in the present pass
    /// (failed-dupack with x = 0).
    pub failed_alone: u32,
    /// Timeouts that timestamps prove to have been a mistake (RFC 3522), whatever was done about it.
    pub spurious_timeouts: u64,
    /// Fast retransmits that timestamps prove to have been a mistake (RFC 3522), whatever was done about it.
    pub spurious_fast_retransmits: u64,
    /// ACKs with a D-SACK block.
    pub dsacks: u64,
    /// Duplicate ACKs, as far as the repair counts them.
    pub dupacks: u64,
    /// Reductions of the window that were taken back.
    pub undone: u64,
    /// Reductions of the window, whatever for.
    pub window_reductions: u64,
    /// Loss events found without a timeout that were put down to the radio.
    pub put_down_to_radio: u64,
    /// Copies sent again that were themselves found lost without a timeout.
    pub resent_again: u64,
    /// Segments sent again as the first of a loss event.
    pub resent_fast: u64,
    /// Segments sent again as a further hole of a loss event.
    pub resent_recovery: u64,
    /// Segments sent again after a timeout, or going back over the window.
    pub resent_timeout: u64,
    /// Segments sent again to provoke an ACK.
    pub resent_probe: u64,
}

impl Counters {
    /// All segments sent again.
    pub fn resent(&self) -> u64 {
        self.resent_fast + self.resent_recovery + self.resent_timeout + self.resent_probe
    }
}

/// What came of a detector's verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Nothing,
    /// Something leaves for it: a copy that is sent once more, or a probe.
    Resend,
    /// A loss event has begun.
    Event,
}

/// What an ACK means to the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerRule {
    /// It goes on as it is.
    Keep,
    /// It starts anew, if anything is outstanding.
    Restart,
}

/// What leaves next, whatever the window says.
#[derive(Debug)]
enum Order {
    /// A copy that was decided on.
    Resend { start: u64, kind: Transmission },
    /// A probe that a detector wants: something new or, where there is nothing new, the last segment again.
    Probe(Box<Wish>),
}

/// Who wants a probe, and why. Boxed, because probes are rare and a connection shall be small.
#[derive(Debug)]
struct Wish {
    by: &'static str,
    why: &'static str,
}

/// What belongs to the present ACK, or to the timer that has fired, and to nothing later.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Segments that may still leave. `None`: no limit.
    burst: Option<u32>,
    /// Delivered, and the answer beside the window has not been told yet.
    delivered: Amount,
}

/// Which segments the present ACK may let out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Leaves {
    #[default]
    OldAndNew,
    /// Nothing is found lost, and no copy leaves.
    New,
}

/// Who reads the decisions; each takes its own.
#[derive(Debug, Default)]
struct Trace {
    /// For [`Recovery::take_trace`].
    kept: Option<Vec<Decision>>,
    /// For what a host tells ([`crate::events`]).
    told: Option<Vec<Decision>>,
}

/// The loss recovery of one connection: asks the answers of its [`Recipe`](super::Recipe) and applies their decisions.
// What few connections need is boxed: an idle one is small.
#[derive(Debug)]
pub struct Recovery {
    profile: Arc<Profile>,
    answers: Answers,
    wants_sack: bool,
    cc: Congestion,
    order: Option<Order>,
    turn: Turn,
    /// CWR is owed to the peer, whatever the window was reduced for (RFC 3168 §6.1.2).
    send_cwr: bool,
    /// The present ACK has advanced SND.UNA, and nothing has been found lost by it (RFC 9937 §6.2, safeACK).
    is_safe: bool,
    leaves: Leaves,
    observer: EifelDetection,
    counters: Counters,
    trace: Option<Box<Trace>>,
    /// `None`: the window goes by none.
    rates: Option<Box<RateSampler>>,
}

impl Recovery {
    /// `wants_sack`: some part of the recipe has use for SACK blocks.
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
            observer: EifelDetection::default(),
            counters: Counters::default(),
            trace: None,
            rates,
        }
    }

    // ----- events -----

    /// The handshake is over.
    pub(crate) fn on_established(&mut self, path: &mut Path<'_>, handshake: &Handshake) {
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
        if !handshake.timestamps && self.answers.undo.needs_timestamps() {
            self.never_undo(path.now, "no timestamps on this connection");
        }
        let answers = &mut self.answers;
        answers.each_detector(|detect| detect.on_established(handshake));
        answers.each_attribute(|attribute| attribute.on_established(handshake));
        answers.window.on_established(handshake, answers.detect.traits());
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
        if self.answers.repair.has_scoreboard() {
            let by = self.answers.repair.name();
            self.answers.repair = Box::new(NewReno::default());
            let to = self.answers.repair.name();
            self.note(now, Question::Repair, by, What::Fallback { to }, WHY);
            // It counts with the scoreboard.
            if let Some(beside) = &mut self.answers.beside {
                beside.in_recovery = None;
            }
        }
        if self.answers.detect.traits().needs_sack {
            let by = self.answers.detect.name();
            self.answers.detect = Box::new(ThreeDupacks);
            let to = self.answers.detect.name();
            self.note(now, Question::Detect, by, What::Fallback { to }, WHY);
        }
        if self.answers.undo.needs_sack() {
            self.never_undo(now, WHY);
        }
    }

    fn never_undo(&mut self, now: Instant, why: &'static str) {
        let by = self.answers.undo.name();
        self.answers.undo = Box::new(Never);
        let to = self.answers.undo.name();
        self.note(now, Question::Undo, by, What::Fallback { to }, why);
    }

    /// What only the path knows; for recipes that [need it](super::Recipe::needs_truth).
    pub fn tell(&mut self, truth: Truth) {
        self.answers.each_attribute(|attribute| attribute.on_truth(truth));
        self.answers.window.on_truth(truth);
    }

    /// A segment has left, and the in-flight list knows it.
    pub(crate) fn on_sent(&mut self, path: &mut Path<'_>, departure: &Departure) {
        match departure.kind {
            Transmission::New => {}
            Transmission::FastRetransmit => self.counters.resent_fast += 1,
            Transmission::Recovery => self.counters.resent_recovery += 1,
            Transmission::Timeout => self.counters.resent_timeout += 1,
            Transmission::Probe => self.counters.resent_probe += 1,
        }
        let was_ordered = self.carry_out(path.now, departure);
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
        if una >= self.cc.usage_seq || limited || (!self.cc.cwnd_limited && outstanding > self.cc.peak_flight)
        {
            self.cc.peak_flight = outstanding;
            self.cc.cwnd_limited = limited;
            self.cc.usage_seq = max;
        }
        if self.samples_rates() {
            self.tell_model_of_departure(path, departure);
        }
    }

    /// The order is carried out by this departure, if there is one for it. True if a copy was decided on before, which
    /// does not count against what an ACK releases.
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

    /// An ACK has arrived, and the in-flight list has taken it in.
    pub(crate) fn on_ack(&mut self, path: &mut Path<'_>, ack: &Ack) -> TimerRule {
        self.order.take_if(|order| matches!(order, Order::Probe(_)));
        self.turn.delivered = ack.delivered;
        self.is_safe = ack.advances();
        if path.flight.is_empty() {
            self.cc.episode.let_go();
        }
        if ack.advances() {
            self.cc.announced = self.announced(path);
            self.cc.disorder = Disorder::default();
            self.cc.previous_una = path.flight.una() - ack.acked.bytes;
            (self.cc.echoed, self.cc.acked_tsval) = (ack.ecr, ack.acked_tsval);
            self.cc.timeouts_in_row = 0;
        } else if ack.duplicate
            && self.answers.repair.counts_duplicates(&view_of(&self.cc, &self.profile, path))
        {
            self.cc.disorder.dupacks += 1;
            self.cc.disorder.room += 1;
            self.counters.dupacks += 1;
        }
        self.counters.dsacks += u64::from(ack.dsack.is_some());
        let mistake = self.observer.on_ack(&view_of(&self.cc, &self.profile, path), ack);
        match mistake {
            Some(Entered::ByTimeout) => self.counters.spurious_timeouts += 1,
            Some(Entered::ByDuplicates) => self.counters.spurious_fast_retransmits += 1,
            None => {}
        }
        if let Some(entered) = mistake {
            self.answers.window.on_mistake(entered);
        }
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.each_attribute(|attribute| attribute.on_ack(&view, ack));
        self.answers.window.observe(&view, ack);
        if let Some(slow_start) = self.answers.slow_start() {
            slow_start.observe(&view, ack);
        }

        let mut timer = if ack.advances() { TimerRule::Restart } else { TimerRule::Keep };
        let begins_recovery = self.ask_timeout(path, ack, &mut timer);
        let undone = self.ask_undo(path, ack);
        // Linux 6.18, tcp_try_undo_partial(): there is more reordering than it had thought, so nothing more is lost yet.
        self.leaves = if undone == Undone::Later { Leaves::New } else { Leaves::OldAndNew };
        if undone != Undone::Window && !begins_recovery {
            self.ask_repair(path, ack, &mut timer);
        }
        if self.answers.repair.forgets_sacks(&view_of(&self.cc, &self.profile, path), ack) {
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

    /// How many segments duplicate ACKs have announced (Linux 6.18, tcp_add_reno_sack(); after a timeout, they may be about
    /// copies until something new has left, tcp_process_loss()).
    fn announced(&self, path: &Path<'_>) -> u32 {
        let has_scoreboard = self.answers.repair.has_scoreboard();
        if has_scoreboard || self.is_about_copies(path) { 0 } else { self.cc.dupacks() }
    }

    /// Nothing new has left since a timeout.
    fn is_about_copies(&self, path: &Path<'_>) -> bool {
        self.cc.phase() == Phase::Restarted
            && self.cc.recover.is_some_and(|recover| path.flight.max() <= recover)
    }

    /// The retransmission timer fired with data outstanding.
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
        // A mark is as old as the last ACK: it counts at the first timeout of a row.
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
        // An event that was put down to the radio has paid nothing.
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
        let (forget_sacks, dupacks_survive) =
            (knobs.forget_sacks_at_timeout, self.answers.repair.keeps_dupacks_at_timeout(&view));

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
        let cwnd = match reaction {
            Reaction::Restart { cwnd } => {
                path.flight.rewind();
                cwnd
            }
            Reaction::Probe { cwnd } => {
                path.flight.mark_head_lost();
                self.order = Some(Order::Resend { start: una, kind: Transmission::Timeout });
                cwnd
            }
        };
        self.set_window(path.now, Question::Timeout, by, cwnd, ssthresh, "retransmission timeout");
        self.observer.on_event(&view_of(&self.cc, &self.profile, path), Entered::ByTimeout);
        let restarted = Episode::Restarted(Restart::Timeout(AfterTimeout::Reduced));
        self.enter(path, Cue::Timeout, restarted, Question::Timeout, by);
        self.tell_model_of_timer(path, true);
    }

    /// The timeout was put down to the radio. Everything is sent again, and the window stays.
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
        self.counters.put_down_to_radio += 1;
        self.cc.timeouts_in_row += 1;
        self.cc.disorder = Disorder::default();
        self.order = None;
        (self.turn.burst, self.leaves) = (Some(1), Leaves::OldAndNew);
        path.flight.rewind();
        let ssthresh = self.cc.ssthresh;
        self.set_window(path.now, Question::Attribute, by, cwnd, ssthresh, "marked timeout");
        self.observer.on_event(&view_of(&self.cc, &self.profile, path), Entered::ByTimeout);
        let restarted = Episode::Restarted(Restart::Timeout(AfterTimeout::Kept));
        self.enter(path, Cue::Timeout, restarted, Question::Attribute, by);
        self.tell_model_of_timer(path, false);
    }

    /// [`Recovery::deadline`] has come.
    pub(crate) fn on_deadline(&mut self, path: &mut Path<'_>) -> TimerRule {
        let now = path.now;
        if self.cc.episode.held_until().is_some_and(|until| until <= now) {
            self.cc.episode.let_go();
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

    /// When a detector wants to be asked again, or sending goes on; the earliest of them. `None`: with the next ACK.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let own = self.answers.detect.deadline();
        let hold = self.cc.episode.held_until();
        if self.answers.beside.is_none() && hold.is_none() {
            return own;
        }
        let witnesses = self.answers.beside.iter().flat_map(|beside| &beside.witnesses);
        let witnesses = witnesses.filter_map(|witness| witness.deadline());
        own.into_iter().chain(witnesses).chain(hold).min()
    }

    /// The retransmission timer is not to fire before this much time has passed.
    pub fn timer_floor(&self) -> Option<Duration> {
        self.answers.detect.traits().timer_floor
    }

    /// When the detector that takes the retransmission timer's place will judge, if that is later than `now`: since
    /// that timer was set, the detector may have come to wait longer.
    pub(crate) fn waits_until(&self, now: Instant) -> Option<Instant> {
        self.timer_floor()?;
        self.answers.detect.deadline().filter(|at| *at > now)
    }

    /// New data after the connection was idle for more than an RTO (RFC 5681 §4.1).
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

    // ----- applying -----

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
            self.leave(path, Cue::Mistake, Memory::Nothing);
            // RFC 5682 §2.1 (3b): of this window only a few segments were sent twice, so what is missing now is lost,
            // and may begin an event of its own.
            self.cc.recover = Some(path.flight.una());
        }
    }

    fn cancel_resend(&mut self) {
        self.order.take_if(|order| matches!(order, Order::Resend { .. }));
    }

    /// Every move from one state to another. Within a state its own data change elsewhere.
    fn move_to(&mut self, cue: Cue, episode: Episode) {
        let made = Move { from: self.cc.phase(), cue, to: episode.phase() };
        debug_assert!(MOVES.contains(&made), "{made:?} is not among the moves");
        self.cc.episode = episode;
    }

    /// A loss event begins.
    fn enter(&mut self, path: &Path<'_>, cue: Cue, episode: Episode, question: Question, by: &'static str) {
        let recover = path.flight.max();
        let phase = episode.phase();
        self.move_to(cue, episode);
        self.cc.recover = Some(recover);
        self.cc.last_entry = Some(match cue {
            Cue::Timeout | Cue::TimeoutWithDuplicates => Entered::ByTimeout,
            _ => Entered::ByDuplicates,
        });
        self.note(path.now, question, by, What::Enter { phase, recover }, cue.text());
    }

    /// The loss event is over.
    fn leave(&mut self, path: &Path<'_>, cue: Cue, memory: Memory) {
        let phase = self.cc.phase();
        self.move_to(cue, Episode::Open(memory));
        let by = self.answers.repair.name();
        self.note(path.now, Question::Repair, by, What::Leave { phase }, cue.text());
    }

    /// The only writer of cwnd and ssthresh.
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

    /// For a test that begins in the middle of a connection.
    #[cfg(test)]
    pub(super) fn put_window(&mut self, cwnd: f64, ssthresh: f64) {
        (self.cc.cwnd, self.cc.ssthresh) = (cwnd, ssthresh);
    }

    // ----- getters -----

    /// Window, threshold and phase.
    pub fn congestion(&self) -> &Congestion {
        &self.cc
    }

    /// What has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    #[cfg(test)]
    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Names of the six answers in force, in the order of the questions.
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

    /// Is SACK to be offered?
    pub(crate) fn wants_sack(&self) -> bool {
        self.wants_sack
    }

    /// Does this sender keep a scoreboard?
    pub(crate) fn uses_sack(&self) -> bool {
        self.answers.repair.has_scoreboard()
    }

    /// True once after a reduction for an ECN echo: the next new segment carries CWR.
    pub(crate) fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.send_cwr)
    }

    /// From here on, decisions are written down.
    pub fn start_trace(&mut self) {
        self.trace.get_or_insert_default().kept.get_or_insert_default();
    }

    /// From here on, decisions are told as well.
    pub(crate) fn start_telling(&mut self) {
        self.trace.get_or_insert_default().told.get_or_insert_default();
    }

    /// The decisions to tell since the last call.
    pub(crate) fn take_told(&mut self) -> Vec<Decision> {
        self.trace.as_mut().and_then(|trace| trace.told.as_mut()).map(std::mem::take).unwrap_or_default()
    }

    /// The decisions since the last call. None unless [`Recovery::start_trace`] was called.
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
