//! **Was that a mistake?**

mod dsack;
mod eifel;
mod response;

use airwire::time::Duration;
pub use dsack::Dsack;
pub use eifel::Eifel;

use super::window::{LossKind, Reduction};
use super::{Ack, Congestion, Departure, Handshake, View};

/// What to restore when a reduction turns out to have been a mistake.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Restore {
    /// cwnd and ssthresh, and the loss event is over. `None`: they stay as they are.
    pub window: Option<Reduction>,
    /// Stop sending old segments again: go on at SND.MAX.
    pub resume: bool,
    /// SRTT and RTTVAR from which the timer goes on, where it is to be more cautious (RFC 4015 §3.2).
    pub timer: Option<(Duration, Duration)>,
    pub why: &'static str,
}

pub trait Undo: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    /// Without SACK, and so without D-SACK, nothing is ever undone.
    fn needs_sack(&self) -> bool {
        false
    }

    /// The same without timestamps.
    fn needs_timestamps(&self) -> bool {
        false
    }

    fn on_established(&mut self, _handshake: &Handshake) {}

    /// A loss event is about to reduce the window; `before` is what it would have to be restored to.
    fn on_reduction(&mut self, _view: &View<'_>, _before: &Congestion, _kind: LossKind) {}

    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// A window that it restores counts this ACK in: the ACK does not open it further.
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
