//! What an ACK means: to the last timeout, to a repair in progress, to the window.

use super::*;

impl Recovery {
    /// True if recovery begins with this ACK: then it means nothing more to the repair.
    pub(super) fn ask_timeout(&mut self, path: &mut Path<'_>, ack: &Ack, timer: &mut TimerRule) -> bool {
        if !self.after_timeout() {
            return false;
        }
        let afterwards = self.answers.timeout.on_ack(&view_of(&self.cc, &self.profile, path), ack);
        let begins_recovery = self.apply_afterwards(path, afterwards);
        if begins_recovery {
            *timer = TimerRule::Restart;
        }
        begins_recovery
    }

    fn after_timeout(&self) -> bool {
        self.cc.phase == Phase::Restarted && self.cc.last_entry == Some(Entered::ByTimeout)
    }

    pub(super) fn timeout_is_undecided(&self) -> bool {
        self.after_timeout() && self.answers.timeout.is_undecided()
    }

    /// True if recovery begins.
    pub(super) fn apply_afterwards(&mut self, path: &mut Path<'_>, afterwards: Afterwards) -> bool {
        let by = self.answers.timeout.name();
        let ssthresh = self.cc.ssthresh;
        match afterwards {
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
            Afterwards::Recover { cwnd, ssthresh, why } => {
                let entry = self.answers.repair.on_loss(&view_of(&self.cc, &self.profile, path));
                path.flight.resume_at_max();
                self.note(path.now, Question::Timeout, by, What::Resume { at: path.flight.max() }, why);
                self.set_window(path.now, Question::Timeout, by, cwnd, ssthresh, why);
                self.cc.inflation = self.inflation_of(entry);
                self.enter(path, Phase::Recovery, Entered::ByTimeout, Question::Timeout, by);
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

    /// True if the last reduction was a mistake, and the window is now what the answer says.
    pub(super) fn ask_undo(&mut self, path: &mut Path<'_>, ack: &Ack) -> bool {
        let Some(restore) = self.answers.undo.on_ack(&view_of(&self.cc, &self.profile, path), ack) else {
            return false;
        };
        let by = self.answers.undo.name();
        self.restore(path, restore, Question::Undo, by);
        restore.window.is_some()
    }

    pub(super) fn ask_repair(&mut self, path: &mut Path<'_>, ack: &Ack, timer: &mut TimerRule) {
        if self.cc.phase != Phase::Recovery {
            if self.cc.phase != Phase::Open && self.cc.recover.is_none_or(|r| path.flight.una() >= r) {
                self.leave(path);
            }
            self.end_kept_event(path);
            self.ask_window(path, ack);
            return;
        }
        if self.opens_in_recovery() {
            self.ask_window(path, ack);
        }
        let by = self.answers.repair.name();
        match self.answers.repair.on_recovery_ack(&view_of(&self.cc, &self.profile, path), ack) {
            RepairStep::Wait => {}
            RepairStep::Inflate(by_segments) => self.cc.inflation += by_segments,
            RepairStep::Partial { resend_head, deflation, restart_timer } => {
                self.ask_why_again(path);
                self.deflate(path, ack, deflation);
                if resend_head && path.flight.mark_head_lost_if_unsacked() {
                    let una = path.flight.una();
                    self.forced = Some((una, Transmission::Recovery));
                    self.note(path.now, Question::Repair, by, What::Resend { offset: una }, "partial ACK");
                }
                *timer = if restart_timer { TimerRule::Restart } else { TimerRule::Keep };
            }
            RepairStep::Exit => {
                let cwnd = match self.cc.kept_window {
                    Some(kept) => kept,
                    None if self.opens_in_recovery() => self.cc.cwnd,
                    None => self.answers.window.on_exit(&view_of(&self.cc, &self.profile, path)),
                };
                self.end_kept_event(path);
                self.regulated = false;
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
                if self.profile.recovery.grow_on_exit && !self.answers.repair.has_scoreboard() {
                    self.ask_window(path, ack);
                }
            }
        }
    }

    /// The window kept for a loss on the radio is forgotten once `recover` is reached. A repair may leave a loss event
    /// before that (Reno), when there may be more holes.
    fn end_kept_event(&mut self, path: &Path<'_>) {
        self.cc.kept_window.take_if(|_| self.cc.recover.is_none_or(|recover| path.flight.una() >= recover));
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

    /// The window goes on opening in fast recovery, because the detector's algorithm knows none (TCP-PR), unless
    /// somebody else decides it.
    fn opens_in_recovery(&self) -> bool {
        self.answers.detect.traits().keeps_opening && !self.regulated && self.cc.kept_window.is_none()
    }

    fn ask_window(&mut self, path: &Path<'_>, ack: &Ack) {
        let view = view_of(&self.cc, &self.profile, path);
        // After a collapse or a timeout only an ACK in sequence says that the hole is filled.
        let counts = self.answers.detect.traits().keeps_opening && self.cc.phase != Phase::Restarted;
        let ack = if counts { &Ack { acked: ack.delivered, ..*ack } } else { ack };
        if let Some(cwnd) = self.answers.window.on_ack(&view, ack) {
            let (by, ssthresh) = (self.answers.window.name(), self.cc.ssthresh);
            self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "ACK");
        }
    }

    /// Asked last of all, when it is known what is lost.
    pub(super) fn ask_in_recovery(&mut self, path: &Path<'_>) {
        if !self.regulated || self.cc.phase != Phase::Recovery {
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
        Progress { delivered: std::mem::take(&mut self.delivered), pipe }
    }

    /// RFC 3168 §6.1.2: an echo reduces the window once per window of data.
    pub(super) fn ask_ecn(&mut self, path: &mut Path<'_>, ack: &Ack) {
        if !ack.ece || self.cc.phase != Phase::Open {
            return;
        }
        let view = view_of(&self.cc, &self.profile, path);
        let loss = Loss { kind: LossKind::EcnEcho, window_when_sent: None };
        let reduction = self.answers.window.on_loss(&view, &loss);
        self.reduce(path, reduction, "ECN echo");
    }

    /// The window is reduced although nothing is missing.
    pub(super) fn reduce(&mut self, path: &Path<'_>, reduction: Reduction, why: &'static str) {
        let Reduction { cwnd, ssthresh } = reduction;
        self.counters.window_reductions += 1;
        self.set_window(path.now, Question::Window, self.answers.window.name(), cwnd, ssthresh, why);
        self.send_cwr = true;
        self.cc.kept_window = None;
        self.cc.recover = Some(path.flight.max());
        self.cc.phase = Phase::Reduced;
    }
}
