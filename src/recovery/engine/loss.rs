//! Losses: detection, and the beginning of the repair.

use super::*;
use crate::profile::recovery::{BeyondRecover, RackDialect};

/// The effect of a detector's verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    Nothing,
    /// A segment must be sent: a lost retransmission once more, or a probe.
    Resend,
    /// An episode began.
    Episode,
}

/// Whether the retransmission for an episode's first loss is still to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstRepair {
    Due,
    Sent,
}

impl Event<'_, '_> {
    /// Asks the detector and then the additional detectors. Applies their verdicts until one has an effect.
    pub(super) fn consult_detectors(
        &mut self,
        mut verdict: impl FnMut(&mut dyn Detect, &View<'_>) -> Verdict,
    ) -> Found {
        let first = self.ask(|answers, view| verdict(&mut *answers.detect, view));
        let mut found = match first {
            Verdict::Nothing => Found::Nothing,
            verdict => self.apply_verdict(self.answers.detect.author(), verdict),
        };
        let additional = self.answers.add_ons.as_ref().map_or(0, |add_ons| add_ons.detectors.len());
        for index in 0..additional {
            let next = self.ask(|answers, view| {
                let detector = answers.additional_detector(index)?;
                Some((detector.author(), verdict(&mut **detector, view)))
            });
            let Some((by, verdict)) = next else { break };
            if found == Found::Nothing {
                found = self.apply_verdict(by, verdict);
            }
        }
        if found != Found::Nothing || self.path.flight.lost().segments == 0 {
            return found;
        }
        self.begin_episode_for_remaining_losses()
    }

    /// Starts an episode for segments that were sent after `recover` of the ended episode and declared lost
    /// during that episode. Detectors do not report these segments again.
    fn begin_episode_for_remaining_losses(&mut self) -> Found {
        let flight = &self.path.flight;
        // During a go-back-N pass, all data counts as lost and is retransmitted anyway.
        let is_over = matches!(self.cc.episode, Episode::Open(_))
            && self.answers.has_scoreboard()
            && !flight.has_rewound();
        if !is_over || !self.may_begin_episode() {
            return Found::Nothing;
        }
        // After an undone episode, a retransmission below `recover` is not evidence of a loss.
        let was_undone = self.cc.recover.is_some_and(|recover| flight.una() < recover);
        let rest = match self.profile.recovery.fast_recovery.beyond_recover {
            BeyondRecover::AnyLoss if !was_undone => flight.first_lost_or_resent(),
            BeyondRecover::AnyLoss | BeyondRecover::Unrepaired => flight.first_lost(),
        };
        let Some((lost, state)) = rest.map(|lost| (lost.start, lost.state)) else { return Found::Nothing };
        let repair = if state == SegmentState::Resent { FirstRepair::Sent } else { FirstRepair::Due };
        self.begin_episode_with(lost, None, repair);
        Found::Episode
    }

    fn apply_verdict(&mut self, by: Author, verdict: Verdict) -> Found {
        if self.cc.episode.is_undecided() && verdict.is_about_originals() {
            return Found::Nothing;
        }
        let una = self.path.flight.una();
        let despite_recover = matches!(verdict, Verdict::HeadDespiteRecover { .. });
        let (lost, why) = match verdict {
            Verdict::Nothing => return Found::Nothing,
            Verdict::Head { why } | Verdict::HeadDespiteRecover { why } => (None, why),
            Verdict::Below { offset, why } => (self.path.flight.mark_lost_below(offset), why),
            Verdict::Segments { starts, episode, why } => {
                return self.lose_segments(by, &starts, episode, why);
            }
            Verdict::RetransmittedHead { new_episode, why } => {
                return self.lose_head_again(by, new_episode, why);
            }
            Verdict::Probe { why } => {
                let request = ProbeRequest { by, why };
                self.pending.get_or_insert_with(|| Pending::Probe(Box::new(request)));
                return Found::Resend;
            }
            Verdict::Repaired { window_when_sent, why } => {
                if self.cc.state() == RecoveryState::Open && self.cause(una) != Cause::Radio {
                    self.reduce_for_repaired(window_when_sent, why);
                }
                return Found::Nothing;
            }
        };
        if let Some((offset, segments)) = lost {
            self.note_lost(by, offset, segments, why);
        }
        let begins = despite_recover && self.cc.state() != RecoveryState::Recovery;
        if !begins && !self.may_begin_episode() {
            return Found::Nothing;
        }
        if lost.is_none() {
            self.note(by, What::Lost { offset: una, segments: 1 }, why);
        }
        self.begin_episode(una, None);
        Found::Episode
    }

    /// Reduces the window for a loss that a probe has repaired. In Linux 6.18, the reduction starts from cwnd and
    /// ends at once (tcp_process_tlp_ack()).
    fn reduce_for_repaired(&mut self, window_when_sent: f64, why: &'static str) {
        let is_linux = self.profile.recovery.dialects.rack == RackDialect::Linux;
        let (recover, window) = (self.cc.recover, Some(window_when_sent).filter(|_| !is_linux));
        self.reduce(LossKind::Detected, window, Condition::RepairedByProbe, why);
        if is_linux {
            self.leave(Condition::Acknowledged, AfterEpisode::Nothing);
            self.cc.recover = recover;
        }
    }

    /// Records that segments were marked as lost.
    fn note_lost(&mut self, by: Author, offset: u64, segments: u64, why: &'static str) {
        self.last_ack.is_safe = false;
        self.note(by, What::Lost { offset, segments }, why);
    }

    fn may_begin_episode(&self) -> bool {
        match self.cc.episode {
            Episode::Recovery(_) => false,
            // No segment was missing until now, so `recover` belongs to the reduction and not to a repair.
            Episode::Cwr => !self.path.flight.is_empty(),
            Episode::Open(_) | Episode::Loss(_) => {
                !self.path.flight.is_empty() && self.answers.repair.may_enter(&self.view())
            }
        }
    }

    fn lose_segments(
        &mut self,
        by: Author,
        starts: &[u64],
        episode: LossEpisode,
        why: &'static str,
    ) -> Found {
        let mut lost: Option<(u64, u64)> = None;
        let mut is_lost_again = false;
        let is_linux = self.profile.recovery.dialects.rack == RackDialect::Linux;
        for start in starts {
            let flight = &mut self.path.flight;
            let again = flight.segment_at(*start).is_some_and(|sent| sent.state == SegmentState::Resent);
            // Linux 6.18, tcp_mark_skb_lost(): after an undone timeout, the first mark is about the original.
            if is_linux && flight.mark_original_lost(*start) || flight.mark_lost(*start) {
                lost = Some(lost.map_or((*start, 1), |(first, segments)| (first, segments + 1)));
                self.counters.lost_retransmissions += u64::from(again);
                is_lost_again |= again;
            }
        }
        let Some((offset, segments)) = lost else { return Found::Nothing };
        self.note_lost(by, offset, segments, why);
        // Linux 6.18, tcp_fastretrans_alert(): a lost retransmission after a timeout begins fast recovery.
        let begins = is_linux
            && is_lost_again
            && self.cc.state() == RecoveryState::Loss
            && self.answers.has_scoreboard();
        match episode {
            LossEpisode::Current if begins || self.may_begin_episode() => {
                let state = self.path.flight.segment_at(offset).map(|sent| sent.state);
                let repair =
                    if state == Some(SegmentState::Resent) { FirstRepair::Sent } else { FirstRepair::Due };
                self.begin_episode_with(offset, None, repair);
            }
            LossEpisode::Current | LossEpisode::Past => {
                // A repair with a scoreboard finds the segments by their loss marks.
                if self.answers.has_scoreboard() {
                    return Found::Nothing;
                }
                if episode == LossEpisode::Current {
                    self.may_repair(offset);
                }
                self.resend(by, offset, TransmissionKind::Recovery, why);
                return Found::Resend;
            }
            LossEpisode::New { window_when_sent } => self.begin_episode(offset, Some(window_when_sent)),
            LossEpisode::Collapse { window_when_sent, until } => {
                if window_when_sent.is_some() {
                    self.begin_episode(offset, window_when_sent);
                }
                self.collapse(by, until);
            }
        }
        Found::Episode
    }

    /// Restarts from the loss window, because there are too many losses for fast recovery. Nothing is sent
    /// before `until`.
    fn collapse(&mut self, by: Author, until: Instant) {
        // Losses on the radio link are not a reason to send more slowly.
        if self.cc.kept_window().is_some() {
            return self.ask(|answers, view| {
                answers.each_detector(|detect| detect.on_correction(view, Correction::RefusedCollapse));
            });
        }
        let cwnd = self.profile.recovery.timeout.loss_window.min(self.cc.cwnd);
        self.set_cwnd(by, cwnd, "too many lost");
        let first =
            matches!(self.pending, Some(Pending::Resend { kind: TransmissionKind::FastRetransmit, .. }))
                || self.cc.episode.first_mut().is_some_and(|first| *first);
        self.cancel_resend();
        let collapse = Restart::Collapse { until: Some(until), first };
        self.enter(by, Condition::Collapse, Episode::Loss(collapse));
    }

    fn lose_head_again(&mut self, by: Author, new_episode: bool, why: &'static str) -> Found {
        if !self.path.flight.mark_head_lost_if_unsacked() {
            return Found::Nothing;
        }
        let una = self.path.flight.una();
        self.counters.lost_retransmissions += 1;
        self.note_lost(by, una, 1, why);
        if new_episode {
            // RFC 5681 §4.3: the window is reduced again, from its value after the first reduction.
            // FlightSize would still include everything that was outstanding before the first reduction.
            let was_reduced = matches!(self.cc.state(), RecoveryState::Recovery | RecoveryState::Loss)
                && self.cc.kept_window().is_none();
            let reduced_window = self.cc.cwnd.min(self.cc.ssthresh);
            self.begin_episode(una, was_reduced.then_some(reduced_window));
            return Found::Episode;
        }
        self.resend(by, una, TransmissionKind::Recovery, why);
        Found::Resend
    }

    /// Starts an episode because the segment at `offset` is lost.
    fn begin_episode(&mut self, offset: u64, window_when_sent: Option<f64>) {
        self.begin_episode_with(offset, window_when_sent, FirstRepair::Due);
    }

    fn begin_episode_with(&mut self, offset: u64, window_when_sent: Option<f64>, repair: FirstRepair) {
        let is_mtu_probe = self.note_lost_mtu_probe(offset);
        let before = self.cc.clone();
        let cause = if is_mtu_probe { None } else { Some(self.cause(offset)) };
        // This window of data has already had its reduction, for example after an ECN echo (RFC 3168 §6.1.2).
        // A detector that remembers the window of each segment (TCP-PR) handles this itself.
        let was_reduced = before.episode == Episode::Cwr
            && window_when_sent.is_none()
            && before.recover.is_some_and(|end| offset < end);
        let entry = self.ask(|answers, view| {
            answers.each_detector(|detect| detect.on_episode(view));
            answers.repair.on_loss(view)
        });
        let window_when_sent = window_when_sent.or_else(|| self.kept_window_to_reduce());
        let reduction = match cause {
            _ if was_reduced => Some(Reduction { cwnd: before.cwnd, ssthresh: before.ssthresh }),
            None => None,
            Some(Cause::Congestion) => Some(self.reduction_after_loss(&before, window_when_sent)),
            Some(Cause::Radio) => {
                self.counters.attributed_to_radio += 1;
                None
            }
        };
        self.counters.fast_retransmits += 1;
        self.cc.disorder.limited = 0;
        self.sender.observer.on_episode(self.path.flight, Entered::ByLossDetection);
        if let (Entry::Restart, Some(Reduction { ssthresh, .. })) = (entry, reduction) {
            return self.restart_after_loss(ssthresh);
        }
        let window = match (reduction, self.cc.episode) {
            (Some(_), _) => EpisodeWindow::Reduced,
            // A retransmission lost on the radio link does not undo the reduction of the episode in progress.
            (None, Episode::Recovery(FastRecovery { window, .. })) => window,
            (None, _) => {
                let (cwnd, attributed_hole) = (before.cwnd, Some(offset));
                EpisodeWindow::Kept(KeptWindow { cwnd, attributed_hole, for_mtu_probe: is_mtu_probe })
            }
        };
        if let Some(reduction) = reduction {
            self.set_window(self.answers.window.author(), reduction, "loss event");
        }
        self.enter_fast_recovery(FastRecovery { inflation: self.inflation_of(entry), window });
        if repair == FirstRepair::Due {
            self.path.flight.mark_lost(offset);
            let why = if is_mtu_probe { "lost MTU probe" } else { "fast retransmission" };
            self.resend(self.answers.repair.author(), offset, TransmissionKind::FastRetransmit, why);
        }
        if let Some(reduction) = reduction {
            self.regulate(before.cwnd, &reduction);
        }
    }

    /// Starts an episode with a repair that has no fast recovery (Tahoe).
    fn restart_after_loss(&mut self, ssthresh: f64) {
        let (by, cwnd) = (self.answers.repair.author(), self.profile.recovery.timeout.loss_window);
        self.set_window(by, Reduction { cwnd, ssthresh }, "restart");
        let restart = Restart::FastRetransmit { first: true };
        self.enter(by, Condition::RestartingLoss, Episode::Loss(restart));
        self.path.flight.rewind();
    }

    fn enter_fast_recovery(&mut self, recovery: FastRecovery) {
        self.enter(self.answers.repair.author(), Condition::Loss, Episode::Recovery(recovery));
        // Without a scoreboard, the go-back-N pass ends here. A scoreboard's loss marks must be kept.
        if !self.profile.recovery.fast_recovery.continues_pass && !self.answers.has_scoreboard() {
            self.path.flight.resume_at_max();
        }
    }

    /// Returns the inflation at the beginning of fast recovery. A repair without fast recovery (Tahoe) also
    /// enters it after a loss on the radio link, which requires no restart, and after a timeout if the
    /// timeout answer requests it.
    pub(super) fn inflation_of(&self, entry: Entry) -> f64 {
        match entry {
            Entry::Recover { .. } if self.emulated_sacks().is_some() => 0.0,
            Entry::Recover { inflation } => inflation,
            Entry::Restart => f64::from(self.cc.dupacks()),
        }
    }

    /// Returns the window after a loss attributed to congestion.
    pub(super) fn reduction_after_loss(
        &mut self,
        before: &Congestion,
        window_when_sent: Option<f64>,
    ) -> Reduction {
        self.counters.window_reductions += 1;
        self.send_cwr = true;
        let loss = Loss { kind: LossKind::Detected, window_when_sent };
        self.ask(|answers, view| {
            answers.undo.on_reduction(view, before, LossKind::Detected);
            answers.window.on_loss(view, &loss)
        })
    }

    /// Records that the window was reduced. From now until the end of recovery, the add-on for fast recovery
    /// sets the window, if there is one.
    pub(super) fn regulate(&mut self, before: f64, reduction: &Reduction) {
        let progress = self.progress();
        let is_regulated = self.answers.in_recovery().is_some();
        let Some(recovery) = self.cc.episode.recovery_mut() else { return };
        recovery.window = if is_regulated { EpisodeWindow::Regulated } else { EpisodeWindow::Reduced };
        let set = self.ask(|answers, view| {
            let in_recovery = answers.in_recovery()?;
            Some((in_recovery.author(), in_recovery.on_enter(view, before, reduction, &progress)))
        });
        if let Some((by, cwnd)) = set {
            self.set_cwnd(by, cwnd, "recovery begins");
        }
    }
}
