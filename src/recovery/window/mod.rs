//! **How much may be in flight?** The answer opens the window on ACKs and reduces it on losses. All windows
//! are in segments.

mod aimd;
mod bbr;
mod bbr3;
mod cubic;
mod cubic_linux;
mod hystart;
mod hystartpp;
mod jtcp;
mod model;
mod prr;
pub(crate) mod rebate;
mod receiver;
mod slow_start;
mod tcp_fit;
#[cfg(test)]
mod test_path;
mod vegas;
mod veno;
pub(crate) mod westwood;
mod windowed_max;

pub use aimd::Aimd;
pub(crate) use bbr::Bbr;
pub(crate) use bbr3::Bbr3;
pub(crate) use cubic::Cubic;
pub(crate) use cubic_linux::CubicLinux;
pub(crate) use hystart::HyStart;
pub(crate) use hystartpp::HyStartPp;
pub(crate) use jtcp::Jtcp;
pub use model::{Model, Modelled};
pub(crate) use prr::Prr;
pub(crate) use rebate::Rebate;
pub use rebate::{ideal_compensator, theorem_1};
pub(crate) use receiver::ReceiverWindow;
pub use slow_start::{SlowStart, Step};
pub(crate) use tcp_fit::TcpFit;
pub(crate) use vegas::VegasWindow;
pub(crate) use veno::Veno;
pub(crate) use westwood::Westwood;

use super::{Ack, Transmission, Truth, View};
use crate::flight::Amount;

/// The reason for a reduction of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossKind {
    /// A detector found a loss, for example by duplicate ACKs.
    Detected,
    /// The retransmission timer fired.
    Timeout,
    /// An ECN echo arrived, and nothing is missing (RFC 3168 §6.1.2).
    EcnEcho,
}

/// A loss attributed to congestion.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loss {
    /// The reason for the reduction.
    pub kind: LossKind,
    /// cwnd when the lost segment was sent, if the detector remembers it. The reduction then applies to this
    /// value. `None`: the profile selects the value to reduce.
    pub window_when_sent: Option<f64>,
}

/// The window after a reduction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reduction {
    /// New cwnd.
    pub cwnd: f64,
    /// New ssthresh.
    pub ssthresh: f64,
}

/// An answer to "How much may be in flight?".
pub trait Window: std::fmt::Debug + Send {
    /// Returns cwnd when the connection is established. `segments` is the value of the profile.
    fn initial(&self, segments: f64) -> f64 {
        segments
    }

    /// Called when a segment was sent.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Transmission) {}

    /// Receives ground truth from the path, in virtual time, if the recipe has
    /// [`Need::Truth`](super::catalogue::Need::Truth).
    fn on_truth(&mut self, _truth: Truth) {}

    /// Called for every ACK, including those in fast recovery, before any decision. For estimators.
    fn observe(&mut self, _view: &View<'_>, _ack: &Ack) {}

    /// Returns the new cwnd after an ACK outside fast recovery. `None`: cwnd does not change.
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64>;

    /// Returns the window after a loss attributed to congestion. After a timeout only `ssthresh` is used.
    /// When this is called, cwnd and ssthresh still have their old values.
    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction;

    /// Returns cwnd at the end of fast recovery: ssthresh, with the limits of the profile.
    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        aimd::exit_window(view, view.cc.ssthresh)
    }

    /// Called at every timeout of the retransmission timer, after [`Self::on_loss`] if the window is reduced.
    fn after_timeout(&mut self) {}

    /// Called before the last reduction is undone. cwnd and ssthresh still have the reduced values.
    fn on_undo(&mut self) {}

    /// Returns the model of the path, if one determines the window in every state. Then [`Self::on_ack`],
    /// [`Self::on_exit`] and [`Self::on_loss`] do not change the window. `None`: the window has no model, and
    /// no rate samples are taken.
    fn model(&mut self) -> Option<&mut dyn Model> {
        None
    }

    /// Returns the pacing rate of a window with a model, in bytes of payload per second. `None`: the window has
    /// no model, and only cwnd limits the sender.
    fn pacing_rate(&self, _view: &View<'_>) -> Option<f64> {
        None
    }
}

/// The progress of fast recovery, from which the window is computed.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Amount delivered since the last call.
    pub delivered: Amount,
    /// Amount that counts against the window now.
    pub pipe: Amount,
    /// Whether SND.UNA has advanced and no further loss was detected (RFC 9937 §6.2, safeACK).
    pub is_safe: bool,
}

/// An add-on that controls the window from the beginning to the end of fast recovery, where it would
/// otherwise be constant.
pub trait InRecovery: std::fmt::Debug + Send {
    /// Returns the new cwnd when fast recovery begins, after the window was reduced from `before` to
    /// `reduction`.
    fn on_enter(&mut self, view: &View<'_>, before: f64, reduction: &Reduction, progress: &Progress) -> f64;

    /// Called when a segment was sent during recovery.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Transmission) {}

    /// Returns the new cwnd after an ACK in fast recovery that does not end it, or after a detector's timer
    /// has found a loss without an ACK.
    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> f64;
}

#[cfg(test)]
mod tests;
