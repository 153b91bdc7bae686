//! The one place where decisions are applied.
//!
//! Per ACK the questions are asked in this order: what the last timeout meant and whether it was a mistake
//! (they may end a loss event), what the ACK means to a repair in progress, how much may be in flight, and
//! last whether something (else) is lost, and why. Every change of the window goes through
//! `Recovery::set_window`, so every change has an author in the trace.

use std::sync::Arc;

use airlink::time::Instant;

use super::attribute::{Attribute, Cause};
use super::catalogue::Question;
use super::decision::{Decision, What};
use super::detect::{Detect, Verdict};
use super::knobs::{Accounting, InitialSsthresh, PartialAckDeflation, RepeatedTimeout};
use super::repair::{Entry, NewReno, Repair, Step};
use super::spurious::SpuriousObserver;
use super::timeout::{Afterwards, Plan, Timeout};
use super::undo::{Restore, Undo};
use super::window::{LossKind, Reduction, Window};
use super::{Ack, Congestion, Departure, Entered, Phase, Transmission, View};
use crate::tcp::flight::Flight;
use crate::tcp::profile::Profile;
use crate::tcp::rtt::RttEstimator;

/// The parts of a connection that a decision may change.
pub struct Path<'a> {
    pub now: Instant,
    pub flight: &'a mut Flight,
    pub rtt: &'a mut RttEstimator,
    pub smss: u64,
    pub rwnd: u64,
}

/// The six answers of a recipe.
#[derive(Debug)]
pub struct Answers {
    pub detect: Box<dyn Detect>,
    pub attribute: Box<dyn Attribute>,
    pub repair: Box<dyn Repair>,
    pub window: Box<dyn Window>,
    pub timeout: Box<dyn Timeout>,
    pub undo: Box<dyn Undo>,
}

/// What a run adds up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub fast_retransmits: u64,
    pub timeouts: u64,
    /// Timeouts by how many duplicate ACKs had arrived: 0, 1, 2, 3 and more (P0 §4.1, x-dupack).
    pub timeouts_by_dupacks: [u64; 4],
    /// Timeouts when all but the first of the outstanding segments had produced a duplicate ACK (failed-dupack).
    pub failed_dupack: u64,
    pub spurious_timeouts: u64,
    pub spurious_fast_retransmits: u64,
    pub dsacks: u64,
    pub dupacks: u64,
    pub undone: u64,
    pub window_reductions: u64,
    pub resent_fast: u64,
    pub resent_recovery: u64,
    pub resent_timeout: u64,
    pub resent_probe: u64,
}

impl Counters {
    pub fn resent(&self) -> u64 {
        self.resent_fast + self.resent_recovery + self.resent_timeout + self.resent_probe
    }
}

/// What an ACK means to the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerRule {
    Keep,
    Restart,
}

#[derive(Debug)]
pub struct Recovery {
    profile: Arc<Profile>,
    answers: Answers,
    cc: Congestion,
    /// A retransmission already decided, which the window does not hold back.
    forced: Option<(u64, Transmission)>,
    /// The next segment sent again begins the event.
    event_begins: bool,
    /// Segments this ACK may still release.
    burst: Option<u32>,
    /// Segments beyond the window that the last duplicate ACK allows under Limited Transmit.
    limited_room: u32,
    /// CWR is owed to the peer, whatever the window was reduced for (RFC 3168 §6.1.2).
    send_cwr: bool,
    observer: SpuriousObserver,
    counters: Counters,
    trace: Option<Vec<Decision>>,
}

impl Recovery {
    pub fn new(profile: Arc<Profile>, answers: Answers) -> Self {
        let cc = Congestion {
            cwnd: 1.0,
            ssthresh: f64::INFINITY,
            inflation: 0.0,
            phase: Phase::Open,
            recover: None,
            last_entry: None,
            dupacks: 0,
            previous_una: 0,
            echoed: None,
            acked_tsval: None,
            limited: 0,
            timeouts_in_row: 0,
            peak_flight: 0.0,
            usage_seq: 0,
            cwnd_limited: false,
        };
        Self {
            profile,
            answers,
            cc,
            forced: None,
            event_begins: false,
            burst: None,
            limited_room: 0,
            send_cwr: false,
            observer: SpuriousObserver::default(),
            counters: Counters::default(),
            trace: None,
        }
    }

