//! **What does a timeout mean?** The answer decides what is sent at a timeout, and what later ACKs show about
//! the timeout.

mod fast_timeout;
pub(crate) mod frto;
mod restart;

pub(crate) use fast_timeout::FastTimeout;
pub(crate) use frto::Frto;
pub use restart::Restart;

use super::undo::Restore;
use super::{Ack, View};

/// The reaction to an expiry of the retransmission timer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reaction {
    /// Everything outstanding is lost: go back to SND.UNA and slow-start.
    Restart {
        /// New cwnd, in segments.
        cwnd: f64,
    },
    /// Retransmit the first segment, and check the next ACKs before anything else counts as lost (F-RTO). Until
    /// [`TimeoutVerdict::GoBack`], the engine ignores detections of lost originals.
    Probe {
        /// New cwnd, in segments.
        cwnd: f64,
    },
}

/// The meaning of an ACK for the last timeout. Windows are in segments. Each `why` is a text for the decision
/// trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TimeoutVerdict {
    /// The ACK shows nothing.
    Nothing,
    /// The timeout was genuine: go back over the window.
    GoBack {
        /// New cwnd.
        cwnd: f64,
        /// Whether the first segment was already retransmitted and must be skipped.
        head_sent: bool,
        /// The reason.
        why: &'static str,
    },
    /// Undecided: send new segments instead of retransmissions.
    SendNew {
        /// New cwnd.
        cwnd: f64,
        /// The reason.
        why: &'static str,
    },
    /// The timeout was genuine, but the network delivers: enter fast recovery, with a more cautious timer
    /// (Inamura et al. 2009, Fig. 8).
    Recover {
        /// New cwnd.
        cwnd: f64,
        /// New ssthresh.
        ssthresh: f64,
        /// The reason.
        why: &'static str,
    },
    /// The timeout was spurious.
    Spurious {
        /// The state to restore.
        restore: Restore,
    },
}

/// An answer to "What does a timeout mean?".
pub trait Timeout: std::fmt::Debug + Send {
    /// Called when the retransmission timer fires with data outstanding. Window, state and `timeouts_in_row`
    /// still have their old values.
    fn on_timeout(&mut self, view: &View<'_>) -> Reaction;

    /// Called for every ACK after a timeout, until `recover` is acknowledged.
    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) -> TimeoutVerdict {
        TimeoutVerdict::Nothing
    }

    /// Called while the timeout is undecided (after [`Reaction::Probe`]), when all old data was sent and no new data can be sent: the
    /// application has none, or the receiver's window has no room.
    fn on_no_new_data(&mut self, _view: &View<'_>) -> TimeoutVerdict {
        TimeoutVerdict::Nothing
    }
}
