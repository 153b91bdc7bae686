//! The decision trace: which algorithm decided what, when and why.

use airwire::time::Instant;

use super::catalogue::Question;
use super::episode::RecoveryState;

/// One applied decision. Plots and tests read the sequence of decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Time at which the decision was applied.
    pub at: Instant,
    /// State of the sender's loss recovery at that time. Decisions that lead to an episode precede its
    /// `Enter` and have the earlier state.
    pub state: RecoveryState,
    /// The question that the decision answers.
    pub question: Question,
    /// Catalogue name of the algorithm that decided. `restart-window` when the window shrinks after an idle
    /// period, `mtu-probing` when it changes because of an MTU probe.
    pub by: &'static str,
    /// The decision itself.
    pub what: What,
    /// The algorithm's reason, as text for users.
    pub why: &'static str,
}

/// Kinds of decisions. Offsets are in bytes of the stream, windows in segments. JSON cannot represent an
/// infinite ssthresh, which becomes null.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "what", rename_all = "lowercase"))]
pub enum What {
    /// Segments were declared lost.
    Lost {
        /// Start of the first segment.
        offset: u64,
        /// Number of segments.
        segments: u64,
    },
    /// The loss of a segment was attributed to a cause.
    Cause {
        /// Start of the segment.
        offset: u64,
        /// The cause.
        cause: airwire::Cause,
    },
    /// A judge recorded the cause of a loss, without effect on the sender.
    Judged {
        /// Start of the segment.
        offset: u64,
        /// The cause according to the judge.
        cause: airwire::Cause,
    },
    /// An episode began, or the window was reduced although no segment is missing.
    Enter {
        /// The state that began.
        #[cfg_attr(feature = "serde", serde(rename = "phase"))]
        state: RecoveryState,
        /// The episode ends when this offset is acknowledged.
        recover: u64,
    },
    /// The current episode reduced the window after all. Losses of data sent before this decision do not
    /// reduce it again.
    Extend {
        /// The episode ends when this offset is acknowledged.
        recover: u64,
    },
    /// The episode ended.
    Leave {
        /// The state that ended.
        #[cfg_attr(feature = "serde", serde(rename = "phase"))]
        state: RecoveryState,
    },
    /// cwnd or ssthresh changed.
    Window {
        /// cwnd after the change.
        cwnd: f64,
        /// ssthresh after the change. It is infinite until it is first set.
        ssthresh: f64,
        /// cwnd before the change.
        was_cwnd: f64,
        /// ssthresh before the change.
        was_ssthresh: f64,
    },
    /// A segment is retransmitted.
    Resend {
        /// Start of the segment.
        offset: u64,
    },
    /// A segment, new or retransmitted, is sent as a probe to provoke an ACK.
    Probe {
        /// Start of the segment.
        offset: u64,
    },
    /// The retransmission timer fired.
    Timeout {
        /// SND.UNA, the start of the segment for which the timer fired.
        offset: u64,
    },
    /// SND.NXT returned to SND.MAX, so no more old segments are retransmitted.
    Resume {
        /// SND.MAX.
        #[cfg_attr(feature = "serde", serde(rename = "offset"))]
        at: u64,
    },
    /// An answer was replaced because the peer does not support what it needs.
    Fallback {
        /// Name of the replacement.
        to: &'static str,
    },
}

impl What {
    /// Returns the name used in logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "lost",
            Self::Cause { .. } => "cause",
            Self::Judged { .. } => "judged",
            Self::Enter { .. } => "enter",
            Self::Extend { .. } => "extend",
            Self::Leave { .. } => "leave",
            Self::Window { .. } => "window",
            Self::Resend { .. } => "resend",
            Self::Probe { .. } => "probe",
            Self::Timeout { .. } => "timeout",
            Self::Resume { .. } => "resume",
            Self::Fallback { .. } => "fallback",
        }
    }
}