    // ----- events -----

    /// The handshake is over.
    pub fn on_established(&mut self, path: &mut Path<'_>, sack: bool, syn_was_lost: bool) {
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
        if self.answers.repair.needs_sack() && !sack {
            let by = self.answers.repair.name();
            self.answers.repair = Box::new(NewReno::default());
            let to = self.answers.repair.name();
            self.note(path.now, Question::Repair, by, What::Fallback { to }, "the peer does not permit SACK");
        }
    }

    pub fn on_sent(&mut self, path: &mut Path<'_>, departure: &Departure) {
        match departure.kind {
            Transmission::New => {}
            Transmission::FastRetransmit => self.counters.resent_fast += 1,
            Transmission::Recovery => self.counters.resent_recovery += 1,
            Transmission::Timeout => self.counters.resent_timeout += 1,
            Transmission::Probe => self.counters.resent_probe += 1,
        }
        let forced = self.forced.take_if(|(start, _)| *start == departure.start).is_some();
        if departure.kind != Transmission::New {
            self.event_begins = false;
        }
        if !forced && let Some(left) = &mut self.burst {
            *left = left.saturating_sub(1);
        }
        if departure.kind == Transmission::New && self.cc.dupacks > 0 && self.cc.phase == Phase::Open {
            self.cc.limited += 1;
        }
        self.observer.on_sent(departure);
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.detect.on_sent(&view, departure);
        self.answers.repair.on_sent(&view, departure);
        self.answers.undo.on_sent(&view, departure);
        let outstanding = view.segments(view.flight.outstanding());
        let limited = view.segments(self.answers.repair.in_flight(&view)) + 1.0 > self.cc.cwnd;
        let (una, max) = (view.flight.una(), view.flight.max());
        if una >= self.cc.usage_seq || limited || (!self.cc.cwnd_limited && outstanding > self.cc.peak_flight)
        {
            self.cc.peak_flight = outstanding;
            self.cc.cwnd_limited = limited;
            self.cc.usage_seq = max;
        }
    }

    pub fn on_ack(&mut self, path: &mut Path<'_>, ack: &Ack) -> TimerRule {
        if ack.advances() {
            self.limited_room = 0;
            self.cc.previous_una = path.flight.una() - ack.acked.bytes;
            (self.cc.echoed, self.cc.acked_tsval) = (ack.ecr, ack.acked_tsval);
            self.cc.dupacks = 0;
            self.cc.limited = 0;
            self.cc.timeouts_in_row = 0;
        } else if ack.duplicate
            && self.answers.repair.counts_duplicates(&view_of(&self.cc, &self.profile, path))
        {
            self.cc.dupacks += 1;
            self.counters.dupacks += 1;
            self.limited_room = self.cc.dupacks;
        }
        self.counters.dsacks += u64::from(ack.dsack.is_some());
        match self.observer.on_ack(ack) {
            Some(Entered::ByTimeout) => self.counters.spurious_timeouts += 1,
            Some(Entered::ByDuplicates) => self.counters.spurious_fast_retransmits += 1,
            None => {}
        }
        self.answers.attribute.on_ack(&view_of(&self.cc, &self.profile, path), ack);

        self.ask_timeout(path, ack);
        if let Some(restore) = self.answers.undo.on_ack(&view_of(&self.cc, &self.profile, path), ack) {
            self.restore(path, restore);
        }
        let mut timer = if ack.advances() { TimerRule::Restart } else { TimerRule::Keep };
        self.ask_repair(path, ack, &mut timer);
        if self.answers.repair.forgets_sacks(&view_of(&self.cc, &self.profile, path), ack) {
            path.flight.forget_sacks();
        }
        self.ask_ecn(path, ack);
        let verdict = self.answers.detect.on_ack(&view_of(&self.cc, &self.profile, path), ack);
        let begins = self.apply_verdict(path, verdict);
        if begins {
            timer = TimerRule::Restart;
        }
        let burst = self.answers.repair.burst(&view_of(&self.cc, &self.profile, path), begins);
        self.burst = burst.or(self.profile.recovery.max_burst);
        timer
    }

