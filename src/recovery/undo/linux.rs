//! Undo as in the Linux kernel (Linux 6.18, tcp_may_undo()). An episode counts as spurious as soon as
//! timestamps or D-SACK show that it was:
//!
//! - Timestamps: a new ACK echoes an older timestamp than the first retransmission of the episode carried, so
//!   the originals were only late (tcp_packet_delayed()). Before the end of the episode, this counts only
//!   when no retransmission is outstanding (tcp_try_undo_partial()). However, the detector learns of the
//!   reordering at once, and such an ACK releases only new segments.
//! - D-SACK: the receiver has reported as many duplicates as there were retransmissions (undo_retrans). After
//!   a timeout, the next ACK of new data decides (tcp_process_loss()).
//!
//! A timeout in fast recovery belongs to the same episode: all retransmissions of both count together
//! (tcp_enter_loss()). Tail loss probes do not count (tcp_send_loss_probe()).
//!
//! cwnd and ssthresh return to their old values, unless they have grown beyond them
//! (tcp_undo_cwnd_reduction()). The timer does not change. The peer must support timestamps or D-SACK; a
//! Linux receiver supports both. The algorithm works with the detector `rack`, which detects real losses
//! again.
//!
//! After a timeout, or if timestamps prove the mistake before the end of the episode, segments that wait for
//! their retransmission count as in flight again. Otherwise they stay lost and begin the next episode.
//!
//! - Choice: a timeout is undone in the same way. The kernel leaves that to F-RTO, which is a separate answer
//!   here (`frto`).

use super::{Restore, Undo};
use crate::flight::SegmentState;
use crate::recovery::window::{LossKind, Reduction};
use crate::recovery::{Ack, Congestion, RecoveryState, Transmission, TransmissionKind, View};

#[derive(Debug, Default)]
pub(crate) struct UndoLinux {
    episode: Option<WatchedEpisode>,
    /// Start of the segment that the last tail loss probe retransmitted.
    probed: Option<u64>,
    /// TSval of the first retransmission since the last time when none was outstanding. An episode that
    /// begins while an older retransmission is outstanding therefore keeps the older TSval, and ACKs of the
    /// older retransmissions prove nothing.
    retrans_stamp: Option<u32>,
}

#[derive(Debug)]
struct WatchedEpisode {
    prior_cwnd: f64,
    prior_ssthresh: f64,
    /// SND.UNA when the episode began.
    undo_marker: u64,
    /// SND.MAX when the episode began, or at a later timeout in the same episode.
    high_seq: u64,
    /// Retransmissions that the receiver has not reported as duplicates. `None`: there were none yet.
    undo_retrans: Option<u64>,
}

impl Undo for UndoLinux {
    fn on_reduction(&mut self, view: &View<'_>, before: &Congestion, kind: LossKind) {
        if kind == LossKind::EcnEcho {
            return;
        }
        if kind == LossKind::Timeout
            && before.state() == RecoveryState::Recovery
            && let Some(episode) =
                self.episode.as_mut().filter(|episode| view.flight.una() < episode.high_seq)
        {
            episode.high_seq = view.flight.max();
            return;
        }
        // tcp_enter_cwr() has cleared undo_marker. The window was already reduced for the ECN echo, and that
        // reduction is not undone.
        let of_echo = before.state() == RecoveryState::Cwr
            && before.recover.is_some_and(|recover| view.flight.una() < recover);
        if kind == LossKind::Timeout && of_echo {
            self.episode = None;
            return;
        }
        // tcp_init_undo(): retransmissions that are already outstanding count.
        let outstanding = self.retrans_out(view);
        self.episode = Some(WatchedEpisode {
            prior_cwnd: before.cwnd,
            prior_ssthresh: before.ssthresh,
            undo_marker: view.flight.una(),
            high_seq: view.flight.max(),
            undo_retrans: (outstanding > 0).then_some(outstanding),
        });
    }

