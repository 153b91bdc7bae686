//! **Is it lost?**

mod three_dupacks;

pub use three_dupacks::ThreeDupacks;

use airlink::time::Instant;

use super::{Ack, Departure, View};

/// An answer to "is it lost?".
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Nothing,
    /// The first unacknowledged segment is lost.
    Head {
        why: &'static str,
    },
    /// Everything below this offset that the receiver has not reported and that was sent only once.
    Below {
        offset: u64,
        why: &'static str,
    },
    /// Exactly these segments, by their first offset.
    Segments {
        starts: Vec<u64>,
        why: &'static str,
    },
    /// Not known: send the last segment again (or new data) to provoke an ACK.
    Probe {
        why: &'static str,
    },
}

pub trait Detect: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict;

    /// The retransmission timer fired.
    fn on_timeout(&mut self, _view: &View<'_>) {}

    /// A timer of its own.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn on_deadline(&mut self, _view: &View<'_>) -> Verdict {
        Verdict::Nothing
    }

    /// How many duplicate ACKs Limited Transmit may answer before the loss is declared (RFC 3042).
    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        view.knobs.dup_thresh
    }
}