    /// The retransmission timer fired with data outstanding.
    pub fn on_timeout(&mut self, path: &mut Path<'_>) {
        let una = path.flight.una();
        self.counters.timeouts += 1;
        self.counters.timeouts_by_dupacks[(self.cc.dupacks as usize).min(3)] += 1;
        if self.cc.dupacks > 0 && u64::from(self.cc.dupacks) + 1 == path.flight.outstanding().segments {
            self.counters.failed_dupack += 1;
        }
        self.note(
            path.now,
            Question::Timeout,
            self.answers.timeout.name(),
            What::Timeout { offset: una },
            "RTO",
        );
        let before = self.cc.clone();
        self.cc.inflation = 0.0;
        let view = view_of(&self.cc, &self.profile, path);
        let knobs = view.knobs;
        let first = self.cc.timeouts_in_row == 0 || knobs.repeated_timeout == RepeatedTimeout::ReduceAgain;
        let plan = self.answers.timeout.on_timeout(&view);
        let ssthresh = if first {
            self.answers.undo.on_reduction(&view, &before);
            self.counters.window_reductions += 1;
            self.send_cwr = true;
            self.answers.window.on_loss(&view, LossKind::Timeout).ssthresh
        } else {
            self.cc.ssthresh
        };
        self.answers.detect.on_timeout(&view);
        self.answers.repair.on_timeout(&view);
        let (forget_sacks, dupacks_survive) =
            (knobs.forget_sacks_at_timeout, self.answers.repair.keeps_dupacks_at_timeout(&view));

        path.rtt.back_off();
        self.cc.timeouts_in_row += 1;
        if !dupacks_survive {
            self.cc.dupacks = 0;
        }
        self.cc.limited = 0;
        self.limited_room = 0;
        self.forced = None;
        self.burst = None;
        if forget_sacks {
            path.flight.forget_sacks();
        }
        let by = self.answers.timeout.name();
        let cwnd = match plan {
            Plan::Restart { cwnd } => {
                path.flight.rewind();
                cwnd
            }
            Plan::Probe { cwnd } => {
                path.flight.mark_head_lost();
                self.forced = Some((una, Transmission::Timeout));
                cwnd
            }
        };
        self.set_window(path.now, Question::Timeout, by, cwnd, ssthresh, "retransmission timeout");
        self.observer.on_event(una, Entered::ByTimeout);
        self.enter(path, Phase::Restarted, Entered::ByTimeout, Question::Timeout, by);
    }

    /// A timer of the detector's own.
    pub fn on_deadline(&mut self, path: &mut Path<'_>) {
        let verdict = self.answers.detect.on_deadline(&view_of(&self.cc, &self.profile, path));
        self.apply_verdict(path, verdict);
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.answers.detect.deadline()
    }

