//! A loss: who found it, why it was lost, and how its repair begins.

use super::*;

impl Recovery {
    /// Asks the detector and its witnesses in turn, and applies what each of them says.
    pub(super) fn hear(
        &mut self,
        path: &mut Path<'_>,
        mut ask: impl FnMut(&mut dyn Detect, &View<'_>) -> Verdict,
    ) -> Found {
        let view = view_of(&self.cc, &self.profile, path);
        let verdict = ask(&mut *self.answers.detect, &view);
        let mut found = self.apply_verdict(path, self.answers.detect.name(), verdict);
        for index in 0..self.answers.witnesses.len() {
            let view = view_of(&self.cc, &self.profile, path);
            let witness = &mut *self.answers.witnesses[index];
            let (by, verdict) = (witness.name(), ask(witness, &view));
            if found == Found::Nothing {
                found = self.apply_verdict(path, by, verdict);
            }
        }
        found
    }

    fn apply_verdict(&mut self, path: &mut Path<'_>, by: &'static str, verdict: Verdict) -> Found {
        let una = path.flight.una();
        let mut then = None;
        let (segments, offset, why) = match verdict {
            Verdict::Nothing => return Found::Nothing,
            Verdict::Head { why } => (0, una, why),
            Verdict::Below { offset, why } => (path.flight.mark_lost_below(offset), una, why),
            Verdict::Segments { starts, window_when_sent, why } => {
                then = window_when_sent;
                let marked = starts.iter().filter(|start| path.flight.mark_lost(**start)).count() as u64;
                if marked == 0 {
                    return Found::Nothing;
                }
                (marked, starts.first().copied().unwrap_or(una), why)
            }
            Verdict::HeadAgain { new_event, why } => return self.send_head_again(path, by, new_event, why),
            Verdict::Probe { why } => {
                if let Some(last) = path.flight.iter().next_back() {
                    self.forced = Some((last.start, Transmission::Probe));
                    self.note(path.now, Question::Detect, by, What::Resend { offset: last.start }, why);
                }
                return Found::Nothing;
            }
        };
        if segments > 0 {
            self.note(path.now, Question::Detect, by, What::Lost { offset, segments }, why);
        }
        if self.cc.phase == Phase::Recovery
            || path.flight.is_empty()
            || !self.answers.repair.may_enter(&view_of(&self.cc, &self.profile, path))
        {
            return Found::Nothing;
        }
        if segments == 0 {
            self.note(path.now, Question::Detect, by, What::Lost { offset, segments: 1 }, why);
        }
        self.begin_event(path, offset, then);
        Found::Event
    }

    fn send_head_again(
        &mut self,
        path: &mut Path<'_>,
        by: &'static str,
        new_event: bool,
        why: &'static str,
    ) -> Found {
        if !path.flight.mark_head_lost_if_unsacked() {
            return Found::Nothing;
        }
        let una = path.flight.una();
        self.counters.resent_again += 1;
        self.note(path.now, Question::Detect, by, What::Lost { offset: una, segments: 1 }, why);
        if new_event {
            self.begin_event(path, una, None);
            return Found::Event;
        }
        self.forced = Some((una, Transmission::Recovery));
        self.note(path.now, Question::Detect, by, What::Resend { offset: una }, why);
        Found::Again
    }

    /// The segment at `offset` is lost, and no loss event is being repaired.
    fn begin_event(&mut self, path: &mut Path<'_>, offset: u64, window_when_sent: Option<f64>) {
        let before = self.cc.clone();
        let cause = self.ask_why(path);
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.detect.on_event(&view);
        for witness in &mut self.answers.witnesses {
            witness.on_event(&view);
        }
        let entry = self.answers.repair.on_loss(&view);
        let loss = Loss { kind: LossKind::Duplicates, window_when_sent };
        let reduction = match cause {
            Cause::Congestion => {
                self.answers.undo.on_reduction(&view, &before, LossKind::Duplicates);
                self.counters.window_reductions += 1;
                self.send_cwr = true;
                Some(self.answers.window.on_loss(&view, &loss))
            }
            Cause::Wireless => {
                self.counters.put_down_to_radio += 1;
                None
            }
        };
        let loss_window = view.knobs.loss_window;
        self.cc.kept_window = if reduction.is_none() { Some(before.cwnd) } else { None };
        self.counters.fast_retransmits += 1;
        self.cc.limited = 0;
        self.event_begins = true;
        self.observer.on_event(offset, Entered::ByDuplicates);
        let name = self.answers.repair.name();
        match (entry, reduction) {
            (Entry::Restart, Some(Reduction { ssthresh, .. })) => {
                self.set_window(path.now, Question::Repair, name, loss_window, ssthresh, "restart");
                self.cc.inflation = 0.0;
                self.enter(path, Phase::Restarted, Entered::ByDuplicates, Question::Repair, name);
                path.flight.rewind();
            }
            // A sender that knows no fast recovery need not start all over for what the radio lost.
            (Entry::Restart, None) => {
                self.enter(path, Phase::Restarted, Entered::ByDuplicates, Question::Repair, name);
                self.fast_retransmit(path, offset);
            }
            (Entry::Recover { inflation }, reduction) => {
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
                self.fast_retransmit(path, offset);
                self.regulate(path, reduction);
            }
        }
    }

    fn fast_retransmit(&mut self, path: &mut Path<'_>, offset: u64) {
        let by = self.answers.repair.name();
        path.flight.mark_lost(offset);
        self.forced = Some((offset, Transmission::FastRetransmit));
        self.note(path.now, Question::Repair, by, What::Resend { offset }, "fast retransmit");
    }

    /// From here to the end of recovery the window is `in_recovery`'s, if there is one and something was reduced.
    fn regulate(&mut self, path: &Path<'_>, reduction: Option<Reduction>) {
        self.regulated = false;
        if let (Some(in_recovery), Some(reduction)) = (&mut self.answers.in_recovery, reduction) {
            self.regulated = true;
            in_recovery.on_enter(&view_of(&self.cc, &self.profile, path), &reduction);
        }
    }

    fn ask_why(&mut self, path: &Path<'_>) -> Cause {
        let view = view_of(&self.cc, &self.profile, path);
        let (cause, why) = self.answers.attribute.cause(&view);
        self.ask_judges(path);
        let by = self.answers.attribute.name();
        self.note(path.now, Question::Attribute, by, What::Cause(cause), why);
        cause
    }

    pub(super) fn ask_judges(&mut self, path: &Path<'_>) {
        for index in 0..self.answers.judges.len() {
            let judge = &mut self.answers.judges[index];
            let (cause, why) = judge.cause(&view_of(&self.cc, &self.profile, path));
            let by = judge.name();
            self.note(path.now, Question::Attribute, by, What::Judged(cause), why);
        }
    }

    /// A further hole of an event that was put down to the radio. If it is a sign of congestion, the window is
    /// reduced after all.
    pub(super) fn ask_why_again(&mut self, path: &mut Path<'_>) {
        if self.cc.kept_window.is_none() || self.ask_why(path) == Cause::Wireless {
            return;
        }
        self.cc.kept_window = None;
        let before = self.cc.clone();
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.undo.on_reduction(&view, &before, LossKind::Duplicates);
        self.counters.window_reductions += 1;
        self.send_cwr = true;
        let loss = Loss { kind: LossKind::Duplicates, window_when_sent: None };
        let reduction = self.answers.window.on_loss(&view, &loss);
        let (by, Reduction { cwnd, ssthresh }) = (self.answers.window.name(), reduction);
        self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "a further loss");
        self.regulate(path, Some(reduction));
    }
}
