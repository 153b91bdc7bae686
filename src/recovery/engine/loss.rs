//! A loss: who found it, why it was lost, and how its repair begins.

use super::*;
use crate::profile::knobs::BeyondRecover;

/// Whether the copy that repairs an event's first loss has yet to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstRepair {
    Due,
    OnItsWay,
}

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
        for index in 0.. {
            let Some(witness) = self.answers.witness(index) else { break };
            let (by, verdict) = (witness.name(), ask(witness, &view_of(&self.cc, &self.profile, path)));
            if found == Found::Nothing {
                found = self.apply_verdict(path, by, verdict);
            }
        }
        if found == Found::Nothing { self.begin_event_for_the_rest(path) } else { found }
    }

    /// What left in an event, behind its `recover`, and was found lost before the event was over, begins one of its own
    /// then: no detector speaks of it twice.
    #[inline]
    fn begin_event_for_the_rest(&mut self, path: &mut Path<'_>) -> Found {
        if path.flight.lost().segments == 0 {
            return Found::Nothing;
        }
        // In a pass over the window everything counts as lost, and is sent again anyway.
        let is_over = matches!(self.cc.episode, Episode::Open(_))
            && self.answers.repair.has_scoreboard()
            && !path.flight.has_rewound();
        if !is_over || !self.may_begin_event(path) {
            return Found::Nothing;
        }
        let rest = match self.profile.recovery.beyond_recover {
            BeyondRecover::Unrepaired => path.flight.first_lost(),
            // After an undone event marks below `recover` say nothing.
            BeyondRecover::AnyLoss if self.cc.recover.is_some_and(|recover| path.flight.una() < recover) => {
                path.flight.first_lost()
            }
            BeyondRecover::AnyLoss => path.flight.first_lost_or_resent(),
        };
        let Some((lost, fate)) = rest.map(|lost| (lost.start, lost.fate)) else { return Found::Nothing };
        let repair = if fate == Fate::Resent { FirstRepair::OnItsWay } else { FirstRepair::Due };
        self.begin_event_with(path, lost, None, repair);
        Found::Event
    }

    fn apply_verdict(&mut self, path: &mut Path<'_>, by: &'static str, verdict: Verdict) -> Found {
        if self.timeout_is_undecided() && verdict.is_about_originals() {
            return Found::Nothing;
        }
        let una = path.flight.una();
        let beyond_doubt = matches!(verdict, Verdict::HeadBeyondDoubt { .. });
        let (lost, why) = match verdict {
            Verdict::Nothing => return Found::Nothing,
            Verdict::Head { why } | Verdict::HeadBeyondDoubt { why } => (None, why),
            Verdict::Below { offset, why } => (path.flight.mark_lost_below(offset), why),
            Verdict::Segments { starts, event, why } => {
                return self.lose_segments(path, by, &starts, event, why);
            }
            Verdict::HeadAgain { new_event, why } => return self.send_head_again(path, by, new_event, why),
            Verdict::Probe { why } => {
                self.order.get_or_insert_with(|| Order::Probe(Box::new(Wish { by, why })));
                return Found::Resend;
            }
            Verdict::Repaired { window_when_sent, why } => {
                self.reduce_for_repaired(path, window_when_sent, why);
                return Found::Nothing;
            }
        };
        if let Some((offset, segments)) = lost {
            self.is_safe = false;
            self.note(path.now, Question::Detect, by, What::Lost { offset, segments }, why);
        }
        let begins = beyond_doubt && self.cc.phase() != Phase::Recovery;
        if !begins && !self.may_begin_event(path) {
            return Found::Nothing;
        }
        if lost.is_none() {
            self.note(path.now, Question::Detect, by, What::Lost { offset: una, segments: 1 }, why);
        }
        self.begin_event(path, una, None);
        Found::Event
    }

    fn may_begin_event(&self, path: &Path<'_>) -> bool {
        match self.cc.episode {
            Episode::Recovery(_) => false,
            // Nothing was missing until now: `recover` says what the reduction was for, not what is being repaired.
            Episode::Reduced => !path.flight.is_empty(),
            Episode::Open(_) | Episode::Restarted(_) => {
                !path.flight.is_empty()
                    && self.answers.repair.may_enter(&view_of(&self.cc, &self.profile, path))
            }
        }
    }

    fn lose_segments(
        &mut self,
        path: &mut Path<'_>,
        by: &'static str,
        starts: &[u64],
        event: LossEvent,
        why: &'static str,
    ) -> Found {
        let mut lost: Option<(u64, u64)> = None;
        for start in starts {
            let again = path.flight.segment_at(*start).is_some_and(|sent| sent.fate == Fate::Resent);
            if path.flight.mark_lost(*start) {
                lost = Some(lost.map_or((*start, 1), |(first, segments)| (first, segments + 1)));
                self.counters.resent_again += u64::from(again);
            }
        }
        let Some((offset, segments)) = lost else { return Found::Nothing };
        self.is_safe = false;
        self.note(path.now, Question::Detect, by, What::Lost { offset, segments }, why);
        match event {
            LossEvent::Present if self.may_begin_event(path) => self.begin_event(path, offset, None),
            LossEvent::Present | LossEvent::Past => {
                // A scoreboard's marks are enough.
                if self.answers.repair.has_scoreboard() {
                    return Found::Nothing;
                }
                if event == LossEvent::Present {
                    self.may_repair(path, offset);
                }
                self.order = Some(Order::Resend { start: offset, kind: Transmission::Recovery });
                self.note(path.now, Question::Detect, by, What::Resend { offset }, why);
                return Found::Resend;
            }
            LossEvent::Own { window_when_sent } => self.begin_event(path, offset, Some(window_when_sent)),
            LossEvent::Collapse { window_when_sent, until } => {
                if window_when_sent.is_some() {
                    self.begin_event(path, offset, window_when_sent);
                }
                self.start_over(path, by, until);
            }
        }
        Found::Event
    }

    /// Too much is lost for a repair: back to the loss window, and nothing leaves before `until`.
    fn start_over(&mut self, path: &mut Path<'_>, by: &'static str, until: Instant) {
        // What the radio lost says nothing about how fast to send.
        if self.cc.kept_window().is_some() {
            let view = view_of(&self.cc, &self.profile, path);
            self.answers.each_detector(|detect| detect.on_refused_collapse(&view));
            return;
        }
        let cwnd = self.profile.recovery.loss_window.min(self.cc.cwnd);
        let ssthresh = self.cc.ssthresh;
        self.set_window(path.now, Question::Detect, by, cwnd, ssthresh, "too many lost");
        let first = matches!(self.order, Some(Order::Resend { kind: Transmission::FastRetransmit, .. }))
            || self.cc.episode.first_mut().is_some_and(|first| *first);
        self.cancel_resend();
        let collapse = Episode::Restarted(Restart::Collapse { until: Some(until), first });
        self.enter(path, Cue::Collapse, collapse, Question::Detect, by);
    }

    fn reduce_for_repaired(&mut self, path: &mut Path<'_>, window_when_sent: f64, why: &'static str) {
        if self.cc.phase() != Phase::Open || self.cause(path, path.flight.una()) == Cause::Radio {
            return;
        }
        let loss = Loss { kind: LossKind::Duplicates, window_when_sent: Some(window_when_sent) };
        let reduction = self.answers.window.on_loss(&view_of(&self.cc, &self.profile, path), &loss);
        self.reduce(path, reduction, Cue::RepairedByProbe, why);
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
        self.is_safe = false;
        self.counters.resent_again += 1;
        self.note(path.now, Question::Detect, by, What::Lost { offset: una, segments: 1 }, why);
        if new_event {
            // RFC 5681 §4.3: lowered once more, from what the first reduction has left. FlightSize would still count
            // all that was outstanding before it.
            let lowered = matches!(self.cc.phase(), Phase::Recovery | Phase::Restarted)
                && self.cc.kept_window().is_none();
            let left = self.cc.cwnd.min(self.cc.ssthresh);
            self.begin_event(path, una, lowered.then_some(left));
            return Found::Event;
        }
        self.order = Some(Order::Resend { start: una, kind: Transmission::Recovery });
        self.note(path.now, Question::Detect, by, What::Resend { offset: una }, why);
        Found::Resend
    }

    /// The segment at `offset` is lost, and that is a loss event of its own.
    fn begin_event(&mut self, path: &mut Path<'_>, offset: u64, window_when_sent: Option<f64>) {
        self.begin_event_with(path, offset, window_when_sent, FirstRepair::Due);
    }

    fn begin_event_with(
        &mut self,
        path: &mut Path<'_>,
        offset: u64,
        window_when_sent: Option<f64>,
        repair: FirstRepair,
    ) {
        let before = self.cc.clone();
        let cause = self.cause(path, offset);
        // The window of data that is lost has had its reduction, for an ECN echo say (RFC 3168 §6.1.2). A detector that
        // remembers the window of each segment (TCP-PR) sees to that itself.
        let was_reduced = before.episode == Episode::Reduced
            && window_when_sent.is_none()
            && before.recover.is_some_and(|end| offset < end);
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.each_detector(|detect| detect.on_event(&view));
        let entry = self.answers.repair.on_loss(&view);
        let window_when_sent = window_when_sent.or_else(|| self.window_of_kept_event(path));
        let loss = Loss { kind: LossKind::Duplicates, window_when_sent };
        let reduction = match cause {
            _ if was_reduced => Some(Reduction { cwnd: before.cwnd, ssthresh: before.ssthresh }),
            Cause::Congestion => {
                self.answers.undo.on_reduction(&view, &before, LossKind::Duplicates);
                self.counters.window_reductions += 1;
                self.send_cwr = true;
                Some(self.answers.window.on_loss(&view, &loss))
            }
            Cause::Radio => {
                self.counters.put_down_to_radio += 1;
                None
            }
        };
        let loss_window = view.knobs.loss_window;
        self.counters.fast_retransmits += 1;
        self.cc.disorder.limited = 0;
        self.observer.on_event(&view_of(&self.cc, &self.profile, path), Entered::ByDuplicates);
        let name = self.answers.repair.name();
        match (entry, reduction) {
            (Entry::Restart, Some(Reduction { ssthresh, .. })) => {
                self.set_window(path.now, Question::Repair, name, loss_window, ssthresh, "restart");
                let restarted = Episode::Restarted(Restart::FastRetransmit { first: true });
                self.enter(path, Cue::RestartingLoss, restarted, Question::Repair, name);
                path.flight.rewind();
            }
            (entry, reduction) => {
                if let Some(Reduction { cwnd, ssthresh }) = reduction {
                    let by = self.answers.window.name();
                    self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "loss event");
                }
                let window = match (reduction, self.cc.episode) {
                    (Some(_), _) => EventWindow::Reduced,
                    // A copy lost on the radio does not give back what the event cost that is still being repaired.
                    (None, Episode::Recovery(FastRecovery { window, .. })) => window,
                    (None, _) => EventWindow::Kept(Kept { cwnd: before.cwnd, judged: Some(offset) }),
                };
                let recovery =
                    Episode::Recovery(FastRecovery { inflation: self.inflation_of(entry), window });
                self.enter(path, Cue::Loss, recovery, Question::Repair, name);
                // A scoreboard's marks say more than an unfinished pass.
                if !self.profile.recovery.keep_pass_in_recovery && !self.answers.repair.has_scoreboard() {
                    path.flight.resume_at_max();
                }
                if repair == FirstRepair::Due {
                    self.fast_retransmit(path, offset);
                }
                if let Some(reduction) = reduction {
                    self.regulate(path, before.cwnd, &reduction);
                }
            }
        }
    }

    /// The inflation with which fast recovery begins. A repair that has none of its own (Tahoe) begins one all the same
    /// for what the radio lost, where it need not start all over, and after a timeout if the answer says so.
    pub(super) fn inflation_of(&self, entry: Entry) -> f64 {
        match entry {
            Entry::Recover { inflation } => inflation,
            Entry::Restart => f64::from(self.cc.dupacks()),
        }
    }

    fn fast_retransmit(&mut self, path: &mut Path<'_>, offset: u64) {
        let by = self.answers.repair.name();
        path.flight.mark_lost(offset);
        self.order = Some(Order::Resend { start: offset, kind: Transmission::FastRetransmit });
        self.note(path.now, Question::Repair, by, What::Resend { offset }, "fast retransmission");
    }

    /// The window was reduced. From here to the end of recovery `in_recovery` decides it, if there is one.
    fn regulate(&mut self, path: &Path<'_>, before: f64, reduction: &Reduction) {
        let progress = self.progress(path);
        let Some(recovery) = self.cc.episode.recovery_mut() else { return };
        recovery.window = EventWindow::Reduced;
        if let Some(in_recovery) = self.answers.in_recovery() {
            recovery.window = EventWindow::Regulated;
            let cwnd =
                in_recovery.on_enter(&view_of(&self.cc, &self.profile, path), before, reduction, &progress);
            let (by, ssthresh) = (in_recovery.name(), self.cc.ssthresh);
            self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "recovery begins");
        }
    }

    /// What the loss at `lost` is put down to. `None`: it is not known yet.
    pub(super) fn ask_why(&mut self, path: &Path<'_>, lost: u64) -> Option<Cause> {
        let view = view_of(&self.cc, &self.profile, path);
        let (cause, why) = self.answers.attribute.cause(&view, lost)?;
        self.judged(path, lost, cause, why);
        Some(cause)
    }

    /// The same where it has to be known now: a loss of which nothing is known is congestion.
    fn cause(&mut self, path: &Path<'_>, lost: u64) -> Cause {
        self.ask_why(path, lost).unwrap_or_else(|| {
            self.judged(path, lost, Cause::Congestion, "cause unknown");
            Cause::Congestion
        })
    }

    fn judged(&mut self, path: &Path<'_>, lost: u64, cause: Cause, why: &'static str) {
        self.ask_judges(path, lost);
        let by = self.answers.attribute.name();
        self.note(path.now, Question::Attribute, by, What::Cause { offset: lost, cause }, why);
    }

    pub(super) fn ask_judges(&mut self, path: &Path<'_>, lost: u64) {
        for index in 0.. {
            let Some(judge) = self.answers.judge(index) else { break };
            let Some((cause, why)) = judge.cause(&view_of(&self.cc, &self.profile, path), lost) else {
                continue;
            };
            let by = judge.name();
            self.note(path.now, Question::Attribute, by, What::Judged { offset: lost, cause }, why);
        }
    }

    /// What the window is reduced from if the event was put down to the radio, and a further loss in it is congestion.
    /// FlightSize no longer tells: duplicate ACKs have let new segments out at full speed.
    pub(super) fn window_of_kept_event(&self, path: &Path<'_>) -> Option<f64> {
        let view = view_of(&self.cc, &self.profile, path);
        self.cc.kept_window().map(|kept| kept.min(view.flight_size()))
    }

    /// The same at a timeout. Nor does FlightSize tell where everything SACKed has been replaced by new segments.
    pub(super) fn window_at_timeout(&self, path: &Path<'_>) -> Option<f64> {
        let flight_size = view_of(&self.cc, &self.profile, path).flight_size();
        let replaced = self.answers.detect.traits().keeps_flowing.then(|| self.cc.cwnd.min(flight_size));
        self.window_of_kept_event(path).or(replaced)
    }

    /// In an event that was put down to the radio each hole is asked about before it is sent again, and the first one
    /// that is congestion reduces the window after all. False: nothing is known of this hole yet, and it waits.
    pub(super) fn may_repair(&mut self, path: &Path<'_>, hole: u64) -> bool {
        if self.cc.episode.kept_mut().is_none_or(|kept| kept.judged == Some(hole)) {
            return true;
        }
        let cause = self.ask_why(path, hole);
        match cause {
            None => return false,
            Some(Cause::Congestion) => self.reduce_after_all(path),
            Some(Cause::Radio) => {
                if let Some(kept) = self.cc.episode.kept_mut() {
                    kept.judged = Some(hole);
                }
            }
        }
        true
    }

    /// A further hole of an event that was put down to the radio is congestion. What left since the event began is in
    /// the network now, and of the window that is reduced for: its losses reduce nothing more (RFC 5681 §4.3).
    fn reduce_after_all(&mut self, path: &Path<'_>) {
        let window_when_sent = self.window_of_kept_event(path);
        let before = Congestion { cwnd: self.cc.kept_window().unwrap_or(self.cc.cwnd), ..self.cc.clone() };
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.undo.on_reduction(&view, &before, LossKind::Duplicates);
        self.counters.window_reductions += 1;
        self.send_cwr = true;
        let loss = Loss { kind: LossKind::Duplicates, window_when_sent };
        let reduction = self.answers.window.on_loss(&view, &loss);
        let (by, Reduction { cwnd, ssthresh }) = (self.answers.window.name(), reduction);
        self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "a further loss");
        let recover = path.flight.max();
        if self.cc.recover.replace(recover) != Some(recover) {
            let by = self.answers.repair.name();
            self.note(
                path.now,
                Question::Repair,
                by,
                What::Extend { recover },
                "the window is reduced after all",
            );
        }
        self.regulate(path, before.cwnd, &reduction);
    }
}
