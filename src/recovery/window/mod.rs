//! **How much may be in flight?**

mod aimd;
mod receiver;

pub use aimd::Aimd;
pub use receiver::ReceiverWindow;

use super::{Ack, View};

/// What the window is reduced for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossKind {
    Duplicates,
    Timeout,
    EcnEcho,
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

    /// The new cwnd for an ACK outside fast recovery, if it changes.
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64>;

    /// A loss put down to congestion. After a timeout only `ssthresh` is used.
    fn on_loss(&mut self, view: &View<'_>, kind: LossKind) -> Reduction;

    /// cwnd at the end of fast recovery.
    fn on_exit(&mut self, view: &View<'_>) -> f64;
}
