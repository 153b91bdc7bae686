//! **How much may be in flight?** The answer opens the window with ACKs and reduces it at losses. All windows are in
//! segments.

mod aimd;
mod bbr;
mod bbr3;
#[cfg(test)]
mod bench;
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

use super::detect::Traits;
use super::{Ack, Departure, Entered, Handshake, Truth, View};
use crate::flight::Amount;

/// What the window is reduced for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossKind {
    /// A detector found a loss, by duplicate ACKs or otherwise.
    Duplicates,
    /// The retransmission timer fired.
    Timeout,
    /// An ECN echo; nothing is missing (RFC 3168 §6.1.2).
    EcnEcho,
}

/// A loss put down to congestion.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loss {
    /// What the window is reduced for.
    pub kind: LossKind,
    /// cwnd when the lost segment left, where somebody remembers it: the reduction is taken from that. `None`: from
    /// what the profile says.
    pub window_when_sent: Option<f64>,
}

/// What a window becomes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reduction {
    /// cwnd from here on.
    pub cwnd: f64,
    /// ssthresh from here on.
    pub ssthresh: f64,
}

/// An answer to "How much may be in flight?".
pub trait Window: std::fmt::Debug + Send {
    /// Its name in the catalogue, and in the trace of decisions.
    fn name(&self) -> &'static str;

    /// cwnd when the connection is established. The profile says `segments`.
    fn initial(&self, segments: f64) -> f64 {
        segments
    }

    /// The handshake is over. `detector`: what kind of detector will say what is lost.
    fn on_established(&mut self, _handshake: &Handshake, _detector: Traits) {}

    /// A segment has left.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// Timestamps prove the last loss event to have been a mistake (RFC 3522), whether or not anything is taken back.
    fn on_mistake(&mut self, _entered: Entered) {}

    /// What only the path knows. Told to recipes with [`Need::Truth`](super::catalogue::Need::Truth), in virtual time.
    fn on_truth(&mut self, _truth: Truth) {}

    /// Every ACK, in fast recovery too, before anything is decided about it: for estimators.
    fn observe(&mut self, _view: &View<'_>, _ack: &Ack) {}

    /// The new cwnd after an ACK outside fast recovery. `None`: it stays.
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64>;

    /// What the window becomes after a loss put down to congestion. After a timeout only `ssthresh` is used. cwnd and
    /// ssthresh are still what they were before.
    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction;

    /// cwnd at the end of fast recovery.
    fn on_exit(&mut self, view: &View<'_>) -> f64;

    /// The last reduction is about to be taken back: cwnd and ssthresh are still the reduced ones.
    fn on_undo(&mut self, _view: &View<'_>) {}

    /// The model of the path that decides the window in every state. Then [`Self::on_ack`] and [`Self::on_exit`] leave it
    /// as it is, and so does [`Self::on_loss`]. `None`: there is none, and nobody takes rate samples.
    fn model(&mut self) -> Option<&mut dyn Model> {
        None
    }

    /// It gives a rate: [`Self::pacing_rate`] is always `Some`.
    fn paces(&self) -> bool {
        false
    }

    /// How fast segments may leave, in octets of text a second. `None`: as fast as cwnd lets them.
    fn pacing_rate(&self, _view: &View<'_>) -> Option<f64> {
        None
    }
}

/// What a window in fast recovery goes by.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Newly delivered since the window was last asked.
    pub delivered: Amount,
    /// What counts against the window now.
    pub pipe: Amount,
    /// SND.UNA has advanced, and nothing more is known to be lost (RFC 9937 §6.2, safeACK).
    pub is_safe: bool,
}

/// Stands beside the answer: decides the window between the beginning and the end of fast recovery, where it would
/// otherwise simply stand.
pub trait InRecovery: std::fmt::Debug + Send {
    /// Its name in the catalogue, and in the trace of decisions.
    fn name(&self) -> &'static str;

    /// The new cwnd when fast recovery begins and the window has been reduced from `before` to `reduction`.
    fn on_enter(&mut self, view: &View<'_>, before: f64, reduction: &Reduction, progress: &Progress) -> f64;

    /// A segment has left, in a recovery that is under way.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// The new cwnd after an ACK in fast recovery that does not end it, or when a detector's timer has found
    /// something lost without one.
    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> f64;
}

#[cfg(test)]
mod tests;
