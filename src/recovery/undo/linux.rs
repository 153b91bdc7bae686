//! What the Linux kernel takes for a mistake (Linux 6.18, tcp_may_undo()), by timestamps or by D-SACK, whichever tells
//! first:
//!
//! - An ACK that advances echoes a timestamp older than that of the first copy sent again in the event: the originals had
//!   only been late (tcp_packet_delayed()). Before the end of the event it counts once no copy is outstanding any more
//!   (tcp_try_undo_partial()), but the detector learns at once that there is reordering, and such an ACK lets out new
//!   segments only.
//! - As many copies were reported as duplicates as had been sent (undo_retrans).
//!
//! A timeout in fast recovery belongs to the same event: those copies count with the others (tcp_enter_loss()).
//!
//! cwnd and ssthresh are what they were before, or more if they have grown beyond (tcp_undo_cwnd_reduction()). The timer
//! stays as it is. It needs timestamps or D-SACK; a kernel receiver has both. It works with the detector `rack`, which
//! finds again what is really lost.
//!
//! Choice: what was marked as lost and has not left again is not sent again, in both cases: the kernel leaves the marks
//! after a D-SACK.
//! Choice: a timeout is undone in the same way. The kernel leaves that to F-RTO, which is an answer of its own here
//! (`frto`).

use super::{Restore, Undo};
use crate::recovery::window::{LossKind, Reduction};
use crate::recovery::{Ack, Congestion, Departure, Phase, Transmission, View};

/// Undo as the Linux kernel does it.
#[derive(Debug, Default)]
pub(crate) struct UndoLinux {
    event: Option<Event>,
    timestamps: bool,
    /// TSval of the first copy since no copy was outstanding. An event that begins while one is has it from the last: ACKs of
    /// that one's copies are no proof.
    retrans_stamp: Option<u32>,
}

#[derive(Debug)]
struct Event {
    prior_cwnd: f64,
    prior_ssthresh: f64,
    /// SND.UNA when it began.
    undo_marker: u64,
    /// SND.MAX then.
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
        // tcp_enter_cwr() has cleared undo_marker, and what it paid for is paid for once.
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
            // tcp_init_undo(): copies that are outstanding already count.
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
            // A D-SACK comes a round trip later; an event that begins meanwhile takes the place of this one.
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

/// Something that was sent again is outstanding.
fn any_retrans_done(view: &View<'_>) -> bool {
    view.flight.resent().segments > 0 || view.flight.head().is_some_and(|head| head.transmissions > 1)
}

impl UndoLinux {
    /// tcp_packet_delayed(), in a repair.
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

    /// Segment 1 is sent again, and everything is acknowledged by its copy.
    fn repaired(sender: &mut BareSender) {
        sender.wait(RTT).sack(&[2..5]);
        let (copy, recover) = (sender.flight.head().unwrap().tsval, sender.flight.max() / 1000);
        sender.wait(RTT).ack_echoing(recover, copy);
    }

    #[test]
    fn an_old_echo_brings_the_window_back_at_once() {
        let mut sender = sender();
        let original = sender.flight.head().unwrap().tsval;
        sender.wait(RTT).sack(&[2..5]);
        assert_eq!((sender.cc().phase(), sender.cc().cwnd), (Phase::Recovery, 14.0));
        // Segment 1 had only been overtaken.
        sender.wait(RTT / 10).ack_echoing(4, original);
        assert_eq!((sender.cc().phase(), sender.cc().cwnd, sender.cc().ssthresh), (Phase::Open, 20.0, 14.0));
    }

    #[test]
    fn the_ack_that_brings_the_window_back_opens_it_too() {
        let mut sender = sender();
        sender.recovery.put_window(20.0, f64::INFINITY);
        let original = sender.flight.head().unwrap().tsval;
        sender.wait(RTT).sack(&[2..5]);
        sender.wait(RTT / 10).ack_echoing(4, original);
        assert_eq!(sender.cc().cwnd, 21.0, "of 1 to 4 it is the first to report 1");
    }

