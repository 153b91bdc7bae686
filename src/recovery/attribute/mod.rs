//! **Why was it lost?** Congestion costs the window, a loss on the radio does not.

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

use super::parameter::Given;
use super::{Ack, Departure, Handshake, Truth, View};

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

    /// What only the path knows. Told to recipes with [`Need::Truth`](super::catalogue::Need::Truth), in virtual time.
    fn on_truth(&mut self, _truth: Truth) {}

    /// What the loss of the segment that begins at `lost` is put down to, and why, for the trace. `None`: it cannot be
    /// said yet, and will be said once SND.UNA has reached the segment.
    ///
    /// Asked when a loss event begins, when a probe has repaired a loss, and in an event that was put down to the radio
    /// about each further hole before it is sent again: one that is not known waits. About a timeout only judges that
    /// watch are asked, unless the recipe has `marked-timeout`.
    fn cause(&mut self, view: &View<'_>, lost: u64) -> Option<(Cause, &'static str)>;

    /// Whether its judgement counts at a timeout too: one that it puts down to the radio keeps the window.
    fn judges_timeouts(&self) -> bool {
        false
    }
}

/// The ordinary answer (RFC 5681): every loss is a sign of congestion.
#[derive(Debug, Default)]
pub struct AlwaysCongestion;

impl Attribute for AlwaysCongestion {
    fn name(&self) -> &'static str {
        "always-congestion"
    }

    fn cause(&mut self, _view: &View<'_>, _lost: u64) -> Option<(Cause, &'static str)> {
        Some((Cause::Congestion, "every loss is treated as congestion"))
    }
}

/// The RTT-based judges of P1 §3.2, to watch a sender that asks somebody else.
pub fn judges() -> Vec<Box<dyn Attribute>> {
    with(Ncpld::default())
}

/// The same with the parameters of a recipe.
pub(crate) fn judges_of(given: &Given<'_>) -> Vec<Box<dyn Attribute>> {
    with(Ncpld::new(given))
}

fn with(ncpld: Ncpld) -> Vec<Box<dyn Attribute>> {
    vec![Box::<Vegas>::default(), Box::<Ntg>::default(), Box::<Ndg>::default(), Box::new(ncpld)]
}