    /// New data after the connection was idle for more than an RTO (RFC 5681 §4.1).
    pub fn on_idle(&mut self, path: &mut Path<'_>) {
        let knobs = &self.profile.recovery;
        if !knobs.restart_after_idle {
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

    // ----- what may leave -----

    /// The segment to send again now, and why; `None` if there is none or the window is full.
    pub fn next_resend(&mut self, path: &Path<'_>) -> Option<(u64, Transmission)> {
        if let Some((start, kind)) = self.forced {
            if start >= path.flight.una() {
                return Some((start, kind));
            }
            self.forced = None;
        }
        if self.burst == Some(0) || path.flight.is_empty() {
            return None;
        }
        let view = view_of(&self.cc, &self.profile, path);
        let start = self.answers.repair.next(&view)?;
        self.offer(path, start)
    }

    /// The same when nothing new can be sent (RFC 6675 NextSeg rules 3 and 4).
    pub fn next_resend_without_new_data(&mut self, path: &Path<'_>) -> Option<(u64, Transmission)> {
        if self.burst == Some(0) || self.cc.phase != Phase::Recovery {
            return None;
        }
        let view = view_of(&self.cc, &self.profile, path);
        let start = self.answers.repair.next_without_new_data(&view)?;
        self.offer(path, start)
    }

    fn offer(&self, path: &Path<'_>, start: u64) -> Option<(u64, Transmission)> {
        // A FIN takes no room in the network, and after an ICMP "too big" the segment is cut before it leaves.
        let len = path.flight.segment_at(start)?.len().min(path.smss);
        let kind = match self.cc.phase {
            Phase::Restarted if self.event_begins && self.cc.last_entry == Some(Entered::ByDuplicates) => {
                Transmission::FastRetransmit
            }
            Phase::Restarted => Transmission::Timeout,
            _ => Transmission::Recovery,
        };
        self.has_room(path, len).then_some((start, kind))
    }

    /// May `len` octets of new data leave, as far as the congestion window goes?
    pub fn may_send_new(&self, path: &Path<'_>, len: u64) -> bool {
        // A window of less than one segment must not stop a connection that waits for nothing (RFC 5681 §3.1).
        self.burst != Some(0) && (path.flight.is_empty() || self.has_room(path, len))
    }

    fn has_room(&self, path: &Path<'_>, len: u64) -> bool {
        let view = view_of(&self.cc, &self.profile, path);
        let in_flight = self.answers.repair.in_flight(&view);
        let extra = self.cc.inflation + f64::from(self.limited_transmit_allowance(&view));
        match self.profile.recovery.accounting {
            // Half an octet of slack: cwnd is kept in segments, in floating point.
            Accounting::Bytes => {
                (in_flight.bytes + len) as f64 <= (self.cc.cwnd + extra) * path.smss as f64 + 0.5
            }
            Accounting::Segments => (in_flight.segments + 1) as f64 <= self.cc.cwnd.floor() + extra,
        }
    }

    /// RFC 3042: one new segment for each of the first duplicate ACKs.
    fn limited_transmit_allowance(&self, view: &View<'_>) -> u32 {
        let on = self.profile.recovery.limited_transmit
            && self.cc.phase != Phase::Recovery
            && self.answers.repair.limited_transmit_by_dupacks();
        let below = self.cc.dupacks < self.answers.detect.dup_thresh(view);
        if on && below { self.limited_room } else { 0 }
    }

    // ----- the questions -----

    fn ask_timeout(&mut self, path: &mut Path<'_>, ack: &Ack) {
        if self.cc.phase != Phase::Restarted || self.cc.last_entry != Some(Entered::ByTimeout) {
            return;
        }
        let by = self.answers.timeout.name();
        let ssthresh = self.cc.ssthresh;
        match self.answers.timeout.on_ack(&view_of(&self.cc, &self.profile, path), ack) {
            Afterwards::Nothing => {}
            Afterwards::GoBack { cwnd, head_sent, why } => {
                path.flight.rewind();
                if head_sent {
                    path.flight.skip_head();
                }
                self.set_window(path.now, Question::Timeout, by, cwnd, ssthresh, why);
            }
            Afterwards::SendNew { cwnd, why } => {
                path.flight.resume_at_max();
                self.note(path.now, Question::Timeout, by, What::Resume { at: path.flight.max() }, why);
                self.set_window(path.now, Question::Timeout, by, cwnd, ssthresh, why);
            }
            Afterwards::Spurious { restore } => self.restore_as(path, restore, Question::Timeout, by),
        }
    }

    fn ask_repair(&mut self, path: &mut Path<'_>, ack: &Ack, timer: &mut TimerRule) {
        if self.cc.phase != Phase::Recovery {
            if self.cc.phase != Phase::Open && self.cc.recover.is_none_or(|r| path.flight.una() >= r) {
                self.leave(path);
            }
            self.ask_window(path, ack);
            return;
        }
        let by = self.answers.repair.name();
        match self.answers.repair.on_recovery_ack(&view_of(&self.cc, &self.profile, path), ack) {
            Step::Wait => {}
            Step::Inflate(by_segments) => self.cc.inflation += by_segments,
            Step::Partial { resend_head, deflation, restart_timer } => {
                self.deflate(path, ack, deflation);
                if resend_head && path.flight.mark_head_lost_if_unsacked() {
                    let una = path.flight.una();
                    self.forced = Some((una, Transmission::Recovery));
                    self.note(path.now, Question::Repair, by, What::Resend { offset: una }, "partial ACK");
                }
                *timer = if restart_timer { TimerRule::Restart } else { TimerRule::Keep };
            }
            Step::Exit => {
                let cwnd = self.answers.window.on_exit(&view_of(&self.cc, &self.profile, path));
                let ssthresh = self.cc.ssthresh;
                self.cc.inflation = 0.0;
                self.forced = None;
                self.set_window(
                    path.now,
                    Question::Window,
                    self.answers.window.name(),
                    cwnd,
                    ssthresh,
                    "recovery ends",
                );
                self.leave(path);
                if self.profile.recovery.grow_on_exit && !self.answers.repair.needs_sack() {
                    self.ask_window(path, ack);
                }
            }
        }
    }

    fn deflate(&mut self, path: &Path<'_>, ack: &Ack, deflation: PartialAckDeflation) {
        match deflation {
            PartialAckDeflation::InflationOnly => {
                let acked = view_of(&self.cc, &self.profile, path).segments(ack.acked);
                self.cc.inflation = (self.cc.inflation - (acked - 1.0).max(0.0)).max(0.0);
            }
            PartialAckDeflation::All => self.cc.inflation = 0.0,
            PartialAckDeflation::Rfc6582 => {
                let acked = view_of(&self.cc, &self.profile, path).segments(ack.acked);
                let add_back = if acked >= 1.0 { 1.0 } else { 0.0 };
                if self.cc.inflation > acked {
                    self.cc.inflation -= acked - add_back;
                    return;
                }
                // What the inflation cannot pay comes off the window itself, but one segment stays.
                let cwnd = (self.cc.cwnd - (acked - self.cc.inflation)).max(1.0);
                self.cc.inflation = add_back;
                let (by, ssthresh) = (self.answers.repair.name(), self.cc.ssthresh);
                self.set_window(path.now, Question::Repair, by, cwnd, ssthresh, "partial window deflation");
            }
        }
    }

    fn ask_window(&mut self, path: &Path<'_>, ack: &Ack) {
        let view = view_of(&self.cc, &self.profile, path);
        if let Some(cwnd) = self.answers.window.on_ack(&view, ack) {
            let (by, ssthresh) = (self.answers.window.name(), self.cc.ssthresh);
            self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "ACK");
        }
    }

    /// RFC 3168 §6.1.2: an echo reduces the window once per window of data.
    fn ask_ecn(&mut self, path: &mut Path<'_>, ack: &Ack) {
        if !ack.ece || self.cc.phase != Phase::Open {
            return;
        }
        let view = view_of(&self.cc, &self.profile, path);
        let Reduction { cwnd, ssthresh } = self.answers.window.on_loss(&view, LossKind::EcnEcho);
        let by = self.answers.window.name();
        self.counters.window_reductions += 1;
        self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "ECN echo");
        self.send_cwr = true;
        self.cc.recover = Some(path.flight.max());
        self.cc.phase = Phase::Reduced;
    }

