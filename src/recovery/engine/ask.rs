//! Processing of ACKs: their meaning for the last timeout, for a repair in progress, and for the window.

use super::*;

/// Information from an ACK about the last reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Undone {
    Nothing,
    /// The reduction was spurious. The restored window already includes the effect of this ACK.
    Window,
    /// The original was late, but retransmissions are outstanding whose ACKs will reveal more.
    Later,
}

impl Recovery {
    /// Asks the timeout answer. Returns true if recovery begins with this ACK, which then has no meaning for
    /// the repair.
    pub(super) fn ask_timeout(&mut self, path: &mut Path<'_>, ack: &Ack, timer: &mut TimerRule) -> bool {
        if !self.cc.episode.is_after_timeout() {
            return false;
        }
        let afterwards = self.answers.timeout.on_ack(&view_of(&self.cc, &self.profile, path), ack);
        let begins_recovery = self.apply_afterwards(path, afterwards);
        if begins_recovery {
            *timer = TimerRule::Restart;
        }
        begins_recovery
    }

    /// Returns true if recovery begins.
    pub(super) fn apply_afterwards(&mut self, path: &mut Path<'_>, afterwards: Afterwards) -> bool {
        let by = self.answers.timeout.name();
        let ssthresh = self.cc.ssthresh;
        match afterwards {
            Afterwards::Nothing => {}
            Afterwards::GoBack { cwnd, head_sent, why } => {
                self.cc.episode.decide();
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
            Afterwards::Recover { cwnd, ssthresh, why } => {
                let entry = self.answers.repair.on_loss(&view_of(&self.cc, &self.profile, path));
                path.flight.resume_at_max();
                self.note(path.now, Question::Timeout, by, What::Resume { at: path.flight.max() }, why);
                self.set_window(path.now, Question::Timeout, by, cwnd, ssthresh, why);
                let inflation = self.inflation_of(entry);
                let recovery = Episode::Recovery(FastRecovery { inflation, window: EventWindow::Reduced });
                self.enter(path, Condition::TimeoutWithDuplicates, recovery, Question::Timeout, by);
                if let Some(srtt) = path.rtt.srtt() {
                    path.rtt.set_smoothed(srtt * 2, path.rtt.rttvar(), cwnd);
                }
                path.rtt.clear_backoff();
                return true;
            }
            Afterwards::Spurious { restore } => self.restore(path, restore, Question::Timeout, by),
        }
        false
    }

    pub(super) fn ask_undo(&mut self, path: &mut Path<'_>, ack: &Ack) -> Undone {
        let Some(restore) = self.answers.undo.on_ack(&view_of(&self.cc, &self.profile, path), ack) else {
            return Undone::Nothing;
        };
        let by = self.answers.undo.name();
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.each_detector(|detect| detect.on_correction(&view, Correction::Undone(restore)));
        self.restore(path, restore, Question::Undo, by);
        match restore.window {
            None if restore.reordered => Undone::Later,
            // With `Growth::Delivered`, an ACK that ends an episode also opens the window (Linux 6.18,
            // tcp_cong_control()).
            Some(_) if self.profile.recovery.growth != Growth::Delivered => Undone::Window,
            _ => Undone::Nothing,
        }
    }

    pub(super) fn ask_repair(&mut self, path: &mut Path<'_>, ack: &Ack, timer: &mut TimerRule) {
        let over = self.cc.recover.is_none_or(|recover| path.flight.una() >= recover);
        match self.cc.episode {
            Episode::Recovery(_) => {}
            Episode::Open(Memory::Inflating(inflation)) => {
                if ack.advances() && inflation > 0.0 {
                    self.cc.episode = Episode::Open(Memory::Nothing);
                } else if ack.duplicate && self.cc.dupacks() > self.profile.recovery.dup_thresh {
                    self.cc.episode = Episode::Open(Memory::Inflating(inflation + 1.0));
                }
                return self.open_window(path, ack);
            }
            Episode::Open(_) => {
                if over {
                    self.cc.episode = Episode::Open(Memory::Nothing);
                }
                return self.open_window(path, ack);
            }
            Episode::Reduced => {
                // RFC 3168 §6.1.2 and §6.1.3: the first data after `recover` carries CWR, and the receiver
                // echoes the same mark until it receives CWR. So the ACK of exactly `recover` still carries
                // the old echo.
                let same_mark = ack.ece && self.cc.recover == Some(path.flight.una());
                if over && !same_mark {
                    self.leave(path, Condition::Acknowledged, Memory::Nothing);
                }
                return self.open_window(path, ack);
            }
            Episode::Restarted(_) => {
                if over {
                    self.leave(path, Condition::Acknowledged, Memory::Nothing);
                }
                return self.open_window(path, ack);
            }
        }
        let has_grown = self.opens_in_recovery();
        if has_grown {
            self.ask_window(path, ack);
        }
        let by = self.answers.repair.name();
        match self.answers.repair.on_recovery_ack(&view_of(&self.cc, &self.profile, path), ack) {
            RepairStep::Wait => {}
            RepairStep::Inflate(by_segments) => {
                if let Some(recovery) = self.cc.episode.recovery_mut() {
                    recovery.inflation += by_segments;
                }
            }
            RepairStep::Partial { resend_head, deflation, restart_timer } => {
                // A hole that was already retransmitted needs no new attribution.
                let head = path.flight.head().filter(|head| resend_head && head.transmissions == 1);
                if let Some(hole) = head.map(|head| head.start) {
                    self.may_repair(path, hole);
                }
                self.deflate(path, ack, deflation);
                // All parts of an MTU probe are retransmitted together, so the ACK of one reveals no new hole.
                let is_resent =
                    path.flight.head().is_some_and(|head| head.probes_mtu && head.transmissions > 1);
                let may_resend = resend_head && self.leaves == Leaves::OldAndNew && !is_resent;
                if may_resend && path.flight.mark_head_lost_if_unsacked() {
                    let una = path.flight.una();
                    self.order = Some(Order::Resend { start: una, kind: Transmission::Recovery });
                    self.note(path.now, Question::Repair, by, What::Resend { offset: una }, "partial ACK");
                }
                *timer = if restart_timer { TimerRule::Restart } else { TimerRule::Keep };
            }
            RepairStep::Exit { inflates } => {
                let kept = self.cc.kept_window();
                let cwnd = match kept {
                    Some(kept) => kept,
                    None if self.opens_in_recovery() => self.cc.cwnd,
                    None => self.answers.window.on_exit(&view_of(&self.cc, &self.profile, path)),
                };
                let ssthresh = self.cc.ssthresh;
                self.cancel_resend();
                self.set_window(
                    path.now,
                    Question::Window,
                    self.answers.window.name(),
                    cwnd,
                    ssthresh,
                    "recovery ends",
                );
                // A repair may leave an episode before its end (Reno), when there may be more holes.
                let memory = match kept.filter(|_| !over) {
                    Some(kept) => Memory::KeptWindow(kept),
                    None if inflates => Memory::Inflating(0.0),
                    None => Memory::Nothing,
                };
                self.leave(path, Condition::Acknowledged, memory);
                let has_scoreboard = self.answers.has_scoreboard();
                let grows = match self.profile.recovery.grow_on_exit {
                    GrowOnExit::Never => false,
                    GrowOnExit::WithoutScoreboard => !has_scoreboard,
                    GrowOnExit::WithScoreboard => has_scoreboard && !has_grown,
                };
                if grows {
                    self.open_window(path, ack);
                }
            }
        }
    }

    fn deflate(&mut self, path: &Path<'_>, ack: &Ack, deflation: PartialAckDeflation) {
        let acked = view_of(&self.cc, &self.profile, path).segments(ack.acked);
        let Some(FastRecovery { inflation, .. }) = self.cc.episode.recovery_mut() else { return };
        match deflation {
            PartialAckDeflation::InflationOnly => *inflation = (*inflation - (acked - 1.0).max(0.0)).max(0.0),
            PartialAckDeflation::All => *inflation = 0.0,
            PartialAckDeflation::Rfc6582 => {
                let add_back = if acked >= 1.0 { 1.0 } else { 0.0 };
                // If the acknowledged data exceeds the inflation, the rest comes off the window, but one
                // segment stays.
                let unpaid = if *inflation > acked {
                    *inflation -= acked - add_back;
                    0.0
                } else {
                    acked - std::mem::replace(inflation, add_back)
                };
                let cwnd = (self.cc.cwnd - unpaid).max(1.0);
                let (by, ssthresh) = (self.answers.repair.name(), self.cc.ssthresh);
                self.set_window(path.now, Question::Repair, by, cwnd, ssthresh, "partial window deflation");
            }
        }
    }

    /// Returns whether the window also opens in fast recovery, because the detector's algorithm has no fast
    /// recovery (TCP-PR). It does not if an add-on sets the window or the episode keeps it.
    fn opens_in_recovery(&self) -> bool {
        self.answers.detect.traits().opens == Opens::Always
            && !self.cc.episode.is_regulated()
            && self.cc.kept_window().is_none()
    }

    /// Returns the divisor for the increase of the window.
    fn ask_slow_start(&mut self, path: &Path<'_>, ack: &Ack) -> f64 {
        let view = view_of(&self.cc, &self.profile, path);
        if !view.in_slow_start() {
            return 1.0;
        }
        let Some(slow_start) = self.answers.slow_start() else { return 1.0 };
        match slow_start.on_ack(&view, ack) {
            Step::Continue => 1.0,
            Step::Slowly { divisor } => divisor,
            Step::Leave { why } => {
                let (by, cwnd) = (slow_start.name(), self.cc.cwnd);
                self.set_window(path.now, Question::Window, by, cwnd, cwnd, why);
                1.0
            }
        }
    }

    /// Opens the window, or postpones that until the losses are known. In Linux 6.18, an ACK that begins a
    /// recovery does not open the window first (tcp_fastretrans_alert(), then tcp_cong_control()).
    fn open_window(&mut self, path: &Path<'_>, ack: &Ack) {
        match self.profile.recovery.growth {
            Growth::Delivered => self.turn.opens = true,
            Growth::PerAck | Growth::Rfc5681 => self.ask_window(path, ack),
        }
    }

    pub(super) fn ask_window(&mut self, path: &Path<'_>, ack: &Ack) {
        let divisor = self.ask_slow_start(path, ack);
        let view = view_of(&self.cc, &self.profile, path);
        // After a collapse or a timeout, only an ACK in sequence shows that the hole is filled.
        let counts = self.answers.detect.traits().opens != Opens::InOrder
            && self.cc.phase() != Phase::Restarted
            && (ack.advances() || ack.newly_sacked.bytes > 0);
        let ack = if counts { &Ack { acked: ack.delivered, ..*ack } } else { ack };
        if let Some(opened) = self.answers.window.on_ack(&view, ack) {
            let was = self.cc.cwnd;
            let cwnd = if divisor == 1.0 { opened } else { was + (opened - was) / divisor };
            let (by, ssthresh) = (self.answers.window.name(), self.cc.ssthresh);
            self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "ACK");
        }
    }

