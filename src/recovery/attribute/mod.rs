//! **Why was it lost?** Attributes each loss to congestion or to the radio link. A loss on the radio link
//! does not reduce the window.

pub(crate) mod ncpld;
mod ndg;
mod ntg;
mod oracle;
mod sample;
#[cfg(test)]
mod tests;
pub(crate) mod transit_marks;
mod vegas;

use airwire::Cause;
pub(crate) use ncpld::Ncpld;
pub(crate) use ndg::Ndg;
pub(crate) use ntg::Ntg;
pub(crate) use oracle::Oracle;
pub(crate) use transit_marks::TransitMarks;
pub(crate) use vegas::Vegas;

use super::{Ack, Truth, View};

/// An algorithm that answers *Why was it lost?*
pub trait Attribute: std::fmt::Debug + Send {
    /// Called after a segment was sent.
    fn on_sent(&mut self, _view: &View<'_>) {}

    /// Called for every ACK, before any decision about this ACK. cwnd and ssthresh still have their old
    /// values.
    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) {}

    /// Receives ground truth about the path. Only recipes with [`Need::Truth`](super::catalogue::Need::Truth)
    /// get it, and only in virtual time.
    fn on_truth(&mut self, _truth: Truth) {}

    /// Returns the cause of the loss of the segment that starts at `lost`, and the reason for the decision
    /// trace. `None` means that the cause is not known yet. It will be known when SND.UNA reaches the
    /// segment.
    ///
    /// The engine calls this function when an episode begins and when a probe repaired a loss. In an episode
    /// attributed to the radio link, the engine also calls it for each further hole before the
    /// retransmission, and a hole without a known cause waits. At a timeout, only the judges are consulted
    /// unless [`judges_timeouts`](Attribute::judges_timeouts) returns true.
    fn cause(&mut self, view: &View<'_>, lost: u64) -> Option<(Cause, &'static str)>;

    /// Returns whether the attribution also applies to timeouts. If so, a timeout attributed to the radio
    /// link keeps the window.
    fn judges_timeouts(&self) -> bool {
        false
    }
}

/// The default answer (RFC 5681): every loss is a sign of congestion.
#[derive(Debug, Default)]
pub struct AlwaysCongestion;

impl Attribute for AlwaysCongestion {
    fn cause(&mut self, _view: &View<'_>, _lost: u64) -> Option<(Cause, &'static str)> {
        Some((Cause::Congestion, "every loss is treated as congestion"))
    }
}
