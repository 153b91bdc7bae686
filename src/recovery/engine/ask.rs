//! What an ACK means: to the last timeout, to a repair in progress, to the window.

use super::*;

impl Recovery {
    pub(super) fn ask_timeout(&mut self, path: &mut Path<'_>, ack: &Ack, timer: &mut TimerRule) {
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
            Afterwards::Recover { cwnd, ssthresh, inflation, why } => {
                self.answers.repair.on_loss(&view_of(&self.cc, &self.profile, path));
                path.flight.resume_at_max();
                self.note(path.now, Question::Timeout, by, What::Resume { at: path.flight.max() }, why);
                self.set_window(path.now, Question::Timeout, by, cwnd, ssthresh, why);
                self.cc.inflation = inflation;
                self.enter(path, Phase::Recovery, Entered::ByTimeout, Question::Timeout, by);
                if let Some(srtt) = path.rtt.srtt() {
                    path.rtt.set_smoothed(srtt * 2, path.rtt.rttvar(), cwnd);
                }
                path.rtt.clear_backoff();
                *timer = TimerRule::Restart;
            }
            Afterwards::Spurious { restore } => self.restore_as(path, restore, Question::Timeout, by),
        }
    }

    pub(super) fn ask_repair(&mut self, path: &mut Path<'_>, ack: &Ack, timer: &mut TimerRule) {
        if self.cc.phase != Phase::Recovery {
            if self.cc.phase != Phase::Open && self.cc.recover.is_none_or(|r| path.flight.una() >= r) {
                self.leave(path);
            }
            self.ask_window(path, ack);
            return;
        }
        let by = self.answers.repair.name();
        if self.regulated
            && let Some(in_recovery) = &mut self.answers.in_recovery
        {
            let cwnd = in_recovery.on_ack(&view_of(&self.cc, &self.profile, path), ack);
            let (by, ssthresh) = (in_recovery.name(), self.cc.ssthresh);
            self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "ACK in recovery");
        }
        match self.answers.repair.on_recovery_ack(&view_of(&self.cc, &self.profile, path), ack) {
            Step::Wait => {}
            Step::Inflate(by_segments) => self.cc.inflation += by_segments,
            Step::Partial { resend_head, deflation, restart_timer } => {
                self.ask_why_again(path);
                self.deflate(path, ack, deflation);
                if resend_head && path.flight.mark_head_lost_if_unsacked() {
                    let una = path.flight.una();
                    self.forced = Some((una, Transmission::Recovery));
                    self.note(path.now, Question::Repair, by, What::Resend { offset: una }, "partial ACK");
                }
                *timer = if restart_timer { TimerRule::Restart } else { TimerRule::Keep };
            }
            Step::Exit => {
                let kept = self.cc.kept_window.take();
                let exit = || self.answers.window.on_exit(&view_of(&self.cc, &self.profile, path));
                let cwnd = kept.unwrap_or_else(exit);
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
    pub(super) fn ask_ecn(&mut self, path: &mut Path<'_>, ack: &Ack) {
        if !ack.ece || self.cc.phase != Phase::Open {
            return;
        }
        let view = view_of(&self.cc, &self.profile, path);
        let loss = Loss { kind: LossKind::EcnEcho, window_when_sent: None };
        let Reduction { cwnd, ssthresh } = self.answers.window.on_loss(&view, &loss);
        let by = self.answers.window.name();
        self.counters.window_reductions += 1;
        self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "ECN echo");
        self.send_cwr = true;
        self.cc.recover = Some(path.flight.max());
        self.cc.phase = Phase::Reduced;
    }
}
