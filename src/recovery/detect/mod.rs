//! **Is it lost?** Detectors say which segments are, from ACKs, departures and timers of their own.

pub(crate) mod blanton_allman;
mod copies;
mod dcr;
mod departures;
mod early_marks;
mod early_retransmit;
mod loss_retransmission;
pub(crate) mod pr;
mod rack;
mod reordering;
pub(crate) mod rr;
pub(crate) mod sifest;
mod sifest_literal;
mod three_dupacks;

use airwire::time::{Duration, Instant};
pub(crate) use blanton_allman::BlantonAllman;
pub(crate) use dcr::Dcr;
pub(crate) use early_marks::EarlyMarks;
pub(crate) use early_retransmit::EarlyRetransmit;
pub(crate) use loss_retransmission::LossRetransmission;
pub(crate) use pr::Pr;
pub(crate) use rack::Rack;
pub(crate) use rr::Rr;
pub(crate) use sifest::Sifest;
pub(crate) use sifest_literal::SifestLiteral;
pub use three_dupacks::ThreeDupacks;

use super::undo::Restore;
use super::{Ack, Departure, Handshake, View};

/// What a detector has found. Offsets are octets of the stream; each `why` is for people, in the trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// No loss.
    Nothing,
    /// The first unacknowledged segment is lost.
    Head {
        /// The reason.
        why: &'static str,
    },
    /// The same, and the duplicate ACKs are not those of copies sent in vain: a loss event begins even where `recover`
    /// would forbid it (RFC 6582 §3.2 step 1).
    HeadBeyondDoubt {
        /// The reason.
        why: &'static str,
    },
    /// Everything below an offset is lost that the receiver has not reported and that was sent only once.
    Below {
        /// The offset.
        offset: u64,
        /// The reason.
        why: &'static str,
    },
    /// Exactly these segments are lost, whether they were sent again before or not.
    Segments {
        /// Where each of them begins.
        starts: Vec<u64>,
        /// The loss event to which they belong.
        event: LossEvent,
        /// The reason.
        why: &'static str,
    },
    /// The first unacknowledged segment was sent again in this loss event, and that copy is lost as well.
    HeadAgain {
        /// Whether that is a loss event of its own, which reduces the window (RFC 5681 §4.3).
        new_event: bool,
        /// The reason.
        why: &'static str,
    },
    /// Not known: send something new or, if there is nothing new, the last segment again, to provoke an ACK.
    Probe {
        /// The reason.
        why: &'static str,
    },
    /// Something was lost, and such a probe has repaired it: nothing is to be sent, but the window is reduced.
    Repaired {
        /// What it is reduced from, in segments.
        window_when_sent: f64,
        /// The reason.
        why: &'static str,
    },
}

impl Verdict {
    /// Whether it says that originals are lost. While it is open what a timeout meant, they are not heard.
    pub(super) fn is_about_originals(&self) -> bool {
        match self {
            Self::Head { .. } | Self::HeadBeyondDoubt { .. } | Self::Below { .. } | Self::Segments { .. } => {
                true
            }
            Self::Nothing | Self::HeadAgain { .. } | Self::Probe { .. } | Self::Repaired { .. } => false,
        }
    }
}

/// The loss event to which the loss of particular segments belongs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossEvent {
    /// The one under repair. Where there is none a new one begins, if the repair agrees.
    Present,
    /// One that has reduced the window already, whether its repair is over or not.
    Past,
    /// One of its own, even in the middle of another's repair.
    Own {
        /// cwnd when the first of them left: the window is reduced from that.
        window_when_sent: f64,
    },
    /// Too much is lost for a repair: the sender starts over from the loss window.
    Collapse {
        /// cwnd when the first of them left, if this loss is to reduce ssthresh too. `None`: its event has done so.
        window_when_sent: Option<f64>,
        /// Nothing is sent before this.
        until: Instant,
    },
}

/// How long a receiver may hold back an ACK (RFC 8985 §7.2, TLP.max_ack_delay; a Linux receiver's longest too).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

/// Detectors that go by time wait at least this long: on a path without delay a few round trips are less than any host
/// takes to answer.
const MIN_PATIENCE: Duration = Duration::from_millis(10);

/// Which of the segments that arrive open the window. It takes a scoreboard to know of those out of order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opens {
    /// Those that an ACK acknowledges in order.
    InOrder,
    /// Every one, also while others are missing, but not in fast recovery.
    OutOfOrder,
    /// Every one, also while others are sent again.
    Always,
}

/// What the rest of a sender has to know of a detector. The default is that of three duplicate ACKs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traits {
    /// It cannot do without SACK: if the peer does not permit it, three duplicate ACKs take its place.
    pub needs_sack: bool,
    /// A segment that DupThresh others overtake looks lost to it (P3 (2), against (3)).
    pub mistakes_reordering: bool,
    /// It judges each segment by itself: none is sent again before it is judged lost, even if there is nothing new to
    /// send (RFC 6675 NextSeg rules 3 and 4 do not hold).
    pub judges_each_segment: bool,
    /// It waits long for late segments: while no loss is being repaired, new segments replace what the receiver reports
    /// by SACK, with Limited Transmit or without.
    pub keeps_flowing: bool,
    /// What opens the window.
    pub opens: Opens,
    /// Its own timer takes the place of the retransmission timer, which does not fire before this much time has passed.
    /// `None`: the retransmission timer is as ever.
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
            opens: Opens::InOrder,
            timer_floor: None,
        }
    }
}

/// An answer to "Is it lost?".
pub trait Detect: std::fmt::Debug + Send {
    /// Its name in the catalogue, and in the trace of decisions.
    fn name(&self) -> &'static str;

    /// What the rest of the sender has to know of it. That may change while the detector runs.
    fn traits(&self) -> Traits {
        Traits::default()
    }

    /// The handshake is over.
    fn on_established(&mut self, _handshake: &Handshake) {}

    /// A segment has left.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Departure) {}

    /// An ACK has arrived; asked after all other questions. The verdict is about what is outstanding now.
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict;

    /// A loss event begins, whoever found it. The window is still what it was before.
    fn on_event(&mut self, _view: &View<'_>) {}

    /// The last loss event was a mistake, or some of it.
    fn on_undo(&mut self, _view: &View<'_>, _restore: &Restore) {}

    /// It has said [`LossEvent::Collapse`], and the event was put down to the radio: the sender does not start over.
    fn on_refused_collapse(&mut self, _view: &View<'_>) {}

    /// The retransmission timer fired. The phase is still what it was before.
    fn on_timeout(&mut self, _view: &View<'_>) {}

    /// When it wants to be asked by [`Detect::on_deadline`]. `None`: with the next ACK.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The time of [`Detect::deadline`] has come.
    fn on_deadline(&mut self, _view: &View<'_>) -> Verdict {
        Verdict::Nothing
    }

    /// How many duplicate ACKs are answered with a new segment each, where there is no scoreboard (the extended Limited
    /// Transmit of RFC 4653). `None`: Limited Transmit is as ever.
    fn answered_dupacks(&self, _view: &View<'_>) -> Option<u32> {
        None
    }

    /// How many duplicate ACKs Limited Transmit may answer before the loss is declared (RFC 3042).
    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        view.knobs.dup_thresh
    }
}
