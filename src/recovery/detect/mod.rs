//! **Is it lost?**

mod three_dupacks;

pub use three_dupacks::ThreeDupacks;

use airlink::time::{Duration, Instant};

use super::{Ack, Departure, Handshake, View};

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
        /// cwnd when the first of them left, for windows that are reduced from that.
        window_when_sent: Option<f64>,
        why: &'static str,
    },
    /// The first unacknowledged segment was sent again in this loss event, and that copy is lost as well.
    HeadAgain {
        /// Is that a loss event of its own, which reduces the window (RFC 5681 §4.3)?
        new_event: bool,
        why: &'static str,
    },
    /// Not known: send the last segment again (or new data) to provoke an ACK.
    Probe {
        why: &'static str,
    },
}

pub trait Detect: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    /// Without SACK, three duplicate ACKs take its place.
    fn needs_sack(&self) -> bool {
        false
    }

    fn on_established(&mut self, _handshake: &Handshake) {}

    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict;

    /// A loss event begins, whoever found it. The window is still what it was.
    fn on_event(&mut self, _view: &View<'_>) {}

    /// The retransmission timer fired.
    fn on_timeout(&mut self, _view: &View<'_>) {}

    /// A timer of its own.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn on_deadline(&mut self, _view: &View<'_>) -> Verdict {
        Verdict::Nothing
    }

    /// Where the detector has a timer that takes the place of the retransmission timer: that one is not to fire
    /// before this much time has passed.
    fn timer_floor(&self) -> Option<Duration> {
        None
    }

    /// How many duplicate ACKs Limited Transmit may answer before the loss is declared (RFC 3042).
    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        view.knobs.dup_thresh
    }
}