    /// Returns whether a loss event began.
    fn apply_verdict(&mut self, path: &mut Path<'_>, verdict: Verdict) -> bool {
        let by = self.answers.detect.name();
        let una = path.flight.una();
        let (segments, offset, why) = match verdict {
            Verdict::Nothing => return false,
            Verdict::Head { why } => (0, una, why),
            Verdict::Below { offset, why } => (path.flight.mark_lost_below(offset), una, why),
            Verdict::Segments { starts, why } => {
                let marked = starts.iter().filter(|start| path.flight.mark_lost(**start)).count() as u64;
                (marked, starts.first().copied().unwrap_or(una), why)
            }
            Verdict::Probe { why } => {
                if let Some(last) = path.flight.iter().next_back() {
                    self.forced = Some((last.start, Transmission::Probe));
                    self.note(path.now, Question::Detect, by, What::Resend { offset: last.start }, why);
                }
                return false;
            }
        };
        if segments > 0 {
            self.note(path.now, Question::Detect, by, What::Lost { offset, segments }, why);
        }
        if self.cc.phase == Phase::Recovery
            || path.flight.is_empty()
            || !self.answers.repair.may_enter(&view_of(&self.cc, &self.profile, path))
        {
            return false;
        }
        if segments == 0 {
            self.note(path.now, Question::Detect, by, What::Lost { offset, segments: 1 }, why);
        }
        self.begin_event(path);
        true
    }

