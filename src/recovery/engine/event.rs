//! One event of a sender, while the engine processes it.

use std::ops::{Deref, DerefMut};

use super::*;
use crate::profile::jiffies;
use crate::profile::recovery::{AfterIdle, FrtoDialect};
use crate::recovery::Usage;

/// The author of reductions after an idle time.
const RESTART_WINDOW: Author = Author { question: Question::Window, name: "restart-window" };

/// An ACK, an expired timer, a transmission, or an opportunity for one. Only the recovery, to which this
/// dereferences, outlives the event.
pub(super) struct Event<'a, 'p> {
    pub(super) sender: &'a mut Recovery,
    pub(super) path: &'a mut Path<'p>,
    pub(super) timer: TimerRule,
    /// Whether the ACK opens the window unless it reveals a loss.
    pub(super) opens: bool,
}

impl Deref for Event<'_, '_> {
    type Target = Recovery;

    fn deref(&self) -> &Recovery {
        self.sender
    }
}

impl DerefMut for Event<'_, '_> {
    fn deref_mut(&mut self) -> &mut Recovery {
        self.sender
    }
}

impl Event<'_, '_> {
    /// Returns the state that answers see.
    pub(super) fn view(&self) -> View<'_> {
        self.sender.view(self.path)
    }

    /// Asks the answers a question about the current state.
    pub(super) fn ask<T>(&mut self, question: impl FnOnce(&mut Answers, &View<'_>) -> T) -> T {
        let Recovery { answers, cc, handshake, profile, .. } = &mut *self.sender;
        question(answers, &self.path.view(cc, handshake, &profile.recovery))
    }

    /// Sets cwnd and ssthresh.
    pub(super) fn set_window(&mut self, by: Author, window: Reduction, why: &'static str) {
        self.sender.change_window(self.path.now, by, window, why);
    }

    /// Sets cwnd.
    pub(super) fn set_cwnd(&mut self, by: Author, cwnd: f64, why: &'static str) {
        let ssthresh = self.cc.ssthresh;
        self.set_window(by, Reduction { cwnd, ssthresh }, why);
    }

    /// Records a decision.
    pub(super) fn note(&mut self, by: Author, what: What, why: &'static str) {
        self.sender.record(self.path.now, by, what, why);
    }

    /// Makes every transition between states. Data within a state changes elsewhere.
    pub(super) fn change_state(&mut self, condition: Condition, episode: Episode) {
        let made = Transition { from: self.cc.state(), condition, to: episode.state() };
        debug_assert!(TRANSITIONS.contains(&made), "{made:?} is not among the moves");
        self.cc.episode = episode;
    }

    /// Starts an episode.
    pub(super) fn enter(&mut self, by: Author, condition: Condition, episode: Episode) {
        let recover = self.path.flight.max();
        self.change_state(condition, episode);
        self.cc.recover = Some(recover);
        self.cc.last_entry = Some(match condition {
            Condition::Timeout | Condition::TimeoutWithDuplicates => Entered::ByTimeout,
            _ => Entered::ByLossDetection,
        });
        self.note(by, What::Enter { state: episode.state(), recover }, condition.text());
    }

    /// Ends the episode.
    pub(super) fn leave(&mut self, condition: Condition, memory: AfterEpisode) {
        let state = self.cc.state();
        self.change_state(condition, Episode::Open(memory));
        self.note(self.answers.repair.author(), What::Leave { state }, condition.text());
    }

    /// Schedules a retransmission that does not depend on the window.
    pub(super) fn resend(&mut self, by: Author, start: u64, kind: TransmissionKind, why: &'static str) {
        self.pending = Some(Pending::Resend { start, kind });
        self.note(by, What::Resend { offset: start }, why);
    }

    /// Returns to SND.MAX, so that no more old segments are retransmitted.
    pub(super) fn resume_at_max(&mut self, by: Author, why: &'static str) {
        self.path.flight.resume_at_max();
        self.note(by, What::Resume { at: self.path.flight.max() }, why);
    }

    /// Restores the state before a spurious episode.
    pub(super) fn restore(&mut self, by: Author, restore: Restore) {
        let Restore { window, resume, timer, why, .. } = restore;
        if let Some(before) = window {
            self.counters.undone += 1;
            self.answers.window.on_undo();
            (self.cc.timeouts_in_row, self.cc.open_timeouts) = (0, 0);
            self.cancel_resend();
            // The window is not reduced after all, so CWR must not report it (Linux, tcp_ecn_withdraw_cwr()).
            self.send_cwr &= before.ssthresh <= self.cc.ssthresh;
            self.set_window(by, before, why);
        }
        if let Some((srtt, rttvar)) = timer {
            self.path.rtt.set_smoothed(srtt, rttvar, self.sender.cc.cwnd);
        }
        if resume {
            self.cancel_resend();
            if window.is_some() && self.profile.recovery.dialects.frto == FrtoDialect::Linux {
                self.path.flight.unmark_losses();
            }
            self.resume_at_max(by, why);
        }
        if window.is_none() {
            return;
        }
        if self.cc.state() == RecoveryState::Open {
            self.cc.episode = Episode::default();
            return;
        }
        self.leave(Condition::Mistake, AfterEpisode::Nothing);
        // RFC 5682 §2.1 (3b): only a few segments of this window were retransmitted, so any segment still
        // missing is lost and may start a new episode.
        self.cc.recover = Some(self.path.flight.una());
    }

    pub(super) fn cancel_resend(&mut self) {
        self.pending.take_if(|pending| matches!(pending, Pending::Resend { .. }));
    }

    pub(super) fn forget_sacks(&mut self) {
        self.sender.forget_sacks(self.path);
    }

    pub(super) fn on_sent(&mut self, transmission: &Transmission) {
        self.counters.count_sent(transmission.kind);
        let was_decided = self.remove_pending(transmission);
        self.resend_rest_of_mtu_probe(transmission);
        let is_new = transmission.kind == TransmissionKind::New;
        if let Some(kept) = self.cc.episode.kept_mut() {
            kept.attributed_hole.take_if(|hole| *hole == transmission.start);
        }
        if !is_new && let Some(first) = self.cc.episode.first_mut() {
            *first = false;
        }
        if !was_decided && let Some(burst) = &mut self.allowance.burst {
            *burst = burst.saturating_sub(1);
        }
        if is_new && self.cc.dupacks() > 0 && matches!(self.cc.episode, Episode::Open(_)) {
            self.cc.disorder.limited += 1;
        }
        self.observer.on_sent(transmission);
        self.ask(|answers, view| answers.on_sent(view, transmission));
        if !transmission.is_window_probe {
            self.note_usage(is_new);
        }
        if self.samples_rates() {
            self.model_on_sent(transmission);
        }
    }

    /// Removes the pending transmission that this one fulfils. Returns true for a retransmission that was
    /// decided earlier. Such a retransmission does not count against the segments that an ACK releases.
    fn remove_pending(&mut self, transmission: &Transmission) -> bool {
        let concerned = |pending: &mut Pending| match pending {
            Pending::Resend { start, .. } => *start == transmission.start,
            Pending::Probe(_) => true,
        };
        match self.pending.take_if(concerned) {
            Some(Pending::Resend { .. }) => true,
            Some(Pending::Probe(request)) => {
                self.note(request.by, What::Probe { offset: transmission.start }, request.why);
                false
            }
            None => false,
        }
    }

    /// Records how much of the window is in use.
    fn note_usage(&mut self, is_new: bool) {
        let view = self.view();
        let outstanding = view.segments(view.flight.outstanding());
        let limited = view.segments(self.in_flight(&view)) + 1.0 > view.cc.cwnd;
        let (una, max) = (view.flight.una(), view.flight.max());
        // A retransmission uses the window only if new data waits (Linux 6.18, tcp_write_xmit()).
        let uses = is_new || limited && view.unsent > 0;
        let cc = &mut self.sender.cc;
        let larger = !cc.cwnd_limited && outstanding > cc.peak_flight;
        if uses && (una >= cc.usage_seq || limited || larger) {
            cc.peak_flight = outstanding;
            cc.cwnd_limited = limited;
            cc.usage_seq = max;
        }
        cc.usage.is_new |= uses;
    }

    /// Reduces a window that the sender has not used for an RTO (Linux 6.18, tcp_cwnd_validate()).
    pub(super) fn review_usage(&mut self) {
        let rules = &self.profile.recovery;
        if rules.growth.after_idle != AfterIdle::Decay || self.samples_rates() {
            return;
        }
        let (now, rto) = (self.path.now, self.path.rtt.rto().get());
        let view = self.view();
        let outstanding = view.segments(view.flight.outstanding());
        let Congestion { cwnd, peak_flight, cwnd_limited, usage, .. } = *view.cc;
        if cwnd_limited || (view.in_slow_start() && cwnd < 2.0 * peak_flight) {
            self.cc.usage = Usage { since: now, ..Usage::default() };
            return;
        }
        let most = usage.most.max(outstanding);
        if jiffies::ticks(now) - jiffies::ticks(usage.since) < jiffies::ticks_in(rto) {
            self.cc.usage.most = most;
            return;
        }
        // tcp_cwnd_application_limited()
        let used = most.max(rules.initial.window.segments(view.smss));
        let is_open = view.cc.state() == RecoveryState::Open && view.flight.sacked().segments == 0;
        if is_open && used < cwnd {
            let ssthresh = self.ssthresh_with_memory();
            let cwnd = ((cwnd + used) / 2.0).floor();
            self.set_window(RESTART_WINDOW, Reduction { cwnd, ssthresh }, "window not used for an RTO");
        }
        self.cc.usage = Usage { since: now, ..Usage::default() };
    }

    /// Returns an ssthresh that remembers cwnd (Linux 6.18, tcp_current_ssthresh()).
    fn ssthresh_with_memory(&self) -> f64 {
        let Congestion { cwnd, ssthresh, .. } = self.cc;
        match self.cc.state() {
            RecoveryState::Recovery | RecoveryState::Cwr => ssthresh,
            _ => ssthresh.max((cwnd / 2.0).floor() + (cwnd / 4.0).floor()),
        }
    }

    pub(super) fn on_deadline(&mut self) -> TimerRule {
        let now = self.path.now;
        if self.cc.episode.paused_until().is_some_and(|until| until <= now) {
            self.cc.episode.end_pause();
        }
        self.allowance.data = AllowedData::OldAndNew;
        self.last_ack = LastAck::default();
        let shared = self.answers.detect.traits().shares_timer
            && self.answers.detect.deadline().is_some_and(|at| at <= now);
        let found = self.consult_detectors(|detect, view| match detect.deadline() {
            Some(at) if at <= now => detect.on_deadline(view),
            _ => Verdict::Nothing,
        });
        self.ask_in_recovery();
        self.model_on_timer(false);
        match found {
            Found::Nothing | Found::Episode if shared => TimerRule::RestartSinceTransmission,
            Found::Nothing => TimerRule::Keep,
            Found::Episode | Found::Resend => TimerRule::Restart,
        }
    }

    pub(super) fn on_idle(&mut self, last_sent: Instant) {
        let rules = &self.profile.recovery;
        // A model paces instead (Linux 6.18, tcp_slow_start_after_idle_check()).
        if self.samples_rates() {
            return;
        }
        let restart = rules.initial.window.segments(self.path.smss).min(self.cc.cwnd);
        let (cwnd, ssthresh) = match rules.growth.after_idle {
            AfterIdle::Keep => return,
            AfterIdle::Restart => (restart, self.cc.ssthresh),
            AfterIdle::Decay => {
                let rto = jiffies::ticks_in(self.path.rtt.rto().get()).max(1);
                let idle = jiffies::ticks(self.path.now) - jiffies::ticks(last_sent);
                let halvings = idle.saturating_sub(1) / rto;
                let decayed = (self.cc.cwnd / 2_f64.powi(halvings.min(64) as i32)).floor();
                (decayed.max(restart), self.ssthresh_with_memory())
            }
        };
        self.set_window(RESTART_WINDOW, Reduction { cwnd, ssthresh }, "idle for an RTO");
        self.cc.usage = Usage { since: self.path.now, ..Usage::default() };
    }
}