    /// Asks the add-on for fast recovery, after all losses are known.
    pub(super) fn ask_in_recovery(&mut self, path: &Path<'_>) {
        if !self.cc.episode.is_regulated() {
            return;
        }
        let progress = self.progress(path);
        if let Some(in_recovery) = self.answers.in_recovery() {
            let cwnd = in_recovery.on_progress(&view_of(&self.cc, &self.profile, path), &progress);
            let (by, ssthresh) = (in_recovery.name(), self.cc.ssthresh);
            self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "in recovery");
        }
    }

    pub(super) fn progress(&mut self, path: &Path<'_>) -> Progress {
        let pipe = self.in_flight(&view_of(&self.cc, &self.profile, path));
        Progress { delivered: std::mem::take(&mut self.turn.delivered), pipe, is_safe: self.is_safe }
    }

    /// Reduces the window after an ECN echo, once per window of data (RFC 3168 §6.1.2).
    pub(super) fn ask_ecn(&mut self, path: &mut Path<'_>, ack: &Ack) {
        if !ack.ece || self.cc.phase() != Phase::Open {
            return;
        }
        let view = view_of(&self.cc, &self.profile, path);
        let loss = Loss { kind: LossKind::EcnEcho, window_when_sent: None };
        let reduction = self.answers.window.on_loss(&view, &loss);
        self.reduce(path, reduction, Condition::EcnEcho, "ECN echo");
    }

    /// Reduces the window although no segment is missing.
    pub(super) fn reduce(
        &mut self,
        path: &Path<'_>,
        reduction: Reduction,
        condition: Condition,
        why: &'static str,
    ) {
        let Reduction { cwnd, ssthresh } = reduction;
        self.counters.window_reductions += 1;
        let (by, recover) = (self.answers.window.name(), path.flight.max());
        self.set_window(path.now, Question::Window, by, cwnd, ssthresh, why);
        self.send_cwr = true;
        self.cc.recover = Some(recover);
        self.move_to(condition, Episode::Reduced);
        self.note(
            path.now,
            Question::Window,
            by,
            What::Enter { phase: Phase::Reduced, recover },
            condition.text(),
        );
    }
}