    #[test]
    fn an_echo_of_the_copy_proves_the_loss() {
        let mut sender = sender();
        repaired(&mut sender);
        assert_eq!((sender.cc().phase(), sender.cc().cwnd), (Phase::Open, 15.0), "14, and one for the ACK");
    }

    #[test]
    fn while_a_copy_is_outstanding_an_old_echo_waits() {
        let mut sender = sender();
        let original = sender.flight.head().unwrap().tsval;
        // 1 and 6 are missing, and both are sent again.
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
    fn an_old_echo_while_a_copy_is_outstanding_lets_out_new_segments_only() {
        let handshake = Handshake { timestamps: true, ..Handshake::default() };
        let recipe = "sack+rack+undo-linux";
        let at_a_partial_ack = |echoes_original: bool| {
            let mut sender =
                BareSender::with(recipe, Profile::linux(), &handshake).under_way(20.0, 10.0, RTT);
            let original = sender.flight.head().unwrap().tsval;
            // 1 and 6 are missing, and both are sent again.
            sender.wait(RTT).sack(&[2..6, 7..12]);
            let copy = sender.flight.head().unwrap().tsval;
            while sender.flight.resent().segments < 2 {
                let top = sender.flight.sacked_ranges().last().unwrap().end / 1000 + 2;
                sender.sack(&[2..6, 7..top]);
            }
            // So is the next one, which is known with the ACK of 1.
            let top = sender.flight.sacked_ranges().last().unwrap().end / 1000 + 1;
            let echo = if echoes_original { original } else { copy };
            let ack = Ack { ecr: Some(echo), ..Ack::default() };
            sender.wait(RTT).receive(ack, 5, &[7..top, top + 1..top + 5])
        };
        let (late, lost) = (at_a_partial_ack(true), at_a_partial_ack(false));
        assert!(!late.contains('r') && lost.contains('r'), "{late:?} {lost:?}");
    }

    /// 1 is lost, then 22, which is sent again before the first event is over and begins the next one at its end, and at
    /// last 27. The copies of 27 and 22 arrive in this order: what is echoed is older than that event.
    #[test]
    fn the_copies_of_the_last_event_prove_nothing_about_this_one() {
        let handshake = Handshake { timestamps: true, ..Handshake::default() };
        let recipe = "sack+rack+undo-linux";
        let mut sender = BareSender::with(recipe, Profile::linux(), &handshake).under_way(20.0, 10.0, RTT);
        sender.wait(RTT).sack(&[2..5]);
        let copy_of_1 = sender.flight.head().unwrap().tsval;
        sender.wait(RTT / 10).sack(&[2..21]);
        sender.wait(RTT / 10).sack(&[2..22, 23..26]);
        assert_eq!(sender.flight.segment_at(21_000).unwrap().transmissions, 2, "22 is sent again");
        sender.wait(RTT / 10).ack_echoing(21, copy_of_1);
        assert_eq!((sender.cc().phase(), sender.cc().ssthresh), (Phase::Recovery, 9.0), "14 × 0.7");
        let copy_of_22 = sender.flight.head().unwrap().tsval;
        sender.wait(RTT / 10).sack(&[23..27, 28..31]);
        sender.wait(RTT / 10).ack_echoing(30, copy_of_22);
        assert_eq!(sender.recovery.counters().undone, 0);
    }

    #[test]
    fn a_report_of_every_copy_brings_it_back_too() {
        let mut sender = sender();
        repaired(&mut sender);
        let una = sender.flight.una() / 1000;
        sender.receive(Ack { dsack: Some((0, 1000)), ..Ack::default() }, una, &[]);
        assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (20.0, 14.0));
    }

    /// The copy before the timeout counts as well as the one behind it.
    #[test]
    fn a_timeout_in_recovery_belongs_to_the_same_event() {
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
