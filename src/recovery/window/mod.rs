//! **How much may be in flight?**

mod aimd;
mod cubic;
mod jtcp;
mod prr;
pub(crate) mod rebate;
mod receiver;
mod tcp_fit;
mod vegas;
mod veno;
mod westwood;

pub use aimd::Aimd;
pub use cubic::Cubic;
pub use jtcp::Jtcp;
pub use prr::Prr;
pub use rebate::{Rebate, theorem_1};
pub use receiver::ReceiverWindow;
pub use tcp_fit::TcpFit;
pub use vegas::VegasWindow;
pub use veno::Veno;
pub use westwood::Westwood;

use super::detect::Traits;
use super::{Ack, Departure, Entered, Handshake, View};
use crate::flight::Amount;

/// What the window is reduced for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossKind {
    Duplicates,
    Timeout,
    EcnEcho,
}

/// A loss put down to congestion.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loss {
    pub kind: LossKind,
    /// cwnd when the lost segment left, where the detector remembers it: the reduction is taken from that.
    pub window_when_sent: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reduction {
    pub cwnd: f64,
    pub ssthresh: f64,
}

pub trait Window: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    /// cwnd when the connection is established, where the profile says `segments`.
    fn initial(&self, segments: f64) -> f64 {
        segments
    }

    /// `detector`: what kind of detector will say what is lost.
    fn on_established(&mut self, _handshake: &Handshake, _detector: Traits) {}

    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// The last loss event is proven to have been a mistake, whether or not anything is taken back.
    fn on_mistake(&mut self, _entered: Entered) {}

    /// Every ACK, in fast recovery too, before it is asked what it means: for estimators.
    fn observe(&mut self, _view: &View<'_>, _ack: &Ack) {}

    /// The new cwnd for an ACK outside fast recovery, if it changes.
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64>;

    /// A loss put down to congestion. After a timeout only `ssthresh` is used.
    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction;

    /// cwnd at the end of fast recovery.
    fn on_exit(&mut self, view: &View<'_>) -> f64;

    /// The last reduction was taken back: cwnd and ssthresh are about to be what they were.
    fn on_undo(&mut self, _view: &View<'_>) {}
}

/// What a window in recovery goes by.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Newly delivered since it was last asked.
    pub delivered: Amount,
    /// What counts against the window now.
    pub pipe: Amount,
}

/// The window between the beginning and the end of fast recovery, where it does not simply stand.
pub trait InRecovery: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    /// Fast recovery begins and the window has been reduced to this. The new cwnd.
    fn on_enter(&mut self, view: &View<'_>, reduction: &Reduction, progress: &Progress) -> f64;

    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// The new cwnd after an ACK in fast recovery that does not end it, or when a detector's timer has found
    /// something lost without one.
    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> f64;
}

#[cfg(test)]
mod tests;
