//! Processing of ACKs and their effect on the last timeout, on a repair in progress and on the window.

use super::*;

/// Information from an ACK about the last reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Undone {
    Nothing,
    /// The reduction was spurious. The restored window already includes the effect of this ACK.
    Window,
    /// An original was late, and the episode is not over.
    Partly,
}

impl Event<'_, '_> {
    pub(super) fn on_ack(&mut self, ack: &mut Ack) -> TimerRule {
        let shared = self.answers.detect.traits().shares_timer && self.answers.detect.deadline().is_some();
        self.count(ack);
        ack.proves_spurious = self.sender.observer.on_ack(self.path.flight, ack);
        match ack.proves_spurious {
            Some(Entered::ByTimeout) => self.counters.spurious_timeouts += 1,
            Some(Entered::ByLossDetection) => self.counters.spurious_fast_retransmits += 1,
            None => {}
        }
        let ack = &*ack;
        self.ask(|answers, view| answers.observe(view, ack));
        if ack.reneges {
            self.on_reneging_ack(ack);
            return TimerRule::Keep;
        }
        self.timer = if ack.advances() { TimerRule::Restart } else { TimerRule::Keep };
        let begins_recovery = self.ask_timeout(ack);
        let undone = self.ask_undo(ack);
        // Linux 6.18, tcp_try_undo_partial(): there is more reordering than assumed, so no more segments are
        // declared lost yet.
        let data = if undone == Undone::Partly { AllowedData::New } else { AllowedData::OldAndNew };
        self.allowance.data = data;
        if undone != Undone::Window && !begins_recovery {
            self.ask_repair(ack);
        }
        if self.cc.state() != RecoveryState::Recovery
            && (ack.advances() || self.cc.timeouts_in_row > 0)
            && self.answers.repair.row().repair.scoreboard_in_recovery_only
        {
            self.forget_sacks();
        }
        self.ask_ecn(ack);
        let found = self.consult_detectors(|detect, view| match (detect.on_ack(view, ack), data) {
            (_, AllowedData::New) => Verdict::Nothing,
            (verdict, AllowedData::OldAndNew) => verdict,
        });
        if found != Found::Nothing {
            self.timer = TimerRule::Restart;
        }
        if shared
            && self.timer == TimerRule::Restart
            && ack.advances()
            && self.answers.detect.deadline().is_none()
        {
            self.timer = TimerRule::RestartSinceTransmission;
        }
        if self.opens && found != Found::Episode {
            self.ask_window(ack);
        }
        self.ask_in_recovery();
        if self.samples_rates() {
            self.ask_model(ack);
        }
        self.allowance.burst = match self.cc.episode {
            Episode::Loss(Restart::Timeout(AfterTimeout::Kept)) => Some(2),
            _ => {
                let burst = self.answers.repair.burst(&self.view(), found == Found::Episode);
                burst.or(self.profile.recovery.transmission.max_burst)
            }
        };
        self.timer
    }

    /// Processes an ACK below SACKed data. It delivers data, but starts and ends no repair (Linux 6.18,
    /// tcp_fastretrans_alert()).
    fn on_reneging_ack(&mut self, ack: &Ack) {
        self.ask(|answers, view| {
            answers.each_detector(|detect| detect.on_correction(view, Correction::Reneged));
        });
        self.allowance.data = AllowedData::New;
        if self.cc.state() != RecoveryState::Recovery {
            self.ask_window(ack);
        }
        self.ask_in_recovery();
        if self.samples_rates() {
            self.ask_model(ack);
        }
    }