    fn begin_event(&mut self, path: &mut Path<'_>) {
        let una = path.flight.una();
        let before = self.cc.clone();
        let view = view_of(&self.cc, &self.profile, path);
        let (cause, why) = self.answers.attribute.cause(&view);
        let entry = self.answers.repair.on_loss(&view);
        let reduction = match cause {
            Cause::Congestion => {
                self.answers.undo.on_reduction(&view, &before);
                self.counters.window_reductions += 1;
                self.send_cwr = true;
                Some(self.answers.window.on_loss(&view, LossKind::Duplicates))
            }
            Cause::Wireless => None,
        };
        let loss_window = view.knobs.loss_window;
        let by = self.answers.attribute.name();
        self.note(path.now, Question::Attribute, by, What::Cause(cause), why);
        self.counters.fast_retransmits += 1;
        self.cc.limited = 0;
        self.event_begins = true;
        self.observer.on_event(una, Entered::ByDuplicates);
        let name = self.answers.repair.name();
        match entry {
            Entry::Restart => {
                if let Some(Reduction { ssthresh, .. }) = reduction {
                    self.set_window(path.now, Question::Repair, name, loss_window, ssthresh, "restart");
                }
                self.cc.inflation = 0.0;
                self.enter(path, Phase::Restarted, Entered::ByDuplicates, Question::Repair, name);
                path.flight.rewind();
            }
            Entry::Recover { inflation } => {
                if let Some(Reduction { cwnd, ssthresh }) = reduction {
                    let by = self.answers.window.name();
                    self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "loss event");
                }
                self.cc.inflation = inflation;
                self.enter(path, Phase::Recovery, Entered::ByDuplicates, Question::Repair, name);
                // A scoreboard's marks say more than an unfinished pass.
                if !self.profile.recovery.keep_pass_in_recovery && !self.answers.repair.needs_sack() {
                    path.flight.resume_at_max();
                }
                path.flight.mark_head_lost();
                self.forced = Some((una, Transmission::FastRetransmit));
                self.note(path.now, Question::Repair, name, What::Resend { offset: una }, "fast retransmit");
            }
        }
    }

    // ----- applying -----

    fn restore(&mut self, path: &mut Path<'_>, restore: Restore) {
        let by = self.answers.undo.name();
        self.restore_as(path, restore, Question::Undo, by);
    }

    fn restore_as(&mut self, path: &mut Path<'_>, restore: Restore, question: Question, by: &'static str) {
        self.counters.undone += 1;
        self.cc.inflation = 0.0;
        self.cc.timeouts_in_row = 0;
        self.forced = None;
        self.set_window(path.now, question, by, restore.cwnd, restore.ssthresh, restore.why);
        if restore.resume {
            path.flight.resume_at_max();
            self.note(path.now, question, by, What::Resume { at: path.flight.max() }, restore.why);
        }
        if self.cc.phase != Phase::Open {
            self.leave(path);
        }
    }

    fn enter(
        &mut self,
        path: &Path<'_>,
        phase: Phase,
        entered: Entered,
        question: Question,
        by: &'static str,
    ) {
        let recover = path.flight.max();
        self.cc.phase = phase;
        self.cc.recover = Some(recover);
        self.cc.last_entry = Some(entered);
        self.note(path.now, question, by, What::Enter { phase, recover }, "loss event");
    }

    fn leave(&mut self, path: &Path<'_>) {
        let phase = self.cc.phase;
        self.cc.phase = Phase::Open;
        let by = self.answers.repair.name();
        self.note(path.now, Question::Repair, by, What::Leave { phase }, "recover acknowledged");
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
        if let Some(trace) = &mut self.trace {
            trace.push(Decision { at, question, by, what, why });
        }
    }

    // ----- getters -----

    pub fn congestion(&self) -> &Congestion {
        &self.cc
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Names of the six answers in force, in the order of the questions.
    pub fn answers(&self) -> [&'static str; 6] {
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

    /// Does this sender make use of SACK blocks?
    pub fn uses_sack(&self) -> bool {
        self.answers.repair.needs_sack()
    }

    /// True once after a reduction for an ECN echo: the next new segment carries CWR.
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.send_cwr)
    }

    pub fn start_trace(&mut self) {
        self.trace.get_or_insert_default();
    }

    pub fn take_trace(&mut self) -> Vec<Decision> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
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
    }
}
