//! **What to send again?**

mod newreno;
mod reno;
mod sack;
mod sack1;
mod tahoe;

pub use newreno::NewReno;
pub use reno::Reno;
pub use sack::Sack;
pub use sack1::Sack1;
pub use tahoe::Tahoe;

use super::{Ack, View};
use crate::flight::Amount;
use crate::profile::knobs::{Careful, PartialAckDeflation};

/// How a loss event begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Entry {
    /// Go back to SND.UNA and slow-start.
    Restart,
    /// Fast recovery with the window inflated by what the duplicate ACKs say has left the network.
    Recover { inflation: f64 },
}

/// What an ACK means to a recovery in progress.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// Nothing new.
    Wait,
    /// One more segment has left the network.
    Inflate(f64),
    /// New data acknowledged, but not all of the event.
    Partial { resend_head: bool, deflation: PartialAckDeflation, restart_timer: bool },
    /// The event is over.
    Exit,
}

pub trait Repair: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    /// It names the holes by the SACK scoreboard, and so needs SACK.
    fn has_scoreboard(&self) -> bool {
        false
    }

    /// May a loss found now begin a new event?
    fn may_enter(&self, view: &View<'_>) -> bool {
        beyond_recover(view)
    }

    fn on_loss(&mut self, view: &View<'_>) -> Entry;

    /// During fast recovery.
    fn on_recovery_ack(&mut self, view: &View<'_>, ack: &Ack) -> Step;

    /// How many segments the ACK may release, where that is limited; `begins`: it began the loss event.
    fn burst(&self, _view: &View<'_>, _begins: bool) -> Option<u32> {
        None
    }

    /// Do duplicate ACKs counted before a timeout still count after it?
    fn keeps_dupacks_at_timeout(&self, _view: &View<'_>) -> bool {
        false
    }

    /// Is the scoreboard to be emptied after this ACK?
    fn forgets_sacks(&self, _view: &View<'_>, _ack: &Ack) -> bool {
        false
    }

    /// Do duplicate ACKs count now?
    fn counts_duplicates(&self, _view: &View<'_>) -> bool {
        true
    }

    /// The retransmission timer fired.
    fn on_timeout(&mut self, _view: &View<'_>) {}

    fn on_sent(&mut self, _view: &View<'_>, _departure: &super::Departure) {}

    /// What counts against the window.
    fn in_flight(&self, view: &View<'_>) -> Amount {
        view.flight.passed()
    }

    /// Does Limited Transmit count duplicate ACKs, or does `in_flight` shrink with SACKed data anyway?
    fn limited_transmit_by_dupacks(&self) -> bool {
        true
    }

    /// The segment to send again now, if the window allows.
    fn next(&mut self, view: &View<'_>) -> Option<u64> {
        view.flight.next_in_pass().map(|s| s.start)
    }

    /// The same when there is no new data that could be sent instead.
    fn next_without_new_data(&mut self, _view: &View<'_>) -> Option<u64> {
        None
    }
}

/// RFC 6582 §3.2 step 1: not while the window that had the last loss event is still being acknowledged.
fn beyond_recover(view: &View<'_>) -> bool {
    let Some(recover) = view.cc.recover else { return true };
    // It was left before its end, and nothing was sent again that could cause duplicate ACKs.
    if view.cc.kept_window.is_some() {
        return true;
    }
    // Once per row of duplicate ACKs.
    let first_time = view.cc.dupacks <= view.knobs.dup_thresh;
    if view
        .knobs
        .careless_until
        .is_some_and(|segments| view.flight.una() <= 1 + u64::from(segments) * view.smss)
    {
        return first_time;
    }
    match view.knobs.careful {
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
