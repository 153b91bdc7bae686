//! **Why was it lost?** Congestion costs the window, a loss on the radio does not.

mod ncpld;
mod ndg;
mod ntg;
mod sample;
#[cfg(test)]
mod tests;
mod transit_marks;
mod vegas;

use airwire::Cause;
pub(crate) use ncpld::Ncpld;
pub(crate) use ndg::Ndg;
pub(crate) use ntg::Ntg;
pub(crate) use transit_marks::TransitMarks;
pub(crate) use vegas::Vegas;

use super::{Ack, Departure, Handshake, View};

/// An answer to "Why was it lost?".
pub trait Attribute: std::fmt::Debug + Send {
    /// Its name in the catalogue, and in the trace of decisions.
    fn name(&self) -> &'static str;

    /// The handshake is over.
    fn on_established(&mut self, _handshake: &Handshake) {}

    /// A segment has left.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// Every ACK, before anything is decided about it: the window is still what it was before.
    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) {}

    /// What the loss of the segments now missing is put down to, and why, for the trace. Asked when a loss event
    /// begins, when a probe has repaired a loss, and again for a further hole of an event that was put down to the
    /// radio. A timeout is always congestion: only judges that watch are asked about it.
    fn cause(&mut self, view: &View<'_>) -> (Cause, &'static str);
}

/// The ordinary answer (RFC 5681): every loss is a sign of congestion.
#[derive(Debug, Default)]
pub struct AlwaysCongestion;

impl Attribute for AlwaysCongestion {
    fn name(&self) -> &'static str {
        "always-congestion"
    }

    fn cause(&mut self, _view: &View<'_>) -> (Cause, &'static str) {
        (Cause::Congestion, "every loss is taken for congestion")
    }
}

/// The RTT-based judges of P1 §3.2, to watch a sender that asks somebody else.
pub fn judges() -> Vec<Box<dyn Attribute>> {
    vec![Box::<Vegas>::default(), Box::<Ntg>::default(), Box::<Ndg>::default(), Box::<Ncpld>::default()]
}