    /// Updates the state that is common to all recipes.
    fn count(&mut self, ack: &Ack) {
        self.pending.take_if(|pending| matches!(pending, Pending::Probe(_)));
        let delivered = self.delivered_by(ack);
        self.last_ack = LastAck { delivered, is_safe: ack.advances() };
        if self.path.flight.is_empty() {
            self.cc.episode.end_pause();
        }
        if ack.advances() {
            self.cc.announced = self.announced(self.path);
            self.cc.disorder = Disorder::default();
            self.cc.previous_una = self.path.flight.una() - ack.acked.bytes;
            (self.cc.echoed, self.cc.acked_tsval) = (ack.ecr, ack.acked_tsval);
            (self.cc.timeouts_in_row, self.cc.open_timeouts) = (0, 0);
        } else if ack.duplicate && !self.ignores_duplicates() {
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
    }

    /// Returns what an ACK delivers. Without a scoreboard, Linux counts a segment for each duplicate ACK, and
    /// the rest when it is acknowledged (tcp_add_reno_sack(), tcp_remove_reno_sacks()).
    fn delivered_by(&self, ack: &Ack) -> Amount {
        let segments = match self.emulated_sacks() {
            None => return ack.delivered,
            Some(_) if self.holds_state() && !ack.advances() => 0,
            Some(sacked_out) if ack.advances() => ack.acked.segments.saturating_sub(sacked_out).max(1),
            Some(_) => u64::from(ack.duplicate),
        };
        Amount { bytes: segments * self.path.smss, segments }
    }

    fn ignores_duplicates(&self) -> bool {
        self.cc.timeouts_in_row > 0 && self.answers.repair.row().repair.scoreboard_in_recovery_only
    }

    fn ask_undo(&mut self, ack: &Ack) -> Undone {
        let Some(restore) = self.ask(|answers, view| answers.undo.on_ack(view, ack)) else {
            return Undone::Nothing;
        };
        self.ask(|answers, view| {
            answers.each_detector(|detect| detect.on_correction(view, Correction::Undone(restore)));
        });
        self.restore(self.answers.undo.author(), restore);
        // With `Growth::Delivered`, an ACK that ends an episode also opens the window (Linux 6.18,
        // tcp_cong_control()).
        let opens = self.profile.recovery.growth.amount == Growth::Delivered;
        match restore.window {
            Some(_) if !opens => Undone::Window,
            _ if restore.reordered => Undone::Partly,
            _ => Undone::Nothing,
        }
    }

    /// Asks the repair in fast recovery. In other states, the ACK may end the episode, and opens the window.
    fn ask_repair(&mut self, ack: &Ack) {
        let una = self.path.flight.una();
        let over = self.cc.recover.is_none_or(|recover| una >= recover);
        if self.holds_state() {
            if self.cc.state() == RecoveryState::Loss {
                self.open_window(ack);
            }
            return;
        }
        match self.cc.episode {
            Episode::Recovery(_) => return self.ask_repair_in_recovery(ack, over),
            Episode::Open(AfterEpisode::Inflating(inflation)) => {
                if ack.advances() && inflation > 0.0 {
                    self.cc.episode = Episode::Open(AfterEpisode::Nothing);
                } else if ack.duplicate && self.cc.dupacks() > self.profile.recovery.detection.dup_thresh {
                    self.cc.episode = Episode::Open(AfterEpisode::Inflating(inflation + 1.0));
                }
            }
            Episode::Open(_) if over => self.cc.episode = Episode::Open(AfterEpisode::Nothing),
            // RFC 3168 §6.1.2 and §6.1.3: the first data after `recover` carries CWR, and the receiver echoes
            // the same mark until it receives CWR. So the ACK of exactly `recover` still carries the old echo.
            Episode::Cwr if ack.ece && self.cc.recover == Some(una) => {}
            Episode::Cwr | Episode::Loss(_) if over => {
                self.leave(Condition::Acknowledged, AfterEpisode::Nothing);
            }
            Episode::Open(_) | Episode::Cwr | Episode::Loss(_) => {}
        }
        self.open_window(ack);
    }

    /// Returns whether everything of the episode is acknowledged and nothing beyond it. Without SACK, the episode then
    /// ends with the next ACK of new data, so that duplicate ACKs do not begin another one (Linux 6.18,
    /// tcp_is_non_sack_preventing_reopen()).
    fn holds_state(&self) -> bool {
        matches!(self.cc.state(), RecoveryState::Recovery | RecoveryState::Loss)
            && self.cc.recover == Some(self.path.flight.una())
            && self.emulated_sacks().is_some()
    }

    fn ask_repair_in_recovery(&mut self, ack: &Ack, over: bool) {
        let has_grown = self.opens_in_recovery();
        if has_grown {
            self.ask_window(ack);
        }
        match self.ask(|answers, view| answers.repair.on_recovery_ack(view, ack)) {
            RepairStep::Wait => {}
            RepairStep::Inflate(_) if self.emulated_sacks().is_some() => {}
            RepairStep::Inflate(segments) => {
                if let Some(recovery) = self.cc.episode.recovery_mut() {
                    recovery.inflation += segments;
                }
            }
            RepairStep::Partial { resend_head, deflation, restart_timer } => {
                // A hole that was already retransmitted needs no new attribution.
                let head = self.path.flight.head().filter(|head| resend_head && head.transmissions == 1);
                if let Some(hole) = head.map(|head| head.start) {
                    self.may_repair(hole);
                }
                self.deflate(ack, deflation);
                if resend_head {
                    self.resend_next_hole();
                }
                self.timer = if restart_timer { TimerRule::Restart } else { TimerRule::Keep };
            }
            RepairStep::Exit { inflates } => {
                self.exit_recovery(over, inflates);
                let has_scoreboard = self.answers.has_scoreboard() || self.emulated_sacks().is_some();
                let grows = match self.profile.recovery.fast_recovery.grow_on_exit {
                    GrowOnExit::Never => false,
                    GrowOnExit::WithoutScoreboard => !has_scoreboard,
                    GrowOnExit::WithScoreboard => has_scoreboard && !has_grown,
                };
                if grows {
                    self.open_window(ack);
                }
            }
        }
    }

    /// Retransmits the head, which a partial ACK has revealed as the next hole.
    fn resend_next_hole(&mut self) {
        // All parts of an MTU probe are retransmitted together, so the ACK of one reveals no new hole.
        let is_resent = self.path.flight.head().is_some_and(|head| head.probes_mtu && head.transmissions > 1);
        let may_resend = self.allowance.data == AllowedData::OldAndNew && !is_resent;
        if may_resend && self.path.flight.mark_head_lost_if_unsacked() {
            self.last_ack.is_safe &= self.emulated_sacks().is_none();
            let (by, una) = (self.answers.repair.author(), self.path.flight.una());
            self.resend(by, una, TransmissionKind::Recovery, "partial ACK");
        }
    }

    fn exit_recovery(&mut self, over: bool, inflates: bool) {
        let kept = self.cc.kept_window();
        let cwnd = match kept {
            Some(kept) => kept,
            None if self.opens_in_recovery() => self.cc.cwnd,
            None => self.ask(|answers, view| answers.window.on_exit(view)),
        };
        self.cancel_resend();
        self.set_cwnd(self.answers.window.author(), cwnd, "recovery ends");
        // A repair may leave an episode before its end (Reno), when there may be more holes.
        let memory = match kept.filter(|_| !over) {
            Some(kept) => AfterEpisode::KeptWindow(kept),
            None if inflates => AfterEpisode::Inflating(0.0),
            None => AfterEpisode::Nothing,
        };
        self.leave(Condition::Acknowledged, memory);
    }

    fn deflate(&mut self, ack: &Ack, deflation: PartialAckDeflation) {
        let acked = self.view().segments(ack.acked);
        let Some(FastRecovery { inflation, .. }) = self.cc.episode.recovery_mut() else { return };
        match deflation {
            PartialAckDeflation::InflationOnly => *inflation = (*inflation - (acked - 1.0).max(0.0)).max(0.0),
            PartialAckDeflation::All => *inflation = 0.0,
            PartialAckDeflation::Rfc6582 => {
                let add_back = if acked >= 1.0 { 1.0 } else { 0.0 };
                // If the acknowledged data exceeds the inflation, the rest comes off the window, but one
                // segment stays.
                let excess = if *inflation > acked {
                    *inflation -= acked - add_back;
                    0.0
                } else {
                    acked - std::mem::replace(inflation, add_back)
                };
                let cwnd = (self.cc.cwnd - excess).max(1.0);
                self.set_cwnd(self.answers.repair.author(), cwnd, "partial window deflation");
            }
        }
    }

    /// Returns which delivered segments open the window.
    fn opens_for(&self) -> Opens {
        if self.answers.has_scoreboard() { self.answers.detect.traits().opens } else { Opens::InOrder }
    }

    /// Returns whether the window also opens in fast recovery, because the detector's algorithm has no fast
    /// recovery (TCP-PR). It does not if an add-on sets the window or the episode keeps it.
    fn opens_in_recovery(&self) -> bool {
        self.opens_for() == Opens::Always
            && !self.cc.episode.is_regulated()
            && self.cc.kept_window().is_none()
    }

    /// Opens the window, or postpones that until the losses are known. In Linux 6.18, an ACK that begins a
    /// recovery does not open the window first (tcp_fastretrans_alert(), then tcp_cong_control()).
    fn open_window(&mut self, ack: &Ack) {
        match self.profile.recovery.growth.amount {
            Growth::Delivered => self.opens = true,
            Growth::PerAck | Growth::Rfc5681 => self.ask_window(ack),
        }
    }

    fn ask_window(&mut self, ack: &Ack) {
        self.cc.usage.since = self.path.now;
        let divisor = self.ask_slow_start(ack);
        // After a collapse or a timeout, only an ACK in sequence shows that the hole is filled.
        let counts = self.opens_for() != Opens::InOrder
            && self.cc.state() != RecoveryState::Loss
            && (ack.advances() || ack.newly_sacked.bytes > 0);
        let ack = if counts { &Ack { acked: ack.delivered, ..*ack } } else { ack };
        if let Some(opened) = self.ask(|answers, view| answers.window.on_ack(view, ack)) {
            let was = self.cc.cwnd;
            let cwnd = if divisor == 1.0 { opened } else { was + (opened - was) / divisor };
            self.set_cwnd(self.answers.window.author(), cwnd, "ACK");
        }
    }

    /// Returns the divisor for the increase of the window.
    fn ask_slow_start(&mut self, ack: &Ack) -> f64 {
        let step = self.ask(|answers, view| {
            let slow_start = answers.slow_start().filter(|_| view.in_slow_start())?;
            Some((slow_start.author(), slow_start.on_ack(view, ack)))
        });
        match step {
            None | Some((_, Step::Continue)) => 1.0,
            Some((_, Step::Slowly { divisor })) => divisor,
            Some((by, Step::Leave { why })) => {
                let cwnd = self.cc.cwnd;
                self.set_window(by, Reduction { cwnd, ssthresh: cwnd }, why);
                1.0
            }
        }
    }

    /// Asks the add-on for fast recovery, after all losses are known.
    #[inline]
    pub(super) fn ask_in_recovery(&mut self) {
        if self.cc.episode.is_regulated() {
            self.ask_regulator();
        }
    }

    fn ask_regulator(&mut self) {
        let progress = self.progress();
        let set = self.ask(|answers, view| {
            let in_recovery = answers.in_recovery()?;
            Some((in_recovery.author(), in_recovery.on_progress(view, &progress)))
        });
        if let Some((by, cwnd)) = set {
            self.set_cwnd(by, cwnd, "in recovery");
        }
    }

    pub(super) fn progress(&mut self) -> Progress {
        let pipe = self.in_flight(&self.view());
        let LastAck { delivered, is_safe } = &mut self.last_ack;
        Progress { delivered: std::mem::take(delivered), pipe, is_safe: *is_safe }
    }

    /// Reduces the window after an ECN echo, once per window of data (RFC 3168 §6.1.2).
    fn ask_ecn(&mut self, ack: &Ack) {
        if ack.ece && self.cc.state() == RecoveryState::Open {
            self.reduce(LossKind::EcnEcho, None, Condition::EcnEcho, "ECN echo");
        }
    }

    /// Reduces the window although no segment is missing.
    pub(super) fn reduce(
        &mut self,
        kind: LossKind,
        window_when_sent: Option<f64>,
        condition: Condition,
        why: &'static str,
    ) {
        let loss = Loss { kind, window_when_sent };
        let reduction = self.ask(|answers, view| answers.window.on_loss(view, &loss));
        self.counters.window_reductions += 1;
        let (by, recover) = (self.answers.window.author(), self.path.flight.max());
        self.set_window(by, reduction, why);
        self.send_cwr = true;
        self.cc.recover = Some(recover);
        self.change_state(condition, Episode::Cwr);
        self.note(by, What::Enter { state: RecoveryState::Cwr, recover }, condition.text());
    }
}
