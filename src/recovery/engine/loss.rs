//! Losses: detection, attribution, and the beginning of the repair.

use super::*;
use crate::profile::knobs::BeyondRecover;

/// Whether the retransmission for an episode's first loss is still to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstRepair {
    Due,
    OnItsWay,
}

impl Recovery {
    /// Asks the detector and then the additional detectors. Applies their verdicts until one has an effect.
    pub(super) fn hear(
        &mut self,
        path: &mut Path<'_>,
        mut ask: impl FnMut(&mut dyn Detect, &View<'_>) -> Verdict,
    ) -> Found {
        let view = view_of(&self.cc, &self.profile, path);
        let verdict = ask(&mut *self.answers.detect, &view);
        let mut found = self.apply_verdict(path, self.answers.detect.name(), verdict);
        for index in 0.. {
            let Some(detector) = self.answers.additional_detector(index) else { break };
            let view = view_of(&self.cc, &self.profile, path);
            let (by, verdict) = (detector.name(), ask(&mut **detector, &view));
            if found == Found::Nothing {
                found = self.apply_verdict(path, by, verdict);
            }
        }
        if found == Found::Nothing { self.begin_event_for_the_rest(path) } else { found }
    }

    /// Starts an episode for segments that were sent after `recover` of an episode and declared lost before
    /// it ended. Detectors do not report them again.
    #[inline]
    fn begin_event_for_the_rest(&mut self, path: &mut Path<'_>) -> Found {
        if path.flight.lost().segments == 0 {
            return Found::Nothing;
        }
        // During a go-back-N pass, everything counts as lost and is retransmitted anyway.
        let is_over = matches!(self.cc.episode, Episode::Open(_))
            && self.answers.has_scoreboard()
            && !path.flight.has_rewound();
        if !is_over || !self.may_begin_event(path) {
            return Found::Nothing;
        }
        let rest = match self.profile.recovery.beyond_recover {
            BeyondRecover::Unrepaired => path.flight.first_lost(),
            // After an undone episode, a retransmission below `recover` is not evidence of a loss.
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
        if self.cc.episode.is_undecided() && verdict.is_about_originals() {
            return Found::Nothing;
        }
        let una = path.flight.una();
        let beyond_doubt = matches!(verdict, Verdict::HeadDespiteRecover { .. });
        let (lost, why) = match verdict {
            Verdict::Nothing => return Found::Nothing,
            Verdict::Head { why } | Verdict::HeadDespiteRecover { why } => (None, why),
            Verdict::Below { offset, why } => (path.flight.mark_lost_below(offset), why),
            Verdict::Segments { starts, event, why } => {
                return self.lose_segments(path, by, &starts, event, why);
            }
            Verdict::RetransmittedHead { new_event, why } => {
                return self.resend_head_again(path, by, new_event, why);
            }
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
            // No segment was missing until now, so `recover` belongs to the reduction and not to a repair.
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
                self.counters.lost_retransmissions += u64::from(again);
            }
        }
        let Some((offset, segments)) = lost else { return Found::Nothing };
        self.is_safe = false;
        self.note(path.now, Question::Detect, by, What::Lost { offset, segments }, why);
        match event {
            LossEvent::Present if self.may_begin_event(path) => self.begin_event(path, offset, None),
            LossEvent::Present | LossEvent::Past => {
                // A repair with a scoreboard finds the segments by their loss marks.
                if self.answers.has_scoreboard() {
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

    /// Restarts from the loss window, because there are too many losses for fast recovery. Nothing is sent
    /// before `until`.
    fn start_over(&mut self, path: &mut Path<'_>, by: &'static str, until: Instant) {
        // Losses on the radio link are not a reason to send more slowly.
        if self.cc.kept_window().is_some() {
            let view = view_of(&self.cc, &self.profile, path);
            self.answers.each_detector(|detect| detect.on_correction(&view, Correction::RefusedCollapse));
            return;
        }
        let cwnd = self.profile.recovery.loss_window.min(self.cc.cwnd);
        let ssthresh = self.cc.ssthresh;
        self.set_window(path.now, Question::Detect, by, cwnd, ssthresh, "too many lost");
        let first = matches!(self.order, Some(Order::Resend { kind: Transmission::FastRetransmit, .. }))
            || self.cc.episode.first_mut().is_some_and(|first| *first);
        self.cancel_resend();
        let collapse = Episode::Restarted(Restart::Collapse { until: Some(until), first });
        self.enter(path, Condition::Collapse, collapse, Question::Detect, by);
    }

    fn reduce_for_repaired(&mut self, path: &mut Path<'_>, window_when_sent: f64, why: &'static str) {
        if self.cc.phase() != Phase::Open || self.cause(path, path.flight.una()) == Cause::Radio {
            return;
        }
        let loss = Loss { kind: LossKind::Detected, window_when_sent: Some(window_when_sent) };
        let reduction = self.answers.window.on_loss(&view_of(&self.cc, &self.profile, path), &loss);
        self.reduce(path, reduction, Condition::RepairedByProbe, why);
    }

    fn resend_head_again(
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
        self.counters.lost_retransmissions += 1;
        self.note(path.now, Question::Detect, by, What::Lost { offset: una, segments: 1 }, why);
        if new_event {
            // RFC 5681 §4.3: the window is reduced again, from its value after the first reduction.
            // FlightSize would still include everything that was outstanding before it.
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

    /// Starts an episode because the segment at `offset` is lost.
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
        let too_long = self.note_lost_mtu_probe(path, offset);
        let before = self.cc.clone();
        let cause = if too_long { None } else { Some(self.cause(path, offset)) };
        // This window of data has already had its reduction, for example after an ECN echo (RFC 3168 §6.1.2).
        // A detector that remembers the window of each segment (TCP-PR) handles this itself.
        let was_reduced = before.episode == Episode::Reduced
            && window_when_sent.is_none()
            && before.recover.is_some_and(|end| offset < end);
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.each_detector(|detect| detect.on_episode(&view));
        let entry = self.answers.repair.on_loss(&view);
        let window_when_sent = window_when_sent.or_else(|| self.window_of_kept_event(path));
        let loss = Loss { kind: LossKind::Detected, window_when_sent };
        let reduction = match cause {
            _ if was_reduced => Some(Reduction { cwnd: before.cwnd, ssthresh: before.ssthresh }),
            None => None,
            Some(Cause::Congestion) => {
                self.answers.undo.on_reduction(&view, &before, LossKind::Detected);
                self.counters.window_reductions += 1;
                self.send_cwr = true;
                Some(self.answers.window.on_loss(&view, &loss))
            }
            Some(Cause::Radio) => {
                self.counters.attributed_to_radio += 1;
                None
            }
        };
        let loss_window = view.knobs.loss_window;
        self.counters.fast_retransmits += 1;
        self.cc.disorder.limited = 0;
        self.observer.on_event(&view_of(&self.cc, &self.profile, path), Entered::ByLossDetection);
        let name = self.answers.repair.name();
        match (entry, reduction) {
            (Entry::Restart, Some(Reduction { ssthresh, .. })) => {
                self.set_window(path.now, Question::Repair, name, loss_window, ssthresh, "restart");
                let restarted = Episode::Restarted(Restart::FastRetransmit { first: true });
                self.enter(path, Condition::RestartingLoss, restarted, Question::Repair, name);
                path.flight.rewind();
            }
            (entry, reduction) => {
                if let Some(Reduction { cwnd, ssthresh }) = reduction {
                    let by = self.answers.window.name();
                    self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "loss event");
                }
                let window = match (reduction, self.cc.episode) {
                    (Some(_), _) => EventWindow::Reduced,
                    // A retransmission lost on the radio link does not undo the reduction of the episode in
                    // progress.
                    (None, Episode::Recovery(FastRecovery { window, .. })) => window,
                    (None, _) => EventWindow::Kept(Kept {
                        cwnd: before.cwnd,
                        judged: Some(offset),
                        for_mtu_probe: too_long,
                    }),
                };
                let recovery =
                    Episode::Recovery(FastRecovery { inflation: self.inflation_of(entry), window });
                self.enter(path, Condition::Loss, recovery, Question::Repair, name);
                // Without a scoreboard, the go-back-N pass ends here. A scoreboard's loss marks must be kept.
                if !self.profile.recovery.keep_pass_in_recovery && !self.answers.has_scoreboard() {
                    path.flight.resume_at_max();
                }
                if repair == FirstRepair::Due {
                    let why = if too_long { "lost MTU probe" } else { "fast retransmission" };
                    self.fast_retransmit(path, offset, why);
                }
                if let Some(reduction) = reduction {
                    self.regulate(path, before.cwnd, &reduction);
                }
            }
        }
    }

    /// Returns the inflation at the beginning of fast recovery. A repair without fast recovery (Tahoe) also
    /// enters it after a loss on the radio link, which requires no restart, and after a timeout if the
    /// timeout answer requests it.
    pub(super) fn inflation_of(&self, entry: Entry) -> f64 {
        match entry {
            Entry::Recover { inflation } => inflation,
            Entry::Restart => f64::from(self.cc.dupacks()),
        }
    }

    fn fast_retransmit(&mut self, path: &mut Path<'_>, offset: u64, why: &'static str) {
        let by = self.answers.repair.name();
        path.flight.mark_lost(offset);
        self.order = Some(Order::Resend { start: offset, kind: Transmission::FastRetransmit });
        self.note(path.now, Question::Repair, by, What::Resend { offset }, why);
    }

    /// Records that the window was reduced. From now until the end of recovery, the add-on for fast recovery
    /// sets the window, if there is one.
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

    /// Returns the cause of the loss at `lost`, or `None` if it is not known yet.
    pub(super) fn ask_why(&mut self, path: &Path<'_>, lost: u64) -> Option<Cause> {
        let view = view_of(&self.cc, &self.profile, path);
        let (cause, why) = self.answers.attribute.cause(&view, lost)?;
        self.judged(path, lost, cause, why);
        Some(cause)
    }

    /// Returns the cause of a loss where it is needed now. Losses with an unknown cause count as congestion.
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

    /// Returns the window to reduce from if an episode was attributed to the radio link and congestion caused
    /// a further loss in it. FlightSize is too large then, because duplicate ACKs have released new segments
    /// at the full rate.
    pub(super) fn window_of_kept_event(&self, path: &Path<'_>) -> Option<f64> {
        let view = view_of(&self.cc, &self.profile, path);
        self.cc.kept_window().map(|kept| kept.min(view.flight_size()))
    }

    /// Returns the window to reduce from at a timeout. FlightSize is also too large if new segments have
    /// replaced everything that was SACKed.
    pub(super) fn window_at_timeout(&self, path: &Path<'_>) -> Option<f64> {
        let flight_size = view_of(&self.cc, &self.profile, path).flight_size();
        let replaced = self.answers.detect.traits().keeps_flowing.then(|| self.cc.cwnd.min(flight_size));
        self.window_of_kept_event(path).or(replaced)
    }

    /// Returns whether a hole may be retransmitted now. In an episode attributed to the radio link, each hole
    /// is attributed before its retransmission, and the first one caused by congestion reduces the window
    /// after all. A hole with an unknown cause must wait.
    pub(super) fn may_repair(&mut self, path: &Path<'_>, hole: u64) -> bool {
        if self.cc.episode.kept_mut().is_none_or(|kept| kept.judged == Some(hole))
            || Self::is_rest_of_mtu_probe(path, hole)
        {
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

    /// Reduces the window, because congestion caused a further hole of an episode attributed to the radio
    /// link. The segments sent since the episode began belong to the window of data that is reduced for, so
    /// their losses do not reduce it again (RFC 5681 §4.3).
    fn reduce_after_all(&mut self, path: &Path<'_>) {
        let window_when_sent = self.window_of_kept_event(path);
        let before = Congestion { cwnd: self.cc.kept_window().unwrap_or(self.cc.cwnd), ..self.cc.clone() };
        let view = view_of(&self.cc, &self.profile, path);
        self.answers.undo.on_reduction(&view, &before, LossKind::Detected);
        self.counters.window_reductions += 1;
        self.send_cwr = true;
        let loss = Loss { kind: LossKind::Detected, window_when_sent };
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
