//! Undo as in the Linux kernel (Linux 6.18, tcp_may_undo()). An episode counts as spurious as soon as
//! timestamps or D-SACK show that it was:
//!
//! - Timestamps: a new ACK echoes an older timestamp than the first retransmission of the episode carried, so
//!   the originals were only late (tcp_packet_delayed()). Before the end of the episode, this counts only
//!   when no retransmission is outstanding (tcp_try_undo_partial()). However, the detector learns of the
//!   reordering at once, and such an ACK releases only new segments.
//! - D-SACK: the receiver has reported as many duplicates as there were retransmissions (undo_retrans).
//!
//! A timeout in fast recovery belongs to the same episode: its retransmissions count together with the others
//! (tcp_enter_loss()).
//!
//! cwnd and ssthresh return to their old values, unless they have grown beyond them
//! (tcp_undo_cwnd_reduction()). The timer does not change. The peer must support timestamps or D-SACK; a
//! Linux receiver supports both. The algorithm works with the detector `rack`, which detects real losses
//! again.
//!
//! - Choice: segments that were marked lost and not yet retransmitted are not retransmitted, in either case.
//!   The kernel keeps the marks after a D-SACK.
//! - Choice: a timeout is undone in the same way. The kernel leaves that to F-RTO, which is a separate answer
//!   here (`frto`).

use super::{Restore, Undo};
use crate::recovery::window::{LossKind, Reduction};
use crate::recovery::{Ack, Congestion, Departure, Phase, Transmission, View};

/// Undo as in the Linux kernel.
#[derive(Debug, Default)]
pub(crate) struct UndoLinux {
    event: Option<Event>,
    timestamps: bool,
    /// TSval of the first retransmission since the last time when none was outstanding. An episode that
    /// begins while an older retransmission is outstanding therefore keeps the older TSval, and ACKs of the
    /// older retransmissions prove nothing.
    retrans_stamp: Option<u32>,
}

#[derive(Debug)]
struct Event {
    prior_cwnd: f64,
    prior_ssthresh: f64,
    /// SND.UNA when the episode began.
    undo_marker: u64,
    /// SND.MAX when the episode began, or at a later timeout in it.
    high_seq: u64,
    sent: u32,
    reported: u32,
}

