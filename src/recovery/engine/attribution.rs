//! Attribution of losses, and episodes that keep the window because the radio link caused the loss.

use super::*;

impl Event<'_, '_> {
    /// Returns the cause of the loss at `lost`, or `None` if it is not known yet.
    pub(super) fn ask_why(&mut self, lost: u64) -> Option<Cause> {
        let (cause, why) = self.ask(|answers, view| answers.attribute.cause(view, lost))?;
        self.note_cause(lost, cause, why);
        Some(cause)
    }

    /// Returns the cause of a loss where it is needed now. Losses with an unknown cause count as congestion.
    pub(super) fn cause(&mut self, lost: u64) -> Cause {
        self.ask_why(lost).unwrap_or_else(|| {
            self.note_cause(lost, Cause::Congestion, "cause unknown");
            Cause::Congestion
        })
    }

    fn note_cause(&mut self, lost: u64, cause: Cause, why: &'static str) {
        self.ask_judges(lost);
        self.note(self.answers.attribute.author(), What::Cause { offset: lost, cause }, why);
    }

    pub(super) fn ask_judges(&mut self, lost: u64) {
        for index in 0.. {
            let Some(judge) = self.answers.judge(index) else { break };
            let by = judge.author();
            let judged = self.ask(|answers, view| answers.judge(index)?.cause(view, lost));
            if let Some((cause, why)) = judged {
                self.note(by, What::Judged { offset: lost, cause }, why);
            }
        }
    }

    /// Returns the window to reduce from if congestion caused a further loss in an episode that was
    /// attributed to the radio link. FlightSize is too large then, because duplicate ACKs have released new
    /// segments at the full rate.
    pub(super) fn kept_window_to_reduce(&self) -> Option<f64> {
        self.cc.kept_window().map(|kept| kept.min(self.view().flight_size()))
    }

    /// Returns the window to reduce from at a timeout. FlightSize is also too large if new segments have
    /// replaced everything that was SACKed.
    pub(super) fn window_at_timeout(&self) -> Option<f64> {
        let replaces = self.answers.detect.traits().keeps_flowing;
        let replaced = replaces.then(|| self.cc.cwnd.min(self.view().flight_size()));
        self.kept_window_to_reduce().or(replaced)
    }

    /// Returns whether a hole may be retransmitted now. In an episode attributed to the radio link, each hole
    /// is attributed before its retransmission, and the first one caused by congestion reduces the window
    /// after all. A hole with an unknown cause must wait.
    pub(super) fn may_repair(&mut self, hole: u64) -> bool {
        let is_judged = self.cc.episode.kept().is_none_or(|kept| kept.attributed_hole == Some(hole));
        if is_judged || self.is_rest_of_mtu_probe(hole) {
            return true;
        }
        match self.ask_why(hole) {
            None => return false,
            Some(Cause::Congestion) => self.reduce_after_all(),
            Some(Cause::Radio) => {
                if let Some(kept) = self.cc.episode.kept_mut() {
                    kept.attributed_hole = Some(hole);
                }
            }
        }
        true
    }

    /// Reduces the window, because congestion caused a further hole of an episode attributed to the radio
    /// link. The segments sent since the episode began belong to the window of data that is reduced for, so
    /// their losses do not reduce it again (RFC 5681 §4.3).
    fn reduce_after_all(&mut self) {
        let window_when_sent = self.kept_window_to_reduce();
        let before = Congestion { cwnd: self.cc.kept_window().unwrap_or(self.cc.cwnd), ..self.cc.clone() };
        let reduction = self.reduction_after_loss(&before, window_when_sent);
        self.set_window(self.answers.window.author(), reduction, "a further loss");
        let recover = self.path.flight.max();
        if self.cc.recover.replace(recover) != Some(recover) {
            let by = self.answers.repair.author();
            self.note(by, What::Extend { recover }, "the window is reduced after all");
        }
        self.regulate(before.cwnd, &reduction);
    }
}
