//! **Was that a mistake?** The answer says when the last loss event turns out to have been none, and what is restored.

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
use super::{Ack, Congestion, Departure, Handshake, View};

/// What to restore when a reduction turns out to have been a mistake.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Restore {
    /// What cwnd and ssthresh become; the loss event is over then. `None`: they stay as they are.
    pub window: Option<Reduction>,
    /// Whether no more old segments are sent again: the sender goes on at SND.MAX.
    pub resume: bool,
    /// Whether the segments of the event had only been overtaken: the detector `rack` learns from that. If the window
    /// stays as it is nevertheless, nothing more counts as lost, and no copy leaves, before the next ACK.
    pub reordered: bool,
    /// SRTT and RTTVAR from which the timer goes on, more cautiously (RFC 4015 §3.2). `None`: they stay as they are.
    pub timer: Option<(Duration, Duration)>,
    /// The reason, for the trace.
    pub why: &'static str,
}

/// An answer to "Was that a mistake?".
pub trait Undo: std::fmt::Debug + Send {
    /// Its name in the catalogue, and in the trace of decisions.
    fn name(&self) -> &'static str;

    /// Whether it cannot do without SACK, and so D-SACK: if the peer does not permit it, nothing is ever undone.
    fn needs_sack(&self) -> bool {
        false
    }

    /// Whether it cannot do without timestamps: on a connection that has none, nothing is ever undone.
    fn needs_timestamps(&self) -> bool {
        false
    }

    /// The handshake is over.
    fn on_established(&mut self, _handshake: &Handshake) {}

    /// A loss event is about to reduce the window. `before` is the state that would have to be restored.
    fn on_reduction(&mut self, _view: &View<'_>, _before: &Congestion, _kind: LossKind) {}

    /// A segment has left.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// What is to be restored after this ACK. `None`: nothing. A restored window counts the ACK in: the ACK does not
    /// open it further, except where it counts for what it delivers (Linux).
    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) -> Option<Restore> {
        None
    }
}

/// The ordinary answer: never asked.
#[derive(Debug, Default)]
pub struct Never;

impl Undo for Never {
    fn name(&self) -> &'static str {
        "never"
    }
}
