//! **Was that a mistake?** The answer decides when the last episode turns out to be spurious, and what is
//! restored.

mod dsack;
mod eifel;
mod eifel_linux;
mod linux;
mod response;
#[cfg(test)]
mod testing;

use airwire::time::Duration;
pub(crate) use dsack::Dsack;
pub(crate) use eifel::Eifel;
pub(crate) use eifel_linux::EifelLinux;
pub(crate) use linux::UndoLinux;

use super::window::{LossKind, Reduction};
use super::{Ack, Congestion, Transmission, View};

/// The state to restore after a spurious reduction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Restore {
    /// New cwnd and ssthresh, which also end the episode. `None`: they do not change.
    pub window: Option<Reduction>,
    /// Whether to stop retransmitting and continue at SND.MAX.
    pub resume: bool,
    /// Whether the segments of the episode were only reordered, which the detector `rack` takes into account.
    /// Without a restored window, no segment counts as lost any more, and the sender does not retransmit
    /// until the next ACK.
    pub reordered: bool,
    /// New SRTT and RTTVAR, with which the timer is more cautious (RFC 4015 §3.1). `None`: they do not
    /// change.
    pub timer: Option<(Duration, Duration)>,
    /// The reason, for the decision trace.
    pub why: &'static str,
}

/// An answer to "Was that a mistake?". On a connection without SACK or timestamps, nothing is undone if the
/// answer's row needs them.
pub trait Undo: std::fmt::Debug + Send {
    /// Called before an episode reduces the window. `before` is the state that an undo would restore.
    fn on_reduction(&mut self, _view: &View<'_>, _before: &Congestion, _kind: LossKind) {}

    /// Called when a segment was sent.
    fn on_sent(&mut self, _departure: &Transmission) {}

    /// Returns the state to restore after this ACK. `None`: nothing is restored. A restored window already
    /// includes this ACK. The ACK opens it further only if the profile counts delivered data (Linux).
    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) -> Option<Restore> {
        None
    }
}

/// The default answer: no reduction is ever undone.
#[derive(Debug, Default)]
pub struct Never;

impl Undo for Never {}
