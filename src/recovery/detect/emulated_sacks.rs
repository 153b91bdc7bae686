//! Duplicate ACKs of a connection without SACK, as Linux 6.18 counts them. Each one represents a segment that
//! the receiver holds out of order (`sacked_out`, tcp_add_reno_sack()).
//!
//! The number of missing segments is at least one, and at least the number of segments marked lost. If there
//! are more duplicate ACKs than the other segments can cause, Linux assumes reordering. The number of
//! outstanding segments then becomes DupThresh for the rest of the connection, even if it is lower
//! (tcp_check_reno_reordering()).

use super::three_dupacks::judge;
use super::{Detect, MAX_REORDERING, MeasuredReordering, Traits, Verdict};
use crate::recovery::{Ack, RecoveryState, View};

#[derive(Debug, Default)]
pub(crate) struct EmulatedSacks {
    sacked_out: u64,
    reordering: MeasuredReordering,
}

impl Detect for EmulatedSacks {
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        self.count(view, ack);
        let dup_thresh = self.dup_thresh(view);
        let is_open = matches!(view.cc.state(), RecoveryState::Open | RecoveryState::Cwr);
        match judge(view, ack, dup_thresh) {
            Verdict::Head { .. } if is_open && self.sacked_out < dup_thresh.into() => Verdict::Nothing,
            verdict => verdict,
        }
    }

    fn traits(&self) -> Traits {
        Traits { sacked_out: Some(self.sacked_out), reordering: self.reordering, ..Traits::default() }
    }

    fn on_timeout(&mut self, _view: &View<'_>) {
        self.sacked_out = 0;
    }

    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        match self.reordering.degree {
            0 => view.rules.detection.dup_thresh,
            degree => degree,
        }
    }
}

impl EmulatedSacks {
    fn count(&mut self, view: &View<'_>, ack: &Ack) {
        let is_over = view.cc.recover.is_some_and(|recover| view.flight.una() >= recover);
        // Such an episode ends with the next ACK of new data (tcp_is_non_sack_preventing_reopen()).
        let keeps = match view.cc.state() {
            RecoveryState::Recovery if is_over => {
                self.sacked_out = 0;
                return;
            }
            RecoveryState::Loss => is_over,
            state => state == RecoveryState::Recovery,
        };
        if ack.advances() {
            // tcp_remove_reno_sacks(): the first acknowledged segment filled the hole, and duplicate ACKs
            // have announced the other acknowledged segments.
            self.sacked_out = self.sacked_out.saturating_sub(ack.acked.segments.saturating_sub(1));
            self.check_reordering(view, ack.acked.segments);
            if !keeps {
                self.sacked_out = 0;
            }
        } else if ack.duplicate && has_new_data(view) && !(is_over && view.cc.state() == RecoveryState::Loss)
        {
            self.sacked_out += 1;
            self.check_reordering(view, 0);
        }
    }

    /// Limits `sacked_out`. `acked` is the number of segments that the ACK has removed from the flight.
    fn check_reordering(&mut self, view: &View<'_>, acked: u64) {
        let packets_out = view.flight.len() as u64;
        let holes = view.flight.lost().segments.max(1).min(packets_out);
        if self.sacked_out + holes > packets_out {
            self.sacked_out = packets_out - holes;
            self.reordering.degree = (packets_out + acked).min(MAX_REORDERING) as u32;
            self.reordering.events += 1;
        }
    }
}

/// After a timeout, only duplicate ACKs of new data count (tcp_process_loss()).
fn has_new_data(view: &View<'_>) -> bool {
    let is_new = || view.cc.recover.is_none_or(|recover| view.flight.max() > recover);
    view.cc.state() != RecoveryState::Loss || is_new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::recovery::testing::{BareSender, RTT};

    /// A sender whose only data is in flight.
    fn sender(segments: u32) -> BareSender {
        let mut sender = BareSender::without_sack("reno-linux", Profile::linux());
        sender.written = segments.into();
        sender.under_way(segments.into(), 100.0, RTT)
    }

    fn measured(sender: &BareSender) -> (u32, u32) {
        let MeasuredReordering { degree, events } = sender.recovery.reordering();
        (degree, events)
    }

    #[test]
    fn surplus_duplicate_ack_raises_dup_thresh() {
        let mut sender = sender(6);
        assert_eq!(sender.dupacks(3), "1r");
        sender.dupacks(2);
        assert_eq!(measured(&sender), (0, 0), "five of six segments can have arrived");
        sender.dupacks(1);
        assert_eq!(measured(&sender), (6, 1));
        sender.written = 1000;
        sender.wait(RTT).settle(20.0);
        assert!(!sender.dupacks(5).contains('r'));
        assert!(sender.dupacks(1).contains("8r"), "DupThresh is 6");
    }

    #[test]
    fn surplus_duplicate_acks_are_not_a_loss() {
        let mut sender = sender(3);
        assert_eq!(sender.dupacks(3), "");
        assert_eq!(measured(&sender), (3, 1));
    }

    #[test]
    fn few_segments_lower_dup_thresh() {
        let mut sender = sender(1);
        assert_eq!(sender.dupacks(1), "");
        assert_eq!(measured(&sender), (1, 1));
        sender.written = 1000;
        sender.wait(RTT).settle(10.0);
        assert!(sender.dupacks(1).contains("3r"), "DupThresh is 1");
    }

    #[test]
    fn partial_ack_reveals_surplus_duplicate_acks() {
        let mut sender = sender(6);
        sender.dupacks(2);
        sender.ack(1);
        assert_eq!(measured(&sender), (0, 0));
        assert_eq!(sender.dupacks(2), "", "an ACK of new data restarts the count");
        sender.dupacks(2);
        sender.ack(2);
        assert_eq!(measured(&sender), (5, 1), "four duplicate ACKs, but four segments are outstanding");
    }
}
