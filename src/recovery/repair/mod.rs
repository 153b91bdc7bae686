//! **What to retransmit?** A repair says how a loss event begins, what ACKs mean to it, and which segment is next.

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

use super::{Ack, Departure, View};
use crate::flight::Amount;
use crate::profile::knobs::{Careful, PartialAckDeflation};

/// How a loss event begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Entry {
    /// Go back to SND.UNA and slow-start.
    Restart,
    /// Fast recovery.
    Recover {
        /// Segments that the duplicate ACKs say have left the network: the window is inflated by them.
        inflation: f64,
    },
}

/// What an ACK means to a recovery in progress.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RepairStep {
    /// Nothing.
    Wait,
    /// This many more segments have left the network: the window is inflated by them.
    Inflate(f64),
    /// It acknowledges new data, but the event goes on.
    Partial {
        /// Whether the first unacknowledged segment, which is the next hole, is sent again at once.
        resend_head: bool,
        /// By how much the inflation of the window is taken back.
        deflation: PartialAckDeflation,
        /// Whether the retransmission timer is restarted.
        restart_timer: bool,
    },
    /// The event is over.
    Exit,
}

/// An answer to "What to retransmit?".
pub trait Repair: std::fmt::Debug + Send {
    /// Its name in the catalogue, and in the trace of decisions.
    fn name(&self) -> &'static str;

    /// It finds the holes in the SACK scoreboard, and so needs SACK: without SACK, NewReno takes its place.
    fn has_scoreboard(&self) -> bool {
        false
    }

    /// Whether a loss found now may begin a new event (RFC 6582 §3.2 step 1). Not asked in fast recovery.
    fn may_enter(&self, view: &View<'_>) -> bool {
        beyond_recover(view)
    }

    /// A loss event begins. The window is still what it was before.
    fn on_loss(&mut self, view: &View<'_>) -> Entry;

    /// What an ACK in fast recovery means.
    fn on_recovery_ack(&mut self, view: &View<'_>, ack: &Ack) -> RepairStep;

    /// How many segments the last ACK may release, a segment already decided on not among them; `begins`: it began a
    /// loss event. `None`: as many as the profile allows.
    fn burst(&self, _view: &View<'_>, _begins: bool) -> Option<u32> {
        None
    }

    /// Asked when fast recovery ends: whether duplicate ACKs after the third go on inflating the window (ns-2).
    fn goes_on_inflating(&self, _view: &View<'_>) -> bool {
        false
    }

    /// Whether duplicate ACKs counted before a timeout still count after it.
    fn keeps_dupacks_at_timeout(&self, _view: &View<'_>) -> bool {
        false
    }

    /// Whether the scoreboard is emptied after this ACK.
    fn forgets_sacks(&self, _view: &View<'_>, _ack: &Ack) -> bool {
        false
    }

    /// Whether duplicate ACKs count now.
    fn counts_duplicates(&self, _view: &View<'_>) -> bool {
        true
    }

    /// The retransmission timer fired.
    fn on_timeout(&mut self, _view: &View<'_>) {}

    /// A segment has left.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// What counts against the window.
    fn in_flight(&self, view: &View<'_>) -> Amount {
        view.flight.passed()
    }

    /// Whether Limited Transmit counts duplicate ACKs. Otherwise `in_flight` shrinks with SACKed data anyway.
    fn limited_transmit_by_dupacks(&self) -> bool {
        true
    }

    /// Where the segment begins that is to be sent again now, if the window has room. `None`: there is none. Asked in fast
    /// recovery, and where a segment is judged lost or a pass over the window goes on.
    fn next(&mut self, view: &View<'_>) -> Option<u64> {
        view.flight.next_in_pass().map(|s| s.start)
    }

    /// The same in fast recovery when there is no new data that could be sent instead (RFC 6675 NextSeg rules 3 and 4).
    fn next_without_new_data(&mut self, _view: &View<'_>) -> Option<u64> {
        None
    }
}

/// RFC 6582 §3.2 step 1: not while the window that had the last loss event is still being acknowledged.
fn beyond_recover(view: &View<'_>) -> bool {
    let careless_at = view.knobs.careless_at.map(|segments| 1 + u64::from(segments) * view.smss);
    if careless_at.is_some_and(|at| view.flight.una() < at) {
        return false;
    }
    let Some(recover) = view.cc.recover else { return true };
    // The event was put down to the radio and left before its end (Reno): nothing that was sent again can have caused
    // these duplicate ACKs.
    if view.cc.kept_window().is_some() {
        return true;
    }
    // Once for each row of duplicate ACKs.
    let first_time = view.cc.dupacks() <= view.knobs.dup_thresh;
    if careless_at == Some(view.flight.una()) {
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
