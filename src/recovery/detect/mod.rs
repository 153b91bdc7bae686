//! **Is it lost?** Detectors find lost segments from ACKs, transmissions and timers.

pub(crate) mod blanton_allman;
mod dcr;
mod early_marks;
mod early_retransmit;
mod emulated_sacks;
mod loss_retransmission;
pub(crate) mod pr;
mod rack;
mod reordering;
mod retransmissions;
pub(crate) mod rr;
mod send_order;
pub(crate) mod sifest;
mod sifest_literal;
#[cfg(test)]
mod testing;
mod three_dupacks;

use airwire::time::{Duration, Instant};
pub(crate) use blanton_allman::BlantonAllman;
pub(crate) use dcr::Dcr;
pub(crate) use early_marks::EarlyMarks;
pub(crate) use early_retransmit::EarlyRetransmit;
pub(crate) use emulated_sacks::EmulatedSacks;
pub(crate) use loss_retransmission::LossRetransmission;
pub(crate) use pr::Pr;
pub(crate) use rack::Rack;
pub(crate) use rr::Rr;
pub(crate) use sifest::Sifest;
pub(crate) use sifest_literal::SifestLiteral;
pub use three_dupacks::ThreeDupacks;

use super::undo::Restore;
use super::{Ack, Transmission, View};

/// A detector's verdict. Offsets are in bytes of the stream. Each `why` is the reason in the decision trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// No loss was detected.
    Nothing,
    /// The first unacknowledged segment is lost.
    Head {
        /// The reason.
        why: &'static str,
    },
    /// The first unacknowledged segment is lost, and spurious retransmissions did not cause the duplicate
    /// ACKs. An episode begins even where `recover` would forbid it (RFC 6582 §3.2 step 2).
    HeadDespiteRecover {
        /// The reason.
        why: &'static str,
    },
    /// All segments below an offset are lost, except those that were retransmitted or that the receiver has
    /// reported.
    Below {
        /// The offset.
        offset: u64,
        /// The reason.
        why: &'static str,
    },
    /// Exactly these segments are lost, whether or not they were retransmitted before.
    Segments {
        /// Start of each segment.
        starts: Vec<u64>,
        /// The episode to which the loss belongs.
        episode: LossEpisode,
        /// The reason.
        why: &'static str,
    },
    /// The first unacknowledged segment was retransmitted in this episode, and the retransmission is also
    /// lost.
    RetransmittedHead {
        /// Whether this starts a new episode, which reduces the window (RFC 5681 §4.3).
        new_episode: bool,
        /// The reason.
        why: &'static str,
    },
    /// Not known: a probe must provoke an ACK. It carries new data or, if there is none, the last segment.
    Probe {
        /// The reason.
        why: &'static str,
    },
    /// A probe repaired a loss. Nothing has to be retransmitted, but the window is reduced.
    Repaired {
        /// The flight when the probe was sent, in segments. The window is reduced from this value.
        window_when_sent: f64,
        /// The reason.
        why: &'static str,
    },
}

impl Verdict {
    /// Returns whether the verdict declares original transmissions lost. The engine ignores such verdicts
    /// while the timeout answer is undecided.
    pub(super) fn is_about_originals(&self) -> bool {
        match self {
            Self::Head { .. }
            | Self::HeadDespiteRecover { .. }
            | Self::Below { .. }
            | Self::Segments { .. } => true,
            Self::Nothing | Self::RetransmittedHead { .. } | Self::Probe { .. } | Self::Repaired { .. } => {
                false
            }
        }
    }
}

/// The episode to which the loss of particular segments belongs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossEpisode {
    /// The current episode. If there is none, a new one begins, provided that the repair agrees.
    Current,
    /// An episode that has already reduced the window, whether or not it is over.
    Past,
    /// A new episode, even during another one.
    New {
        /// cwnd when the first of the segments was sent. The window is reduced from this value.
        window_when_sent: f64,
    },
    /// Too many losses for fast recovery: the sender restarts from the loss window.
    Collapse {
        /// cwnd when the first of the segments was sent, if the loss also reduces ssthresh. `None` if its
        /// episode has already done so.
        window_when_sent: Option<f64>,
        /// Nothing is sent before this time.
        until: Instant,
    },
}

/// Longest time for which a receiver may delay an ACK (RFC 8985 §7.2, TLP.max_ack_delay). It is also the
/// longest delay of a Linux receiver.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

/// Shortest wait of a time-based detector. On a path without delay, a few round trips are shorter than the
/// response time of any host.
const MIN_PATIENCE: Duration = Duration::from_millis(10);

