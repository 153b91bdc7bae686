//! **Is it lost?**

pub(crate) mod blanton_allman;
mod copies;
mod dcr;
mod departures;
mod early_marks;
mod loss_retransmission;
pub(crate) mod pr;
mod rack;
mod reordering;
pub(crate) mod rr;
mod sifest;
mod three_dupacks;

use airwire::time::{Duration, Instant};
pub use blanton_allman::BlantonAllman;
pub use dcr::Dcr;
pub use early_marks::EarlyMarks;
pub use loss_retransmission::LossRetransmission;
pub use pr::Pr;
pub use rack::Rack;
pub use rr::Rr;
pub use sifest::Sifest;
pub use three_dupacks::ThreeDupacks;

use super::{Ack, Departure, Handshake, View};

/// An answer to "is it lost?".
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Nothing,
    /// The first unacknowledged segment is lost.
    Head {
        why: &'static str,
    },
    /// The same, and the duplicate ACKs are not those of copies sent in vain: `recover` need not be asked
    /// (RFC 6582 §3.2 step 1).
    HeadBeyondDoubt {
        why: &'static str,
    },
    /// Everything below this offset that the receiver has not reported and that was sent only once.
    Below {
        offset: u64,
        why: &'static str,
    },
    /// Exactly these segments, by their first offset, whether they were sent again before or not.
    Segments {
        starts: Vec<u64>,
        event: LossEvent,
        why: &'static str,
    },
    /// The first unacknowledged segment was sent again in this loss event, and that copy is lost as well.
    HeadAgain {
        /// Is that a loss event of its own, which reduces the window (RFC 5681 §4.3)?
        new_event: bool,
        why: &'static str,
    },
    /// Not known: send something new, or else the last segment again, to provoke an ACK.
    Probe {
        why: &'static str,
    },
    /// Something was lost, and such a probe has repaired it: nothing is to be sent, but the window is reduced.
    Repaired {
        /// From what it is reduced.
        window_when_sent: f64,
        why: &'static str,
    },
}

impl Verdict {
    /// Does it say that what was sent before is lost?
    pub fn is_about_originals(&self) -> bool {
        match self {
            Self::Head { .. } | Self::HeadBeyondDoubt { .. } | Self::Below { .. } | Self::Segments { .. } => {
                true
            }
            Self::Nothing | Self::HeadAgain { .. } | Self::Probe { .. } | Self::Repaired { .. } => false,
        }
    }
}

/// To which loss event the loss of particular segments belongs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossEvent {
    /// The one under repair; where there is none a new one begins, if the repair agrees.
    Present,
    /// One that has reduced the window already, whether its repair is over or not.
    Past,
    /// One of its own, even in the middle of another's repair.
    Own {
        /// cwnd when the first of them left: the window is reduced from that.
        window_when_sent: f64,
    },
    /// Too much for that: the sender starts over from the loss window, and sends nothing before `until`.
    Collapse {
        /// Where the event that it ends in has not reduced the window yet.
        window_when_sent: Option<f64>,
        until: Instant,
    },
}

/// How long a receiver may hold back an ACK (RFC 8985 §7.2, TLP.max_ack_delay; a Linux receiver's longest too).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

/// On a path without delay a few round trips are less than any host takes to answer.
const MIN_PATIENCE: Duration = Duration::from_millis(10);

/// What the rest of a sender has to know of a detector.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traits {
    /// It cannot do without SACK: if the peer does not permit it, three duplicate ACKs take its place.
    pub needs_sack: bool,
    /// A segment that DupThresh others overtake looks lost to it (P3 (2), against (3)).
    pub mistakes_reordering: bool,
    /// It judges each segment by itself: none is sent again before, only because there is nothing new to send (RFC 6675
    /// NextSeg rules 3 and 4).
    pub judges_each_segment: bool,
    /// It waits so long for late segments that what the receiver reports by SACK is replaced meanwhile, Limited Transmit
    /// or not.
    pub keeps_flowing: bool,
    /// Every segment that arrives opens the window, also while others are missing or sent again. It takes a scoreboard
    /// to know.
    pub keeps_opening: bool,
    /// Its own timer takes the place of the retransmission timer, which is not to fire before this much time has passed.
    pub timer_floor: Option<Duration>,
}

impl Default for Traits {
    /// Those of three duplicate ACKs.
    fn default() -> Self {
        Self {
            needs_sack: false,
            mistakes_reordering: true,
            judges_each_segment: false,
            keeps_flowing: false,
            keeps_opening: false,
            timer_floor: None,
        }
    }
}

/// An answer to "Is it lost?".
pub trait Detect: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    /// What the rest of the sender has to know of it. It may change while the detector runs.
    fn traits(&self) -> Traits {
        Traits::default()
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

    /// While this is not `None`, so many duplicate ACKs are answered with a new segment each where there is no scoreboard
    /// (the extended Limited Transmit of RFC 4653).
    fn answered_dupacks(&self, _view: &View<'_>) -> Option<u32> {
        None
    }

    /// How many duplicate ACKs Limited Transmit may answer before the loss is declared (RFC 3042).
    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        view.knobs.dup_thresh
    }
}
