//! Add-ons that end slow start before a loss.

use crate::recovery::{Ack, View};

/// The effect of an ACK on slow start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// The window opens as usual.
    Continue,
    /// The window opens more slowly.
    Slowly {
        /// Divisor of the increase.
        divisor: f64,
    },
    /// Slow start ends: ssthresh becomes cwnd.
    Leave {
        /// The reason, for the decision trace.
        why: &'static str,
    },
}

/// An add-on to the window that detects the end of slow start. Without it, only a loss ends slow start.
pub trait SlowStart: std::fmt::Debug + Send {
    /// Called when the handshake is complete.
    fn on_established(&mut self, _view: &View<'_>) {}

    /// Called for every ACK in every state. For estimators.
    fn observe(&mut self, _view: &View<'_>, _ack: &Ack) {}

    /// Called for an ACK in slow start, before the window opens.
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Step;

    /// Called when the retransmission timer fires.
    fn on_timeout(&mut self) {}
}
