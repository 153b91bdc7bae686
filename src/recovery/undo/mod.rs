//! **Was that a mistake?**

use airlink::time::Duration;

use super::window::LossKind;
use super::{Ack, Congestion, Departure, Handshake, View};

/// What to restore when a reduction turns out to have been a mistake.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Restore {
    pub cwnd: f64,
    pub ssthresh: f64,
    /// Stop sending old segments again: go on at SND.MAX.
    pub resume: bool,
    /// SRTT and RTTVAR from which the timer goes on, where it is to be more cautious (RFC 4015 §3.2).
    pub timer: Option<(Duration, Duration)>,
    pub why: &'static str,
}

pub trait Undo: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    fn on_established(&mut self, _handshake: &Handshake) {}

    /// A loss event is about to reduce the window; `before` is what it would have to be restored to.
    fn on_reduction(&mut self, _view: &View<'_>, _before: &Congestion, _kind: LossKind) {}

    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

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