impl Undo for UndoLinux {
    fn name(&self) -> &'static str {
        "undo-linux"
    }

    fn on_established(&mut self, handshake: &crate::recovery::Handshake) {
        self.timestamps = handshake.timestamps;
    }

    fn on_reduction(&mut self, view: &View<'_>, before: &Congestion, kind: LossKind) {
        if kind == LossKind::EcnEcho {
            return;
        }
        if kind == LossKind::Timeout
            && before.phase() == Phase::Recovery
            && let Some(event) = self.event.as_mut().filter(|event| view.flight.una() < event.high_seq)
        {
            event.high_seq = view.flight.max();
            return;
        }
        // tcp_enter_cwr() has cleared undo_marker. The window was already reduced for the ECN echo, and that
        // reduction stands.
        let of_echo = before.phase() == Phase::Reduced
            && before.recover.is_some_and(|recover| view.flight.una() < recover);
        if kind == LossKind::Timeout && of_echo {
            self.event = None;
            return;
        }
        self.event = Some(Event {
            prior_cwnd: before.cwnd,
            prior_ssthresh: before.ssthresh,
            undo_marker: view.flight.una(),
            high_seq: view.flight.max(),
            // tcp_init_undo(): retransmissions that are already outstanding count.
            sent: view.flight.resent().segments as u32,
            reported: 0,
        });
    }

    fn on_sent(&mut self, _view: &View<'_>, departure: &Departure) {
        if departure.kind == Transmission::New {
            return;
        }
        self.retrans_stamp.get_or_insert(departure.tsval);
        if let Some(event) = self.event.as_mut().filter(|event| departure.start < event.high_seq) {
            event.sent += 1;
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Restore> {
        // tcp_try_to_open()
        if matches!(view.cc.phase(), Phase::Open | Phase::Reduced) && !any_retrans_done(view) {
            self.retrans_stamp = None;
        }
        let delayed = self.is_delayed(view, ack);
        let event = self.event.as_mut()?;
        if ack.dsack.is_some_and(|(_, end)| end > event.undo_marker) {
            event.reported += 1;
        }
        let over = view.flight.una() >= event.high_seq;
        let reordered = delayed && !over && view.cc.phase() == Phase::Recovery;
        let Some(why) = event.is_mistake(view, delayed).filter(|_| !ack.ece) else {
            // The last D-SACK may arrive after the next episode has begun, which then replaces this one.
            let why = "older timestamp echo: the original was late";
            return reordered.then_some(Restore { window: None, resume: false, reordered, timer: None, why });
        };
        if !any_retrans_done(view) {
            self.retrans_stamp = None;
        }
        let event = self.event.take()?;
        if over && view.cc.phase() == Phase::Reduced {
            return None;
        }
        let window = Reduction {
            cwnd: event.prior_cwnd.max(view.cc.cwnd),
            ssthresh: event.prior_ssthresh.max(view.cc.ssthresh),
        };
        let resume = view.cc.phase() != Phase::Open;
        Some(Restore { window: Some(window), resume, reordered, timer: None, why })
    }
}

/// Returns whether retransmitted data is outstanding.
fn any_retrans_done(view: &View<'_>) -> bool {
    view.flight.resent().segments > 0 || view.flight.head().is_some_and(|head| head.transmissions > 1)
}

impl UndoLinux {
    /// tcp_packet_delayed(), during a repair.
    fn is_delayed(&self, view: &View<'_>, ack: &Ack) -> bool {
        let echoed = ack.ecr.filter(|_| self.timestamps && ack.advances()).zip(self.retrans_stamp);
        let repairs = matches!(view.cc.phase(), Phase::Recovery | Phase::Restarted);
        repairs && echoed.is_some_and(|(ecr, stamp)| (ecr.wrapping_sub(stamp) as i32) < 0)
    }
}

impl Event {
    fn is_mistake(&self, view: &View<'_>, delayed: bool) -> Option<&'static str> {
        if self.sent > 0 && self.reported >= self.sent {
            return Some("every retransmission was reported as a duplicate");
        }
        let none_outstanding = view.flight.una() >= self.high_seq || view.flight.resent().segments == 0;
        (delayed && none_outstanding).then_some("older timestamp echo: the originals were late")
    }
}

#[cfg(test)]
mod tests {
    use airwire::time::Duration;

    use super::*;
    use crate::profile::Profile;
    use crate::recovery::Handshake;
    use crate::recovery::testing::BareSender;

    const RTT: Duration = Duration::from_millis(100);

    fn sender() -> BareSender {
        let handshake = Handshake { timestamps: true, ..Handshake::default() };
        BareSender::with("sack+undo-linux", Profile::linux(), &handshake).under_way(20.0, 10.0, RTT)
    }

    /// Retransmits segment 1. Then an ACK of this retransmission acknowledges everything.
    fn recover_from_loss(sender: &mut BareSender) {
        sender.wait(RTT).sack(&[2..5]);
        let (copy, recover) = (sender.flight.head().unwrap().tsval, sender.flight.max() / 1000);
        sender.wait(RTT).ack_echoing(recover, copy);
    }

    #[test]
    fn old_echo_restores_window_immediately() {
        let mut sender = sender();
        let original = sender.flight.head().unwrap().tsval;
        sender.wait(RTT).sack(&[2..5]);
        assert_eq!((sender.cc().phase(), sender.cc().cwnd), (Phase::Recovery, 14.0));
        // Segment 1 was only overtaken.
        sender.wait(RTT / 10).ack_echoing(4, original);
        assert_eq!((sender.cc().phase(), sender.cc().cwnd, sender.cc().ssthresh), (Phase::Open, 20.0, 14.0));
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
        assert_eq!((sender.cc().phase(), sender.cc().cwnd), (Phase::Open, 15.0), "14 + 1 for the ACK");
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
        assert_eq!(sender.cc().phase(), Phase::Recovery, "6 is still outstanding");
        let last = sender.flight.sacked_ranges().last().unwrap().end / 1000;
        sender.wait(RTT / 10).ack_echoing(last, original);
        assert_eq!((sender.cc().phase(), sender.cc().cwnd), (Phase::Open, 20.0));
    }

    #[test]
    fn old_echo_during_retransmission_releases_only_new_segments() {
        let handshake = Handshake { timestamps: true, ..Handshake::default() };
        let recipe = "sack+rack+undo-linux";
        let at_a_partial_ack = |echoes_original: bool| {
            let mut sender =
                BareSender::with(recipe, Profile::linux(), &handshake).under_way(20.0, 10.0, RTT);
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
        let handshake = Handshake { timestamps: true, ..Handshake::default() };
        let recipe = "sack+rack+undo-linux";
        let mut sender = BareSender::with(recipe, Profile::linux(), &handshake).under_way(20.0, 10.0, RTT);
        sender.wait(RTT).sack(&[2..5]);
        let copy_of_1 = sender.flight.head().unwrap().tsval;
        sender.wait(RTT / 10).sack(&[2..21]);
        sender.wait(RTT / 10).sack(&[2..22, 23..26]);
        assert_eq!(sender.flight.segment_at(21_000).unwrap().transmissions, 2, "22 is retransmitted");
        sender.wait(RTT / 10).ack_echoing(21, copy_of_1);
        assert_eq!((sender.cc().phase(), sender.cc().ssthresh), (Phase::Recovery, 9.0), "14 × 0.7");
        let copy_of_22 = sender.flight.head().unwrap().tsval;
        sender.wait(RTT / 10).sack(&[23..27, 28..31]);
        sender.wait(RTT / 10).ack_echoing(30, copy_of_22);
        assert_eq!(sender.recovery.counters().undone, 0);
    }

    #[test]
    fn dsack_of_every_retransmission_restores_window() {
        let mut sender = sender();
        recover_from_loss(&mut sender);
        let una = sender.flight.una() / 1000;
        sender.receive(Ack { dsack: Some((0, 1000)), ..Ack::default() }, una, &[]);
        assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (20.0, 14.0));
    }

    /// The retransmissions before and after the timeout both count.
    #[test]
    fn timeout_in_recovery_belongs_to_same_episode() {
        let mut sender = sender();
        sender.wait(RTT).sack(&[2..5]);
        sender.wait(RTT * 3).timeout();
        assert_eq!((sender.cc().phase(), sender.cc().ssthresh), (Phase::Restarted, 14.0), "reduced once");
        let (copy, top) = (sender.flight.head().unwrap().tsval, sender.flight.max() / 1000);
        sender.wait(RTT).ack_echoing(top, copy);
        let mut report_copy = || {
            sender.receive(Ack { dsack: Some((0, 1000)), ..Ack::default() }, top, &[]);
            sender.recovery.counters().undone
        };
        assert_eq!([report_copy(), report_copy()], [0, 1]);
    }
}