    fn on_sent(&mut self, transmission: &Transmission) {
        match transmission.kind {
            TransmissionKind::New => return,
            TransmissionKind::Probe => {
                self.probed = Some(transmission.start);
                return;
            }
            TransmissionKind::FastRetransmit | TransmissionKind::Recovery | TransmissionKind::Timeout => {}
        }
        self.retrans_stamp.get_or_insert(transmission.tsval);
        if let Some(episode) = &mut self.episode {
            episode.undo_retrans = Some(episode.undo_retrans.unwrap_or(0) + 1);
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Restore> {
        let (retrans_out, any_retrans_done) = (self.retrans_out(view), self.any_retrans_done(view));
        // tcp_try_to_open()
        if matches!(view.cc.state(), RecoveryState::Open | RecoveryState::Cwr) && !any_retrans_done {
            self.retrans_stamp = None;
        }
        let delayed = self.is_delayed(view, ack);
        let episode = self.episode.as_mut()?;
        episode.count_duplicates(ack);
        let over = view.flight.una() >= episode.high_seq;
        let reordered = delayed && !over && view.cc.state() == RecoveryState::Recovery;
        // tcp_process_loss()
        let decides = ack.advances() || view.cc.state() != RecoveryState::Loss;
        let why = match () {
            () if ack.ece => None,
            () if decides && episode.undo_retrans == Some(0) => {
                Some("every retransmission was reported as a duplicate")
            }
            () if delayed && (over || retrans_out == 0) => {
                Some("older timestamp echo: the originals were late")
            }
            () => None,
        };
        let Some(why) = why else {
            // The last D-SACK may arrive after the next episode has begun, which then replaces this one.
            let why = "older timestamp echo: the original was late";
            return reordered.then_some(Restore { window: None, resume: false, reordered, timer: None, why });
        };
        if !any_retrans_done {
            self.retrans_stamp = None;
        }
        let episode = self.episode.take()?;
        if over && view.cc.state() == RecoveryState::Cwr {
            return None;
        }
        let window = Reduction {
            cwnd: episode.prior_cwnd.max(view.cc.cwnd),
            ssthresh: episode.prior_ssthresh.max(view.cc.ssthresh),
        };
        let resume = match view.cc.state() {
            RecoveryState::Open | RecoveryState::Cwr => false,
            RecoveryState::Recovery => reordered || view.flight.has_rewound() || !view.handshake.scoreboard,
            RecoveryState::Loss => true,
        };
        Some(Restore { window: Some(window), resume, reordered, timer: None, why })
    }
}

impl UndoLinux {
    /// Returns the number of retransmissions in flight. A probe does not count until its segment is declared
    /// lost.
    fn retrans_out(&self, view: &View<'_>) -> u64 {
        let probed = self.probed.and_then(|start| view.flight.segment_at(start));
        let resent = view.flight.resent().segments;
        resent - u64::from(probed.is_some_and(|sent| sent.state == SegmentState::InDoubt))
    }

    /// Returns whether retransmitted data is outstanding.
    fn any_retrans_done(&self, view: &View<'_>) -> bool {
        self.retrans_out(view) > 0 || view.flight.head().is_some_and(|head| head.transmissions > 1)
    }

    /// tcp_packet_delayed(), during a repair.
    fn is_delayed(&self, view: &View<'_>, ack: &Ack) -> bool {
        let echoed = ack.ecr.filter(|_| view.handshake.timestamps && ack.advances()).zip(self.retrans_stamp);
        let repairs = matches!(view.cc.state(), RecoveryState::Recovery | RecoveryState::Loss);
        repairs && echoed.is_some_and(|(ecr, stamp)| (ecr.wrapping_sub(stamp) as i32) < 0)
    }
}

impl WatchedEpisode {
    /// tcp_check_dsack() and tcp_sacktag_one().
    fn count_duplicates(&mut self, ack: &Ack) {
        let belongs = ack.dsack.is_some_and(|(_, end)| end > self.undo_marker);
        if let Some(unreported) = self.undo_retrans.as_mut().filter(|_| belongs) {
            *unreported = unreported.saturating_sub(ack.duplicates);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::recovery::Handshake;
    use crate::recovery::testing::{BareSender, RTT};

    fn sender() -> BareSender {
        BareSender::in_profile("sack+undo-linux", Profile::linux()).under_way(20.0, 10.0, RTT)
    }

    /// Retransmits segment 1. Then an ACK of this retransmission acknowledges everything.
    fn recover_from_loss(sender: &mut BareSender) {
        sender.wait(RTT).sack(&[2..5]);
        let (copy, recover) = (sender.flight.head().unwrap().tsval, sender.last());
        sender.wait(RTT).ack_echoing(recover, copy);
    }

    #[test]
    fn old_echo_restores_window_immediately() {
        let mut sender = sender();
        let original = sender.flight.head().unwrap().tsval;
        sender.wait(RTT).sack(&[2..5]);
        assert_eq!((sender.cc().state(), sender.cc().cwnd), (RecoveryState::Recovery, 14.0));
        // Segment 1 was only overtaken.
        sender.wait(RTT / 10).ack_echoing(4, original);
        assert_eq!(
            (sender.cc().state(), sender.cc().cwnd, sender.cc().ssthresh),
            (RecoveryState::Open, 20.0, 14.0)
        );
    }

    #[test]
    fn ack_that_restores_window_also_opens_it() {
        let mut sender = sender();
        sender.recovery.put_window(20.0, f64::INFINITY);
        let original = sender.flight.head().unwrap().tsval;
        sender.wait(RTT).sack(&[2..5]);
        sender.wait(RTT / 10).ack_echoing(4, original);
        assert_eq!(sender.cc().cwnd, 21.0, "of 1 to 4, only 1 is newly delivered");
    }

    #[test]
    fn echo_of_retransmission_proves_loss() {
        let mut sender = sender();
        recover_from_loss(&mut sender);
        assert_eq!(
            (sender.cc().state(), sender.cc().cwnd),
            (RecoveryState::Open, 15.0),
            "14 + 1 for the ACK"
        );
    }

    #[test]
    fn old_echo_waits_for_outstanding_retransmission() {
        let mut sender = sender();
        let original = sender.flight.head().unwrap().tsval;
        // Segments 1 and 6 are missing, and both are retransmitted.
        sender.wait(RTT).sack(&[2..6, 7..12]);
        while sender.flight.resent().segments < 2 {
            let top = sender.flight.sacked_ranges().last().unwrap().end / 1000 + 2;
            sender.sack(&[7..top]);
        }
        sender.wait(RTT / 10).ack_echoing(5, original);
        assert_eq!(sender.cc().state(), RecoveryState::Recovery, "6 is still outstanding");
        let last = sender.flight.sacked_ranges().last().unwrap().end / 1000;
        sender.wait(RTT / 10).ack_echoing(last, original);
        assert_eq!((sender.cc().state(), sender.cc().cwnd), (RecoveryState::Open, 20.0));
    }

    #[test]
    fn old_echo_during_retransmission_releases_only_new_segments() {
        let recipe = "sack+rack+undo-linux";
        let at_a_partial_ack = |echoes_original: bool| {
            let mut sender = BareSender::in_profile(recipe, Profile::linux()).under_way(20.0, 10.0, RTT);
            let original = sender.flight.head().unwrap().tsval;
            // Segments 1 and 6 are missing, and both are retransmitted.
            sender.wait(RTT).sack(&[2..6, 7..12]);
            let copy = sender.flight.head().unwrap().tsval;
            while sender.flight.resent().segments < 2 {
                let top = sender.flight.sacked_ranges().last().unwrap().end / 1000 + 2;
                sender.sack(&[2..6, 7..top]);
            }
            // Another segment is missing, which the ACK of 1 reveals.
            let top = sender.flight.sacked_ranges().last().unwrap().end / 1000 + 1;
            let echo = if echoes_original { original } else { copy };
            let ack = Ack { ecr: Some(echo), ..Ack::default() };
            sender.wait(RTT).receive(ack, 5, &[7..top, top + 1..top + 5])
        };
        let (late, lost) = (at_a_partial_ack(true), at_a_partial_ack(false));
        assert!(!late.contains('r') && lost.contains('r'), "{late:?} {lost:?}");
    }

    /// Segment 1 is lost, and then 22, which is retransmitted before the first episode is over and begins the
    /// next episode at its end. Finally 27 is lost. The retransmissions of 27 and 22 arrive in this order, so
    /// the echo is older than the second episode.
    #[test]
    fn echo_of_previous_episode_does_not_undo() {
        let recipe = "sack+rack+undo-linux";
        let mut sender = BareSender::in_profile(recipe, Profile::linux()).under_way(20.0, 10.0, RTT);
        sender.wait(RTT).sack(&[2..5]);
        let copy_of_1 = sender.flight.head().unwrap().tsval;
        sender.wait(RTT / 10).sack(&[2..21]);
        sender.wait(RTT / 10).sack(&[2..22, 23..26]);
        assert_eq!(sender.flight.segment_at(21_000).unwrap().transmissions, 2, "22 is retransmitted");
        sender.wait(RTT / 10).ack_echoing(21, copy_of_1);
        assert_eq!((sender.cc().state(), sender.cc().ssthresh), (RecoveryState::Recovery, 9.0), "14 × 0.7");
        let copy_of_22 = sender.flight.head().unwrap().tsval;
        sender.wait(RTT / 10).sack(&[23..27, 28..31]);
        sender.wait(RTT / 10).ack_echoing(30, copy_of_22);
        assert_eq!(sender.counters().undone, 0);
    }

    #[test]
    fn dsack_of_every_retransmission_restores_window() {
        let mut sender = sender();
        recover_from_loss(&mut sender);
        let una = sender.una();
        sender.receive(Ack { dsack: Some((0, 1000)), ..Ack::default() }, una, &[]);
        assert_eq!(sender.window(), (20.0, 14.0));
    }

    #[test]
    fn dsack_of_data_before_episode_does_not_count() {
        let mut sender = sender();
        sender.wait(RTT).ack(1);
        sender.sack(&[3..6]);
        let (copy, recover) = (sender.flight.head().unwrap().tsval, sender.last());
        sender.wait(RTT).ack_echoing(recover, copy);
        let mut report = |dsack| {
            sender.receive(Ack { dsack: Some(dsack), ..Ack::default() }, recover, &[]);
            sender.counters().undone
        };
        assert_eq!(report((0, 1000)), 0);
        assert_eq!(report((1000, 2000)), 1);
    }

    /// Segments 1 to 3 were late. One D-SACK reports all three retransmissions.
    #[test]
    fn dsack_of_several_segments_counts_each() {
        let mut sender = sender();
        sender.wait(RTT).sack(&[4..7]);
        (8..12).for_each(|end| drop(sender.sack(&[4..end])));
        assert_eq!(sender.counters().resent(), 3);
        let last = sender.last();
        sender.wait(RTT).receive(Ack { dsack: Some((0, 3000)), ..Ack::default() }, last, &[]);
        assert_eq!((sender.counters().undone, sender.cc().state()), (1, RecoveryState::Open));
        assert!(sender.cc().cwnd >= 20.0, "{}", sender.cc().cwnd);
    }

    /// All ACKs are lost. The receiver reports the retransmission after the timeout, but not the probe.
    #[test]
    fn tail_loss_probe_needs_no_dsack() {
        let mut sender = BareSender::with("sack+rack+undo-linux", Profile::linux(), &Handshake::default());
        sender.written = 4;
        let mut sender = sender.under_way(4.0, 8.0, RTT);
        assert_eq!(sender.deadline(), "4r");
        assert_eq!(sender.timeout(), "1r");
        sender.wait(RTT).receive(Ack { dsack: Some((0, 1000)), ..Ack::default() }, 4, &[]);
        assert_eq!(sender.counters().undone, 1);
    }

    /// Segment 1 was late, and 3 to 7 are lost. One segment has been retransmitted so far.
    #[test]
    fn dsack_keeps_other_losses() {
        let recipe = "sack+rack+prr+undo-linux";
        let mut sender =
            BareSender::with(recipe, Profile::linux(), &Handshake::default()).under_way(20.0, 30.0, RTT);
        sender.wait(RTT).sack(&[2..3]);
        sender.sack(&[2..3, 8..9]);
        assert_eq!(sender.sack(&[2..3, 8..10]), "1r");
        let ack = Ack { dsack: Some((0, 1000)), ..Ack::default() };
        let sent = sender.wait(RTT / 10).receive(ack, 2, &[8..10]);
        assert!(sent.starts_with("3r"), "{sent}");
        let counters = sender.counters();
        assert_eq!((counters.undone, counters.window_reductions), (1, 2));
        assert_eq!(sender.cc().ssthresh, 14.0, "0.7 of the restored window");
    }

    /// After a timeout, only an ACK of new data restores the window (tcp_process_loss()).
    #[test]
    fn dsack_after_timeout_waits_for_new_ack() {
        let mut sender = sender();
        sender.deadline();
        sender.timeout();
        let undone = |sender: &BareSender| sender.counters().undone;
        sender.wait(RTT).receive(Ack { dsack: Some((0, 1000)), ..Ack::default() }, 0, &[]);
        assert_eq!(undone(&sender), 0);
        sender.receive(Ack::default(), 20, &[]);
        assert_eq!(undone(&sender), 1);
    }

    /// The retransmissions before and after the timeout both count.
    #[test]
    fn timeout_in_recovery_belongs_to_same_episode() {
        let mut sender = sender();
        sender.wait(RTT).sack(&[2..5]);
        sender.wait(RTT * 3).timeout();
        assert_eq!((sender.cc().state(), sender.cc().ssthresh), (RecoveryState::Loss, 14.0), "reduced once");
        let (copy, top) = (sender.flight.head().unwrap().tsval, sender.last());
        sender.wait(RTT).ack_echoing(top, copy);
        let mut report_copy = || {
            sender.receive(Ack { dsack: Some((0, 1000)), ..Ack::default() }, top, &[]);
            sender.counters().undone
        };
        assert_eq!([report_copy(), report_copy()], [0, 1]);
    }
}
