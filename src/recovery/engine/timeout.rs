//! Expiry of the retransmission timer, and the conclusions from later ACKs about the timeout.

use super::*;

impl Event<'_, '_> {
    pub(super) fn on_timeout(&mut self) {
        let una = self.path.flight.una();
        let dupacks = self.cc.dupacks();
        let outstanding = self.path.flight.passed().segments;
        self.counters.count_timeout(dupacks, outstanding);
        let by = self.answers.timeout.author();
        self.note(by, What::Timeout { offset: una }, "RTO");
        // A mark is as old as the last ACK, so it counts only at the first timeout in a row.
        let counts = self.cc.timeouts_in_row == 0 && self.answers.attribute.judges_timeouts();
        match counts.then(|| self.ask_why(una)).flatten() {
            Some(Cause::Radio) => return self.keep_window_at_timeout(),
            Some(Cause::Congestion) => {}
            None => self.ask_judges(una),
        }
        let before = self.cc.clone();
        self.cc.episode.deflate();
        let reaction = self.ask(|answers, view| answers.timeout.on_timeout(view));
        let ssthresh = self.ssthresh_after_timeout(&before);
        self.ask(|answers, view| answers.on_timeout(view));

        let rules = &self.profile.recovery;
        let keeps_dupacks =
            rules.timeout.keeps_dupacks && self.answers.repair.row().repair.keeps_dupacks_at_timeout;
        self.back_off();
        if keeps_dupacks {
            self.cc.disorder.dupacks = dupacks;
        }
        self.allowance.burst = None;
        let (cwnd, effect) = match reaction {
            Reaction::Restart { cwnd } => {
                self.path.flight.rewind();
                (cwnd, AfterTimeout::Reduced)
            }
            Reaction::Probe { cwnd } => {
                self.path.flight.mark_head_lost();
                self.pending = Some(Pending::Resend { start: una, kind: TransmissionKind::Timeout });
                (cwnd, AfterTimeout::Undecided)
            }
        };
        self.set_window(by, Reduction { cwnd, ssthresh }, "retransmission timeout");
        self.restart(by, effect);
        self.model_on_timer(true);
    }

    /// Returns ssthresh after the timeout. It is reduced, unless an earlier reduction covers this timeout.
    fn ssthresh_after_timeout(&mut self, before: &Congestion) -> f64 {
        let una = self.path.flight.una();
        let repeated = self.profile.recovery.timeout.repeated;
        // In Linux, a retransmission into a closed window is a probe and not counted (tcp_retransmit_timer()).
        let is_counted = repeated != RepeatedTimeout::OncePerWindow || self.cc.open_timeouts > 0;
        let first = self.cc.timeouts_in_row == 0
            || !is_counted
            || repeated == RepeatedTimeout::ReduceAgain
            || matches!(self.cc.episode, Episode::Loss(Restart::Timeout(AfterTimeout::Kept)));
        if !first {
            return self.cc.ssthresh;
        }
        self.ask(|answers, view| answers.undo.on_reduction(view, before, LossKind::Timeout));
        self.send_cwr = true;
        // An episode attributed to the radio link has not reduced the window.
        let was_reduced = repeated == RepeatedTimeout::OncePerWindow
            && matches!(self.cc.state(), RecoveryState::Recovery | RecoveryState::Cwr)
            && self.cc.kept_window().is_none()
            && self.cc.recover.is_some_and(|recover| una < recover);
        if was_reduced {
            return self.cc.ssthresh;
        }
        self.counters.window_reductions += 1;
        let loss = Loss { kind: LossKind::Timeout, window_when_sent: self.window_at_timeout() };
        self.ask(|answers, view| answers.window.on_loss(view, &loss).ssthresh)
    }

    /// Processes a timeout that was attributed to the radio link: everything is retransmitted, and the window
    /// stays.
    fn keep_window_at_timeout(&mut self) {
        let by = self.answers.attribute.author();
        let cwnd = self.cc.kept_window().unwrap_or(self.cc.cwnd);
        self.ask(|answers, view| {
            answers.each_detector(|detect| detect.on_timeout(view));
            answers.repair.on_timeout(view);
        });
        self.counters.attributed_to_radio += 1;
        self.back_off();
        self.allowance.burst = Some(1);
        self.path.flight.rewind();
        self.set_cwnd(by, cwnd, "marked timeout");
        self.restart(by, AfterTimeout::Kept);
        self.model_on_timer(false);
    }

    /// Applies the effects that every timeout has.
    fn back_off(&mut self) {
        if self.profile.recovery.timeout.forgets_sacks {
            self.forget_sacks();
        }
        self.path.rtt.back_off();
        self.cc.timeouts_in_row += 1;
        self.cc.open_timeouts += u32::from(self.path.rwnd > 0);
        self.cc.disorder = Disorder::default();
        self.pending = None;
        self.allowance.data = AllowedData::OldAndNew;
    }

    fn restart(&mut self, by: Author, effect: AfterTimeout) {
        self.sender.observer.on_episode(self.path.flight, Entered::ByTimeout);
        self.enter(by, Condition::Timeout, Episode::Loss(Restart::Timeout(effect)));
    }

    /// Asks the timeout answer. Returns true if recovery begins with this ACK, which then has no meaning for
    /// the repair.
    pub(super) fn ask_timeout(&mut self, ack: &Ack) -> bool {
        if !self.cc.episode.is_after_timeout() {
            return false;
        }
        let verdict = self.ask(|answers, view| answers.timeout.on_ack(view, ack));
        let begins_recovery = self.apply_timeout_verdict(verdict);
        if begins_recovery {
            self.timer = TimerRule::Restart;
        }
        begins_recovery
    }

    /// Returns true if recovery begins.
    pub(super) fn apply_timeout_verdict(&mut self, verdict: TimeoutVerdict) -> bool {
        let by = self.answers.timeout.author();
        match verdict {
            TimeoutVerdict::Nothing => {}
            TimeoutVerdict::GoBack { cwnd, head_sent, why } => {
                self.cc.episode.decide();
                self.path.flight.rewind();
                if head_sent {
                    self.path.flight.skip_head();
                }
                self.set_cwnd(by, cwnd, why);
            }
            TimeoutVerdict::SendNew { cwnd, why } => {
                self.resume_at_max(by, why);
                self.set_cwnd(by, cwnd, why);
            }
            TimeoutVerdict::Recover { cwnd, ssthresh, why } => {
                let entry = self.ask(|answers, view| answers.repair.on_loss(view));
                self.resume_at_max(by, why);
                self.set_window(by, Reduction { cwnd, ssthresh }, why);
                let inflation = self.inflation_of(entry);
                let recovery = FastRecovery { inflation, window: EpisodeWindow::Reduced };
                self.enter(by, Condition::TimeoutWithDuplicates, Episode::Recovery(recovery));
                if let Some(srtt) = self.path.rtt.srtt() {
                    self.path.rtt.set_smoothed(srtt * 2, self.path.rtt.rttvar(), cwnd);
                }
                self.path.rtt.clear_backoff();
                return true;
            }
            TimeoutVerdict::Spurious { restore } => self.restore(by, restore),
        }
        false
    }
}
