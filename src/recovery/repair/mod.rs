//! **What to retransmit?** A repair decides how an episode begins, what each ACK means, and which segment is
//! retransmitted next.

mod newreno;
mod reno;
pub(crate) mod sack;
mod sack1;
mod tahoe;

pub use newreno::NewReno;
pub(crate) use reno::Reno;
pub(crate) use sack::Sack;
pub(crate) use sack1::Sack1;
pub(crate) use tahoe::Tahoe;

use super::{Ack, Transmission, View};
use crate::flight::Amount;
use crate::profile::recovery::{Careful, PartialAckDeflation};

/// The beginning of an episode.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Entry {
    /// Go back to SND.UNA and slow-start.
    Restart,
    /// Fast recovery.
    Recover {
        /// Number of segments that have left the network according to the duplicate ACKs, by which the window
        /// is inflated.
        inflation: f64,
    },
}

/// The meaning of an ACK for a recovery in progress.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RepairStep {
    /// The ACK has no effect.
    Wait,
    /// This number of further segments has left the network, and inflates the window.
    Inflate(f64),
    /// The ACK acknowledges new data, but the episode continues.
    Partial {
        /// Whether to retransmit the first unacknowledged segment, which is the next hole, at once.
        resend_head: bool,
        /// How far to deflate the window.
        deflation: PartialAckDeflation,
        /// Whether to restart the retransmission timer.
        restart_timer: bool,
    },
    /// The episode ends.
    Exit {
        /// Whether duplicate ACKs after the third continue to inflate the window (ns-2).
        inflates: bool,
    },
}

/// Properties of a repair, as its row declares them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits {
    /// Limited Transmit does not count duplicate ACKs, because [`Repair::in_flight`] excludes SACKed data.
    pub limited_transmit_by_sack: bool,
    /// If the profile permits, duplicate ACKs received before a timeout still count after the timeout (ns-2's
    /// Tahoe).
    pub keeps_dupacks_at_timeout: bool,
    /// The scoreboard lasts only for one fast recovery: outside it, every new ACK clears the scoreboard. After
    /// a timeout, every ACK does, and duplicate ACKs do not count (ns-2's Sack1).
    pub scoreboard_in_recovery_only: bool,
}

impl Traits {
    /// The traits of NewReno.
    pub const DEFAULT: Self = Self {
        limited_transmit_by_sack: false,
        keeps_dupacks_at_timeout: false,
        scoreboard_in_recovery_only: false,
    };
}

/// An answer to "What to retransmit?". If its row needs SACK, the repair finds holes with the scoreboard, and
/// NewReno replaces it if the peer does not permit SACK.
pub trait Repair: std::fmt::Debug + Send {
    /// Returns whether a loss found now may begin a new episode (RFC 6582 §3.2 step 2). Not called in fast
    /// recovery.
    fn may_enter(&self, view: &View<'_>) -> bool {
        beyond_recover(view)
    }

    /// Begins an episode. The window still has its old value.
    fn on_loss(&mut self, view: &View<'_>) -> Entry;

    /// Returns the meaning of an ACK in fast recovery.
    fn on_recovery_ack(&mut self, view: &View<'_>, ack: &Ack) -> RepairStep;

    /// Returns how many segments the last ACK may release, not counting a retransmission that is already
    /// decided. `begins`: the ACK began an episode. `None`: the limit of the profile applies.
    fn burst(&self, _view: &View<'_>, _begins: bool) -> Option<u32> {
        None
    }

    /// Called when the retransmission timer fires.
    fn on_timeout(&mut self, _view: &View<'_>) {}

    /// Called when a segment was sent.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Transmission) {}

    /// Returns the amount that counts against the window.
    fn in_flight(&self, view: &View<'_>) -> Amount {
        view.flight.passed()
    }

    /// Returns the start of the segment to retransmit next, if the window has room. `None`: there is no
    /// segment to retransmit. Called in fast recovery, and while a segment is marked lost or a pass over the
    /// window is in progress.
    fn next(&mut self, view: &View<'_>) -> Option<u64> {
        view.flight.next_in_pass().map(|s| s.start)
    }

    /// Like [`Self::next`], in fast recovery without new data to send (RFC 6675 NextSeg rules 3 and 4).
    fn next_without_new_data(&mut self, _view: &View<'_>) -> Option<u64> {
        None
    }
}

/// Returns the meaning of an ACK if the first new ACK ends fast recovery (RFC 5681 §3.2 steps 4 to 6).
fn until_new_ack(ack: &Ack) -> RepairStep {
    if ack.advances() {
        RepairStep::Exit { inflates: false }
    } else if ack.duplicate {
        RepairStep::Inflate(1.0)
    } else {
        RepairStep::Wait
    }
}

/// Returns whether the window of the last episode has been acknowledged, as RFC 6582 §3.2 step 2 requires
/// before a new episode. Some profiles relax this rule.
fn beyond_recover(view: &View<'_>) -> bool {
    let relaxed_recover_at =
        view.rules.fast_recovery.relaxed_recover_at.map(|segments| 1 + u64::from(segments) * view.smss);
    if relaxed_recover_at.is_some_and(|at| view.flight.una() < at) {
        return false;
    }
    let Some(recover) = view.cc.recover else { return true };
    // The last episode was attributed to the radio link, and Reno left it early. Retransmissions cannot have
    // caused these duplicate ACKs.
    if view.cc.kept_window().is_some() {
        return true;
    }
    // True only once per series of duplicate ACKs.
    let first_time = view.cc.dupacks() <= view.rules.detection.dup_thresh;
    if relaxed_recover_at == Some(view.flight.una()) {
        return first_time;
    }
    match view.rules.fast_recovery.careful {
        Careful::Yes => view.flight.una() > recover,
        Careful::Less => view.flight.una() >= recover,
        Careful::No => first_time,
        Careful::AckHeuristic { segments } => {
            let advance = view.flight.una() - view.cc.previous_una;
            view.flight.una() > recover || (view.cc.cwnd > 1.0 && advance <= u64::from(segments) * view.smss)
        }
        Careful::TimestampHeuristic => {
            view.flight.una() > recover || (view.cc.echoed.is_some() && view.cc.echoed == view.cc.acked_tsval)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::testing::{BareSender, RTT, SMSS, TestView};

    /// RFC 6582 §4.1: the last ACK has acknowledged at most four segments.
    #[test]
    fn ack_heuristic_includes_its_limit() {
        let mut sender = BareSender::new("newreno").under_way(10.0, 8.0, RTT);
        sender.ack(5);
        let mut test = TestView::new(sender);
        test.rules.fast_recovery.careful = Careful::AckHeuristic { segments: 4 };
        test.cc.recover = Some(9 * SMSS);
        let mut enters_after = |previous_una: u64| {
            test.cc.previous_una = previous_una * SMSS;
            beyond_recover(&test.view())
        };
        assert_eq!([enters_after(0), enters_after(1)], [false, true]);
    }
}
