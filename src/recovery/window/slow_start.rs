//! How slow start ends before anything is lost.

use crate::recovery::{Ack, View};

/// What slow start does with an ACK.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// The window opens as ever.
    GoOn,
    /// It opens by less: the increase is divided by this.
    Slowly {
        /// What the increase is divided by.
        divisor: f64,
    },
    /// Slow start is over: ssthresh becomes cwnd.
    Leave {
        /// For people who read the trace.
        why: &'static str,
    },
}

/// Stands beside the window's answer: looks for the end of slow start, which would otherwise be a loss.
pub trait SlowStart: std::fmt::Debug + Send {
    /// Its name in the catalogue, and in the trace of decisions.
    fn name(&self) -> &'static str;

    /// The handshake is over.
    fn on_established(&mut self, _view: &View<'_>) {}

    /// Every ACK, whatever the phase: for estimators.
    fn observe(&mut self, _view: &View<'_>, _ack: &Ack) {}

    /// An ACK in slow start, before the window opens.
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Step;

    /// The retransmission timer fired.
    fn on_timeout(&mut self) {}
}