/// The delivered segments that open the window. Without a scoreboard, only segments in order open it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opens {
    /// Segments that an ACK acknowledges in order.
    InOrder,
    /// All segments, even while others are missing, but not in fast recovery.
    OutOfOrder,
    /// All segments, even in fast recovery.
    Always,
}

/// Properties of a detector that the rest of the sender needs to know. The defaults are the traits of three
/// duplicate ACKs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traits {
    /// The detector mistakes a segment for lost when DupThresh other segments overtake it (Lai et al. 2013
    /// then uses equation (2) instead of equation (3)).
    pub mistakes_reordering: bool,
    /// The detector waits a long time for late segments. While no loss is being repaired, new segments
    /// replace those that the receiver reports by SACK, with or without Limited Transmit.
    pub keeps_flowing: bool,
    /// The delivered segments that open the window.
    pub opens: Opens,
    /// The detector's own timer replaces the retransmission timer, which does not fire before this time has
    /// passed. `None` leaves the retransmission timer unchanged.
    pub timer_floor: Option<Duration>,
    /// The detector's timers and the retransmission timer are one timer, as in Linux. When the detector's wait
    /// ends without a probe, the retransmission timer counts from the transmission of the first outstanding
    /// segment (tcp_rearm_rto()).
    pub shares_timer: bool,
    /// Number of segments that duplicate ACKs represent, if they take the place of SACK blocks. Fast recovery
    /// then counts what is in flight, instead of inflating the window.
    pub sacked_out: Option<u64>,
    /// The reordering that the detector has measured.
    pub reordering: MeasuredReordering,
}

impl Default for Traits {
    /// Returns the traits of three duplicate ACKs.
    fn default() -> Self {
        Self {
            mistakes_reordering: true,
            keeps_flowing: false,
            opens: Opens::InOrder,
            timer_floor: None,
            shares_timer: false,
            sacked_out: None,
            reordering: MeasuredReordering::default(),
        }
    }
}

/// A correction of earlier verdicts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Correction {
    /// The last episode turned out to be spurious, at least in part.
    Undone(Restore),
    /// A [`LossEpisode::Collapse`] was attributed to the radio link, so the sender does not restart.
    RefusedCollapse,
    /// The peer has received a tail loss probe after the original.
    ProbeAnswered,
    /// The receiver has reneged on SACKed data. Nothing is declared lost until the retransmission timer expires.
    Reneged,
}

/// tcp_max_reordering of Linux, in segments.
const MAX_REORDERING: u64 = 300;

/// Reordering that a detector has measured on the path.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MeasuredReordering {
    /// Largest distance, in segments, by which one segment has overtaken another. Zero if the detector has
    /// not measured one that changes its behaviour.
    pub degree: u32,
    /// Number of ACKs that showed reordering.
    pub events: u32,
}

/// An algorithm that answers *Is it lost?* `three-dupacks` replaces it if its row needs SACK and the peer does
/// not permit it.
pub trait Detect: std::fmt::Debug + Send {
    /// Returns the traits, which may change while the detector runs.
    fn traits(&self) -> Traits {
        Traits::default()
    }

    /// Called after a segment was sent.
    fn on_sent(&mut self, _view: &View<'_>, _departure: &Transmission) {}

    /// Called for every ACK, after the timeout, undo and repair answers. The verdict is about the segments
    /// that are outstanding now.
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict;

    /// Called when an episode begins, after a verdict of any detector. cwnd and ssthresh still have their
    /// old values.
    fn on_episode(&mut self, _view: &View<'_>) {}

    /// Called when a verdict, possibly of another detector, had less effect than it demanded.
    fn on_correction(&mut self, _view: &View<'_>, _correction: Correction) {}

    /// Called when the retransmission timer fires. The state still has its old value.
    fn on_timeout(&mut self, _view: &View<'_>) {}

    /// Returns the time for the next call of [`Detect::on_deadline`], or `None` if the next ACK is early
    /// enough.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Called at the time that [`Detect::deadline`] returned.
    fn on_deadline(&mut self, _view: &View<'_>) -> Verdict {
        Verdict::Nothing
    }

    /// Returns the number of duplicate ACKs that each release a new segment, for a sender without a
    /// scoreboard (extended Limited Transmit, RFC 4653). `None` leaves Limited Transmit unchanged.
    fn answered_dupacks(&self, _view: &View<'_>) -> Option<u32> {
        None
    }

    /// Returns the number of duplicate ACKs at which the loss is declared and Limited Transmit ends (RFC
    /// 3042).
    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        view.rules.detection.dup_thresh
    }
}
