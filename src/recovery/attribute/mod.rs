//! **Why was it lost?**

mod ncpld;
mod ndg;
mod ntg;
mod sample;
#[cfg(test)]
mod tests;
mod transit_marks;
mod vegas;

use airwire::Cause;
pub use ncpld::Ncpld;
pub use ndg::Ndg;
pub use ntg::Ntg;
pub use transit_marks::TransitMarks;
pub use vegas::Vegas;

use super::{Ack, Departure, Handshake, View};

pub trait Attribute: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    fn on_established(&mut self, _handshake: &Handshake) {}

    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// Every ACK. The window is what it was before it.
    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) {}

    /// Asked once per loss event.
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
